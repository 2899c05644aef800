"""The records that the documents quote: of the shipped weights, each made by a command."""

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from paths import ROOT

import holdfast
from holdfast.cli.main_parser import parser

BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
SCRIPTS = sorted([*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("tabled/*.py")])


def load(name: str):
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def names_defined_in(path: Path) -> set[str]:
    """The names at the top level of a module, without running it."""
    names = set[str]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        else:
            names_stored = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            names |= {part.id for part in names_stored if isinstance(part.ctx, ast.Store)}
    return names


record_list = load("record_list")


def test_every_results_file_has_a_command():
    paths = [path.relative_to(RESULTS) for path in RESULTS.rglob("*.json")]
    names = {record.name for record in record_list.RECORDS}
    assert {path.with_suffix("").as_posix() for path in paths} == names
    for record in record_list.RECORDS:
        assert (ROOT / record.command.split()[0]).exists(), record.command


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_names_that_a_benchmark_imports_from_another_exist(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        imported = (BENCHMARKS / node.module.replace(".", "/")).with_suffix(".py")
        if imported in SCRIPTS:
            missing = {alias.name for alias in node.names} - names_defined_in(imported)
            assert not missing, f"{imported.name} has no {missing}"


@pytest.mark.parametrize("record", record_list.RECORDS, ids=lambda record: record.name)
def test_a_record_names_what_it_was_measured_on(record):
    record_json = json.loads((RESULTS / f"{record.name}.json").read_text())
    measured_on = record_json["measured_on"]
    assert measured_on["commit"] and measured_on["machine"] and measured_on["versions"]["torch"]
    if record.default_model:
        # the fingerprint depends on the dtype that the weights were loaded in
        dtypes = {"float32", record_json.get("dtype", "float32")}
        shipped = {holdfast.load("default", dtype=dtype).fingerprint for dtype in dtypes}
        assert measured_on["fingerprint"] in shipped, (
            f"{record.name} was measured on other weights than those that ship; "
            f"run python benchmarks/records.py {record.name}"
        )


def test_only_differences_beyond_the_intervals_are_changes():
    def record(mean: float, verdict: str, ratios: tuple[float, ...]) -> dict:
        claim = {"text": "it falls.", "verdict": verdict}
        return {
            "measured_on": {"commit": str(mean)},
            "rows": [{"method": "none", "drop": {"mean": mean, "low": mean - 1, "high": mean + 1}}],
            "repetitions": [{"peer": {"ratio": ratio, "seconds": ratio}} for ratio in ratios],
            "figures": [{"kind": "Table", "number": "1", "claims": [claim]}],
        }

    old = record(0.0, "supported", (2.0, 3.0, 4.0))
    assert load("record_changes").changes(old, record(1.5, "supported", (3.5, 4.0, 5.0))) == []
    assert load("record_changes").changes(old, record(2.5, "undecided", (4.5, 5.0, 6.0))) == [
        "| /rows/none/drop | 0.000 [-1.000, 1.000] | 2.500 [1.500, 3.500] |",
        "| /repetitions/peer/ratio | 3.000 [2.000, 4.000] | 5.000 [4.500, 6.000] |",
        "| Table 1: it falls. | supported | undecided |",
    ]


def test_the_stamp_names_commit_machine_and_versions():
    stamp = load("stamp").measured_on(holdfast.load("default"))
    assert stamp["fingerprint"] == holdfast.load("default").fingerprint
    assert "cores" in stamp["machine"] and set(stamp["versions"]) >= {"torch", "transformers"}
    assert len(stamp["commit"].removesuffix("+changes")) == 40 or "unknown" in stamp["commit"]


REPEATABLE = tuple(
    re.findall(r"`python benchmarks/(\w+)\.py (.*?) --out", (BENCHMARKS / "README.md").read_text())
)


@pytest.mark.parametrize(("script", "options"), REPEATABLE, ids=lambda words: words[:20])
def test_a_command_of_the_page_of_benchmarks_runs_one_of_holdfast(
    script, options, monkeypatch, tmp_path
):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import commands

    started = []

    def parse_alone(words):
        started.append(parser().parse_args(words))
        return 3

    monkeypatch.setattr(commands, "main", parse_alone)
    given = options.replace("MODEL", "default").split()
    monkeypatch.setattr("sys.argv", [script, *given, "--runs", str(tmp_path)])
    with pytest.raises(SystemExit, match="3"):
        load(script).main()
    (arguments,) = started
    assert arguments.model == "default" and arguments.dtype == "bfloat16"


def test_the_sentence_on_the_fix_that_helps_needs_a_model_that_it_helps(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from tabled import edits

    gain = {"all": {"n": 40, "mean": 0.1, "low": -0.1, "high": 0.3}}
    row = {"method": edits.HELPING, "gain": gain, "against_repetition": {"certain": False}}
    monkeypatch.setattr(edits, "read_all", lambda folder: [{"model": "a", "rows": [row]}])
    with pytest.raises(ValueError, match="on no model"):
        edits.helping_sentence()


def test_the_table_of_context_modes_has_the_rules_that_have_enough_conversations(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from tabled.context_modes import context_table

    def row(group: str, conversations: int) -> dict:
        def value(mean: float) -> dict:
            ends = {"low": mean - 0.1, "high": mean + 0.1}
            return {"n": conversations, "mean": mean, "sd": 0.2, **ends}

        shown = {"method": "none", "grouping": "kind", "group": group, "rules": 3}
        scores = {"first": value(0.8), "last": value(0.3), "change": value(-0.5)}
        return {**shown, **scores, "verdict": "falls"}

    share = {"n": 32, "mean": 0.25, "sd": 0.2, "low": 0.2, "high": 0.3}
    losses = [
        {"context": "slide", "rows": [row("closing", 32), row("secret", 8)]},
        {
            "context": "compact",
            "rows": [row("closing", 32), row("secret", 8)],
            "recall": row("", 32),
            "stated_first": share,
            "stated_last": share,
        },
    ]
    record = {"model": "a", "conversations": 32, "rounds": 8, "losses": losses}
    _, _, *lines = context_table([record]).splitlines()
    cell = "0.80 → 0.30, -0.50 [-0.60, -0.40], falls"
    assert lines == [
        "| `a` | `slide` | `compact` |",
        "| --- | --- | --- |",
        f"| **closing** | {cell} | {cell} |",
        f"| rules stated when asked |  | {cell} |",
        "| rules in the first summary |  | 0.25 [0.20, 0.30] |",
        "| rules in the last summary |  | 0.25 [0.20, 0.30] |",
    ]


@pytest.mark.parametrize(("broken", "breaks_down"), [(0.5, True), (0.1, False)])
def test_the_losses_of_a_model_whose_conversations_break_down_are_not_on_the_first_page(
    monkeypatch, broken, breaks_down
):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from tabled import loss

    record = json.loads((RESULTS / "loss" / "qwen-0.5b.json").read_text())
    shares = {"cut": 0.75, "own": 0.0, "other": 0.0, "loops": broken, "broken": broken}
    record["collapse"] = [{"turns": 200, **shares, "collapsed_from_round": {}}]
    monkeypatch.setattr(loss, "_records", lambda: {"a": record})
    line = f"{broken:.0%} of its replies repeat an earlier turn or loop, and 75% are cut"
    assert (line in loss.conversations_list()) == breaks_down
    assert ("`a`" in loss.lost_sentences()) != breaks_down
