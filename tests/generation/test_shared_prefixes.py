"""Prefixes shared by requests without a thread: same replies, fewer tokens, bounded memory."""

import itertools
from dataclasses import replace

import pytest
from cache_kinds import FAMILIES, RECURRENT, WINDOWED, model_in_float64
from fast_set import only_fast
from tiny import answer_all, chat, model

import holdfast
from holdfast import Anchoring, Boost, Guidance, Request, Sampling, SplitSoftmax, Spotlight

SYSTEM = "always talk about cheese and never about the river " * 8
SHORT = Sampling(1.0, 0.95, 8)
METHODS = {
    "none": (),
    "split-softmax": (SplitSoftmax(0.2),),
    "heads": (SplitSoftmax(0.2, heads={(1, 2), (0, 0)}),),
    "spotlight": (Spotlight(0.4),),
    "guidance": (Guidance(2.0), Boost(2)),
    "anchoring": (Anchoring(2.0), Boost(2)),
}


# Replies


def dialogs(session, methods, rounds=3):
    """Two dialogs under one system prompt, turn by turn, as a client would send them."""
    talks, all_answers = [chat(SYSTEM, "the garden " * (n + 1)) for n in range(2)], []
    for turn in range(rounds):
        requests = [Request(talk, methods, SHORT, 10 * turn + n) for n, talk in enumerate(talks)]
        answers = answer_all(session, requests)
        all_answers += answers
        for n, answer in enumerate(answers):
            talks[n] += chat("", "", answer.outcome.text, "and the old town?")[1:]
    return all_answers


@pytest.mark.parametrize("name", METHODS)
def test_turns_forward_only_new_tokens_and_replies_equal_those_without_sharing(name):
    tiny = model(dtype="float64")
    answers = dialogs(tiny.session(long_lived=True), METHODS[name])
    for answer in answers:
        alone = tiny.generate_batch([answer.chat.request])[0]
        assert answer.outcome.token_ids == alone.token_ids
        assert answer.chat.prompt_ids == alone.prompt_ids
    first, later = answers[:2], answers[2:]
    system = len(tiny.tokenizer(SYSTEM)["input_ids"])
    assert system > 128  # enough tokens to be worth a pass of their own
    assert first[0].state.cached == 0 and first[1].state.cached >= system
    for before, answer in zip(answers, later, strict=False):
        # all of the previous prompt; the reply if its text is spelled by the same tokens
        assert answer.state.cached >= len(before.chat.prompt_ids) - 1
        whole = before.chat.prompt_ids + before.outcome.token_ids
        spelled = answer.chat.prompt_ids[: len(whole)] == whole
        apart = name in ("spotlight", "split-softmax", "heads")
        if spelled and not apart:
            assert answer.state.cached >= len(whole) - 1


@pytest.mark.parametrize("kind", only_fast((*WINDOWED, *RECURRENT), *FAMILIES))
def test_every_kind_of_layer_gives_the_same_replies_as_without_sharing(kind):
    tiny = model_in_float64(kind)
    answers = dialogs(tiny.session(long_lived=True), ())
    for answer in answers:
        alone = tiny.generate_batch([answer.chat.request])[0]
        assert answer.outcome.token_ids == alone.token_ids
    if tiny.runner.supports_chunked_prefill:
        for before, answer in zip(answers, answers[2:], strict=False):
            assert answer.state.cached > len(before.chat.prompt_ids) // 2
    else:
        assert not any(answer.state.cached for answer in answers)


@pytest.mark.slow
def test_the_default_model_draws_the_same_tokens_from_shared_prefixes():
    default = holdfast.load("default")
    session, sampling = default.session(long_lived=True), Sampling(0.8, 0.95, 40)
    talk = chat("Always reply in French.", "Tell me about the garden.")
    cached = []
    for turn in range(4):
        request = Request(talk, "boost:factor=2" if turn > 2 else (), sampling, seed=turn)
        (answer,) = answer_all(session, [request])
        alone = default.generate_batch([request])[0]
        assert answer.outcome.token_ids == alone.token_ids
        cached.append(answer.state.cached / len(alone.prompt_ids))
        talk += chat("", "", alone.text, "And the river?")[1:]
    assert min(cached[1:3]) > 0.4 and cached[3] < 0.1


def test_choices_of_one_prompt_forward_it_once():
    tiny = model(dtype="float64")
    requests = [Request(chat(SYSTEM, "the garden"), (), SHORT, seed) for seed in range(6)]
    answers = answer_all(tiny.session(long_lived=True), requests)
    prompt = len(answers[0].chat.prompt_ids)
    assert [answer.state.cached for answer in answers] == [0] + [prompt - 1] * 5
    alone = tiny.generate_batch(requests)
    assert [answer.outcome.token_ids for answer in answers] == [reply.token_ids for reply in alone]


# What is not shared


