"""`attenuate`, whose span is not the system prompt: refusals, defaults and traces."""

import httpx2
import pytest
import torch
from served import served
from tiny import chat, model

import holdfast
from holdfast import Request, Sampling
from holdfast.errors import UsageError
from holdfast.methods import read_methods
from holdfast.methods.compiled import compile_methods
from holdfast.papers.zhang2024.profiling import ProfilingPlan
from holdfast.serve.limits import RequestLimits
from holdfast.study.attention_decay import run_traced, traced_settings

TALK = chat("always talk about cheese", "the old town", "the garden", "the river")
METHOD = "attenuate:factor=0.1"
GREEDY = Sampling(temperature=0, max_new_tokens=8)


@pytest.mark.parametrize(
    "other_method", ("boost:factor=2", "hold", "anchoring:strength=2", "split-softmax:exponent=0.5")
)
def test_attenuate_is_refused_beside_methods_that_act_on_the_prompt(other_method):
    with pytest.raises(UsageError, match=r"give only one of them\.$") as excinfo:
        compile_methods(read_methods(f"{METHOD}+{other_method}"))
    assert other_method.split(":")[0] in str(excinfo.value)


def test_attenuate_works_beside_methods_that_need_no_span():
    tiny = model("llama")
    alone = tiny.generate(TALK, METHOD, GREEDY)
    for other_method in ("guidance:scale=2", "repetition:probability=1"):
        assert tiny.generate(TALK, f"{METHOD}+{other_method}", GREEDY).token_ids != alone.token_ids


def test_attenuate_refuses_emphasis_and_plain_texts():
    with pytest.raises(UsageError, match="emphasis"):
        Request(TALK, METHOD, emphasis=["cheese"])
    with pytest.raises(UsageError, match="attenuate works on the messages of a chat"):
        Request([{"role": "user", "content": "once"}], METHOD, plain=True)


def test_attenuate_needs_no_system_prompt():
    tiny = model("llama")
    unprompted = TALK[1:]
    plain, steered = (tiny.score(unprompted, ["bread"], way) for way in ((), METHOD))
    assert abs(plain.log_probabilities[0] - steered.log_probabilities[0]) > 1e-3
    with pytest.raises(UsageError, match=r"^guidance:scale=2 needs a system prompt"):
        tiny.generate(unprompted, f"{METHOD}+guidance:scale=2", GREEDY)


def test_emphasis_switches_off_attenuate_as_a_servers_default():
    body = {"messages": [*TALK], "max_tokens": 2}
    with served(holdfast.load("default"), RequestLimits(), default=read_methods(METHOD)) as running:

        def steering_of(**fields):
            answer = httpx2.post(f"{running.url}/v1/chat/completions", json=body | fields)
            return answer.json()["holdfast"]

        assert steering_of()["steering"] == METHOD
        emphasised = steering_of(emphasis=["cheese"])
    assert not emphasised["applied"]
    assert emphasised["why"] == f"{METHOD} acts on earlier replies, and the request emphasises text"


def test_attenuate_equals_pasta_in_a_block_whose_span_spares_replies():
    tiny = model("llama", dtype="float64")
    reply = tiny.generate(TALK, METHOD, GREEDY)
    chats = holdfast.encode_chats([TALK], tiny.tokenizer, spares_replies=True)
    with holdfast.steering(tiny.hf_model, chats.span_mask, "pasta:alpha=0.1"):
        ids = tiny.hf_model.generate(**chats.inputs, max_new_tokens=8, do_sample=False)
    assert tuple(ids[0, chats.input_ids.shape[1] :].tolist()) == reply.token_ids
    plain = holdfast.encode_chats([TALK], tiny.tokenizer).span_mask
    assert not torch.equal(plain, chats.span_mask)
    with pytest.raises(UsageError, match="leave one of them out"):
        holdfast.encode_chats([TALK], tiny.tokenizer, emphasis=[["cheese"]], spares_replies=True)
    with (
        pytest.raises(UsageError, match="encode_chats"),
        holdfast.steering(tiny.hf_model, chats.span_mask, METHOD),
    ):
        pass


def test_profiling_refuses_attenuate():
    with pytest.raises(UsageError, match="acts on earlier replies"):
        ProfilingPlan(METHOD)


def test_the_mass_on_the_prompt_is_not_traced(tmp_path):
    tiny = model("llama")
    assert tiny.generate(TALK, "boost:factor=2", GREEDY, trace=True).trace is not None
    assert tiny.generate(TALK, METHOD, GREEDY, trace=True).trace is None
    with pytest.raises(UsageError, match="not traced"):
        run_traced(
            tiny,
            holdfast.drift.load_suite("starter"),
            tmp_path,
            traced_settings(2, 2),
            read_methods(METHOD),
        )
