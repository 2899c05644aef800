"""The scores of a run on logs, by rule or by category of prompts.

    shop/greet: dialogs=[0, 0, 1], positions=[1, 2, 1], scores=[1.0, 0.0, 1.0]
    -> by_dialog: [0.5, 1.0]

The unit is the dialog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.records import Run
from holdfast.records.log_scores import ScoredRule


@dataclass(frozen=True)
class RuleScores:
    """The scores of a rule, or of the rules of a category: an entry per turn that a rule applied
    to.
    """

    rule: str
    turns: int  # all turns in the dialogs under its prompt
    dialogs: np.ndarray  # [entry], the row in the run's records
    positions: np.ndarray  # [entry], the turn's number; tokens and scores are [entry] too
    tokens: np.ndarray
    scores: np.ndarray
    rules: np.ndarray  # [entry], the number of the rule

    def cells(self, bins: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Returns the mean score of each dialog in each bin, [dialog, bin]; NaN where it has none.

        Args:
            bins: where each bin starts.
            values: what is binned, [entry]: `positions` or `tokens`.
        """
        rows, row = np.unique(self.dialogs, return_inverse=True)
        column = np.searchsorted(np.asarray(bins), values, side="right") - 1
        return statistics.matrix_of_arrays(row, column, self.scores, (len(rows), len(bins)))

    @property
    def by_dialog(self) -> np.ndarray:
        """The mean score of each dialog, [dialog]."""
        return self.cells((0,), self.positions)[:, 0]


def read_scores(run: Run, *, by_category: bool = False) -> list[RuleScores]:
    """Returns the scores of each rule of a run, or of each category of prompts."""
    columns = run.log_scores
    labels = [label_of(rule, by_category=by_category) for rule in columns.rules]
    turns = Counter[str]()  # a category counts its turns once for each of its rules
    for label, rule in zip(labels, columns.rules, strict=True):
        turns[label] += columns.turns[rule.prompt, rule.category]
    names = list(dict.fromkeys(labels))
    number_of_rule = np.array([names.index(label) for label in labels], dtype=int)
    number_of_score = number_of_rule[np.asarray(columns.rule)] if names else np.empty(0)
    scores = []
    for number, name in enumerate(names):
        is_of_rule = number_of_score == number
        scores.append(
            RuleScores(
                rule=name,
                turns=turns[name],
                dialogs=np.asarray(columns.dialog)[is_of_rule].astype(float),
                positions=np.asarray(columns.turn)[is_of_rule].astype(float),
                tokens=np.asarray(columns.tokens)[is_of_rule].astype(float),
                scores=np.asarray(columns.score)[is_of_rule].astype(float),
                rules=np.asarray(columns.rule)[is_of_rule].astype(int),
            )
        )
    return scores


def unjudged_rules(
    run: Run, judged_rules: Collection[str], *, by_category: bool
) -> list[RuleScores]:
    """Returns the rules that could not be judged on any turn, as empty `RuleScores`: wherever they
    apply, the reply was cut off or the log does not show enough.
    """
    turns = run.log_scores.turns
    prompts: dict[str, set[tuple[str, str | None]]] = {}  # by rule; a category has several
    for rule, _ in run.log_scores.unscored:
        label = label_of(rule, by_category=by_category)
        prompts.setdefault(label, set()).add((rule.prompt, rule.category))
    empty = np.empty(0)
    return [
        RuleScores(
            rule=label,
            turns=sum(turns[prompt] for prompt in ids),
            dialogs=empty,
            positions=empty,
            tokens=empty,
            scores=empty,
            rules=empty.astype(int),
        )
        for label, ids in prompts.items()
        if label not in judged_rules
    ]


def label_of(rule: ScoredRule, *, by_category: bool = False) -> str:
    """Returns the name of a rule in `LoggedRule.rule`: its category if `by_category`; otherwise
    PROMPT/RULE, or only PROMPT if the rule has no id.
    """
    if by_category:
        return str(rule.category)
    return f"{rule.prompt}/{rule.rule}" if rule.rule else rule.prompt
