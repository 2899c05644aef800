"""Tests how well measures agree with labelled turns, of a suite and of a file.

A measure is treated as a detector of broken turns. Its precision is the share of the turns it
scores as broken that are labelled so; its recall is the share of the turns labelled as broken that
it scores so. A turn that it does not score, because its rule does not apply, is not detected. On
turns that were chosen by their scores (`logs --label`), the recall is too high.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PlainSerializer, ValidationError

from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.drift.cases import LabelledTurn, Rule, Suite
from holdfast.drift.rule_examples import score_labelled
from holdfast.drift.suite_entries import NonEmptyText, TurnEntry
from holdfast.errors import UnknownName, UsageError
from holdfast.files import read_json_lines
from holdfast.measures.scores import Score
from holdfast.records.model import List, Number, RecordModel
from holdfast.validation.pydantic_errors import FieldPath, format_path, problem_of

NEEDS_JUDGE = "needs a judge"  # why turns are not scored: judges are not asked here

Label = Literal["follows", "breaks"]
TurnsByLocation = Mapping[str, LabelledTurn]  # by where the label is: "turns.jsonl, line 4"


class LabelledLine(TurnEntry):
    """A line of a file of labelled turns."""

    rule: NonEmptyText
    label: Label
    source: str = ""  # where the turn is in a log, as `holdfast logs --label` writes it


def _share_json(share: Estimate) -> dict[str, Any]:
    return {"turns": share.n, "mean": share.mean, "low": share.low, "high": share.high}


ShareOfTurns = Annotated[Estimate, PlainSerializer(_share_json)]


class Disagreement(RecordModel):
    """A turn whose score disagrees with its label, or that has no score.

    Attributes:
        source: where the label is: "breaks 2" in a suite, or "turns.jsonl, line 4".
        score: None if the rule does not apply to the turn.
        text: the text of the turn, cut short; not in the JSON.
    """

    source: str
    label: Label
    score: float | None
    reason: str | None
    text: str = Field(exclude=True)


class MeasureTest(RecordModel):
    """A rule's measure on labelled turns.

    Attributes:
        rule: CASE/RULE, or CASE if the rule has no id.
        follows: how many turns are labelled as following the rule.
        breaks: how many turns are labelled as breaking it.
        precision: of the turns that are scored as broken, the share that is labelled so.
        recall: of the turns that are labelled as broken, the share that is scored so.
        untested: why the turns are not scored; None if they are.
    """

    rule: str
    measure: str
    follows: Number
    breaks: Number
    precision: ShareOfTurns
    recall: ShareOfTurns
    untested: str | None
    disagreements: List[Disagreement]

    @property
    def turns(self) -> int:
        """How many turns were scored."""
        return self.follows + self.breaks


@dataclass(frozen=True)
class _ScoredTurn:
    """A labelled turn with its score; None if the rule does not apply, or too little is shown."""

    location: str  # where the label is
    turn: LabelledTurn
    score: Score | None

    @property
    def is_broken(self) -> bool:
        """Whether the measure says that the turn breaks the rule."""
        return self.score is not None and not self.score.keeps_rule

    @property
    def agrees(self) -> bool:
        """Whether it is scored as it is labelled."""
        return self.score is not None and self.is_broken != self.turn.follows


def read_labelled_turns(path: Path, suite: Suite) -> dict[str, TurnsByLocation]:
    """Reads the labelled turns of each rule from a JSON Lines file:

        {"rule": "polite", "label": "breaks", "reply": "No.", "source": "log.jsonl, line 3"}

    A turn with a `source` may be labelled again: the last label for that source and rule counts.

    Raises:
        UsageError: the file or a line cannot be read, or the suite has no such rule.
    """
    names = _names_of(suite)
    turns: dict[str, dict[str, LabelledTurn]] = {}
    locations: dict[tuple[str, str], str] = {}  # of the last label, by rule and source
    for number, value in read_json_lines(path):
        location = f"{path}, line {number}"
        try:
            line = LabelledLine.model_validate(value)
        except ValidationError as error:
            problem = problem_of(error, LabelledLine, value, _name_fields_in(location))
            raise UsageError(problem.sentence) from None
        if line.rule not in names:
            raise UnknownName("rule", line.rule, names)
        rule = names[line.rule]
        turns_of_rule = turns.setdefault(rule, {})
        if line.source:
            turns_of_rule.pop(locations.get((rule, line.source), ""), None)
            locations[rule, line.source] = location
        turns_of_rule[location] = line.labelled(line.label == "follows")
    if not turns:
        raise UsageError(f"{path} has no labelled turns; write one JSON object per line.")
    return dict(turns)


def _name_fields_in(location: str) -> Callable[[FieldPath], str]:
    """Returns a function that names a field of the line at a location, for messages."""
    return lambda path: f"{location}: {format_path(path) or 'it'}"


def _names_of(suite: Suite) -> dict[str, str]:
    """Returns each rule's full name by the names that can be used for it.

    These are the full name, and the rule's id alone if no other rule has it.
    """
    full_names = [name for name, _ in _named_rules(suite)]
    ids = [name.rpartition("/")[2] for name in full_names]
    counts = Counter(ids)
    names = {id_: name for id_, name in zip(ids, full_names, strict=True) if counts[id_] == 1}
    return names | {name: name for name in full_names}


def _named_rules(suite: Suite) -> list[tuple[str, Rule]]:
    """Returns every rule of the suite with its full name."""
    return [
        (f"{case.id}/{rule.id}" if rule.id else case.id, rule)
        for case in suite.cases
        for rule in case.rules
    ]


def run_measure_tests(
    suite: Suite, further_turns: Mapping[str, TurnsByLocation] | None = None
) -> list[MeasureTest]:
    """Scores the labelled turns of every rule: those in the suite, and `further_turns` by rule."""
    return [
        _measure_test(name, rule, {**_turns_of(rule), **(further_turns or {}).get(name, {})})
        for name, rule in _named_rules(suite)
    ]


def _turns_of(rule: Rule) -> TurnsByLocation:
    """Returns the labelled turns in a rule of a suite by location, such as "breaks 2"."""
    turns: dict[str, LabelledTurn] = {}
    counts = Counter[str]()
    for turn in rule.labelled:
        label = _label_of(turn)
        counts[label] += 1
        turns[f"{label} {counts[label]}"] = turn
    return turns


def _measure_test(name: str, rule: Rule, labelled_turns: TurnsByLocation) -> MeasureTest:
    """Scores the labelled turns of a rule, and counts where score and label agree."""
    results = [] if rule.measure.judged else _score_turns(rule, labelled_turns)
    follows = sum(result.turn.follows for result in results)
    return MeasureTest(
        rule=name,
        measure=rule.measure.name,
        follows=follows,
        breaks=len(results) - follows,
        precision=_share([not result.turn.follows for result in results if result.is_broken]),
        recall=_share([result.is_broken for result in results if not result.turn.follows]),
        untested=NEEDS_JUDGE if rule.measure.judged else None,
        disagreements=tuple(_disagreement(result) for result in results if not result.agrees),
    )


def _score_turns(rule: Rule, labelled_turns: TurnsByLocation) -> list[_ScoredTurn]:
    results = []
    for location, turn in labelled_turns.items():
        score = score_labelled(rule, turn)
        results.append(_ScoredTurn(location, turn, score if isinstance(score, Score) else None))
    return results


def _share(marks: Sequence[bool]) -> Estimate:
    """Returns the share of marks that are true.

    Of zeros and ones, the interval is the exact binomial one (Clopper and Pearson 1934), up to the
    error of resampling. It takes the turns as independent.
    """
    return estimate(np.array(marks, dtype=float), SCORES)


def _disagreement(result: _ScoredTurn) -> Disagreement:
    return Disagreement(
        source=result.location,
        label=_label_of(result.turn),
        score=None if result.score is None else result.score.value,
        reason=None if result.score is None else result.score.reason,
        text=result.turn.excerpt,
    )


def _label_of(turn: LabelledTurn) -> Label:
    return "follows" if turn.follows else "breaks"
