"""The page section that describes how the numbers were measured."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.analysis.collapse import count_turns
from holdfast.common.sampling import NO_CONTENT
from holdfast.drift.recorded_dialogs import GIVEN
from holdfast.records import (
    Conversation,
    Ended,
    Failure,
    LogDialog,
    Probe,
    Run,
    Turn,
    Unscored,
    command_of,
)
from holdfast.records.identity import ConversationsIdentity, Manifest
from holdfast.report.sentences import default_prompt_sentence

Dialog = Conversation | LogDialog
Reply = Turn | Probe | Unscored


def conversation_kind(identity: ConversationsIdentity) -> str:
    """How the conversations of a run were made, such as "scripted" or "two models"."""
    if identity.dialogs is not None:
        return "replayed"
    if identity.user_turns is not None:
        return "scripted"
    return "one model" if identity.user_model is None else "two models"


@dataclass(frozen=True)
class About:
    """How a run was measured: the notes of its suite, its settings, versions and cost."""

    label: str
    command: str
    notes: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]


def about_runs(runs: Sequence[Run], labels: Sequence[str]) -> list[About]:
    """Describes how each run was measured."""
    return [
        About(
            label or run.folder.name,
            command_of(run.manifest),
            _notes(run.manifest),
            tuple(_rows(run)),
        )
        for run, label in zip(runs, labels, strict=True)
    ]


def _notes(manifest: Manifest) -> tuple[str, ...]:
    default = manifest.default_system_prompt
    return *manifest.notes, *([default_prompt_sentence(default)] if default else [])


def _flat(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as pairs of dotted name and value."""
    for name, item in value.items():
        full_name = f"{path}.{name}" if path else str(name)
        if isinstance(item, Mapping):
            yield from _flat(item, full_name)
        elif isinstance(item, list):
            yield full_name, ", ".join(map(str, item)) or "none"
        else:
            yield full_name, "–" if item is None else str(item)


def _rows(run: Run) -> list[tuple[str, str]]:
    manifest = run.manifest
    rows = [("started", _time(manifest.created))]
    if resumed := manifest.resumed:
        often = "once" if len(resumed) == 1 else f"{len(resumed)} times"
        rows.append(("resumed", f"{often}, last {_time(resumed[-1].created)}"))
    rows += manifest.versions.items()
    count = len({record.conversation for record in run.records})
    for name, value in _flat(manifest.identity.to_json()):
        if name == "settings.conversations" and str(count) != value:
            value = f"{count} of the {value} that the command allows"
        rows.append((name, value))
    rows += _cost(run)
    if narrowed := [r.rows_at_most for r in run.conversations if r.rows_at_most is not None]:
        text = f"{len(narrowed)} conversations ended after it had, with at most {min(narrowed)}"
        rows.append(("memory ran out", f"{text} rows at a time"))
    return rows


def _time(stamp: str | None) -> str:
    return (stamp or "–").replace("T", " ").replace("+00:00", " UTC")


def _turns(records: Sequence[Dialog]) -> list[tuple[str, str]]:
    """How many turns are cut or repeated, and how many conversations have collapsed."""
    by_method: dict[str, list[Dialog]] = {}
    for record in records:
        if record.turns:
            by_method.setdefault(record.method, []).append(record)
    counted = [count_turns(group) for group in by_method.values()]
    turns = sum(counts.turns for counts in counted)
    if not turns:
        return []
    cut, broken = (sum(counts.counts[name] for counts in counted) for name in ("cut", "broken"))
    collapsed = sum(len(counts.collapsed) for counts in counted)
    dialogs = sum(counts.conversations for counts in counted)
    return [
        ("turns cut at the length limit", f"{cut:,} of {turns:,}"),
        ("turns that repeat or loop", f"{broken:,} of {turns:,}"),
        ("conversations collapsed", f"{collapsed:,} of {dialogs:,}"),
    ]


def _cost(run: Run) -> list[tuple[str, str]]:
    """Completeness and cost, from the records."""
    records = run.records
    methods = {record.method for record in records}
    count = len({record.conversation for record in records})
    rows = [("records", f"{len(records):,}")]
    if run.manifest.command == "drift" and len(methods) > 1:
        recorded = f"{count:,}, under {len(methods)} methods: {len(records):,} in all"
        rows = [("conversations recorded", recorded)]
    elif run.manifest.command == "drift":
        rows = [("conversations recorded", f"{count:,}")]
    if run.dialogs:
        rows += _turns(run.dialogs)[1:]  # logs have no token limit
        rows += [*reply_lines(run.dialogs), *_unanswered_lines(run.dialogs)]
    else:
        rows += [*_turns(run.conversations), *ending_lines(run.conversations)]
    rows += failure_lines(run.failures)
    forwarded = sum(record.tokens.forwarded for record in run.conversations)
    least = sum(record.tokens.least or 0 for record in run.conversations)
    if forwarded and least:
        rows.append(
            ("tokens forwarded", f"{forwarded:,}, {forwarded / least:.2f} times the least possible")
        )
    timed = (record for record in records if not isinstance(record, LogDialog))
    seconds = sum(record.seconds for record in timed)
    if seconds:
        rows.append(("time", f"{seconds:,.0f} s for all conversations"))
    return rows


