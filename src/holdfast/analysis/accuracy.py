"""The accuracies of a drift run: how many replies, and how many instructions, are followed."""

from typing import Literal, NamedTuple

from holdfast.analysis import statistics
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import MatrixEntry
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import Conversation

AccuracyLevel = Literal["prompt", "instruction"]


class _Reply(NamedTuple):
    """A reply on which every rule of its prompt is scored."""

    round: int
    follows: list[bool]  # by rule


def accuracy_of(series: Series) -> dict[AccuracyLevel, list[statistics.Estimate]] | None:
    """Returns the accuracy of each round at two levels.

    "prompt" is the share of replies that follow every instruction of their prompt. "instruction" is
    the share of all instructions that are followed; its interval is over conversations too, and it
    has no standard deviation.

    Returns None if no prompt has several rules, or if its rules are scored on separate replies.
    """
    stability = [probe for record in series.records for probe in record.stability_probes]
    if not any(probe.reply_of for probe in stability):
        return None
    # one entry for each reply, in a matrix of [conversation, round]
    follows_all: list[MatrixEntry] = []
    num_followed: list[MatrixEntry] = []
    num_instructions: list[MatrixEntry] = []
    for row, record in enumerate(series.records):
        replies = _replies(record)
        if replies is None:
            return None
        for reply in replies:
            column = reply.round - 1
            follows_all.append(MatrixEntry(row, column, float(all(reply.follows))))
            num_followed.append(MatrixEntry(row, column, float(sum(reply.follows))))
            num_instructions.append(MatrixEntry(row, column, float(len(reply.follows))))
    shape = len(series.records), series.rounds
    return {
        "prompt": statistics.estimate_columns(
            statistics.matrix_of(follows_all, shape), statistics.SCORES
        ),
        "instruction": statistics.share(
            statistics.matrix_of(num_followed, shape),
            statistics.matrix_of(num_instructions, shape),
        ),
    }


def _replies(record: Conversation) -> list[_Reply] | None:
    """Returns the replies on which every rule has a score; None if rules have separate replies."""
    probes = record.stability_probes
    unscored = [probe for probe in record.without_score if probe.kind == "stability"]
    rules = {probe.rule for probe in (*probes, *unscored)}
    replies: dict[tuple[int, int, str | None], _Reply] = {}
    for probe in probes:
        key = probe.round, probe.probe, probe.reply_of or probe.rule
        reply = replies.setdefault(key, _Reply(probe.round, []))
        reply.follows.append(probe.score >= MIN_KEPT_SCORE)
    if len({rule for _, _, rule in replies}) > 1:
        return None
    return [reply for reply in replies.values() if len(reply.follows) == len(rules)]
