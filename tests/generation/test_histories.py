"""A thread's cache serves only requests that would have computed the same."""

import copy
import itertools
from dataclasses import replace

import oracles
import pytest
import torch
from fast_set import only_fast
from tiny import DEVICE, chat, model
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from holdfast import Request, Sampling, SplitSoftmax, Spotlight
from holdfast.generation.reply_scoring import score_requests
from holdfast.generation.token_requests import TokenRequest
from holdfast.generation.transformers_runner import TransformersRunner
from holdfast.methods import Anchoring, Attenuate, Boost, Guidance, Pasta, PromptStrength
from holdfast.models.event_loop import run_sync

# log-probabilities are float32; the smallest difference that the tests look for is 1e-2
ROUNDING = 1e-5
GREEDY = Sampling(temperature=0, max_new_tokens=12)
TALK = chat("always talk about cheese and rain", "the old town by the river")
REPLIES = ["bread and music", "the garden"]
METHODS = {
    "none": (),
    "split-softmax": (SplitSoftmax(0.2),),
    "pasta keep": (Pasta(0.01),),
    "pasta scale": (Pasta(0.01, None, "scale"),),
    "boost": (Boost(5),),
    "attenuate": (Attenuate(0.01),),
    "spotlight on heads": (Spotlight(0.6, {(0, 1), (1, 3)}),),
    "guidance and boost": (Guidance(2.0), Boost(3)),
    "anchoring and boost": (Anchoring(2.0), Boost(3)),
    "prompt strength": (PromptStrength(2.0),),
}


def double():
    """Llama in float64, which reuses a history through its cache."""
    tiny = model("llama", dtype="float64")
    assert tiny.reuses_cache and tiny.hf_model.dtype == torch.float64
    return tiny


def second_turn(session, first, second, sampling=GREEDY):
    """The request for the second reply, under `second`, after a first one under `first`."""
    request = Request(TALK, first, sampling, seed=4, thread="t", keep=True)
    reply = session.generate_batch([request])[0]
    assert len(reply.token_ids) > 3
    talk = (*TALK, *chat("", "", reply.text, "and bread?")[1:])
    return Request(talk, second, sampling, seed=5, thread="t")


# each method twice, and each before the next one
FAST = [*((name, name) for name in METHODS), *itertools.pairwise([*METHODS, "none"])]


@pytest.mark.parametrize(
    "pair", only_fast(itertools.product(METHODS, METHODS), *FAST), ids=" ".join
)
def test_a_second_turn_under_any_steering_scores_as_without_reuse(pair):
    """The reference forwards every token of the same prompt anew."""
    first, second = pair
    tiny = double()
    session = tiny.session()
    request = second_turn(session, METHODS[first], METHODS[second])
    score = session.score_batch([request], [REPLIES])[0]
    (score_input,) = run_sync(session.score_inputs([request], [REPLIES]))
    prompt, options = score_input.prompt, score_input.replies
    token_request = session.render(request).token_request
    fresh = tuple(replace(prompt, prefix=None) for prompt in token_request.prompts)
    runner = TransformersRunner(tiny.hf_model, batched=False)
    anew = TokenRequest(fresh, token_request.processors)
    alone = score_requests(runner, [anew], [options], 1)[0].scored
    assert score.log_probabilities == pytest.approx(alone.log_probabilities, abs=ROUNDING)
    if first == second and first not in ("pasta keep", "attenuate"):
        # all of the first turn except its last token
        assert prompt.cached >= len(prompt.token_ids) - 20


def test_tokens_before_the_span_are_reused_under_another_method():
    tiny = double()
    session = tiny.session()
    first = {"role": "user", "content": "the river runs slowly past " * 3}
    talk = (first, {"role": "system", "content": "talk about bread"})
    session.generate_batch([Request(talk, (Boost(4),), GREEDY, thread="t", keep=True)])
    (score_input,) = run_sync(
        session.score_inputs([Request(talk, (Pasta(0.1),), thread="t")], [["bread"]])
    )
    assert score_input.prompt.cached == score_input.prompt.span.index(True) > 10


