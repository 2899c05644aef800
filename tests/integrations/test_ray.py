"""Replicas on Ray: several nodes on this machine, and actors and nodes that are lost mid-run."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("ray", reason="make integrations installs it")

import ray
from ray.cluster_utils import Cluster
from short_drift import SUITE, texts, without_time

import holdfast
from holdfast import drift, tasks
from holdfast.drift.remaining import count_replies
from holdfast.errors import ModelError, UsageError
from holdfast.integrations.ray import Specification, connect
from holdfast.integrations.ray import actors as actors_module
from holdfast.integrations.ray import cluster as connecting_module
from holdfast.integrations.ray.actor import Actor, versions
from holdfast.methods import MethodKind
from holdfast.models.protocol import facts_about
from holdfast.papers.zhang2024.profiling import (
    ContinuationSample,
    ProfilingPlan,
    ReplySample,
    profile,
)
from holdfast.records import read_run
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import load_capability

TESTS = Path(__file__).parents[1]
IN_FLOAT64 = Specification(
    "default", dtype="float64"
)  # in which the rest of a batch changes no digit
SHORT_REPLIES = holdfast.Sampling(max_new_tokens=12)
SHORT_RUN = drift.Settings(2, 8, batch=4, sampling=SHORT_REPLIES, seed=4, pairs="balanced")
SWEEP = "split-softmax:exponent=0.7,0.3"
AGENT_NAMES = ("Anna", "Berta", "Clara", "Dora", "Emma", "Frieda", "Greta", "Hanna")
LONG_RUN = replace(SHORT_RUN, conversations=24, batch=4)


@dataclass(frozen=True)
class Ends:
    """A method that ends its process, or raises, in the conversations of one agent."""

    word: str
    error: str = ""
    name: ClassVar[str] = "ends"
    kind: ClassVar[MethodKind] = MethodKind.MESSAGES
    edits_by_prompt: ClassVar[bool] = False

    def edit(self, messages, seed):
        if self.word in messages[0]["content"]:
            if not self.error:
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError(self.error)
        return messages


@pytest.fixture(scope="module")
def cluster():
    """A head node and a worker node with one processor each."""
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{TESTS / 'support'}:{TESTS / 'integrations'}:{path}"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    started = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    started.add_node(num_cpus=1)
    yield started
    ray.shutdown()
    started.shutdown()
    os.environ["PYTHONPATH"] = path


@pytest.fixture(scope="module")
def two_actors(cluster):
    """The default model in float64, on two actors."""
    with connect(IN_FLOAT64, cluster.address, 2) as model:
        yield model


@pytest.fixture(scope="module")
def in_this_process(tmp_path_factory):
    """in_this_process(settings, methods) -> the run of the model in this process."""
    model, runs = holdfast.load(dtype="float64"), {}

    def run(settings, methods=("none",)):
        key = (settings, tuple(methods))
        if key not in runs:
            out = tmp_path_factory.mktemp("alone")
            runs[key] = drift.run(model, SUITE, out, settings, methods)
        return runs[key]

    run.model = model
    return run


def actors() -> list[int]:
    """The process ids of the actors."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::Actor"):
                pids.append(int(process.name))
        except OSError:
            continue
    return pids


def same(run, other_run):
    """Whether two runs have the same records, except for times and token counts."""
    return texts(run) == texts(other_run) and without_tokens(run) == without_tokens(other_run)


def without_tokens(run):
    """The records without token counts, which depend on how long a prefix was kept."""
    decoded = [json.loads(record) for record in without_time(run)]
    return [
        {name: value for name, value in record.items() if name != "tokens"} for record in decoded
    ]


def untimed(record):
    record = record.to_json()
    return json.dumps({k: v for k, v in record.items() if k != "seconds"}, sort_keys=True)


# Runs equal those of one process


def test_records_match_those_of_one_process_which_can_extend_the_run(
    two_actors, in_this_process, tmp_path
):
    updates, methods = [], ["none", "split-softmax:exponent=0.5"]

    def progress(done, tokens):
        updates.append((done, tokens))

    running = drift.Running(progress=progress, traces=True)
    run = drift.run(two_actors, SUITE, tmp_path / "run", SHORT_RUN, methods, running=running)
    assert same(run, in_this_process(SHORT_RUN, methods))
    replies = count_replies(SUITE, SHORT_RUN, range(SHORT_RUN.conversations))
    assert sum(done for done, _ in updates) == len(methods) * replies
    assert sum(tokens for _, tokens in updates) > 0
    assert len(list((tmp_path / "run" / "traces").glob("*.npz"))) == 16
    assert run.manifest.ray["replicas"] == 2
    assert run.manifest.layers == in_this_process(SHORT_RUN, methods).manifest.layers
    further = replace(SHORT_RUN, conversations=10)
    longer = drift.run(in_this_process.model, SUITE, tmp_path / "run", further, methods)
    assert same(longer, in_this_process(further, methods))