@pytest.mark.slow
def test_nothing_is_shared_across_steering():
    """Different methods, strengths, heads and spans each have their own keys."""
    tiny = model(dtype="float64")
    talk = chat("", "the garden is green and the river runs slowly past the old town")
    methods = (
        (SplitSoftmax(0.2),),
        (SplitSoftmax(0.21),),
        (SplitSoftmax(0.2, heads={(1, 2)}),),
        (SplitSoftmax(0.2, heads={(1, 1)}),),
        (Boost(2.0),),
        (Boost(2.0), SplitSoftmax(0.2)),
        (SplitSoftmax(0.2), Boost(2.0)),
    )
    emphases = (["garden"], ["green"], ["garden", "green"])
    pairs = itertools.product(methods, emphases)
    ways = [Request(talk, own_methods, SHORT, emphasis=emphasis) for own_methods, emphasis in pairs]
    expected = [tiny.generate_batch([request])[0].token_ids for request in ways]
    assert len(set(expected)) > len(ways) // 2
    for order in (range(len(ways)), reversed(range(len(ways)))):
        session, spans = tiny.session(long_lived=True), {}
        for number in order:
            (answer,) = answer_all(session, [ways[number]])
            assert answer.outcome.token_ids == expected[number]
            alike = spans.setdefault(ways[number].methods, [])
            span = answer.chat.token_request.prompts[0].span
            differs = (enumerate(zip(span, other_span, strict=False)) for other_span in alike)
            common = [next(at for at, (a, b) in aligned if a != b) for aligned in differs]
            assert answer.state.cached == max(common, default=0)
            alike.append(span)
        for number in range(len(ways)):
            (answer,) = answer_all(session, [ways[number]])
            assert answer.state.cached == len(answer.chat.prompt_ids) - 1
            assert answer.outcome.token_ids == expected[number]


def test_short_lived_sessions_and_threads_share_nothing():
    tiny = model()
    request = Request(chat(SYSTEM, "the garden"), (), SHORT)
    session = tiny.session()
    assert [answer_all(session, [request])[0].state.cached for _ in range(2)] == [0, 0]
    session = tiny.session(long_lived=True)
    threaded = replace(request, thread="t", keep=True)
    assert [answer_all(session, [item])[0].state.cached for item in (threaded, request)] == [0, 0]


# Memory


def test_memory_for_shared_prefixes_is_bounded():
    tiny = replace(model(dtype="float64"), prefix_memory=120_000)
    session, shared = tiny.session(long_lived=True), None
    for n in range(16):
        request = Request(chat(f"{n} cheese " * 8, "the garden"), (), SHORT, n)
        (answer,) = answer_all(session, [request])
        assert answer.outcome.token_ids == tiny.generate_batch([request])[0].token_ids
        shared = session.stepped.scheduler.prefix_cache
        assert 0 < shared.size <= 120_000
    assert len(shared) < 8


# Below float32, where a prompt is forwarded in pieces


def first_and_later(tiny, methods, talks):
    """Each chat's reply, when nothing is known and when it is asked again, with its log-probs."""
    replies = []
    for talk in talks:
        session = tiny.session(long_lived=True)
        pair = []
        for _ in range(2):
            (answer,) = answer_all(session, [Request(talk, methods, Sampling(0, 1, 12))], 0)
            log_probabilities = [value.drawn for value in answer.state.log_probabilities]
            pair.append((answer.outcome.token_ids, log_probabilities, answer.outcome.forwarded))
        replies.append(pair)
    return replies


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", only_fast(("llama", "mistral", "gemma2"), "llama"))
def test_below_float32_a_request_is_computed_the_same_when_it_is_asked_again(kind, name):
    tiny = model(kind, dtype="bfloat16", **WINDOWED.get(kind, {}))
    talks = [chat(SYSTEM, f"the old town and the {what}") for what in ("river", "garden")]
    for first, second in first_and_later(tiny, METHODS[name], talks):
        assert first[:2] == second[:2]  # bit for bit
        assert second[2] < first[2]


def test_in_float32_a_prompt_is_forwarded_at_once():
    assert model(dtype="bfloat16").runner.splits_prompts
    assert not model(dtype="float32").runner.splits_prompts
    states = model("qwen3_next", dtype="bfloat16", **RECURRENT["qwen3_next"])
    assert not states.runner.splits_prompts  # they serve only prompts that are longer


class Failing:
    """An attention method that cannot be applied."""

    name, heads, span_includes_generated = "failing", None, False

    def shift(self, log_odds, layer):
        raise ZeroDivisionError


def test_a_row_that_fails_in_the_beginning_of_its_prompt_fails_alone():
    tiny = model(dtype="bfloat16")
    session = tiny.session(long_lived=True)
    fails, works = answer_all(
        session,
        [
            Request(chat(SYSTEM, text), methods, SHORT)
            for text, methods in (("a", (Failing(),)), ("b", (Boost(2),)))
        ],
    )
    assert isinstance(fails.outcome, ZeroDivisionError) and works.outcome.token_ids
