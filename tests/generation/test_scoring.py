"""Log-probabilities of given replies, against one full forward pass of each chat with its reply."""

import asyncio

import pytest
import torch
from tiny import DEVICE, chat, model

from holdfast import Repetition, Request, Sampling, SplitSoftmax, Spotlight, methods
from holdfast.attention import BatchSteering, steer_pass
from holdfast.chat.prompt import render
from holdfast.errors import PromptError, UsageError
from holdfast.generation.reply_scoring import score_requests
from holdfast.generation.token_requests import TokenRequest
from holdfast.methods import compile_methods
from holdfast.models.event_loop import run_sync

# float32; the passes differ in splits and padding, so sums are taken in different orders
TOLERANCE = 1e-4
METHODS = {
    "none": (),
    "split-softmax": (SplitSoftmax(0.4),),
    "pasta": (methods.Pasta(alpha=0.1),),
    "boost": (methods.Boost(3),),
    "spotlight": (Spotlight(0.5),),
    "heads": (SplitSoftmax(0.4, heads={(0, 1), (2, 3)}),),
    "repetition": (Repetition(1),),
    "guidance": (methods.Guidance(1.5),),
    "adacad": (methods.AdaCad(2.0),),
    "prompt-strength": (methods.PromptStrength(1.5, "talk about the river"),),
    "anchoring": (methods.Anchoring(1.5), methods.Boost(2)),
    "several": (methods.Boost(2), Repetition(0.5), methods.Guidance(1.5)),
}
CHATS = (
    chat("talk about bread", "what is rain?"),
    chat("be the garden", "the river", "runs slowly past", "where do people talk?"),
)


# Scores

REPLIES = (("bread", "the old town where people talk", "r"), ("cheese (C)", "music (B)"))


def plain_logits(tiny, prompt_ids, span, reply, methods=()):
    """float64 [token, vocabulary] after the prompt and each token of a reply, in one plain pass."""
    whole = torch.tensor([tuple(prompt_ids) + tuple(reply)], device=DEVICE)
    shifts = compile_methods(compile_methods(methods).attention if any(span) else ())
    mask = torch.tensor([tuple(span) + (False,) * len(reply)], device=DEVICE)
    steering = BatchSteering(mask, [shifts], prompt_columns=[len(prompt_ids)]) if shifts else None
    with torch.inference_mode(), steer_pass(steering):
        logits = tiny.hf_model(input_ids=whole, use_cache=False).logits
    return logits[0, len(prompt_ids) - 1 :].double().cpu()


def read_plainly(tiny, messages, methods, reply, seed=0):
    """The logits for each token of a reply, guided if a method guides."""
    compiled = compile_methods(methods)
    guidance = next(iter(compiled.processors), None)
    chats = [compiled.edit(messages, seed)]
    chats += [guidance.second_chat(messages)] if guidance else []
    logits = []
    for number, chat_read in enumerate(chats):
        prompt = render(chat_read, tiny.tokenizer)
        ids = prompt.token_ids
        if number and guidance.masks_span:
            pairs = zip(ids, prompt.span_mask, strict=True)
            ids = [tiny.tokenizer.pad_token_id if inside else token for token, inside in pairs]
        logits.append(plain_logits(tiny, ids, prompt.span_mask, reply, methods))
    return logits[0] if guidance is None else guidance.combine_logits(*logits).double()


def by_full_forward(tiny, messages, methods, reply, seed=0):
    """The reply's log-probability, by one full pass per stream."""
    ids = tuple(tiny.tokenizer(reply, add_special_tokens=False)["input_ids"])
    logits = read_plainly(tiny, messages, methods, ids, seed)[: len(ids)]
    return float(logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).sum())


@pytest.mark.parametrize("kind", ("llama", "gemma2"))
@pytest.mark.parametrize("name", METHODS)
def test_scores_are_those_of_a_full_forward(name, kind):
    tiny = model(kind, **({"query_pre_attn_scalar": 12} if kind == "gemma2" else {}))
    methods = METHODS[name]
    requests = [Request(messages, methods, conversation_seed=3) for messages in CHATS]
    scores = tiny.session().score_batch(requests, REPLIES)
    for messages, options, score in zip(CHATS, REPLIES, scores, strict=True):
        expected = [by_full_forward(tiny, messages, methods, reply, seed=3) for reply in options]
        assert score.log_probabilities == pytest.approx(expected, abs=TOLERANCE)


IN_A_THREAD = ("none", "split-softmax", "guidance")