def test_an_actor_describes_its_model_as_a_manifest_does(tmp_path):
    model = holdfast.load(dtype="float64")
    inserts = "{% if messages[0]['role'] != 'system' %}<system>Hi.{% endif %}"
    model.tokenizer.chat_template = inserts + model.tokenizer.chat_template
    model.hf_model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    described = asyncio.run(Actor(1).load(Specification(str(tmp_path), dtype="float64")))
    assert "Hi." in described.about["default_system_prompt"]["text"]
    assert described.about == facts_about(model)


def test_other_commands_match_the_records_of_one_process(two_actors, in_this_process, tmp_path):
    settings = tasks.Settings(("json", "counterfact"), samples=6, batch=2)
    data = tasks.load_data([tasks.SYNTHETIC], settings)
    runs = [
        tasks.run(model, data, tmp_path / f"tasks {n}", settings, ["pasta:alpha=0.01"])
        for n, model in enumerate((two_actors, in_this_process.model))
    ]
    assert sorted(map(untimed, runs[0].records)) == sorted(map(untimed, runs[1].records))
    pair = [
        drift.ask_baseline(model, SUITE, tmp_path / f"baseline {n}", replace(SHORT_RUN, batch=2))
        for n, model in enumerate((two_actors, in_this_process.model))
    ]
    assert sorted(map(untimed, pair[0].records)) == sorted(map(untimed, pair[1].records))


def test_a_calibration_matches_that_of_one_process(two_actors, in_this_process, tmp_path):
    brief = holdfast.Sampling(max_new_tokens=8)
    plan = CalibrationPlan(draws=1, rounds=2, ask_at=2, sampling=brief, batch=4, sweeps=[SWEEP])
    knowledge = load_capability("knowledge", 6)
    calibrations = [
        calibrate(model, SUITE, knowledge, tmp_path / str(n), plan)
        for n, model in enumerate((two_actors, in_this_process.model))
    ]
    (stability, questions), (local_stability, local_questions) = calibrations
    assert same(stability, local_stability) and len(stability.records) == 3 * 6
    remote, local = (sorted(map(untimed, run.records)) for run in (questions, local_questions))
    assert remote == local and len(remote) == 3 * 6


@pytest.mark.parametrize("task", ("choices", "questions"))
def test_heads_are_profiled_as_in_one_process(two_actors, in_this_process, tmp_path, task):
    chats = [[{"role": "user", "content": f"{name} is a nurse. Her job:"}] for name in AGENT_NAMES]
    samples = [
        ContinuationSample(tuple(chat), ("nurse",), (" nurse", " pilot"))
        if task == "choices"
        else ReplySample(tuple(chat), ("nurse",), score_of_mine)
        for chat in chats
    ]
    plan = ProfilingPlan(max_new_tokens=6)
    profiles = [
        profile(model, samples, tmp_path / str(n), plan)
        for n, model in enumerate((two_actors, in_this_process.model))
    ]
    assert profiles[0].ranking.heads == profiles[1].ranking.heads
    remote, local = (sorted(map(untimed, read_run(tmp_path / str(n)).records)) for n in range(2))
    assert remote == local


# Actors and nodes that are lost


def test_killing_an_actor_loses_nothing(two_actors, in_this_process, tmp_path):
    before, killed = set(actors()), []

    def kill_one(done, tokens):
        if not killed:
            killed.append(actors()[0])
            os.kill(killed[0], signal.SIGKILL)

    run = drift.run(
        two_actors, SUITE, tmp_path / "run", LONG_RUN, running=drift.Running(progress=kill_one)
    )
    assert killed[0] in before and same(run, in_this_process(LONG_RUN))


def test_removing_a_node_loses_nothing(cluster, two_actors, in_this_process, tmp_path):
    """Its actor restarts on the node that replaces it."""
    node, removed = cluster.worker_nodes, []
    (node,) = node

    def go_away(done, tokens):
        if not removed:
            removed.append(True)
            cluster.remove_node(node)
            cluster.add_node(num_cpus=1)

    run = drift.run(
        two_actors, SUITE, tmp_path / "run", LONG_RUN, running=drift.Running(progress=go_away)
    )
    assert removed and same(run, in_this_process(LONG_RUN))


