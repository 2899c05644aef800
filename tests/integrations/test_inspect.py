"""Holdfast in Inspect: its model, and the task that measures any model."""

import asyncio
import math
import os
import re
import subprocess
import sys
from functools import cache

import pytest

pytest.importorskip("inspect_ai", reason="make integrations installs it")

import sniffio
from inspect_ai import eval as evaluate
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolInfo
from served import served

import holdfast
from holdfast import drift
from holdfast.analysis.series import read_series
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.integrations.inspect.drift import RECORD
from holdfast.records import Conversation
from holdfast.seeds import seed_of
from holdfast.serve.limits import RequestLimits

FRENCH = (
    {"role": "system", "content": "Always reply in French."},
    {"role": "user", "content": "What do you think about the garden?"},
)
SHORT = {"rounds": 2, "conversations": 2, "max_new_tokens": 40}
MASS = 2e-6  # records keep six digits, of a mean or of a mean of means


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    """Makes Inspect write its logs to a temporary folder."""
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))


@cache
def local():
    return holdfast.load("default")


def chat(messages=FRENCH):
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    kinds["assistant"] = ChatMessageAssistant
    return [kinds[message["role"]](content=message["content"]) for message in messages]


def run_drift(model, roles=None, model_args=None, **arguments):
    """Runs `holdfast/drift` and returns its log."""
    where = {"model": model, "model_args": model_args or {}, "model_roles": roles or {}}
    (log,) = evaluate("holdfast/drift", **where, task_args={**SHORT, **arguments}, display="none")
    assert log.status == "success", log.error
    return log


def records(log):
    """The conversations of a log, by their numbers."""
    return {s.id: Conversation.model_validate(s.store[RECORD]) for s in log.samples}


def ask(model, count=1, messages=None, **config):
    """The outputs of `count` concurrent calls, each with its own seed."""

    async def work():
        calls = (
            model.generate(messages or chat(), config=GenerateConfig(**{"seed": number, **config}))
            for number in range(count)
        )
        return await asyncio.gather(*calls)

    return asyncio.run(work())


@pytest.fixture
def model():
    inspect_model = get_model("holdfast/default", memoize=False)
    yield inspect_model
    inspect_model.api.close()


BOTH = "repetition:probability=0.5+split-softmax:exponent=0.5"


# The task


@pytest.mark.parametrize("method", ["none", BOTH])
def test_the_task_matches_the_records_of_holdfast_drift(tmp_path, method):
    """Three rounds, in which the tokens of replies differ from those of their text."""
    sizes = {"rounds": 3, "conversations": 5, "max_new_tokens": 80}
    log = run_drift("holdfast/default", **sizes, method=method)
    settings = drift.Settings(rounds=3, conversations=5, sampling=Sampling(max_new_tokens=80))
    run = drift.run(local(), "starter", tmp_path / "run", settings, [method])
    recorded = records(log)
    assert sorted(recorded) == list(range(5))
    for record in run.records:
        ours = recorded[record.conversation]
        assert (ours.agent, ours.user) == (record.agent, record.user)
        for name in ("turns", "probes"):
            for a, b in zip(getattr(ours, name), getattr(record, name), strict=True):
                plain = [part.model_copy(update={"mass": 0}) for part in (a, b)]
                assert plain[0] == plain[1]
                assert a.mass == pytest.approx(b.mass, abs=MASS)
    (series,) = read_series(run)
    metrics = {score.name: score.metrics["mean"].value for score in log.results.scores}
    for kind in ("stability", "adoption"):
        by_round = series.values(kind).mean(0)
        assert metrics[kind] == pytest.approx(by_round.mean())
        assert [metrics[f"{kind}_round_{n}"] for n in (1, 2, 3)] == pytest.approx(by_round)
    assert len(metrics) == 8


def test_a_method_of_the_model_steers_only_the_agent(tmp_path):
    spelled = "boost:factor=4"
    by_model = records(run_drift("holdfast/default", model_args={"method": spelled}))
    by_task = records(run_drift("holdfast/default", method=spelled))
    unsteered = records(run_drift("holdfast/default"))
    assert by_model
    for number, record in by_model.items():
        assert record.turns == by_task[number].turns
        assert record.turns[1].mass > unsteered[number].turns[1].mass


