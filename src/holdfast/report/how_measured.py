"""The page section that describes how the numbers were measured."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.analysis.collapse import count_turns
from holdfast.generation.sampling import NO_CONTENT
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
from holdfast.records.conversation import GIVEN
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
        last = _time(resumed[-1].created)
        often = f"once, last {last}" if len(resumed) == 1 else f"{len(resumed)} times, last {last}"
        rows.append(("resumed", often))
    rows += manifest.versions.items()
    count = len(run.records) if run.is_stored else len(_conversations(run))
    for name, value in _flat(manifest.identity.to_json()):
        if name == "settings.conversations" and str(count) != value:
            value = f"{count} of the {value} that the command allows"
        rows.append((name, value))
    rows += _cost(run)
    if narrowed := [r.rows_at_most for r in run.conversations if r.rows_at_most is not None]:
        text = (
            f"{len(narrowed)} conversations ended after it had, with at most {min(narrowed)} rows"
            " at a time"
        )
        rows.append(("memory ran out", text))
    return rows


def _conversations(run: Run) -> set[int]:
    return {record.conversation for record in run.records}


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
    if run.is_stored:
        return _cost_of_logs(run)
    records = run.records
    methods = {record.method for record in records}
    count = len(_conversations(run))
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
    rows += [*_read_by_method(run.conversations), *_retries(run.conversations)]
    timed = (record for record in records if not isinstance(record, LogDialog))
    seconds = sum(record.seconds for record in timed)
    if seconds:
        rows.append(("time", f"{seconds:,.0f} s for all conversations"))
    return rows


def _cost_of_logs(run: Run) -> list[tuple[str, str]]:
    """The same of logs whose records are not in memory, without comparing the turns' texts."""
    scores = run.log_scores
    rows = [("records", f"{len(run.records):,}")]
    rows.append(("turns that repeat or loop", "not counted, as there are so many turns"))
    if scores.cut:
        rows.append(_cut_line(scores.cut, len(scores.score) + scores.unscored.total()))
    if scores.unanswered:
        rows.append(_unanswered_line(scores.unanswered))
    return rows


def _read_by_method(records: Sequence[Conversation]) -> list[tuple[str, str]]:
    """The tokens that the model reads per conversation, if methods can be compared by it.

    Only conversations that were recorded under all methods count.
    """
    read: dict[str, dict[int, int]] = {}
    for record in records:
        if record.tokens.read is not None:
            read.setdefault(record.method, {})[record.conversation] = record.tokens.read
    shared = set.intersection(*map(set, read.values())) if len(read) > 1 else set[int]()
    if not shared:
        return []
    means = {
        method: sum(tokens[number] for number in shared) / len(shared)
        for method, tokens in read.items()
    }
    first, *others = means
    texts = [f"{first} {means[first]:,.0f}"]
    texts += [
        f"{method} {means[method]:,.0f} ({means[method] / means[first] - 1:+.0%})"
        for method in others
    ]
    return [("tokens read per conversation", ", ".join(texts))]


