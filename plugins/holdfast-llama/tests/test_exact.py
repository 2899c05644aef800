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

# two engines add up in another order; steering moves at least one logit much further
LOGIT_TOLERANCE = 1e-4
MASS_TOLERANCE = 1e-5
MIN_EFFECT = 0.1
GREEDY = Sampling(temperature=0, max_new_tokens=64)


def logits_of(model, request, reply, count):
    """The logits at the last `count` tokens of a chat and a reply, as the engine computes them."""
    (score_input,) = run_sync(model.session().score_inputs([request], [["x"]]))
    sequence = TokenSequence(score_input.prompt, list(reply))
    slots = model.runner.slots()
    group = SequenceGroup([sequence], model.runner.device)
    slots.open(None)
    with torch.inference_mode():
        return model.runner.forward_slots(slots, range(1), group, count).logits[0]


@pytest.mark.parametrize("method", METHODS)
def test_logits_masses_and_replies_match_holdfast(in_llama, local_model, method):
    requests = [Request(messages, method, GREEDY, trace=True) for messages in CHATS]
    expected = local_model.generate_batch(requests)
    replies = in_llama().generate_batch(requests)
    for local, output in zip(expected, replies, strict=True):
        assert output.token_ids == local.token_ids and output.text == local.text
        assert output.stop_reason == local.stop_reason and output.prompt_ids == local.prompt_ids
        assert output.trace.mass.shape == local.trace.mass.shape
        assert (output.trace.mass - local.trace.mass).abs().max() < MASS_TOLERANCE
        assert torch.allclose(output.trace.uniform, local.trace.uniform)
    request = requests[0]
    reply = expected[0].token_ids
    count = len(expected[0].prompt_ids) + len(reply)
    local_logits = logits_of(local_model, request, reply, count)
    llama_logits = logits_of(in_llama(), request, reply, count)
    assert (local_logits - llama_logits).abs().max() < LOGIT_TOLERANCE
    unsteered_logits = logits_of(local_model, Request(CHATS[0]), reply, count)
    assert (local_logits - unsteered_logits).abs().max() > MIN_EFFECT


def test_methods_in_one_batch_do_not_affect_each_other(in_llama, local_model):
    sampling = Sampling(temperature=1.0, max_new_tokens=24)
    requests = [
        Request(CHATS[number % 3], method, sampling, seed=number, trace=number % 2 == 0)
        for number, method in enumerate((*METHODS, "none", "none", "guidance:scale=1.5"))
    ]
    expected = local_model.generate_batch(requests)
    for reply, local in zip(in_llama().generate_batch(requests), expected, strict=True):
        assert reply.token_ids == local.token_ids
        assert (reply.trace is None) == (local.trace is None)
        if reply.trace is not None:
            assert (reply.trace.mass - local.trace.mass).abs().max() < MASS_TOLERANCE


@pytest.mark.parametrize("method", ("none", "boost:factor=4", "pasta:alpha=0.05,generated=keep"))
def test_dialogs_continue_and_fork_as_they_do_in_holdfast(in_llama, local_model, method):
    """A fork under other methods shares only the tokens before the span with its thread."""
    for messages in CHATS[:2]:
        replies = []
        for model in (local_model, in_llama()):
            session = model.session()
            dialog = list(messages)
            dialog_replies = []
            for turn in range(3):
                sampling = Sampling(temperature=0.8, max_new_tokens=16)
                request = Request(dialog, method, sampling, turn, thread="a", keep=True, trace=True)
                (reply,) = session.generate_batch([request])
                dialog += [
                    {"role": "assistant", "content": reply.text},
                    {"role": "user", "content": f"And what of {turn}?"},
                ]
                forks = [
                    Request(dialog, fork, sampling, 9, thread="a")
                    for fork in (method, "split-softmax:exponent=0.5", "none")
                ]
                dialog_replies += [reply, *session.generate_batch(forks)]
            replies.append(dialog_replies)
        for local, output in zip(*replies, strict=True):
            assert output.token_ids == local.token_ids and output.prompt_ids == local.prompt_ids
            assert output.forwarded >= local.forwarded  # flash attention shares with nothing else


def test_given_replies_are_as_probable_as_in_holdfast(in_llama, local_model):
    requests = [Request(messages, "boost:factor=4") for messages in CHATS]
    replies = [["YES.", "Gardens are green!"], ["NOTHING"], ["Aye, it is", "No", "Bread"]]
    expected = local_model.session().score_batch(requests, replies)
    for score, local in zip(
        in_llama().session().score_batch(requests, replies), expected, strict=True
    ):
        assert score.tokens == local.tokens and score.greedy == local.greedy
        assert score.log_probabilities == pytest.approx(local.log_probabilities, abs=1e-3)