def test_each_epoch_draws_new_replies():
    options = {"task_args": {**SHORT, "conversations": 1}, "epochs": 2, "display": "none"}
    (log,) = evaluate("holdfast/drift", model="holdfast/default", **options)
    first, second = (Conversation.model_validate(s.store[RECORD]) for s in log.samples)
    assert first.agent == second.agent and first.turns[0] == second.turns[0]
    assert first.turns[1:] != second.turns[1:]


class Parrot:
    """A model that replies with the number of the call and records its requests."""

    def __init__(self, **replies):
        self.calls, self.replies = [], replies

    def __call__(self, input, tools, tool_choice, config):
        self.calls.append(([(m.role, m.text) for m in input], config))
        reply = self.replies.get(input[-1].text)
        reply = reply or ModelOutput.from_content("parrot", f"Reply {len(self.calls)}.")
        reply.usage = ModelUsage()  # otherwise a tokenizer is downloaded to count
        return reply

    def model(self):
        return get_model("mockllm/parrot", custom_outputs=self)


def test_any_model_of_inspect_is_measured():
    parrot = Parrot()
    log = run_drift(parrot.model(), conversations=1, temperature=0.5, top_p=0.7)
    pairing = draw_pairing(drift.load_suite("starter"), drift.Settings(), 0)
    record = records(log)[0]
    chats = [messages for messages, _ in parrot.calls]
    assert chats[0] == [("system", pairing.agent.system_prompt), ("user", pairing.starter)]
    recap = f"You asked: {pairing.starter}\nI answered: Reply 1."
    assert [("system", pairing.user.system_prompt), ("user", recap)] in chats
    system, question = chats[0][0], ("user", pairing.stability_questions[0])
    assert [system, question] in chats, "the probe of round 1, in place of the starter"
    speakers = {"agent": "assistant", "user": "user"}
    dialog = [(speakers[turn.speaker], turn.text) for turn in record.turns]
    assert [system, *dialog[:2], question] in chats, "the probe of round 2"
    assert len(chats) == 3 + 4 and len(record.probes) == 4
    first = next(config for messages, config in parrot.calls if messages == chats[0])
    assert first.seed == seed_of("reply", 0, 0, 1, "agent") % 2**31
    assert (first.temperature, first.top_p, first.max_tokens) == (0.5, 0.7, 40)
    assert first.extra_body is None
    for probe in record.probes:
        rules = (pairing.agent if probe.kind == "stability" else pairing.user).rules
        assert probe.score == rules[0].measure.score(probe.reply).value
    assert "Reply 1." in log.samples[0].messages[2].text
    assert "**Round 1, stability" in log.samples[0].scores["stability_and_adoption"].explanation


def test_the_end_of_a_dialog_is_recorded_and_earlier_rounds_are_scored():
    question = draw_pairing(drift.load_suite("starter"), drift.Settings(), 0).starter
    full = ModelOutput.from_content("parrot", "too long", stop_reason="model_length")
    withheld = ModelOutput.from_content("parrot", "", stop_reason="content_filter")
    for answer, why in ((withheld, "filter"), (full, "context")):
        parrot = Parrot(**{f"Reply {number}.": answer for number in range(9)})
        log = run_drift(parrot.model(), conversations=1)
        record = records(log)[0]
        assert record.ended.round == 2 and record.ended.why == why
        assert record.turns[0].text == question
        values = log.samples[0].scores["stability_and_adoption"].value
        assert not math.isnan(values["stability_round_1"])
        rounds = {score.name: score for score in log.results.scores}
        assert rounds["stability_round_1"].scored_samples == 1


def test_another_model_can_take_the_role_of_the_user():
    user = Parrot()
    log = run_drift("holdfast/default", roles={"user": user.model()}, conversations=1)
    turns = records(log)[0].turns
    assert [turn.text for turn in turns if turn.speaker == "user"][1:] == ["Reply 1."]
    ((_, config),) = user.calls
    assert (config.max_tokens, config.top_p) == (40, 0.9)


def test_our_own_server_is_measured_like_any_other(monkeypatch):
    monkeypatch.setenv("HOLDFAST_API_KEY", "none")
    with served(local(), RequestLimits()) as server:
        monkeypatch.setenv("HOLDFAST_BASE_URL", f"{server.url}/v1")
        log = run_drift("openai-api/holdfast/default", temperature=1.0)
    for number, record in records(log).items():
        assert len(record.turns) == len(record.probes) == 4
        messages = [
            {"role": "system", "content": record.agent.system_prompt},
            {"role": "user", "content": record.turns[0].text},
        ]
        seed = seed_of("reply", 0, number, 1, "agent") % 2**31
        reply = local().generate(messages, sampling=Sampling(max_new_tokens=40), seed=seed)
        assert record.turns[1].text == reply.text
    assert {score.name for score in log.results.scores} >= {"stability_round_2", "adoption"}


