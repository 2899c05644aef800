"""The prefix cache: what is shared and what is not, and that the salt decides it."""

import pytest
from conftest import CHATS, FLOAT32_TOLERANCE, compare, engine, finish, sampling, span_of, submit
from holdfast_vllm.wire import Admitted

BOOST = "boost:factor=4"
POWER = "split-softmax:exponent=0.3"


@pytest.fixture
def llm():
    llm = engine(enable_prefix_caching=True, block_size=32)
    llm.reset_prefix_cache()
    return llm


def run(llm, spec, **extra):
    # prompt_logprobs would bypass the cache
    params = sampling({"holdfast": spec, **extra} if spec else None, prompt_logprobs=None)
    return llm.chat([CHATS[2]], params, use_tqdm=False)[0]


def test_the_cache_is_shared_only_under_the_same_setting(llm):
    span = span_of(CHATS[2])
    first = run(llm, BOOST)
    again = run(llm, BOOST)
    assert first.num_cached_tokens == 0
    assert again.num_cached_tokens >= 64
    assert compare(again, span, BOOST).from_holdfast < FLOAT32_TOLERANCE
    for output in (run(llm, POWER), run(llm, None), run(llm, BOOST, holdfast_span=[5, 20])):
        assert output.num_cached_tokens == 0
    assert compare(run(llm, POWER), span, POWER).from_holdfast < FLOAT32_TOLERANCE


def test_salts_of_users_still_keep_caches_apart(llm):
    def salt_for(salt):
        params = sampling({"holdfast": BOOST}, prompt_logprobs=None)
        submit(llm, salt, CHATS[2], params, cache_salt=salt)
        return finish(llm)[salt].num_cached_tokens

    assert salt_for("one") == 0
    assert salt_for("two") == 0
    assert salt_for("one") >= 64


def test_without_the_salt_replies_are_wrong(llm, monkeypatch):
    monkeypatch.setattr(Admitted, "salt", lambda self, request_salt: request_salt)
    run(llm, None)
    steered = run(llm, POWER)
    assert steered.num_cached_tokens >= 64
    assert compare(steered, span_of(CHATS[2]), POWER).from_holdfast > 0.05


def test_replies_are_recomputed_once_they_are_history():
    """Under PASTA's `keep`, generated tokens keep their weight until they belong to the prompt."""
    methods = Admitted.unpack(
        {"methods": "pasta:alpha=0.1", "ranges": [1, 4], "prompt": 40, "trace": ""}
    ).methods
    salts = {Admitted(methods, ((1, 4),), prompt).salt(None) for prompt in (40, 60)}
    assert len(salts) == 2
