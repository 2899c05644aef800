"""The accuracies of a drift run: the shares of replies, and of instructions, that are followed."""

from holdfast.analysis import statistics
from holdfast.analysis.series import Series
from holdfast.analysis.unscored import without_score
from holdfast.measures.scores import FOLLOWED
from holdfast.records import Conversation


def accuracy_of(series: Series) -> dict[str, list[statistics.Estimate]] | None:
    """The accuracies by round at two levels: "prompt", the share of replies that follow every
    instruction of their prompt, and "instruction", the share of all instructions that are followed
    (its interval is over conversations too, and it has no standard deviation). None if a prompt's
    rules are scored on separate replies, or no prompt has several.
    """
    stability = [probe for record in series.records for probe in record.stability_probes]
    if not any(probe.reply_of for probe in stability):
        return None
    cells: list[tuple[int, int, list[bool]]] = []
    for index, record in enumerate(series.records):
        replies = _replies(record)
        if replies is None:
            return None
        cells += [(index, number - 1, kept) for number, kept in replies]
    shape = len(series.records), series.rounds
    complete, followed, given = (
        statistics.cell_means(
            ((row, column, float(count(kept))) for row, column, kept in cells), shape
        )
        for count in (all, sum, len)
    )
    return {
        "prompt": statistics.estimate_columns(complete, statistics.SCORES),
        "instruction": statistics.share(followed, given),
    }


def _replies(record: Conversation) -> list[tuple[int, list[bool]]] | None:
    """Each reply's round, and whether it kept each rule; None if a rule has its own reply."""
    probes = record.stability_probes
    unscored = [probe for probe in without_score(record) if probe.kind == "stability"]
    rules = {probe.rule for probe in (*probes, *unscored)}
    replies: dict[tuple[int, int, str | None], list[bool]] = {}
    for probe in probes:
        key = probe.round, probe.probe, probe.reply_of or probe.rule
        replies.setdefault(key, []).append(probe.score >= FOLLOWED)
    if len({rule for _, _, rule in replies}) > 1:
        return None
    return [(number, kept) for (number, *_), kept in replies.items() if len(kept) == len(rules)]
