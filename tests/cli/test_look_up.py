"""`holdfast methods`, `measures` and `docs`: lists, descriptions, and examples that work."""

import re
import shlex

import pytest
import yaml
from paths import ROOT

from holdfast import measures, methods
from holdfast.cli import main
from holdfast.cli.look_up.docs import pages
from holdfast.cli.look_up.measures import measure_example, measure_lines
from holdfast.cli.look_up.methods import method_lines
from holdfast.errors import UnknownName
from holdfast.measures.registry import REGISTRY

# Lists


def test_measures_and_methods_are_listed(capsys):
    assert main(["measures"]) == 0
    output = capsys.readouterr().out
    first, *published = output.split("\n\n")
    assert "at_most_sentences(count, prose=false)" in first and "released_" not in first
    assert [part.split("_")[0] for part in published[1:]] == ["ifeval", "released"]
    assert "relation: at least|" in output and "colours" in published[0]
    assert main(["methods"]) == 0
    assert "upper_case" in output and "language(code)" in output
    assert "split-softmax(exponent, heads)" in capsys.readouterr().out


def test_the_pages_of_the_documentation_are_listed_and_printed(capsys):
    assert main(["docs"]) == 0
    listing = capsys.readouterr().out
    assert re.search("^logs +Logs of", listing, re.M)
    names = [line.split()[0] for line in listing.splitlines()]
    assert names[:2] == ["index", "quickstart"] and sorted(names) == sorted(pages())
    for name in ("logs", "logs.md"):
        assert main(["docs", name]) == 0
        assert capsys.readouterr().out == ROOT.joinpath("docs/logs.md").read_text()
    assert main(["docs", "serve"]) == 2
    assert "'serving'" in capsys.readouterr().err


# Methods


def test_a_named_method_is_described_in_full(capsys):
    assert main(["methods", "boost"]) == 0
    output = capsys.readouterr().out
    (factor,) = re.findall(r"^  factor .*", output, re.M)
    assert "from 1 upwards" in factor and "must be given" in factor and "changes nothing" in factor
    assert "example: --method boost:factor=4\n" in output
    assert "source: InstABoost, arXiv 2506.13734" in output and "Args" not in output
    assert main(["methods", "hold"]) == 0
    hold = capsys.readouterr().out
    assert re.search(r"^  tokens .* 1 .* 24 ", hold, re.M)
    assert "example: --method hold\n" in hold
    with pytest.raises(UnknownName) as excinfo:
        method_lines("bost")
    assert (excinfo.value.kind, excinfo.value.suggestion) == ("method", "boost")


@pytest.mark.parametrize("name", [name for name, _, _ in methods.catalogue()])
def test_the_example_of_a_method_can_be_parsed(name):
    (line,) = [line for line in method_lines(name) if line.startswith("example: --method ")]
    (spec,) = shlex.split(line)[2:]
    if ".safetensors" not in spec:  # else it needs a file of `holdfast fit`
        (method,) = methods.parse(spec)
        assert method.name == name


# Measures


def test_a_named_measure_is_described_in_full(capsys):
    assert main(["measures", "contains"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^  words .* must be given$", output, re.M)
    assert re.search(r"^  whole .* true$", output, re.M)
    assert 'measure: {name: contains, words: ["sea", "boat"]}\n' in output
    assert main(["measures", "judge"]) == 0
    assert "example: measure: {judge: " in capsys.readouterr().out
    with pytest.raises(UnknownName) as excinfo:
        measure_lines("contain")
    assert (excinfo.value.kind, excinfo.value.suggestion) == ("measure", "contains")


def test_every_measure_is_explained():
    for name in REGISTRY:
        *_, example, source = (
            line for line in measure_lines(name) if not line.startswith("the opposite: ")
        )
        assert example.startswith("example: measure: ") and source.startswith("source: ")
    rows = [line.split() for line in measure_lines("runs_after")]
    assert ["after", "a", "regular", "expression", "null"] in rows


def test_the_example_of_a_measure_can_be_built():
    for name in REGISTRY:
        assert measures.build(yaml.safe_load(measure_example(name))).name == name


def test_the_opposite_of_every_measure_of_texts_can_be_built():
    opposites = {
        name: yaml.safe_load(line.removeprefix("the opposite: "))["measure"]
        for name in REGISTRY
        for line in measure_lines(name)
        if line.startswith("the opposite: ")
    }
    assert "contains" in opposites and not {"never", "runs_after"} & opposites.keys()
    for spec in opposites.values():
        measures.build(spec)
