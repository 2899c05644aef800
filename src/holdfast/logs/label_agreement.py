"""How far a person's labels agree with the scores of a run, so how far its measures can be trusted.

For example:

    shop/greet: 20 turns labelled, 19 as they were scored -> LabelAgreement(agreement=0.95, ...)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.rule_scores import label_of
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.logs.label_file import LabelFile, LabelKey
from holdfast.logs.label_sampling import source_of
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import Run
from holdfast.records.log_scores import rule_of


@dataclass(frozen=True)
class LabelAgreement:
    """How well the scores of a rule agree with the labels of its turns.

    Args:
        agreement: the share of labelled turns whose score agrees with their label; its interval
            takes the turns as independent.
        broken, kept: the same share of the turns that are scored as broken, and as kept.
        unknown: the number of labels whose turn has no score in the run.
    """

    rule: str
    agreement: Estimate
    broken: Estimate
    kept: Estimate
    unknown: int


@dataclass(frozen=True)
class _LabelledScore:
    """Whether a turn keeps a rule, by its score and by its label."""

    scored_kept: bool
    labelled_kept: bool

    @property
    def agrees(self) -> bool:
        return self.scored_kept == self.labelled_kept


def agreements(run: Run, labels: LabelFile) -> list[LabelAgreement]:
    """Compares the scores of each rule with the labels of its turns."""
    label_by_key = dict(labels.items())
    is_kept = _scores_of_labelled(run, labels)
    by_rule: list[LabelAgreement] = []
    for rule in dict.fromkeys(key.rule for key in label_by_key):
        keys = [key for key in label_by_key if key.rule == rule]
        turns = [
            _LabelledScore(is_kept[key], labelled_kept=label_by_key[key] == "follows")
            for key in keys
            if key in is_kept
        ]
        by_rule.append(
            LabelAgreement(
                rule,
                agreement=_share_that_agrees(turns),
                broken=_share_that_agrees(turn for turn in turns if not turn.scored_kept),
                kept=_share_that_agrees(turn for turn in turns if turn.scored_kept),
                unknown=len(keys) - len(turns),
            )
        )
    return by_rule


def _scores_of_labelled(run: Run, labels: LabelFile) -> dict[LabelKey, bool]:
    """Whether each labelled turn that has a score keeps its rule by that score."""
    labelled = {key for key, _ in labels.items()}
    is_kept: dict[LabelKey, bool] = {}
    for record in run.dialogs:
        for probe in record.probes:
            rule = label_of(rule_of(record, probe))
            key = LabelKey(rule, source_of(record, probe.round), probe.question, probe.reply)
            if key in labelled:
                is_kept[key] = probe.score >= MIN_KEPT_SCORE
    return is_kept


def _share_that_agrees(turns: Iterable[_LabelledScore]) -> Estimate:
    return estimate(np.array([turn.agrees for turn in turns], dtype=float), SCORES)