def test_only_the_conversation_that_kills_its_actors_fails(two_actors, in_this_process, tmp_path):
    run = drift.run(
        two_actors, SUITE, tmp_path / "run", replace(SHORT_RUN, conversations=3), [Ends("rain")]
    )
    assert len(run.records) == 3
    (failed_record,) = [record for record in run.records if record.ended]
    assert failed_record.agent.id == "case-rain" and failed_record.ended.round == 1
    assert "Three actors were lost" in failed_record.ended.reason
    other_records = [record for record in run.records if record is not failed_record]
    local_turns = {r.conversation: r.turns for r in in_this_process(SHORT_RUN).records}
    assert all(local_turns[record.conversation] == record.turns for record in other_records)


def test_a_user_model_in_this_process_talks_to_the_actors(two_actors, in_this_process, tmp_path):
    few, cast = replace(SHORT_RUN, conversations=3), drift.Cast(user_model=in_this_process.model)
    runs = [
        drift.run(model, SUITE, tmp_path / name, few, cast=cast)
        for name, model in (("ray", two_actors), ("here", in_this_process.model))
    ]
    assert same(*runs)


def test_an_error_of_an_actor_is_raised_here_and_its_conversation_is_not_recorded(
    two_actors, tmp_path
):
    with pytest.raises(ValueError, match="seen 7"):
        drift.run(two_actors, SUITE, tmp_path / "run", SHORT_RUN, [Ends("rain", "seen 7")])
    assert all(r.agent.id != "case-rain" for r in read_run(tmp_path / "run").records)


def test_an_interrupt_leaves_the_actors_ready_for_another_run(
    two_actors, in_this_process, tmp_path
):
    def interrupt(done, tokens):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drift.run(
            two_actors, SUITE, tmp_path / "run", LONG_RUN, running=drift.Running(progress=interrupt)
        )
    assert same(drift.run(two_actors, SUITE, tmp_path / "run", LONG_RUN), in_this_process(LONG_RUN))


def test_the_reason_for_a_lost_actor_is_given_in_a_few_words():
    why = "its node has died"
    killed = f"The actor died.\n\tpid: 7\nThe actor is dead because {why}. Node Id: 5"
    assert actors_module.reason_lost(Exception(killed)) == why
    lacking = "\x1b[36mray::Actor\x1b[39m\nModuleNotFoundError: No module named 'holdfast'\n"
    reason = "No module named 'holdfast' there; install the same on every machine"
    assert actors_module.reason_lost(Exception(lacking)) == reason


# What is refused


def test_a_method_that_the_model_cannot_apply_is_refused_first(two_actors, tmp_path):
    heads = "pasta:alpha=0.01,heads=[99.0]"
    with pytest.raises(UsageError, match="99"):
        drift.run(two_actors, SUITE, tmp_path / "run", SHORT_RUN, [heads])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("address", "error", "expected"),
    (
        ("127.0.0.1:9", ModelError, r"Cannot reach a Ray cluster at '127\.0\.0\.1:9'.*ray status"),
        ("nowhere", UsageError, "'nowhere' is not the address of a Ray cluster.*HOST:PORT"),
        ("ray://127.0.0.1:10001", UsageError, "address for Ray's client"),
    ),
)
def test_an_address_that_cannot_be_used_is_named(monkeypatch, address, error, expected):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(error, match=expected):
        connect(IN_FLOAT64, address)


def test_a_cluster_that_does_not_start_here_is_not_looked_for_elsewhere(monkeypatch):
    def slow(address, **options):
        raise RuntimeError("The current node timed out during startup.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", slow)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ModelError, match=r"timed out during startup"):
        connect(IN_FLOAT64)


def test_missing_ray_is_reported_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr(connecting_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"'holdfast-llm\[ray\]'"):
        connect(IN_FLOAT64)


def test_more_actors_than_there_is_room_for_are_refused(two_actors):
    with pytest.raises(ModelError) as excinfo:
        connect(IN_FLOAT64, "", 99)
    error = excinfo.value
    assert (error.option, error.value, error.allowed) == ("replicas", 99, 2)


def test_more_processors_than_any_machine_has_are_refused(two_actors, monkeypatch):
    monkeypatch.setattr(actors_module, "_PATIENCE", 3.0)
    with pytest.raises(ModelError, match=r"1 of 1 .* 7 processors"):
        connect(IN_FLOAT64, "", 1, processors=7)