def test_a_method_inside_the_model_is_refused_if_only_messages_are_sent():
    options = {"task_args": {**SHORT, "method": "boost:factor=2"}, "display": "none"}
    (log,) = evaluate("holdfast/drift", model=Parrot().model(), **options)
    assert log.status == "error"
    assert "boost:factor=2" in log.error.message
    run_drift(Parrot().model(), conversations=1, method="repetition:probability=1")


# The model


def test_concurrent_calls_share_batches_and_draw_by_their_seeds(model, monkeypatch):
    from holdfast.models.stepped_model import SteppedModel

    batch_sizes = []
    step = SteppedModel.step
    monkeypatch.setattr(
        SteppedModel,
        "step",
        lambda self: (batch_sizes.append(len(self.scheduler.running)), step(self))[1],
    )
    outputs = ask(model, 6, temperature=1.0, top_p=0.9, max_tokens=30)
    assert max(batch_sizes) >= 4
    sampling = Sampling(max_new_tokens=30)
    requests = [holdfast.Request(FRENCH, (), sampling, seed) for seed in range(6)]
    replies = local().generate_batch(requests)
    assert [output.completion for output in outputs] == [reply.text for reply in replies]
    ends = {"stop": "stop", "length": "max_tokens"}
    assert [o.stop_reason for o in outputs] == [ends[reply.stop_reason] for reply in replies]
    prompt = len(replies[0].prompt_ids)
    for output, reply in zip(outputs, replies, strict=True):
        usage = output.usage
        assert usage.input_tokens + usage.input_tokens_cache_read == prompt
        assert usage.output_tokens == len(reply.token_ids)


def test_fields_of_the_configuration_take_effect(model):
    fields = {"temperature": 0.0, "max_tokens": 12}
    (output,) = ask(model, logprobs=True, top_logprobs=2, **fields)
    reply = local().generate(FRENCH, sampling=Sampling(0, 1, 12))
    assert output.completion == reply.text
    content = output.choices[0].logprobs.content
    assert (
        "".join(item.token for item in content) == reply.text and len(content[0].top_logprobs) == 2
    )
    expected = local().score(FRENCH, [reply.text]).log_probabilities[0]
    assert sum(item.logprob for item in content) == pytest.approx(expected, abs=1e-3)
    stop = reply.text[5:8]
    (stopped,) = ask(model, stop_seqs=[stop], **fields)
    assert stopped.completion == reply.text[: reply.text.index(stop)]
    (several,) = ask(model, num_choices=3, seed=4, temperature=1.0, top_p=0.9, max_tokens=12)
    draws = [
        local().generate(FRENCH, sampling=Sampling(max_new_tokens=12), seed=4 + place).text
        for place in range(3)
    ]
    assert [choice.message.text for choice in several.choices] == draws


def test_a_call_carries_steering_and_returns_the_mass(model):
    body = {"steering": "boost:factor=4", "trace": True, "emphasis": ["the garden"]}
    (output,) = ask(model, temperature=0.0, max_tokens=12, extra_body=body)
    options = {"trace": True, "emphasis": ["the garden"]}
    request = holdfast.Request(FRENCH, "boost:factor=4", Sampling(0, 1, 12), **options)
    (reply,) = local().generate_batch([request])
    assert output.completion == reply.text
    metadata = output.message.metadata
    assert (metadata["steering"], metadata["applied"]) == ("boost:factor=4", True)
    assert metadata["masses"] == pytest.approx(reply.token_masses, abs=1e-6)
    (every,) = ask(model, max_tokens=3, temperature=0.0, extra_body={"trace": "heads"})
    heads = every.message.metadata["tokens"][0]["heads"]
    assert (len(heads), len(heads[0])) == (4, 8)


