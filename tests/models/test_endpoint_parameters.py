"""Parameters that an endpoint refuses: left out if they change nothing, else named."""

import pytest
from chat_server import CHAT, completion, failure_of, refusal

from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling

# The limit and the seed


def test_max_tokens_gives_way_to_max_completion_tokens_for_good(serve):
    def answer(body, number):
        if "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model."
            return refusal(400, text, "unsupported_parameter")
        return completion()

    model, server = serve(answer)
    model.generate(CHAT, sampling=Sampling(max_new_tokens=9))
    model.generate(CHAT, sampling=Sampling(max_new_tokens=9))
    assert [body.get("max_tokens") for body in server.bodies] == [9, None, None]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 9, 9]


NO_SEED = "Unsupported parameter: 'seed' is not supported with this model."
EXTRA = '{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}'


@pytest.mark.parametrize(
    "response",
    [
        refusal(400, NO_SEED, "unsupported_parameter"),
        refusal(400, "Unrecognized request argument supplied: seed"),
        (422, {}, EXTRA),
    ],
)
def test_a_refused_seed_is_left_out_for_good_with_one_warning(serve, response):
    model, server = serve(lambda body, number: response if "seed" in body else completion())
    with pytest.warns(UserWarning) as warned:
        assert model.generate(CHAT, seed=3).text == "Arr."
        assert model.generate(CHAT, seed=4).text == "Arr."
    assert [body.get("seed") for body in server.bodies] == [3, None, None]
    (warning,) = (str(entry.message) for entry in warned)
    assert server.url in warning and "'seed'" in warning


@pytest.mark.parametrize("reason", ["seed must be at most 1000", "max_tokens must be at most 256"])
def test_another_complaint_about_a_field_is_passed_on(serve, reason):
    model, server = serve(lambda body, number: refusal(400, reason))
    assert f"400: {reason}" in failure_of(model)
    assert len(server.bodies) == 1


# Sampling


def reasoning(body, number):
    """Answers like OpenAI's reasoning models, which accept neither max_tokens nor sampling."""
    for name in ("max_tokens", "seed", "top_p"):
        if name in body:
            text = f"Unsupported parameter: '{name}' is not supported with this model."
            return refusal(400, text, "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        text = "Unsupported value: 'temperature' does not support 0.7 with this model."
        return refusal(400, text, "unsupported_value")
    return completion()


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_refused_sampling_is_an_error_that_names_the_parameter_and_the_cure(serve, name):
    model, _ = serve(reasoning)
    with pytest.raises(ModelError, match=f"'{name}'.*; set {name}=1, this"):
        model.generate(CHAT, sampling=Sampling(**{"temperature": 1, "top_p": 1, name: 0.7}))


def test_neutral_sampling_is_left_out_if_it_is_refused(serve):
    model, server = serve(reasoning)
    with pytest.warns(UserWarning, match="'seed'"):
        for _ in range(2):
            assert model.generate(CHAT, sampling=Sampling(temperature=1, top_p=1)).text == "Arr."
    fields = [set(body) - {"model", "messages"} for body in server.bodies[-2:]]
    assert fields == [{"temperature", "max_completion_tokens"}] * 2
    assert len(server.bodies) == 5
    # a parameter that was left out as neutral is not dropped once it is set
    with pytest.raises(ModelError, match="set top_p=1"):
        model.generate(CHAT, sampling=Sampling(temperature=1, top_p=0.9))


def test_of_two_mutually_exclusive_parameters_the_neutral_one_is_left_out(serve):
    def answer(body, number):
        has_both = "temperature" in body and "top_p" in body
        error = refusal(400, "`temperature` and `top_p` cannot both be specified for this model.")
        return error if has_both else completion()

    model, server = serve(answer)
    model.generate(CHAT, sampling=Sampling(temperature=1, top_p=0.9))
    model.generate(CHAT, sampling=Sampling(temperature=1, top_p=0.9))
    assert ["temperature" in body for body in server.bodies] == [True, False, False]
    model, server = serve(answer)
    with pytest.raises(ModelError, match="temperature=1 or top_p=1"):
        model.generate(CHAT, sampling=Sampling(temperature=0.5, top_p=0.9))
