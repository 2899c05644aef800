"""The page section that describes how the numbers were measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.collapse import count_turns
from holdfast.plurals import count_of
from holdfast.records import (
    Conversation,
    DialogRecord,
    LogDialog,
    Probe,
    Run,
    Turn,
    Unscored,
    command_of,
)
from holdfast.records.identity import ConversationsIdentity, Manifest, flatten
from holdfast.report.baseline_sentences import default_prompt_sentence
from holdfast.report.shortfalls import (
    cut_shortfall,
    ending_shortfalls,
    failure_shortfalls,
    reply_shortfalls,
    unanswered_shortfall,
    unanswered_shortfalls,
)

Fact = tuple[str, str]  # its name and its text


def conversation_kind(identity: ConversationsIdentity) -> str:
    """How the conversations of a run were made, such as "scripted" or "two models"."""
    if identity.dialogs is not None:
        return "replayed"
    if identity.user_turns is not None:
        return "scripted"
    return "one model" if identity.user_model is None else "two models"


@dataclass(frozen=True)
class About:
    """How a run was measured.

    Attributes:
        label: the name of the run on the page.
        notes: what its suite says about itself, and the template's system prompt if it has one.
        rows: its settings, versions and cost, each with a name.
    """

    label: str
    command: str
    notes: tuple[str, ...]
    rows: tuple[Fact, ...]


def about_runs(runs: Sequence[Run], labels: Sequence[str]) -> list[About]:
    """Describes how each run was measured; a run with the label "" is named by its folder."""
    return [
        About(
            label or run.folder.name,
            command_of(run.manifest),
            _notes(run.manifest),
            tuple(_run_facts(run)),
        )
        for run, label in zip(runs, labels, strict=True)
    ]


def _notes(manifest: Manifest) -> tuple[str, ...]:
    default = manifest.default_system_prompt
    if default is None:
        return manifest.notes
    return *manifest.notes, default_prompt_sentence(default)


def _run_facts(run: Run) -> list[Fact]:
    """The facts on how a run was made, with their names."""
    manifest = run.manifest
    rows = [("started", _time_text(manifest.created))]
    if resumptions := manifest.resumed:
        last = _time_text(resumptions[-1].created)
        frequency = "once" if len(resumptions) == 1 else f"{len(resumptions)} times"
        rows.append(("resumed", f"{frequency}, last {last}"))
    rows += manifest.versions.items()
    count = len(run.records) if run.is_stored else len(_conversation_numbers(run))
    for name, value in flatten(manifest.identity.to_json()).items():
        if name == "settings.conversations" and str(count) != value:
            value = f"{count} of the {value} that the command allows"
        rows.append((name, value))
    rows += _cost_facts(run)
    limits = [
        record.rows_at_most for record in run.conversations if record.rows_at_most is not None
    ]
    if limits:
        text = (
            f"{count_of(len(limits), 'conversation')} ended after that, with at most {min(limits)}"
            " sequences at a time"
        )
        rows.append(("memory ran out", text))
    return rows


def _conversation_numbers(run: Run) -> set[int]:
    """The numbers of the conversations, which every method shares."""
    return {record.conversation for record in run.records}


def _time_text(stamp: str | None) -> str:
    return (stamp or "–").replace("T", " ").replace("+00:00", " UTC")


def _turn_facts(records: Sequence[DialogRecord]) -> list[Fact]:
    """How many turns are cut or repeated, and how many conversations have collapsed."""
    records_by_method: dict[str, list[DialogRecord]] = {}
    for record in records:
        if record.turns:
            records_by_method.setdefault(record.method, []).append(record)
    groups = [count_turns(group) for group in records_by_method.values()]
    turns = sum(counts.turns for counts in groups)
    if not turns:
        return []
    num_cut = sum(counts.count("cut") for counts in groups)
    num_broken = sum(counts.count("broken") for counts in groups)
    num_collapsed = sum(len(counts.collapsed_from_round) for counts in groups)
    dialogs = sum(counts.conversations for counts in groups)
    return [
        ("turns cut at the length limit", f"{num_cut:,} of {turns:,}"),
        ("turns that repeat or loop", f"{num_broken:,} of {turns:,}"),
        ("conversations collapsed", f"{num_collapsed:,} of {dialogs:,}"),
    ]


def _cost_facts(run: Run) -> list[Fact]:
    """Completeness and cost, from the records."""
    if run.is_stored:
        return _log_cost_facts(run)
    rows = [_records_fact(run)]
    if run.dialogs:
        rows += _turn_facts(run.dialogs)[1:]  # logs have no token limit
        rows += [*reply_shortfalls(run.dialogs), *unanswered_shortfalls(run.dialogs)]
    else:
        rows += [*_turn_facts(run.conversations), *ending_shortfalls(run.conversations)]
    rows += failure_shortfalls(run.failures)
    forwarded = sum(record.tokens.forwarded for record in run.conversations)
    least_tokens = sum(record.tokens.least or 0 for record in run.conversations)
    if forwarded and least_tokens:
        rows.append(
            (
                "tokens forwarded",
                f"{forwarded:,}, {forwarded / least_tokens:.2f} times the least possible",
            )
        )
    rows += [*_tokens_read_facts(run.conversations), *_retry_facts(run.conversations)]
    seconds = sum(record.seconds for record in run.records if not isinstance(record, LogDialog))
    if seconds:
        rows.append(("time", f"{seconds:,.0f} s for all conversations"))
    return rows


def _records_fact(run: Run) -> Fact:
    """How many records or conversations the run has."""
    records = run.records
    if run.manifest.command != "drift":
        return "records", f"{len(records):,}"
    count = len(_conversation_numbers(run))
    methods = {record.method for record in records}
    text = f"{count:,}"
    if len(methods) > 1:
        text = f"{count:,}, under {len(methods)} methods: {len(records):,} in all"
    return "conversations recorded", text


def _log_cost_facts(run: Run) -> list[Fact]:
    """Like `_cost_facts`, for logs too large for memory: the texts of turns are not compared."""
    scores = run.log_scores
    rows = [("records", f"{len(run.records):,}")]
    rows.append(("turns that repeat or loop", "not counted: too many turns to compare"))
    if scores.cut:
        rows.append(cut_shortfall(scores.cut, len(scores.score) + scores.unscored.total()))
    if scores.unanswered:
        rows.append(unanswered_shortfall(scores.unanswered))
    return rows


def _tokens_read_facts(records: Sequence[Conversation]) -> list[Fact]:
    """The tokens that the model reads per conversation under each method.

    Only conversations that were recorded under all methods count; [] if there are none, or only
    one method.
    """
    tokens_read: dict[str, dict[int, int]] = {}  # by method and conversation
    for record in records:
        if record.tokens.read is not None:
            tokens = tokens_read.setdefault(record.method, {})
            tokens[record.conversation] = record.tokens.read
    if len(tokens_read) < 2:
        return []
    numbers = set.intersection(*map(set, tokens_read.values()))
    if not numbers:
        return []
    means = {
        method: sum(tokens[number] for number in numbers) / len(numbers)
        for method, tokens in tokens_read.items()
    }
    first_method, *other_methods = means
    texts = [f"{first_method} {means[first_method]:,.0f}"]
    texts += [
        f"{method} {means[method]:,.0f} ({means[method] / means[first_method] - 1:+.0%})"
        for method in other_methods
    ]
    return [("tokens read per conversation", ", ".join(texts))]


def _retry_facts(records: Sequence[Conversation]) -> list[Fact]:
    """How many of the agent's replies were drawn again, by method, and for how many drawing again
    failed; [] if none were.
    """
    texts = []
    for method in dict.fromkeys(record.method for record in records):
        replies: list[Turn | Probe | Unscored] = []
        for record in records:
            if record.method == method:
                replies += [turn for turn in record.turns if turn.speaker == "agent"]
                replies += record.answered
        num_redrawn = sum(1 for reply in replies if reply.retries)
        num_failed = sum(1 for reply in replies if reply.retry_failed)
        if num_redrawn or num_failed:
            failed = f" (failed for {num_failed:,})" if num_failed else ""
            texts.append(f"{method} {num_redrawn:,} of {len(replies):,}{failed}")
    return [("replies drawn again", ", ".join(texts))] if texts else []
