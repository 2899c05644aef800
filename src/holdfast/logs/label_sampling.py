"""The turns of a run that a person labels, with their full texts.

For example:

    run                  -> sample_turns -> SampledTurn(dialog=2, turn=1, rule="shop/greet"), ...
    these turns, logs    -> label_tasks  -> LabelTask("shop/greet", turn=LoggedTurn(...), ...), ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.analysis.rule_scores import label_of
from holdfast.drift.cases import Suite
from holdfast.drift.rule_texts import text_of_rule
from holdfast.logs.dialogs import LoggedTurn
from holdfast.logs.rereading import LogSource
from holdfast.logs.scored_logs import named_rules
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import LogDialog, Run

MAX_TURNS = 20  # of each rule


class SampledTurn(NamedTuple):
    """A scored turn and the rule that it was scored by.

    Args:
        dialog: the row of its dialog in the run's records.
        turn: its number in the dialog, from 1.
        rule: the name of the rule, such as "shop/greet".
    """

    dialog: int
    turn: int
    rule: str


@dataclass(frozen=True)
class LabelTask:
    """A scored turn for a person to label.

    Args:
        rule: the name of the rule, such as "shop/greet".
        text: the text of the rule.
        spec: the spec of the rule's measure.
        source: where the turn is, such as "july.jsonl, line 3, turn 2".
        turn: the turn with its full texts.
    """

    rule: str
    text: str
    spec: Any
    source: str
    turn: LoggedTurn


def sample_turns(run: Run, seed: int, max_turns: int = MAX_TURNS) -> list[SampledTurn]:
    """Draws scored turns of each rule: half of them scored as broken and half as kept, if there
    are enough, in an order that does not show which. The same run and seed give the same turns.
    """
    scores = run.log_scores
    columns = (scores.rule, scores.dialog, scores.turn, scores.score)
    rule, dialog, turn, score = (np.asarray(column) for column in columns)
    sample: list[SampledTurn] = []
    for number, scored in enumerate(scores.rules):
        name = label_of(scored)
        draw = np.random.default_rng([seed, *name.encode()])
        broken = draw.permutation(np.flatnonzero((rule == number) & (score < MIN_KEPT_SCORE)))
        kept = draw.permutation(np.flatnonzero((rule == number) & (score >= MIN_KEPT_SCORE)))
        num_broken = _num_broken_to_draw(len(broken), len(kept), max_turns)
        rows = draw.permutation([*broken[:num_broken], *kept[: max_turns - num_broken]])
        sample += [SampledTurn(int(dialog[row]), int(turn[row]), name) for row in rows]
    return sample


def _num_broken_to_draw(num_broken: int, num_kept: int, max_turns: int) -> int:
    """Half of the sample, or more if too few turns are kept to fill the other half.

    Most turns keep most rules, so a sample regardless of the scores would have few broken turns,
    and say little about what a measure takes for a breach.
    """
    wanted = max(max_turns // 2, max_turns - num_kept)
    return min(wanted, num_broken)


def label_tasks(
    run: Run,
    sample: Sequence[SampledTurn],
    suite: Suite,
    logs: LogSource,
) -> list[LabelTask]:
    """Finds the full texts of sampled turns in the logs. A turn that is no longer in the logs, or
    whose texts have changed, is left out.

    Raises:
        UsageError: a file cannot be read.
    """
    rules = {rule.name: rule for rule in named_rules(suite.cases)}
    records = {sampled.dialog: run.dialogs[sampled.dialog] for sampled in sample}
    turns = {
        (row, turn.number): turn
        for row, dialog in logs.dialogs(records).items()
        for turn in dialog.turns
    }
    tasks: list[LabelTask] = []
    for sampled in sample:
        turn = turns.get((sampled.dialog, sampled.turn))
        if turn is None:
            continue
        named_rule = rules[sampled.rule]
        text = text_of_rule(named_rule.case, named_rule.rule)
        source = source_of(records[sampled.dialog], sampled.turn)
        tasks.append(LabelTask(sampled.rule, text, named_rule.rule.measure.spec, source, turn))
    return tasks


def source_of(record: LogDialog, turn: int) -> str:
    """Where a turn is, such as "july.jsonl, line 3, turn 2"."""
    return f"{record.source}, turn {turn}"
