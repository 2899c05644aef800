"""Another model as the user model: which model says what, and what identifies a run."""

from dataclasses import replace

import pytest
from scripted_model import Scripted
from served import served
from short_drift import QUICK, SUITE, texts
from synthetic_run import as_json
from tiny import model

from holdfast import drift, report
from holdfast.cli import main
from holdfast.errors import ModelError, RecordsError
from holdfast.models.connecting import connect
from holdfast.records import read_run
from holdfast.serve.limits import RequestLimits


class Named(Scripted):
    """Replies with its name and the number of messages it was shown."""

    def __init__(self, name):
        super().__init__()
        self.name = self.fingerprint = name

    def text(self, request):
        return f"{self.name} {len(request.messages)}"


def test_each_turn_comes_from_its_speakers_model(tmp_path):
    agent, user = Named("agent"), Named("user")
    run = drift.run(agent, SUITE, tmp_path / "run", QUICK, cast=drift.Cast(user_model=user))
    assert len(run.records) == QUICK.conversations
    for record in as_json(run):
        starter, *turns = record["turns"]
        assert starter["text"] in SUITE.starters
        assert all(turn["text"].startswith(turn["speaker"]) for turn in turns) and len(turns) == 5
        assert all(probe["reply"].startswith("agent") for probe in record["probes"])
    prompts = [case.system_prompt for case in SUITE.cases]
    assert {request.thread[0] for request in user.requests} == {"user"}
    assert {request.thread[0] for request in agent.requests} == {"agent"}
    assert all(request.messages[0]["content"] in prompts for request in user.requests)


@pytest.mark.slow
@pytest.mark.parametrize("batch", (2, 5))
def test_giving_the_same_model_as_user_model_changes_nothing(tmp_path, batch):
    settings = replace(QUICK, batch=batch)
    methods = ["none", "split-softmax:exponent=0.5"]
    alone = drift.run(model(), SUITE, tmp_path / "alone", settings, methods)
    cast = drift.Cast(user_model=model())
    same_models = drift.run(model(), SUITE, tmp_path / "both", settings, methods, cast=cast)
    assert texts(same_models) == texts(alone)
    tokens = [sum(r["tokens"]["forwarded"] for r in as_json(run)) for run in (alone, same_models)]
    assert tokens[0] == tokens[1], "each view is computed once, wherever it is"


LIMITS = RequestLimits(tokens=64, seconds=60.0)


@pytest.mark.slow
def test_a_user_model_behind_an_endpoint_writes_the_users_turns(tmp_path):
    alone = drift.run(model(), SUITE, tmp_path / "alone", QUICK)
    with served(model("qwen2"), LIMITS) as server:
        user = connect(f"{server.url}/v1")
        run = drift.run(model(), SUITE, tmp_path / "run", QUICK, cast=drift.Cast(user_model=user))
    assert len(run.records) == QUICK.conversations and not any("ended" in r for r in as_json(run))
    pairs = list(zip(texts(run), texts(alone), strict=True))
    for mixed, plain in pairs:
        assert mixed[:2] == plain[:2], "the agent's first turn is its own"
        assert mixed[2] != plain[2], "the user's is another model's"


def test_a_run_is_identified_by_its_user_model(tmp_path):
    pair = {"model": Named("agent"), "suite": SUITE, "out": tmp_path / "two", "settings": QUICK}
    run = drift.run(**pair, cast=drift.Cast(user_model=Named("Ada")))
    assert run.manifest.identity.to_json()["user_model"]["name"] == "Ada"
    extended_run = drift.run(**pair, cast=drift.Cast(user_model=Named("Ada")))
    assert len(extended_run.records) == QUICK.conversations
    with pytest.raises(RecordsError, match=r"user_model.name is \"Ada\" there and \"Bo\""):
        drift.run(**pair, cast=drift.Cast(user_model=Named("Bo")))
    with pytest.raises(RecordsError, match=r"user_model is .* there and not given here"):
        drift.run(**pair)
    page = report.write([tmp_path / "two"], tmp_path / "page.html").read_text()
    assert "user model Ada" in page and "Two models talk" in page
    single = {**pair, "out": tmp_path / "one"}
    # as older versions wrote it
    assert "user_model" not in drift.run(**single).manifest.identity.to_json()


def test_a_missing_user_model_stops_the_run_which_can_be_resumed(tmp_path):
    class Away(Named):
        async def generate(self, request):
            raise ModelError("There is no such model; start it.")

    def run(user):
        cast = drift.Cast(user_model=user)
        return drift.run(Named("agent"), SUITE, tmp_path / "run", QUICK, cast=cast)

    with pytest.raises(ModelError, match="start it"):
        run(Away("user"))
    assert len(run(Named("user")).records) == QUICK.conversations


def test_a_missing_user_model_and_its_options_without_one_are_refused(tmp_path, capsys):
    for option in ("--user-endpoint-model", "--user-api-key-env"):
        assert main(["drift", option, "x", "--out", str(tmp_path / "run")]) == 2
        stderr = capsys.readouterr().err
        assert f"{option} x" in stderr and "--user-model is not given" in stderr
    assert main(["drift", "--user-model", "nowhere", "--out", str(tmp_path / "run")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_command_takes_a_user_model(tmp_path, capsys):
    for name, kind in (("agent", "llama"), ("user", "qwen2")):
        model_saved = model(kind)
        model_saved.hf_model.save_pretrained(tmp_path / name)
        model_saved.tokenizer.save_pretrained(tmp_path / name)
    command = ["drift", "--model", str(tmp_path / "agent"), "--user-model", str(tmp_path / "user")]
    command += ["--rounds", "2", "--conversations", "2", "--max-new-tokens", "8"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    run = read_run(tmp_path / "run")
    assert run.manifest.identity.to_json()["user_model"]["name"] == str(tmp_path / "user")
    assert len(run.records) == 2
