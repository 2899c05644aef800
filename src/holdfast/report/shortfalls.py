"""Ways in which the dialogs and replies of a run fell short, each as a heading and a sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.generation.sampling import NO_CONTENT
from holdfast.plurals import from_to
from holdfast.records import (
    Conversation,
    DialogRecord,
    Ended,
    Failure,
    Probe,
    Turn,
    Unscored,
)
from holdfast.records.conversation import GIVEN

RecordedReply = Turn | Probe | Unscored

_WHY_ENDED = {
    "context": "filled the model's context",
    "filter": "met a content filter",
    "failure": "had a request that failed",
    "judge": "had a judge that said neither yes nor no",
}
_PROBES_IN_DIALOGS = ("stability", "adoption", "canary", "recall")
_REPLAYED = {
    "own": "with the agent’s system prompt as recorded",
    "in place of another": "with the agent’s system prompt in place of another",
    "added": "with the agent’s system prompt added",
}
_WHY_EMPTY = {
    "refusal": "refused",
    "tool_calls": "called a tool",
    "empty": "were empty",
    "cut": "were cut before they began",
}


class Shortfall(NamedTuple):
    """A way in which a run fell short; the text has no full stop."""

    heading: str
    text: str

    @property
    def sentence(self) -> str:
        """'Dialogs replayed: 12 (...).'"""
        return f"{self.heading[0].upper()}{self.heading[1:]}: {self.text}."


def ending_shortfalls(records: Sequence[Conversation]) -> list[Shortfall]:
    """The ways in which the dialogs of a run fell short; [] if they did not."""
    shortfalls = []
    if replayed := Counter(r.replayed.system_prompt for r in records if r.replayed):
        counts = _counts_text(replayed, _REPLAYED)
        text = f"{replayed.total():,} ({counts}); later rounds are means over the longer dialogs"
        shortfalls.append(Shortfall("dialogs replayed", text))
    if left_out := _left_out_text(records):
        shortfalls.append(Shortfall("rounds left out", left_out))
    if any(record.ended for record in records):
        shortfalls.append(Shortfall("dialogs that ended early", _early_ends_text(records)))
    return [*shortfalls, *reply_shortfalls(records), *unanswered_shortfalls(records)]


def _left_out_text(records: Sequence[Conversation]) -> str:
    """How many dialogs had replies that did not see every round; "" if all replies did."""
    first_rounds = []
    for record in records:
        replies: list[Turn | Probe] = [*record.turns, *record.probes]
        if rounds := [reply.round for reply in replies if reply.left_out]:
            first_rounds.append(min(rounds))
    if not first_rounds:
        return ""
    text = (
        f"in {len(first_rounds):,} of {len(records):,} dialogs replies saw only the latest rounds,"
        f" from round {min(first_rounds)} on at the earliest"
    )
    if summaries := sum(len(record.summaries) for record in records):
        return f"{text}, and {summaries:,} summaries replace the older rounds"
    return text


def unanswered_shortfalls(records: Sequence[DialogRecord]) -> list[Shortfall]:
    """The probes that were not answered; [] if there are none."""
    reasons = Counter(probe.why for record in records for probe in record.unanswered)
    return [unanswered_shortfall(reasons)] if reasons else []


def unanswered_shortfall(reasons: Counter[str]) -> Shortfall:
    """How many probes were not answered, and why."""
    text = f"{reasons.total():,} ({_counts_text(reasons, _WHY_ENDED)}); left out of the means"
    return Shortfall("probes not answered", text)


def reply_shortfalls(records: Sequence[DialogRecord]) -> list[Shortfall]:
    """The replies that scores leave out in part or whole: empty, cut, or with reasoning."""
    # the first turn is the given starter
    turns = [turn for record in records for turn in record.turns[1:]]
    probes = [
        probe
        for record in records
        for probe in record.answered
        if not probe.reply_of and probe.kind in _PROBES_IN_DIALOGS
    ]
    all_replies: list[RecordedReply] = [*turns, *probes]
    replies = [reply for reply in all_replies if reply.stop_reason not in GIVEN]
    shortfalls = []
    if empty_replies := [reply for reply in replies if _is_empty(reply)]:
        shortfalls.append(_empty_shortfall(empty_replies, len(replies)))
    if lengths := [reply.cut_at for reply in replies if reply.cut_at is not None]:
        shortfalls.append(_early_cut_shortfall(lengths, len(replies)))
    shortfalls += _cut_shortfalls(records)
    if count := sum(bool(reply.reasoning) for reply in replies):
        text = (
            f"{count:,} of {len(replies):,}; the reasoning is recorded, and neither scored nor"
            " part of the dialog"
        )
        shortfalls.append(Shortfall("replies after reasoning", text))
    return shortfalls


def _empty_shortfall(empty_replies: Sequence[RecordedReply], replies: int) -> Shortfall:
    """How many of the replies are empty, and why."""
    reasons = Counter(map(_why_empty, empty_replies))
    # earlier versions gave empty replies a score
    are_scored = any(isinstance(reply, Probe) for reply in empty_replies)
    meaning = "probes are scored as empty" if are_scored else "they are not scored"
    text = f"{reasons.total():,} of {replies:,} ({_counts_text(reasons, _WHY_EMPTY)}); {meaning}"
    return Shortfall("replies without content", text)


def _cut_shortfalls(records: Sequence[DialogRecord]) -> list[Shortfall]:
    """The scores that are missing because replies were cut; [] if there are none."""
    cuts = [
        (record, probe)
        for record in records
        for probe in record.unscored
        if probe.why == "cut" and probe.reply.strip()
    ]
    if not cuts:
        return []
    scores = sum(len(record.answered) for record in records)
    is_our_limit = any(probe.cut_at is None for _, probe in cuts)
    # the mean of such a round is over the other rules
    has_other_rules = any(
        (other.kind, other.round) == (probe.kind, probe.round) and other.rule != probe.rule
        for record, probe in cuts
        for other in record.probes
    )
    return [
        cut_shortfall(len(cuts), scores, is_our_limit=is_our_limit, has_other_rules=has_other_rules)
    ]


def cut_shortfall(
    cut: int, scores: int, *, is_our_limit: bool = True, has_other_rules: bool = False
) -> Shortfall:
    """How many scores are missing because replies were cut before the part that decides.

    Args:
        is_our_limit: whether --max-new-tokens was the limit of any of them, so that raising it
            helps.
        has_other_rules: whether other rules have scores in the same rounds, so that a mean over
            rules covers some rules in one round or under one method, and others in another.
    """
    text = (
        f"{cut:,} of {scores:,} scores, as the replies were cut at the token limit and these"
        " rules need the end; left out of the means"
    )
    if has_other_rules:
        text += ", which may therefore cover different rules by round and method: compare each rule"
    if is_our_limit:
        return Shortfall("cut, not judged", f"{text} (--max-new-tokens raises the limit)")
    return Shortfall("cut, not judged", text)


def _early_cut_shortfall(lengths: Sequence[int], replies: int) -> Shortfall:
    """How many replies were cut before they had as many tokens as the run allows.

    Args:
        lengths: of the replies that were cut, in tokens.
        replies: how many replies there are in all.
    """
    tokens = from_to(min(lengths), max(lengths))
    text = (
        f"{len(lengths):,} of {replies:,}, after {tokens} tokens: by a limit of the server, or"
        " where the model's context ends, as --max-new-tokens would allow more"
    )
    return Shortfall("replies cut before the run's limit", text)


def _why_empty(reply: RecordedReply) -> str:
    """The reason as a key of `_WHY_EMPTY`."""
    if reply.stop_reason == "length":
        return "cut"
    return str(reply.stop_reason) if reply.stop_reason in NO_CONTENT else "empty"


def _is_empty(reply: RecordedReply) -> bool:
    """Whether a recorded turn or probe has no content; the text of a refusal is not content."""
    text = reply.text if isinstance(reply, Turn) else reply.reply
    return reply.stop_reason == "refusal" or not text.strip()


def _early_ends_text(records: Sequence[Conversation]) -> str:
    """How many dialogs ended early, and why; the first that has a reason is the example."""
    ends = [(record.conversation, record.ended) for record in records if record.ended]
    counts = _counts_text(Counter(end.why for _, end in ends), _WHY_ENDED)
    text = (
        f"{len(ends):,} of {len(records):,} ({counts}), and {len(records) - len(ends):,} are whole;"
        " later rounds are means over the dialogs that reached them, and changes over those scored"
        " in both rounds"
    )
    for number, end in ends:
        if end.reason:
            reason = end.reason.rstrip(".")
            return f"{text}; the first, conversation {number} in round {end.round}: {reason}"
    return text


def failure_shortfalls(failures: Sequence[Failure]) -> list[Shortfall]:
    """The requests that were not answered; [] if there are none."""
    if not failures:
        return []
    counts = _counts_text(Counter(failure.why for failure in failures), _WHY_ENDED)
    reason = failures[0].reason.rstrip(".")
    text = (
        f"{len(failures):,} ({counts}); left out of the means, and asked again when the command is"
        f" repeated; the first: {reason}"
    )
    return [Shortfall("not answered", text)]


def early_end_sentence(ended: Ended) -> str:
    """'The dialog ended in round 3, as it met a content filter: the reason.'"""
    why = _WHY_ENDED.get(ended.why, ended.why)
    if ended.reason:
        reason = ended.reason.rstrip(".")
        return f"The dialog ended in round {ended.round}, as it {why}: {reason}."
    return f"The dialog ended in round {ended.round}, as it {why}."


def _counts_text(counts: Counter[str], words: Mapping[str, str]) -> str:
    """'2 filled the model's context, 1 met a content filter', the most frequent first."""
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in counts.most_common())