def _retries(records: Sequence[Conversation]) -> list[tuple[str, str]]:
    """How many of the agent's replies were drawn again, by method that did."""
    texts = []
    for method in dict.fromkeys(record.method for record in records):
        replies = [
            reply
            for record in records
            if record.method == method
            for reply in (
                *(turn for turn in record.turns if turn.speaker == "agent"),
                *record.answered,
            )
        ]
        again = sum(1 for reply in replies if reply.retries)
        if again:
            texts.append(f"{method} {again:,} of {len(replies):,}")
    return [("replies drawn again", ", ".join(texts))] if texts else []


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
_ROUNDS_LEFT_OUT = (
    "in {cut:,} of {dialogs:,} dialogs replies saw only the latest rounds, from round {first} on at"
    " the earliest"
)
_ROUNDS_SUMMARISED = (
    "in {cut:,} of {dialogs:,} dialogs replies saw only the latest rounds, from round {first} on at"
    " the earliest, and {summaries:,} summaries replace the older rounds"
)
_ENDED_EARLY = (
    "{count:,} of {dialogs:,} ({why}), and {whole:,} are whole; later rounds are means over the"
    " dialogs that reached them"
)
_ENDED_FIRST = (
    "{count:,} of {dialogs:,} ({why}), and {whole:,} are whole; later rounds are means over the"
    " dialogs that reached them; the first, conversation {first} in round {round}: {reason}"
)
_EMPTY_SCORED = "{count:,} of {replies:,} ({why}); probes are scored as empty"
_EMPTY_NOT_SCORED = "{count:,} of {replies:,} ({why}); they are not scored"
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
        listed = _listed(replayed, _REPLAYED)
        text = f"{replayed.total():,} ({listed}); later rounds are means over the longer dialogs"
        lines.append(("dialogs replayed", text))
    spoken: list[list[Turn | Probe]] = [[*record.turns, *record.probes] for record in records]
    narrowed = [[reply.round for reply in replies if reply.left_out] for replies in spoken]
    if rounds := [min(numbers) for numbers in narrowed if numbers]:
        summaries = sum(len(record.summaries) for record in records)
        template = _ROUNDS_SUMMARISED if summaries else _ROUNDS_LEFT_OUT
        text = template.format(
            cut=len(rounds), dialogs=len(records), first=min(rounds), summaries=summaries
        )
        lines.append(("rounds left out", text))
    if any(record.ended for record in records):
        lines.append(("dialogs that ended early", _early_ends(records)))
    return [*lines, *reply_lines(records), *_unanswered_lines(records)]


def _unanswered_lines(records: Sequence[Dialog]) -> list[tuple[str, str]]:
    why = Counter(probe.why for record in records for probe in record.unanswered)
    return [_unanswered_line(why)] if why else []


def _unanswered_line(why: Counter[str]) -> tuple[str, str]:
    text = f"{why.total():,} ({_listed(why, _ENDED)}); left out of the means"
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
    every: list[Reply] = [*spoken, *probes]
    replies = [reply for reply in every if reply.stop_reason not in GIVEN]
    lines = []
    reasons = Counter(_why_empty(reply) for reply in replies if _is_empty(reply))
    if count := reasons.total():
        # earlier versions gave them a score
        scored = any(_is_empty(probe) and isinstance(probe, Probe) for probe in probes)
        template = _EMPTY_SCORED if scored else _EMPTY_NOT_SCORED
        text = template.format(count=count, replies=len(replies), why=_listed(reasons, _EMPTY))
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
        lines.append(_cut_line(len(cut), scores, is_our_limit))
    if count := sum(bool(reply.reasoning) for reply in replies):
        text = (
            f"{count:,} of {len(replies):,}; the reasoning is recorded, and neither scored nor"
            " part of the dialog"
        )
        lines.append(("replies after reasoning", text))
    return lines


def _cut_line(cut: int, scores: int, is_our_limit: bool = True) -> tuple[str, str]:
    text = (
        f"{cut:,} of {scores:,} scores, as the replies were cut at the token limit and these"
        " rules need the end; left out of the means"
    )
    cure = " (--max-new-tokens raises the limit)" if is_our_limit else ""
    return "cut, not judged", text + cure


def _early_cut_line(cut_at: Sequence[int], replies: int) -> tuple[str, str]:
    """Says how many replies did not get as many tokens as the run allows."""
    first, last = min(cut_at), max(cut_at)
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
    numbers = {
        "count": len(ends),
        "dialogs": len(records),
        "whole": len(records) - len(ends),
        "why": _listed(Counter(end.why for _, end in ends), _ENDED),
    }
    for number, end in ends:
        if end.reason:
            reason = end.reason.rstrip(".")
            return _ENDED_FIRST.format(**numbers, first=number, round=end.round, reason=reason)
    return _ENDED_EARLY.format(**numbers)


def failure_lines(failures: Sequence[Failure]) -> list[tuple[str, str]]:
    """A heading and a sentence on unanswered requests; [] if there are none."""
    if not failures:
        return []
    why = _listed(Counter(failure.why for failure in failures), _ENDED)
    count, reason = len(failures), failures[0].reason.rstrip(".")
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


def _listed(counts: Counter[str], words: Mapping[str, str]) -> str:
    """'2 filled the model's context, 1 met a content filter', the most frequent first."""
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in counts.most_common())
