"""The parts of the plug-in that need no vLLM: what requests may ask, spans, rows and queries."""

import json
from types import SimpleNamespace

import pytest
import torch
from holdfast_vllm.draws import draw_of, draw_rows
from holdfast_vllm.moves import members, moves_of, needs_three, sees_both, separate_recorded_queries
from holdfast_vllm.rows import Rows
from holdfast_vllm.spans import check_span, find_system_prompts, find_text, merge_ranges, tokens_of
from holdfast_vllm.versions import check_version
from holdfast_vllm.wire import (
    Admitted,
    Drawing,
    check_draw,
    check_heads,
    offered_methods,
    read_steering,
)

from holdfast.errors import HoldfastError, ModelError
from holdfast.generation.drawing import draw, uniforms
from holdfast.generation.sampling import Sampling
from holdfast.methods import compile_methods, parse


def attention(spec):
    return compile_methods(parse(spec)).attention


BOOST = attention("boost:factor=2")
KEEP = attention("pasta:alpha=0.1")
SCALE = attention("pasta:alpha=0.1,generated=scale")


def test_valid_requests_are_read():
    assert read_steering(None) is None
    assert read_steering({"other_plugin": 3}) is None
    assert read_steering({"holdfast": "none"}) is None
    requested = read_steering({"holdfast": "boost:factor=2", "holdfast_span": [2, 5, 7, 9]})
    assert (requested.methods, requested.span, requested.trace) == (BOOST, ((2, 5), (7, 9)), False)
    only_read = read_steering({"holdfast_trace": 1})
    assert only_read.methods == () and only_read.trace
    assert read_steering({"holdfast": "boost:factor=2", "holdfast_text": " calm "}).text == "calm"
    assert not read_steering({"holdfast_seed": 0}).needs_span
    assert read_steering({"holdfast": "none", "holdfast_seed": str(2**127)}).seed == 2**127


def test_the_methods_offered_are_those_that_requests_may_name():
    offered = [method["name"] for method in offered_methods()]
    assert offered == ["split-softmax", "pasta", "boost", "spotlight"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"Holdfast": "boost:factor=2"}, "'Holdfast'"),
        ({"holdfast_texts": "x"}, "did you mean 'holdfast_text'"),
        ({"holdfast": 3}, "not 3"),
        ({"holdfast": "method.json"}, "names a file ('method.json')"),
        ({"holdfast": "guidance:scale=2"}, "second stream"),
        ({"holdfast": "seka:file=/etc/passwd.safetensors"}, "seka needs keys before rotation, whi"),
        ({"holdfast": "attenuate:factor=0.1"}, "attenuate needs the places of earlier replies"),
        ({"holdfast": "vector:file=v.safetensors"}, "vector needs the residual stream"),
        ({"holdfast": "repetition:probability=0.5"}, "by the client"),
        ({"holdfast": "boost:factor=2", "holdfast_text": " "}, "' '"),
        ({"holdfast": "boost:factor=2", "holdfast_span": [1, 2.0]}, "2.0"),
        ({"holdfast": "boost:factor=2", "holdfast_span": "1,2"}, "'1,2'"),
        ({"holdfast": "boost:factor=2", "holdfast_text": "a", "holdfast_span": [1, 2]}, "not both"),
        ({"holdfast": "boost:factor=2", "holdfast_trace": 2}, "not 2"),
        ({"holdfast_span": [1, 2]}, "but not 'holdfast'"),
        ({"holdfast_span": [1, 2], "holdfast_seed": 3}, "but not 'holdfast'"),
        ({"holdfast_seed": -1}, "not -1"),
        ({"holdfast_seed": str(2**128)}, f"not '{2**128}'"),
        ({"holdfast_seed": "four"}, "not 'four'"),
    ],
)
def test_invalid_requests_are_refused(fields, words):
    with pytest.raises(HoldfastError) as excinfo:
        read_steering(fields)
    assert words in str(excinfo.value)


def test_heads_that_a_model_lacks_are_refused():
    methods = attention("boost:factor=2,heads=1.0/3.7")
    check_heads(methods, layers=4, heads=8)
    with pytest.raises(HoldfastError, match="head 7 in layer 3"):
        check_heads(methods, layers=4, heads=7)


