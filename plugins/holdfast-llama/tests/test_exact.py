"""float32 in llama.cpp against Holdfast's own engine in float32: logits, masses, replies."""

from __future__ import annotations

import pytest
import torch
from conftest import CHATS, METHODS

from holdfast.generation.batch import SequenceGroup
from holdfast.generation.sampling import Sampling
from holdfast.generation.token_requests import TokenSequence
from holdfast.models.event_loop import run_sync
from holdfast.models.requests import Request

LOGITS, MASS = 1e-4, 1e-5
MOVED = 0.1  # steering moves at least one logit further than this
GREEDY = Sampling(temperature=0, max_new_tokens=64)


def logits_of(model, request, reply, count):
    """The last logits of a chat followed by tokens of a reply, as the engine computes them."""
    (given,) = run_sync(model.session().score_inputs([request], [["x"]]))
    sequence = TokenSequence(given.prompt, list(reply))
    slots = model.runner.slots()
    group = SequenceGroup([sequence], model.runner.device)
    slots.open(None)
    with torch.inference_mode():
        return model.runner.forward_slots(slots, range(1), group, count).logits[0]


@pytest.mark.parametrize("method", METHODS)
def test_logits_masses_and_replies_match_holdfast(in_llama, here, method):
    requests = [Request(messages, method, GREEDY, trace=True) for messages in CHATS]
    wanted = here.generate_batch(requests)
    found = in_llama().generate_batch(requests)
    for want, got in zip(wanted, found, strict=True):
        assert got.token_ids == want.token_ids and got.text == want.text
        assert got.stop_reason == want.stop_reason and got.prompt_ids == want.prompt_ids
        assert got.trace.mass.shape == want.trace.mass.shape
        assert (got.trace.mass - want.trace.mass).abs().max() < MASS
        assert torch.allclose(got.trace.uniform, want.trace.uniform)
    request = requests[0]
    reply = wanted[0].token_ids
    count = len(wanted[0].prompt_ids) + len(reply)
    ours, theirs = (logits_of(model, request, reply, count) for model in (here, in_llama()))
    assert (ours - theirs).abs().max() < LOGITS
    plain = logits_of(here, Request(CHATS[0]), reply, count)
    assert (ours - plain).abs().max() > MOVED


def test_methods_in_one_batch_do_not_affect_each_other(in_llama, here):
    sampling = Sampling(temperature=1.0, max_new_tokens=24)
    requests = [
        Request(CHATS[number % 3], method, sampling, seed=number, trace=number % 2 == 0)
        for number, method in enumerate((*METHODS, "none", "none", "guidance:scale=1.5"))
    ]
    wanted = here.generate_batch(requests)
    for got, want in zip(in_llama().generate_batch(requests), wanted, strict=True):
        assert got.token_ids == want.token_ids
        assert (got.trace is None) == (want.trace is None)
        if got.trace is not None:
            assert (got.trace.mass - want.trace.mass).abs().max() < MASS


@pytest.mark.parametrize("method", ("none", "boost:factor=4", "pasta:alpha=0.05,generated=keep"))
def test_dialogs_continue_and_fork_as_they_do_in_holdfast(in_llama, here, method):
    """A thread keeps its tokens and its cache; a fork under other methods shares only the tokens
    before the span.
    """
    for messages in CHATS[:2]:
        replies = []
        for model in (here, in_llama()):
            session = model.session()
            dialog = list(messages)
            said = []
            for turn in range(3):
                sampling = Sampling(temperature=0.8, max_new_tokens=16)
                keep = Request(dialog, method, sampling, turn, thread="a", keep=True, trace=True)
                (reply,) = session.generate_batch([keep])
                dialog += [
                    {"role": "assistant", "content": reply.text},
                    {"role": "user", "content": f"And what of {turn}?"},
                ]
                forks = [
                    Request(dialog, fork, sampling, 9, thread="a")
                    for fork in (method, "split-softmax:exponent=0.5", "none")
                ]
                said += [reply, *session.generate_batch(forks)]
            replies.append(said)
        for want, got in zip(*replies, strict=True):
            assert got.token_ids == want.token_ids and got.prompt_ids == want.prompt_ids
            assert got.forwarded >= want.forwarded  # flash attention shares with nothing else


def test_given_replies_are_as_probable_as_in_holdfast(in_llama, here):
    requests = [Request(messages, "boost:factor=4") for messages in CHATS]
    replies = [["YES.", "Gardens are green!"], ["NOTHING"], ["Aye, it is", "No", "Bread"]]
    wanted = here.session().score_batch(requests, replies)
    for got, want in zip(in_llama().session().score_batch(requests, replies), wanted, strict=True):
        assert got.tokens == want.tokens and got.greedy == want.greedy
        assert got.log_probabilities == pytest.approx(want.log_probabilities, abs=1e-3)
