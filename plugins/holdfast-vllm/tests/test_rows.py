"""Rows that are swapped and condensed, two engines, and the new runner's slots."""

import random
from types import SimpleNamespace

from conftest import CHATS, FLOAT32_TOLERANCE, compare, engine, sampling, span_of, submit
from holdfast_vllm.processor import SteeredRows
from holdfast_vllm.status import engine_of
from holdfast_vllm.wire import ADMITTED, Admitted

SPECS = [
    None,
    "boost:factor=4",
    "split-softmax:exponent=0.4",
    "pasta:alpha=0.1",
    "spotlight:target=0.2",
]
REQUESTS = 200


def test_rows_match_holdfast_under_random_lengths_and_aborts():
    draw = random.Random(0)
    llm = engine(max_num_seqs=16)
    core = llm.llm_engine
    waiting = list(range(REQUESTS))
    finished = {}
    aborted = set()
    specs = {number: draw.choice(SPECS) for number in waiting}
    names = {}
    chat_numbers = {number: draw.randrange(2) for number in waiting}
    while waiting or core.has_unfinished_requests():
        for _ in range(min(len(waiting), draw.randrange(4))):
            number = waiting.pop()
            params = sampling(
                {"holdfast": specs[number]} if specs[number] else None,
                draw.randrange(1, 12),
                prompt_logprobs=None,
            )
            names[number] = submit(llm, str(number), CHATS[chat_numbers[number]], params)
        for output in core.step():
            if output.finished:
                finished[int(output.request_id)] = output
        if draw.random() < 0.2 and (running := names.keys() - finished.keys() - aborted):
            number = draw.choice(sorted(running))
            core.abort_request([names[number]], internal=True)
            aborted.add(number)
    assert len(aborted) > 10
    assert len(finished) + len(aborted - finished.keys()) == REQUESTS
    for number, output in finished.items():
        span = span_of(CHATS[chat_numbers[number]])
        spec = specs[number]
        differences = compare(output, span if spec else (), spec or "none")
        assert differences.from_holdfast < FLOAT32_TOLERANCE, (number, spec)


def test_two_engines_in_one_process_are_independent():
    steered = engine()
    plain = engine(max_num_seqs=4)
    submit(steered, "a", CHATS[0], sampling({"holdfast": "boost:factor=4"}))
    submit(plain, "b", CHATS[0], sampling(None))
    outputs = {}
    while any(llm.llm_engine.has_unfinished_requests() for llm in (steered, plain)):
        for llm in (steered, plain):
            outputs |= {out.request_id: out for out in llm.llm_engine.step()}
    differences = compare(outputs["a"], span_of(CHATS[0]), "boost:factor=4")
    assert differences.from_holdfast < FLOAT32_TOLERANCE
    assert compare(outputs["b"], (), "none").from_holdfast < FLOAT32_TOLERANCE


def test_rows_of_the_new_runner_are_found_by_their_slots():
    config = SimpleNamespace(
        compilation_config=SimpleNamespace(), scheduler_config=SimpleNamespace(max_num_seqs=8)
    )
    processor = SteeredRows(config, SimpleNamespace())
    packed = {"methods": "boost:factor=2", "ranges": [2, 5], "prompt": 9, "trace": ""}
    parameters = SimpleNamespace(extra_args={ADMITTED: packed})
    assert processor.add_request(7, parameters) is False
    rows = engine_of(config).rows
    plain, steered = rows.of([3, 7])
    assert plain is None
    assert isinstance(steered, Admitted) and steered.ranges == ((2, 5),)
    processor.add_request(7, SimpleNamespace(extra_args=None))
    assert rows.of([3, 7]) is None