def test_admitted_requests_survive_the_trip_to_workers_as_json():
    drawing = Drawing(2**100, 0.7, 0.9, 40)
    admitted = Admitted(KEEP + BOOST, ((2, 5), (7, 9)), 20, "name", drawing)
    copy = Admitted.unpack(json.loads(json.dumps(admitted.pack())))
    assert copy.pack() == admitted.pack()
    assert (copy.methods, copy.ranges, copy.prompt) == (KEEP + BOOST, ((2, 5), (7, 9)), 20)
    assert copy.drawing == drawing


def test_sampling_options_that_a_seeded_draw_lacks_are_refused():
    check_draw(SimpleNamespace(top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=None))
    for name, value in (("top_k", 20), ("repetition_penalty", 1.05), ("min_p", 0.1)):
        with pytest.raises(HoldfastError, match=f"{name}={value}"):
            check_draw(SimpleNamespace(**{name: value}))


@pytest.mark.parametrize("newer", [False, True])
def test_tokens_are_drawn_as_the_engine_draws_them(newer):
    """By the token's place in its reply, which each runner reports in its own way."""
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    logits[3, 7] = torch.nan
    before, slots = logits.clone(), [5, 0, 2, 9]
    reply = [1, 2, 3]
    drawing = Drawing(2**90 + 1, 0.8, 0.95, 6)
    rows = Rows()
    for slot, prompt in ((5, 20), (2, 9), (9, 4)):
        admitted = Admitted((), (), prompt, "", drawing)
        rows.put(slot, draw_of(admitted, None if newer else reply))
    lengths = [23, 8, 4, 5] if newer else None  # the third reads a chunk of its prompt
    logits_left = draw_rows(logits, rows, slots, lengths)
    numbers = uniforms(drawing.seed, 6)
    sampling = Sampling(0.8, 0.95)
    for row, index in ((0, 3), (2, 0 if newer else 3)):
        (token,) = draw(before[row : row + 1], [sampling], [numbers[index]])
        assert logits_left[row].isfinite().nonzero().flatten().tolist() == [token]
    assert logits_left[1].equal(before[1])  # drawn by vLLM itself
    assert logits_left[3].isnan().sum() == 1 and logits_left[3].isfinite().sum() == 49


def test_salts_differ_whenever_keys_differ():
    def salt(methods=BOOST, ranges=((2, 5),), prompt=20, extra=None):
        return Admitted(methods, ranges, prompt).salt(extra)

    assert salt() == salt(prompt=30)  # a longer dialog reuses the shorter one's keys
    salts = [salt(methods=SCALE), salt(ranges=((2, 6),)), salt(extra="user"), salt(methods=KEEP)]
    salts.append(salt(methods=KEEP, prompt=30))
    assert len({salt(), *salts}) == 6
    assert salt(methods=(), extra="user") == "user"  # reading the mass changes no key


def test_other_versions_of_vllm_are_refused():
    check_version("0.32.0")
    for version in ("0.3.2", "0.33.0", "0.320.1"):
        with pytest.raises(ModelError, match=version):
            check_version(version)


def test_spans_are_merged_checked_and_found_in_the_text():
    assert merge_ranges([(5, 7), (1, 3), (3, 4), (6, 9)]) == ((1, 4), (5, 9))
    assert check_span([(0, 9)], 9) == ((0, 9),)
    for wrong in ((0, 10), (3, 3), (-1, 2)):
        with pytest.raises(HoldfastError, match="9 tokens"):
            check_span([wrong], 9)
    assert find_text("be calm, be kind", "be kind") == ((9, 16),)
    with pytest.raises(HoldfastError, match="occurs 2 times"):
        find_text("aaa", "aa")
    assert tokens_of([(3, 6), (9, 10)], [(0, 0), (0, 4), (4, 5), (5, 9), (9, 12)]) == ((1, 5),)