@torch.inference_mode()
def by_oracle(tiny, prompt_ids, span, reply_ids, method):
    """The reply's summed log-probability with the weights of the method's formula."""
    formula = oracles.ORACLES[method.name]

    def attend(module, query, key, value, attention_mask, scaling, **_):
        times = query.shape[1] // key.shape[1]
        key, value = (part.repeat_interleave(times, 1) for part in (key, value))
        output = torch.empty_like(query)
        for head in range(query.shape[1]):
            for row in range(query.shape[2]):
                scores = (key[0, head, : row + 1] @ query[0, head, row] * scaling).tolist()
                weights = oracles.softmax(scores)
                if any(span[: row + 1]):
                    in_span = [*span, *[False] * len(reply_ids)][: row + 1]
                    is_generated = [column >= len(prompt_ids) for column in range(row + 1)]
                    weights = formula(method, weights, in_span, is_generated)
                weights = torch.tensor(weights, dtype=query.dtype, device=DEVICE)
                output[0, head, row] = weights @ value[0, head, : row + 1]
        return output.transpose(1, 2), None

    AttentionInterface.register("oracle_pasta", attend)
    AttentionMaskInterface.register("oracle_pasta", eager_mask)
    literal = copy.deepcopy(tiny.hf_model)
    literal.set_attn_implementation("oracle_pasta")
    input_ids = torch.tensor([[*prompt_ids, *reply_ids]], device=DEVICE)
    logits = literal(input_ids, use_cache=False).logits[0].cpu()
    chances = logits[len(prompt_ids) - 1 : -1].log_softmax(-1)
    return float(chances.gather(-1, torch.tensor(reply_ids)[:, None]).sum())


@pytest.mark.parametrize("generated", ("keep", "scale"))
@pytest.mark.parametrize("reuses", (True, False), ids=("reused", "encoded again"))
def test_pasta_treats_an_earlier_reply_as_prompt_reused_or_encoded_again(generated, reuses):
    """The paper scales the prompt's tokens, and the last reply is part of the prompt."""
    tiny, methods = replace(double(), reuses_cache=reuses), (Pasta(0.01, None, generated),)
    session = tiny.session()
    request = second_turn(session, methods, methods)
    score = session.score_batch([request], [REPLIES])[0]
    (score_input,) = run_sync(session.score_inputs([request], [REPLIES]))
    prompt, options = score_input.prompt, score_input.replies
    expected = [by_oracle(tiny, prompt.token_ids, prompt.span, ids, *methods) for ids in options]
    assert score.log_probabilities == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("reuses", (True, False), ids=("reused", "encoded again"))
def test_attenuate_lowers_the_weights_on_earlier_replies_only(reuses):
    tiny = replace(double(), reuses_cache=reuses)
    methods = (Attenuate(0.01),)
    session = tiny.session()
    request = second_turn(session, methods, methods)
    score = session.score_batch([request], [REPLIES])[0]
    (score_input,) = run_sync(session.score_inputs([request], [REPLIES]))
    prompt, options = score_input.prompt, score_input.replies
    pairs = zip(prompt.token_ids, prompt.span, strict=True)
    outside = [token for token, inside in pairs if not inside]
    assert tiny.tokenizer.decode(outside) == request.messages[2]["content"]
    expected = [by_oracle(tiny, prompt.token_ids, prompt.span, ids, *methods) for ids in options]
    assert score.log_probabilities == pytest.approx(expected, abs=ROUNDING)
    unsteered = tiny.score(request.messages, REPLIES).log_probabilities
    assert abs(unsteered[0] - score.log_probabilities[0]) > 1e-2


def test_attenuate_changes_nothing_before_the_first_reply():
    tiny = double()
    plain, steered = (tiny.score(TALK, REPLIES, methods) for methods in ((), (Attenuate(0.01),)))
    assert steered.log_probabilities == pytest.approx(plain.log_probabilities, abs=ROUNDING)


def test_keep_and_scale_differ_within_a_reply_and_agree_on_its_first_token():
    tiny, apart = double(), []
    for reply in ("b", "bread and music"):
        pair = [tiny.score(TALK, [reply], (Pasta(0.01, None, name),)) for name in ("keep", "scale")]
        apart.append(abs(pair[0].log_probabilities[0] - pair[1].log_probabilities[0]))
    assert pair[0].tokens[0] > 1
    assert apart[0] < ROUNDING and apart[1] > 1e-2
