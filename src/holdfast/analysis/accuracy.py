"""The accuracies of a drift run: the shares of replies, and of instructions, that are followed."""

from typing import NamedTuple

from holdfast.analysis import statistics
from holdfast.analysis.series import Series
from holdfast.analysis.unscored import without_score
from holdfast.measures.scores import FOLLOWED
from holdfast.records import Conversation


class _Reply(NamedTuple):
    """A reply on which every rule of its prompt is scored."""

    round: int
    follows: list[bool]  # by rule


def accuracy_of(series: Series) -> dict[str, list[statistics.Estimate]] | None:
    """The accuracies by round at two levels: "prompt", the share of replies that follow every
    instruction of their prompt, and "instruction", the share of all instructions that are followed
    (its interval is over conversations too, and it has no standard deviation). None if a prompt's
    rules are scored on separate replies, or no prompt has several.
    """
    stability = [probe for record in series.records for probe in record.stability_probes]
    if not any(probe.reply_of for probe in stability):
        return None
    # of each reply, its conversation, its round from 0, and the number
    complete: list[tuple[int, int, float]] = []
    followed: list[tuple[int, int, float]] = []
    given: list[tuple[int, int, float]] = []
    for row, record in enumerate(series.records):
        replies = _replies(record)
        if replies is None:
            return None
        for reply in replies:
            column = reply.round - 1
            complete.append((row, column, float(all(reply.follows))))
            followed.append((row, column, float(sum(reply.follows))))
            given.append((row, column, float(len(reply.follows))))
    shape = len(series.records), series.rounds
    return {
        "prompt": statistics.estimate_columns(
            statistics.cell_means(complete, shape), statistics.SCORES
        ),
        "instruction": statistics.share(
            statistics.cell_means(followed, shape), statistics.cell_means(given, shape)
        ),
    }


def _replies(record: Conversation) -> list[_Reply] | None:
    """The replies whose rules all have a score; None if a rule has a reply of its own."""
    probes = record.stability_probes
    unscored = [probe for probe in without_score(record) if probe.kind == "stability"]
    rules = {probe.rule for probe in (*probes, *unscored)}
    replies: dict[tuple[int, int, str | None], _Reply] = {}
    for probe in probes:
        key = probe.round, probe.probe, probe.reply_of or probe.rule
        reply = replies.setdefault(key, _Reply(probe.round, []))
        reply.follows.append(probe.score >= FOLLOWED)
    if len({rule for _, _, rule in replies}) > 1:
        return None
    return [reply for reply in replies.values() if len(reply.follows) == len(rules)]