@pytest.mark.parametrize("methods", [METHODS[name] for name in IN_A_THREAD], ids=IN_A_THREAD)
def test_a_thread_forwards_a_history_once(methods):
    tiny, talk = model(), CHATS[1]
    fork = (*talk[:-1], {"role": "user", "content": "and the cheese?"})
    session = tiny.session()
    first = session.score_batch([Request(talk, methods, thread="t", keep=True)], [("bread",)])[0]
    second = session.score_batch([Request(fork, methods, thread="t")], [("bread",)])[0]
    alone = tiny.score(fork, ["bread"], methods)
    assert second.log_probabilities == pytest.approx(alone.log_probabilities, abs=TOLERANCE)
    assert second.forwarded < alone.forwarded / 2 and first.forwarded > second.forwarded
    reply = session.generate_batch([Request(fork, methods, Sampling(0, 1, 8), thread="t")])[0]
    greedy = Sampling(0, 1, 8)
    assert reply.text == tiny.generate(fork, methods, greedy).text
    assert reply.forwarded < alone.forwarded


@pytest.mark.parametrize("kind", ("llama", "mamba"), ids=("together", "alone"))
def test_a_reply_is_greedy_if_each_token_is_the_likeliest(kind):
    tiny = model(kind)
    (score_input,) = run_sync(tiny.session().score_inputs([Request(CHATS[0])], [REPLIES[0]]))
    ids = tiny.generate(CHATS[0], (), Sampling(0, 1, 3)).token_ids
    other_token = (ids[2] + 1) % 400
    options = [ids, ids[:1], (*ids[:2], other_token), (other_token, *ids[1:])]
    (result,) = score_requests(tiny.runner, [TokenRequest((score_input.prompt,))], [options], 8)
    assert result.scored.greedy == (True, True, False, False)


# Refusals


def test_replies_that_cannot_be_scored_are_refused():
    tiny = model()
    with pytest.raises(PromptError, match=r"empty reply \(''\)"):
        tiny.score(CHATS[0], ["bread", ""])
    with pytest.raises(PromptError, match="tiny llama sees 512"):
        tiny.score(CHATS[0], ["bread " * 600])
    with pytest.raises(PromptError, match="tiny llama sees 512"):
        tiny.score(chat("s", "bread " * 600), ["bread"])
    with pytest.raises(UsageError) as excinfo:
        tiny.session().score_batch([Request(CHATS[0])], [["bread"], ["rain"]])
    assert (excinfo.value.option, excinfo.value.value, excinfo.value.allowed) == ("replies", 2, 1)
    assert tiny.session().score_batch([], []) == []


def test_calls_that_would_block_what_they_wait_for_are_refused():
    async def blocked():
        async with model().session() as engine:
            task = asyncio.create_task(engine.generate(Request(CHATS[0])))
            while not engine.running:
                await asyncio.sleep(0)
            with pytest.raises(UsageError):
                engine.generate_batch([Request(CHATS[0])])
            with pytest.raises(UsageError):
                engine.score_batch([Request(CHATS[0])], [["bread"]])
            scores = await engine.score([Request(CHATS[0])], [["bread"]])
            return scores, (await task).text

    scores, text = asyncio.run(blocked())
    assert scores[0] == model().score(CHATS[0], ["bread"])
    assert text == model().generate(CHATS[0]).text


# Log-probabilities of drawn tokens


@pytest.mark.parametrize("name", METHODS)
def test_log_probabilities_of_drawn_tokens_match_their_scores(name):
    tiny, session = model(), model().session()
    sampling = Sampling(0.7, 0.6, 6)  # reported for temperature 1 and the whole vocabulary
    requests = [Request(talk, METHODS[name], sampling, seed=n) for n, talk in enumerate(CHATS)]
    chats = [session.render(request, top_logprobs=n * 5) for n, request in enumerate(requests)]
    *states, plain = [
        session.stepped.submit(chat) for chat in (*chats, session.render(requests[0]))
    ]
    while not all(state.done for state in (*states, plain)):
        session.stepped.step()
    assert plain.log_probabilities == []
    for number, (rendered, state) in enumerate(zip(chats, states, strict=True)):
        steps, request = state.log_probabilities, rendered.token_request
        ids = tuple(state.token_ids)
        assert ids and {len(item.top) for item in steps} == {number * 5}
        likeliest = [(token,) for token, _ in steps[0].top]
        score = score_requests(tiny.runner, [request], [[ids, *likeliest]], 8)[0].scored
        sums = [sum(item.drawn for item in steps[: len(ids)])] + [at for _, at in steps[0].top]
        assert sums == pytest.approx(score.log_probabilities, abs=TOLERANCE)
        assert all(sorted(item.top, key=lambda pair: -pair[1]) == [*item.top] for item in steps)
    assert states[0].token_ids == plain.token_ids


@pytest.mark.parametrize("count", (-1, 21, True))
def test_an_invalid_number_of_log_probabilities_is_refused(count):
    with pytest.raises(UsageError, match=str(count)):
        model().session().render(Request(CHATS[0]), top_logprobs=count)
