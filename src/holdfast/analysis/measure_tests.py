"""How well measures agree with labelled turns: those of a suite, and of a file.

A measure is taken as a detector of broken turns. Its precision is the share of the turns it scores
as broken that are labelled so, its recall the share of the turns labelled as broken that it scores
so. A turn that it does not score (its rule does not apply) counts as not detected.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.drift.cases import LabelledTurn, Rule, Suite
from holdfast.drift.suite_checks import score_labelled
from holdfast.drift.suite_entries import Text, TurnEntry
from holdfast.errors import UnknownName, UsageError
from holdfast.files import read_json_lines
from holdfast.measures.scores import FOLLOWED, Score
from holdfast.validation.pydantic_errors import Path as FieldPath
from holdfast.validation.pydantic_errors import problem_of, written

JUDGED = "needs a judge"


class LabelledLine(TurnEntry):
    """A line of a file of labelled turns."""

    rule: Text
    label: Literal["follows", "breaks"]
    source: str = ""  # of the turn in a log, as `holdfast logs --label` writes it


@dataclass(frozen=True)
class ScoredTurn:
    """A labelled turn with its score.

    Args:
        source: where the label stands, as in "breaks 2" or "turns.jsonl, line 4".
        score: None if the rule does not apply to the turn.
    """

    source: str
    labelled: LabelledTurn
    score: Score | None

    @property
    def is_broken(self) -> bool:
        """Whether the measure says that the turn breaks the rule."""
        return self.score is not None and self.score.value < FOLLOWED

    @property
    def agrees(self) -> bool:
        """Whether it is scored as it is labelled."""
        return self.score is not None and self.is_broken != self.labelled.follows


@dataclass(frozen=True)
class MeasureTest:
    """A rule's measure on labelled turns.

    Args:
        rule: its name, with its case's.
        untested: why the turns are not scored, "" if they are.
    """

    rule: str
    measure: str
    turns: tuple[ScoredTurn, ...] = ()
    untested: str = ""

    @property
    def disagreements(self) -> tuple[ScoredTurn, ...]:
        """The turns that are scored otherwise than labelled, or not at all."""
        return tuple(turn for turn in self.turns if not turn.agrees)

    @property
    def precision(self) -> Estimate:
        """Of the turns that are scored as broken, the share that is labelled so."""
        return _share([not turn.labelled.follows for turn in self.turns if turn.is_broken])

    @property
    def recall(self) -> Estimate:
        """Of the turns that are labelled as broken, the share that is scored so."""
        return _share([turn.is_broken for turn in self.turns if not turn.labelled.follows])

    def to_json(self) -> dict[str, Any]:
        """The test as JSON values."""
        return {
            "rule": self.rule,
            "measure": self.measure,
            "follows": sum(turn.labelled.follows for turn in self.turns),
            "breaks": sum(not turn.labelled.follows for turn in self.turns),
            "precision": _estimate_json(self.precision),
            "recall": _estimate_json(self.recall),
            "untested": self.untested or None,
            "disagreements": [
                {
                    "source": turn.source,
                    "label": "follows" if turn.labelled.follows else "breaks",
                    "score": None if turn.score is None else turn.score.value,
                    "reason": None if turn.score is None else turn.score.reason,
                }
                for turn in self.disagreements
            ],
        }


def _share(marks: Sequence[bool]) -> Estimate:
    """The share of marks that are true, with the exact binomial interval."""
    return estimate(np.array(marks, dtype=float), SCORES)


def _estimate_json(share: Estimate) -> dict[str, Any]:
    return {"turns": share.n, "mean": share.mean, "low": share.low, "high": share.high}


@dataclass(frozen=True)
class LabelledSource:
    """A labelled turn of a file, with the name of its rule and its place."""

    rule: str
    source: str
    labelled: LabelledTurn = field(compare=False)


def read_labelled_turns(path: Path, suite: Suite) -> list[LabelledSource]:
    """The labelled turns of a JSON Lines file: objects with `rule`, `label` and a turn's fields.

    A turn with a `source` may be labelled again: the last label of it and the rule counts.

    Raises:
        UsageError: the file or a line cannot be read, or the suite has no such rule.
    """
    names = _names_of(suite)
    turns: dict[tuple[str, str], LabelledSource] = {}
    for number, value in read_json_lines(path):
        where = f"{path}, line {number}"
        try:
            line = LabelledLine.model_validate(value)
        except ValidationError as error:
            problem = problem_of(error, LabelledLine, value, _in(where))
            raise UsageError(problem.sentence) from None
        if line.rule not in names:
            raise UnknownName("rule", line.rule, names)
        labelled = line.labelled(line.label == "follows")
        rule = names[line.rule]
        turns[rule, line.source or where] = LabelledSource(rule, where, labelled)
    if not turns:
        raise UsageError(f"{path} has no labelled turns; write one JSON object per line.")
    return list(turns.values())


def _in(where: str) -> Callable[[FieldPath], str]:
    """Names a field of a line in messages."""
    return lambda path: f"{where}: {written(path) or 'it'}"


def _names_of(suite: Suite) -> dict[str, str]:
    """The rules' full names, by every name that means only one of them."""
    full = [name for name, _ in _rules_of(suite)]
    last = [name.rpartition("/")[2] for name in full]
    short = {end: name for end, name in zip(last, full, strict=True) if last.count(end) == 1}
    return {**short, **{name: name for name in full}}


def _rules_of(suite: Suite) -> list[tuple[str, Rule]]:
    return [
        (f"{case.id}/{rule.id}" if rule.id else case.id, rule)
        for case in suite.cases
        for rule in case.rules
    ]


def test_measures(suite: Suite, more: Sequence[LabelledSource] = ()) -> list[MeasureTest]:
    """Scores the labelled turns of every rule: its own, and those of a file."""
    tests: list[MeasureTest] = []
    for name, rule in _rules_of(suite):
        if rule.measure.judged:
            tests.append(MeasureTest(name, rule.measure.name, untested=JUDGED))
            continue
        listed = [(labelled, _numbered(rule, labelled)) for labelled in rule.labelled]
        listed += [(turn.labelled, turn.source) for turn in more if turn.rule == name]
        turns = tuple(
            ScoredTurn(source, labelled, _score_of(rule, labelled)) for labelled, source in listed
        )
        tests.append(MeasureTest(name, rule.measure.name, turns))
    return tests


def _score_of(rule: Rule, labelled: LabelledTurn) -> Score | None:
    """The score of a turn; None if the rule does not apply, or the turn shows too little of it."""
    judged = score_labelled(rule, labelled)
    return judged if isinstance(judged, Score) else None


def _numbered(rule: Rule, labelled: LabelledTurn) -> str:
    """The place of a labelled turn in its rule, as in "breaks 2"."""
    same = [other for other in rule.labelled if other.follows == labelled.follows]
    field = "follows" if labelled.follows else "breaks"
    return f"{field} {same.index(labelled) + 1}"
