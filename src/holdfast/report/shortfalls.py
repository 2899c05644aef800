"""Ways in which the dialogs and replies of a run fell short, each as a heading and a sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence

from holdfast.generation.sampling import NO_CONTENT
from holdfast.records import (
    Conversation,
    Ended,
    Failure,
    LogDialog,
    Probe,
    Turn,
    Unscored,
)
from holdfast.records.conversation import GIVEN

Dialog = Conversation | LogDialog
Reply = Turn | Probe | Unscored

_ENDED = {
    "context": "filled the model's context",
    "filter": "met a content filter",
    "failure": "had a request that failed",
    "judge": "had a judge that said neither yes nor no",
}
_IN_DIALOGS = ("stability", "adoption", "canary", "recall")  # kinds of probes in a dialog
_REPLAYED = {
    "own": "with the agent’s system prompt as they have it",
    "in place of another": "with it in place of another",
    "added": "with it added",
}
_EMPTY = {
    "refusal": "refused",
    "tool_calls": "called a tool",
    "empty": "were empty",
    "cut": "were cut before they began",
}


def ending_lines(records: Sequence[Conversation]) -> list[tuple[str, str]]:
    """Ways in which dialogs of a run fell short, each as a heading and a sentence."""
    lines = []
    if replayed := Counter(r.replayed.system_prompt for r in records if r.replayed):
        listed = _counts_text(replayed, _REPLAYED)
        text = f"{replayed.total():,} ({listed}); later rounds are means over the longer dialogs"
        lines.append(("dialogs replayed", text))
    spoken: list[list[Turn | Probe]] = [[*record.turns, *record.probes] for record in records]
    narrowed = [[reply.round for reply in replies if reply.left_out] for replies in spoken]
    if rounds := [min(numbers) for numbers in narrowed if numbers]:
        text = (
            f"in {len(rounds):,} of {len(records):,} dialogs replies saw only the latest rounds,"
            f" from round {min(rounds)} on at the earliest"
        )
        if summaries := sum(len(record.summaries) for record in records):
            text += f", and {summaries:,} summaries replace the older rounds"
        lines.append(("rounds left out", text))
    if any(record.ended for record in records):
        lines.append(("dialogs that ended early", _early_ends(records)))
    return [*lines, *reply_lines(records), *unanswered_lines(records)]


def unanswered_lines(records: Sequence[Dialog]) -> list[tuple[str, str]]:
    """The probes that were not answered; [] if there are none."""
    why = Counter(probe.why for record in records for probe in record.unanswered)
    return [unanswered_line(why)] if why else []


def unanswered_line(why: Counter[str]) -> tuple[str, str]:
    """How many probes were not answered, by why."""
    text = f"{why.total():,} ({_counts_text(why, _ENDED)}); left out of the means"
    return "probes not answered", text


def reply_lines(records: Sequence[Dialog]) -> list[tuple[str, str]]:
    """The replies that the scores of a run leave out: those without text, cut ends, reasoning."""
    # the first turn is the given starter
    spoken = [turn for record in records for turn in record.turns[1:]]
    probes = [
        probe
        for record in records
        for probe in record.answered
        if not probe.reply_of and probe.kind in _IN_DIALOGS
    ]
    all_replies: list[Reply] = [*spoken, *probes]
    replies = [reply for reply in all_replies if reply.stop_reason not in GIVEN]
    lines = []
    reasons = Counter(_why_empty(reply) for reply in replies if _is_empty(reply))
    if count := reasons.total():
        # earlier versions gave them a score
        scored = any(_is_empty(probe) and isinstance(probe, Probe) for probe in probes)
        meaning = "probes are scored as empty" if scored else "they are not scored"
        text = f"{count:,} of {len(replies):,} ({_counts_text(reasons, _EMPTY)}); {meaning}"
        lines.append(("replies without content", text))
    if early := [reply.cut_at for reply in replies if reply.cut_at is not None]:
        lines.append(_early_cut_line(early, len(replies)))
    cut = [
        probe
        for record in records
        for probe in record.unscored
        if probe.why == "cut" and probe.reply.strip()
    ]
    if cut:
        scores = sum(len(record.answered) for record in records)
        is_our_limit = any(probe.cut_at is None for probe in cut)
        lines.append(cut_line(len(cut), scores, is_our_limit))
    if count := sum(bool(reply.reasoning) for reply in replies):
        text = (
            f"{count:,} of {len(replies):,}; the reasoning is recorded, and neither scored nor"
            " part of the dialog"
        )
        lines.append(("replies after reasoning", text))
    return lines


def cut_line(cut: int, scores: int, is_our_limit: bool = True) -> tuple[str, str]:
    """How many scores there are not, as replies were cut before what decides."""
    text = (
        f"{cut:,} of {scores:,} scores, as the replies were cut at the token limit and these"
        " rules need the end; left out of the means"
    )
    cure = " (--max-new-tokens raises the limit)" if is_our_limit else ""
    return "cut, not judged", text + cure


def _early_cut_line(cut_at: Sequence[int], replies: int) -> tuple[str, str]:
    """Says how many replies did not get as many tokens as the run allows."""
    first = min(cut_at)
    last = max(cut_at)
    where = f"{last:,}" if first == last else f"{first:,} to {last:,}"
    text = (
        f"{len(cut_at):,} of {replies:,}, after {where} tokens: by a limit of the server, or where"
        " the model's context ends; --max-new-tokens allows more"
    )
    return "replies cut before the run's limit", text


def _why_empty(reply: Reply) -> str:
    why = reply.stop_reason
    return "cut" if why == "length" else str(why) if why in NO_CONTENT else "empty"


def _is_empty(reply: Reply) -> bool:
    """Whether a recorded turn or probe has no content; the text of a refusal is not the reply."""
    text = reply.text if isinstance(reply, Turn) else reply.reply
    return reply.stop_reason == "refusal" or not text.strip()


def _early_ends(records: Sequence[Conversation]) -> str:
    """How many dialogs ended early, and why; with the first that has a reason as an example."""
    ends = [(record.conversation, record.ended) for record in records if record.ended]
    why = _counts_text(Counter(end.why for _, end in ends), _ENDED)
    text = (
        f"{len(ends):,} of {len(records):,} ({why}), and {len(records) - len(ends):,} are whole;"
        " later rounds are means over the dialogs that reached them"
    )
    for number, end in ends:
        if end.reason:
            reason = end.reason.rstrip(".")
            return f"{text}; the first, conversation {number} in round {end.round}: {reason}"
    return text


def failure_lines(failures: Sequence[Failure]) -> list[tuple[str, str]]:
    """A heading and a sentence on unanswered requests; [] if there are none."""
    if not failures:
        return []
    why = _counts_text(Counter(failure.why for failure in failures), _ENDED)
    count = len(failures)
    reason = failures[0].reason.rstrip(".")
    text = (
        f"{count:,} ({why}); left out of the means, and asked again when the command is repeated;"
        f" the first: {reason}"
    )
    return [("not answered", text)]


def early_end(ended: Ended) -> str:
    """'The dialog ended in round 3, as it met a content filter: the reason.'"""
    why = _ENDED.get(ended.why, ended.why)
    if ended.reason:
        reason = ended.reason.rstrip(".")
        return f"The dialog ended in round {ended.round}, as it {why}: {reason}."
    return f"The dialog ended in round {ended.round}, as it {why}."


def _counts_text(counts: Counter[str], words: Mapping[str, str]) -> str:
    """'2 filled the model's context, 1 met a content filter', the most frequent first."""
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in counts.most_common())
