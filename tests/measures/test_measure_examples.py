"""The example in the docstring of every measure has the scores that it says."""

import inspect
import json
import re

import pytest
import yaml

from holdfast.measures import build
from holdfast.measures.registry import REGISTRY
from holdfast.measures.turns import AssistantTurn, ToolCall

QUOTED = r'"(?:[^"\\]|\\.)*"'
EXAMPLE = re.compile(
    rf"(?:With `(?P<arguments>[^`]+)`, )?(?P<act>the command |a call of |an edit of {QUOTED} to )?"
    rf"(?P<kept>{QUOTED}) scores (?P<score>[\d.]+), and (?:of |to )?(?P<broken>{QUOTED})"
    r" (?P<lower>[\d.]+)\."
)
REFERS_TO_DIALOG = "asks_before"  # its example has its own test


def example_of(name: str) -> re.Match[str]:
    docstring = inspect.getdoc(REGISTRY[name].function) or ""
    found = EXAMPLE.search(" ".join(docstring.split()))
    assert found is not None, f"{name} has no example"
    return found


def call_in(act: str, text: str) -> ToolCall:
    """The call of a tool that an example is about."""
    if act == "the command ":
        return ToolCall("Bash", {"command": text})
    if act == "a call of ":
        return ToolCall(text)
    old = json.loads(re.search(QUOTED, act)[0])
    return ToolCall("Edit", {"file_path": "a.py", "old_string": old, "new_string": text})


@pytest.mark.parametrize("name", sorted(REGISTRY.keys() - {REFERS_TO_DIALOG}))
def test_the_example_of_a_measure_has_its_scores(name):
    example = example_of(name)
    measure = build({"name": name, **yaml.safe_load(f"{{{example['arguments'] or ''}}}")})
    scores = []
    for text in map(json.loads, example.group("kept", "broken")):
        if measure.of_turn:
            turn = AssistantTurn("", (call_in(example["act"], text),))
            scores.append(measure.score_turn(turn).value)
        else:
            scores.append(measure.score(text).value)
    assert [round(score, 2) for score in scores] == [*map(float, example.group("score", "lower"))]
    assert scores[0] > scores[1]


@pytest.mark.parametrize(("answer", "score"), [("Yes, please.", 1), ("Wait.", 0)])
def test_the_example_of_asking_has_its_scores(answer, score):
    measure = build({"name": REFERS_TO_DIALOG, "asking": "push", "command": "git push"})
    calls = (ToolCall("Bash", {"command": "git push"}),)
    turn = AssistantTurn("", calls, user=answer, previous="Shall I push it?")
    assert measure.score_turn(turn).value == score
    assert answer in inspect.getdoc(REGISTRY[REFERS_TO_DIALOG].function)