_ENDED = {
    "context": "filled the model's context",
    "filter": "met a content filter",
    "failure": "had a request that failed",
    "judge": "had a judge that said neither yes nor no",
}
_IN_DIALOGS = (
    "stability",
    "adoption",
    "canary",
    "recall",
)  # kinds of probes that a dialog is asked
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
        text = f"{replayed.total():,} ({_listed(replayed.most_common(), _REPLAYED)})"
        lines.append(
            ("dialogs replayed", f"{text}; later rounds are means over the longer dialogs")
        )
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
    if ended := [(r.conversation, r.ended) for r in records if r.ended]:
        lines.append(("dialogs that ended early", _ended(ended, len(records))))
    return [*lines, *reply_lines(records), *_unanswered_lines(records)]


def _unanswered_lines(records: Sequence[Dialog]) -> list[tuple[str, str]]:
    why = Counter(probe.why for record in records for probe in record.unanswered)
    if not why:
        return []
    text = f"{why.total():,} ({_listed(why.most_common(), _ENDED)}); left out of the means"
    return [("probes not answered", text)]


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
    every: list[Reply] = [*spoken, *probes]
    replies = [reply for reply in every if reply.stop_reason not in GIVEN]
    lines = []
    reasons = Counter(_why_empty(reply) for reply in replies if _is_empty(reply))
    if count := reasons.total():
        text = f"{count:,} of {len(replies):,} ({_listed(reasons.most_common(), _EMPTY)})"
        # earlier versions gave them a score
        rated = any(_is_empty(probe) and isinstance(probe, Probe) for probe in probes)
        if rated:
            lines.append(("replies without content", f"{text}; probes are scored as empty"))
        else:
            lines.append(("replies without content", f"{text}; they are not scored"))
    cut = sum(
        probe.why == "cut" and bool(probe.reply.strip())
        for record in records
        for probe in record.unscored
    )
    if cut:
        scores = sum(len(record.answered) for record in records)
        text = (
            f"{cut:,} of {scores:,} scores, as the replies were cut at the token limit and these"
            " rules need the end; left out of the means (--max-new-tokens raises the limit)"
        )
        lines.append(("cut, not judged", text))
    if count := sum(bool(reply.reasoning) for reply in replies):
        text = (
            f"{count:,} of {len(replies):,}; the reasoning is recorded, and neither scored nor"
            " part of the dialog"
        )
        lines.append(("replies after reasoning", text))
    return lines


def _why_empty(reply: Reply) -> str:
    why = reply.stop_reason
    return "cut" if why == "length" else str(why) if why in NO_CONTENT else "empty"


def _is_empty(reply: Reply) -> bool:
    """Whether a recorded turn or probe has no content; the text of a refusal is not the reply."""
    text = reply.text if isinstance(reply, Turn) else reply.reply
    return reply.stop_reason == "refusal" or not text.strip()


def _ended(ended: Sequence[tuple[int, Ended]], dialogs: int) -> str:
    count = len(ended)
    why = _listed(Counter(end.why for _, end in ended).most_common(), _ENDED)
    text = (
        f"{count:,} of {dialogs:,} ({why}), and {dialogs - count:,} are whole; later rounds are"
        " means over the dialogs that reached them"
    )
    first = next(((number, end) for number, end in ended if end.reason), None)
    if first is None:
        return text
    number, end = first
    example = f"the first, conversation {number} in round {end.round}: {end.reason}"
    return f"{text}; {example}".rstrip(".")


def failure_lines(failures: Sequence[Failure]) -> list[tuple[str, str]]:
    """A heading and a sentence on unanswered requests; [] if there are none."""
    if not failures:
        return []
    why = _listed(Counter(failure.why for failure in failures).most_common(), _ENDED)
    count, reason = len(failures), failures[0].reason.rstrip(".")
    text = (
        f"{count:,} ({why}); left out of the means, and asked again when the command is repeated;"
        f" the first: {reason}"
    )
    return [("not answered", text)]


def early_end(ended: Ended) -> str:
    """'The dialog ended in round 3, as it met a content filter: the reason.'"""
    why = _ENDED.get(ended.why, ended.why)
    reason = f": {ended.reason}" if ended.reason else ""
    return f"The dialog ended in round {ended.round}, as it {why}{reason}".rstrip(".") + "."


def _listed(counts: Iterable[tuple[str, int]], words: Mapping[str, str]) -> str:
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in counts)