def test_a_prompt_that_fills_the_context_gets_an_answer(model):
    long = [*chat(), ChatMessageAssistant(content="bon " * 3000), *chat()[1:]]
    (output,) = ask(model, messages=long)
    assert output.stop_reason == "model_length" and "leaves no room" in output.completion


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"top_k": 5}, "holdfast models do not support top_k (5); leave it out."),
        ({"frequency_penalty": 0.5}, "do not support frequency_penalty (0.5)"),
        ({"reasoning_effort": "high"}, "do not support reasoning_effort ('high')"),
        ({"extra_body": {"steerin": "none"}}, "'steerin'; did you mean 'steering'?"),
        ({"extra_body": {"steering": "bost:factor=2"}}, "no method 'bost'; did you mean 'boost'?"),
        ({"top_p": 2.0}, "top_p has to be a number above 0 to 1, not 2.0."),
    ],
)
def test_unsupported_or_invalid_fields_are_refused_by_name(model, config, expected):
    with pytest.raises(UsageError, match=re.escape(expected)):
        ask(model, **config)


def test_fields_that_change_nothing_are_accepted(model):
    ask(model, max_tokens=2, frequency_penalty=0.0, best_of=1, cache_prompt=True, timeout=60)


def test_images_tools_and_other_event_loops_are_refused_by_name(model):
    image = ChatMessageUser(content=[ContentImage(image="data:image/png;base64,AA==")])
    with pytest.raises(UsageError) as excinfo:
        ask(model, messages=[image])
    assert (excinfo.value.option, excinfo.value.value) == ("messages", "image")
    with pytest.raises(UsageError) as excinfo:
        ask(model, messages=[*chat(), ChatMessageTool(content="42")])
    assert (excinfo.value.option, excinfo.value.value) == ("messages", "tool")
    tool = ToolInfo(name="bash", description="runs a command")
    with pytest.raises(UsageError) as excinfo:
        asyncio.run(model.generate(chat(), tools=[tool]))
    assert (excinfo.value.option, excinfo.value.value) == ("tools", "bash")
    token = sniffio.current_async_library_cvar.set("trio")
    try:
        with pytest.raises(UsageError) as excinfo:
            model.api._running_engine()
        assert (excinfo.value.value, excinfo.value.allowed) == ("trio", "asyncio")
    finally:
        sniffio.current_async_library_cvar.reset(token)


def test_a_closed_model_answers_again(model):
    first = ask(model, temperature=0.0, max_tokens=5)[0].completion
    model.api.close()
    assert ask(model, temperature=0.0, max_tokens=5)[0].completion == first


# Bad arguments


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"roundz": 2}, "The task holdfast/drift has no setting 'roundz'; did you mean 'rounds'?"),
        ({"suite": "startr"}, "There is no suite 'startr'; did you mean 'starter'?"),
        ({"rounds": 0}, "drift takes rounds"),
        ({"method": "bost:factor=2"}, "There is no method 'bost'; did you mean 'boost'?"),
    ],
)
def test_a_bad_argument_of_a_task_is_reported_in_one_sentence(arguments, expected):
    with pytest.raises(PrerequisiteError) as excinfo:
        evaluate("holdfast/drift", model=Parrot().model(), task_args=arguments)
    assert expected in str(excinfo.value)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"method": "bost:factor=2"}, "There is no method 'bost'; did you mean 'boost'?"),
        ({"metod": "none"}, "A holdfast model has no argument 'metod'; did you mean 'method'?"),
        ({"device": "gpu"}, "'gpu'"),
        ({"base_url": "http://x"}, "holdfast/default runs in this process"),
    ],
)
def test_a_bad_argument_of_a_model_is_reported_in_one_sentence(arguments, expected):
    with pytest.raises(PrerequisiteError) as excinfo:
        get_model("holdfast/default", memoize=False, **arguments)
    assert expected in str(excinfo.value)


def test_inspects_command_finds_the_task_and_reports_errors_without_a_traceback(tmp_path):
    command = "eval holdfast/drift --model holdfast/default -T rounds=1 -M method=x:y=1"
    environment = {**os.environ, "INSPECT_DISPLAY": "plain", "COLUMNS": "400"}
    words = [sys.executable, "-m", "inspect_ai", *command.split()]
    captured = {"capture_output": True, "text": True, "timeout": 300}
    result = subprocess.run(words, cwd=tmp_path, env=environment, **captured)
    output = " ".join((result.stdout + result.stderr).split())
    assert result.returncode != 0 and "Traceback" not in output
    assert "no method 'x'" in output