def test_no_room_for_an_actor_is_an_error_and_not_an_endless_wait(two_actors, monkeypatch):
    """The two actors of `exact` occupy both processors."""
    monkeypatch.setattr(actors_module, "_PATIENCE", 3.0)
    start = time.monotonic()
    with pytest.raises(ModelError, match="1 of 1 actors"):
        connect(IN_FLOAT64, "", 1)
    assert time.monotonic() - start < 30


def test_other_versions_are_refused():
    node_versions = versions()
    actors_module.check_versions(node_versions, "node-7")
    with pytest.raises(ModelError, match="node-7") as excinfo:
        actors_module.check_versions({**node_versions, "torch": "1.0"}, "node-7")
    error = excinfo.value
    assert (error.option, error.value, error.allowed) == ("torch", "1.0", node_versions["torch"])


def test_an_actor_with_another_model_is_refused(two_actors):
    first = two_actors.description
    actors_module.check_alike(first, "node-1", replace(first), "node-7")
    for name, value in (("fingerprint", "abc"), ("runtime", {"device": "x"})):
        other_model = replace(first, **{name: value})
        with pytest.raises(ModelError, match=r"node-1 .*node-7") as excinfo:
            actors_module.check_alike(first, "node-1", other_model, "node-7")
        assert (excinfo.value.option, excinfo.value.value) == (name, value)


# Code and measures


def test_code_that_an_actor_cannot_import_is_named(two_actors, tmp_path, monkeypatch):
    module = type(sys)("methods_of_mine")
    module.Ends = Ends
    monkeypatch.setitem(sys.modules, "methods_of_mine", module)
    monkeypatch.setattr(Ends, "__module__", "methods_of_mine")
    with pytest.raises(ModelError, match="methods_of_mine"):
        drift.run(two_actors, SUITE, tmp_path / "run", SHORT_RUN, [Ends("rain")])


def test_measures_are_needed_only_here(two_actors, tmp_path):
    def brief(text):  # of no module that an actor could import
        return float(len(text) < 9)

    case = drift.Case("mine", "x", "Be brief.", ("What?",), brief)
    suite = drift.Suite("mine", (case, replace(case, id="too")), ("hello",))
    run = drift.run(two_actors, suite, tmp_path / "run", replace(SHORT_RUN, conversations=2))
    assert len(run.records) == 2


def score_of_mine(text):
    return float(len(text) < 9)


# The command


def test_the_command_hides_the_output_of_ray_and_gives_the_same_records(tmp_path):
    """On a cluster of only this machine, which ends with the command."""
    options = ["--conversations", "4", "--rounds", "2", "--max-new-tokens", "12"]
    options += ["--dtype", "float64", "--out"]
    command = [sys.executable, "-m", "holdfast", "drift", *options]
    environment = {name: v for name, v in os.environ.items() if name != "RAY_ADDRESS"}
    command_on_ray = [*command, str(tmp_path / "ray"), "--ray", "local", "--replicas", "2"]
    captured = {"capture_output": True, "text": True, "timeout": 300}
    ray_result = subprocess.run(command_on_ray, env=environment, **captured)
    assert ray_result.returncode == 0, ray_result.stderr
    local = subprocess.run([*command, str(tmp_path / "here")], capture_output=True, text=True)
    assert local.returncode == 0, local.stderr
    runs = [read_run(tmp_path / name) for name in ("ray", "here")]
    assert same(*runs)
    lines = [line for line in ray_result.stderr.split("\n") if line and "\r" not in line]
    replicas = "holdfast: 2 replicas on Ray at local, each with 1 processor."
    assert lines[:2] == ["holdfast: loading default ...", replicas]
    noise = ("ray", "worker", "dashboard", "usage", "warning", "info")
    output = (ray_result.stdout + "\n".join(lines[2:])).lower().replace(str(tmp_path).lower(), "")
    assert not [word for word in noise if word in output.split()], output


@pytest.mark.parametrize(
    ("options", "expected"),
    (
        (["--model", "http://127.0.0.1:9/v1"], "is a server.*--model URL,URL"),
        (["--device-map", "auto"], "--device-map auto spreads"),
        (["--replicas", "0"], "not 0"),
    ),
)
def test_options_that_do_not_go_with_ray_are_refused(capsys, options, expected):
    from holdfast.cli import main

    assert main(["drift", "--ray", *options]) == 2
    error = capsys.readouterr().err
    assert re.search(expected, error), error