def test_the_system_prompt_is_found_in_the_rendered_chat():
    def write(messages):
        return "".join(f"<{m['role']}>{m['content']}" for m in messages)

    messages = [{"role": "system", "content": "Hi"}, {"role": "user", "content": "Hi, or not Hi?"}]
    text = write(messages)  # "Hi" occurs in it three times: marks distinguish them
    assert find_system_prompts(text, messages, "", write) == ((8, 10),)
    parts = [{"role": "system", "content": [{"type": "text", "text": "Hi"}]}, messages[1]]
    assert find_system_prompts(text, parts, "", write) == ((8, 10),)
    with pytest.raises(HoldfastError, match="no system prompt"):
        find_system_prompts(text, messages[1:], "", write)
    with pytest.raises(HoldfastError, match="rewrites"):
        find_system_prompts("<user>Hi", messages, "", lambda chat: write(chat[1:]))


def test_rows_follow_the_moves_of_the_old_runner():
    first, second, third = (Admitted(BOOST, ((1, 2),), size) for size in (5, 6, 7))
    rows = Rows()
    assert rows.of(range(3)) is None
    rows.update([], [(0, first), (1, None), (2, second)], [])
    assert rows.of(range(3)) == [first, None, second]
    rows.update([0], [], [(2, 0, False)])  # condensed: the last row takes the free slot
    assert rows.of(range(2)) == [second, None]
    rows.update([], [(1, third)], [(0, 1, True)])
    assert rows.of(range(2)) == [third, second]
    rows.update([], [], [(0, 5, True)])  # swapped with an unsteered one
    assert rows.of([0, 5]) == [None, third]
    rows.update([1, 5], [], [])
    assert rows.of(range(6)) is None


def test_queries_after_the_span_are_steered_or_only_traced():
    row = Admitted(BOOST, ((4, 8),), 12)
    traced, read_only = Admitted(BOOST, ((4, 8),), 12, "a"), Admitted((), ((4, 8),), 12, "b")
    # a chunk before the span, one that reaches it, and a decode step, among unsteered rows
    assert moves_of([None, row], [0, 3, 7], [3, 4]) == []
    assert moves_of([row], [0, 4], [4]) == []
    (move,) = moves_of([None, row], [0, 3, 9], [3, 10])
    assert (move.first, move.count, move.position, move.length) == (3, 6, 4, 10)
    assert move.writes and not move.records_mass
    (step,) = moves_of([traced], [0, 1], [13])
    assert step.writes and step.records_mass
    (whole,) = moves_of([traced], [0, 12], [12])
    assert whole.count == 12 and whole.records_mass
    chunk, last = separate_recorded_queries([whole])
    assert (chunk.count, chunk.records_mass, last.count, last.position) == (12, False, 1, 11)
    assert last.records_mass and not last.writes
    assert moves_of([read_only], [0, 11], [11]) == []  # its prompt is not complete yet
    (last,) = moves_of([read_only], [0, 1], [12])
    assert last.records_mass and not last.writes


def test_keys_are_grouped_into_span_rest_and_generated():
    two = members([Admitted(KEEP, ((1, 2),), 3), Admitted(BOOST, ((0, 1),), 3)], 5, three=False)
    assert two[0].int().tolist() == [[0, 1, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert (two[0] ^ two[1]).all()
    three = members([Admitted(KEEP, ((1, 2),), 3)], 5, three=True)
    assert three.int().tolist() == [[[0, 1, 0, 0, 0]], [[0, 0, 0, 1, 1]], [[1, 0, 1, 0, 0]]]
    assert needs_three(Admitted(KEEP + BOOST, ((1, 2),), 3))
    assert needs_three(Admitted(KEEP, ((1, 2),), 3, "traced"))
    assert not needs_three(Admitted(KEEP, ((1, 2),), 3))


def test_a_row_is_steered_only_if_it_sees_span_and_rest():
    def step(row, length):
        (moved,) = moves_of([row], [0, 1], [length])
        return sees_both(moved)

    assert step(Admitted(BOOST, ((0, 4),), 6), 5)
    assert not step(Admitted(BOOST, ((0, 4),), 4), 4)
    assert step(Admitted(BOOST, ((0, 4),), 4), 5)  # a generated token counts as the rest
    assert not step(Admitted(KEEP, ((0, 4),), 4), 9)  # or as the span
    assert step(Admitted(KEEP, ((1, 4),), 4), 9)
