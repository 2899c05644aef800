"""The section of the page that says how the numbers were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.analysis.collapse import Endings, collapsed_from, count_endings, model_turns
from holdfast.records import RunData, command_of
from holdfast.report.sentences import default_prompt_sentence


def conversation_kind(manifest: Mapping[str, Any]) -> str:
    """Who talked in a run."""
    identity = manifest.get("identity", {})
    return (
        "replayed"
        if "dialogs" in identity
        else "scripted"
        if "user_turns" in identity
        else "two models"
        if "user_model" in identity
        else "one model"
    )


@dataclass(frozen=True)
class About:
    """A run as its page tells of it: its command, what its suite has to say of itself, and its
    settings, versions and cost by name.
    """

    label: str
    command: str
    notes: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]


def about_runs(runs: Sequence[RunData], labels: Sequence[str]) -> list[About]:
    """How each run was measured."""
    return [
        About(
            label or run.folder.name,
            command_of(run.manifest),
            (*run.manifest.get("notes", ()), *_default_prompt(run.manifest)),
            tuple(_rows(run)),
        )
        for run, label in zip(runs, labels, strict=True)
    ]


def _default_prompt(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    default = manifest.get("default_system_prompt")
    return (default_prompt_sentence(default),) if default else ()


def setting(manifest: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """A setting of the run, wherever its manifest keeps it."""
    identity = manifest.get("identity", {})
    places = (identity.get("settings", {}), identity, manifest)
    return next(
        (mapping[name] for mapping in places if isinstance(mapping, Mapping) and name in mapping),
        default,
    )


def identity_lines(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names with their values."""
    for name, item in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(item, Mapping):
            yield from identity_lines(item, here)
        elif isinstance(item, list):
            yield here, ", ".join(map(str, item)) or "none"
        else:
            yield here, "–" if item is None else str(item)


def _rows(run: RunData) -> list[tuple[str, str]]:
    manifest = run.manifest
    rows = [("started", _time(manifest.get("created")))]
    if manifest.get("resumed"):
        rows.append(("resumed", _times(manifest["resumed"])))
    rows += [(name, str(value)) for name, value in manifest.get("versions", {}).items()]
    count = len({record.get("conversation") for record in run.records})
    for name, value in identity_lines(manifest.get("identity", {})):
        if name == "settings.conversations" and str(count) != value:
            value = f"{count} of the {value} that the command allows"
        rows.append((name, value))
    return [*rows, *_cost(run), *_memory(run)]


def _time(stamp: object) -> str:
    return str(stamp or "–").replace("T", " ").replace("+00:00", " UTC")


def _times(resumed: Sequence[Mapping[str, Any]]) -> str:
    often = "once" if len(resumed) == 1 else f"{len(resumed)} times"
    return f"{often}, last {_time(resumed[-1].get('created'))}"


def _memory(run: RunData) -> list[tuple[str, str]]:
    """Whether memory ran out on the way; no row where it did not."""
    rows = [record["rows_at_most"] for record in run.records if "rows_at_most" in record]
    if not rows:
        return []
    count = f"{len(rows)} conversations ended after it had, with at most {min(rows)} rows at a time"
    return [("memory ran out", count)]


def _turns(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """How many turns are cut or repeated, and how many conversations have collapsed."""
    dialogs = [model_turns(record) for record in records if record.get("turns")]
    turns = [turn for dialog in dialogs for turn in dialog]
    if not turns:
        return []
    collapsed = sum(collapsed_from(dialog) is not None for dialog in dialogs)
    return [
        (name, f"{count:,} of {total:,}")
        for name, count, total in (
            ("turns cut at the length limit", sum(turn.cut for turn in turns), len(turns)),
            ("turns that repeat or loop", sum(t.repetition.broken for t in turns), len(turns)),
            ("conversations collapsed", collapsed, len(dialogs)),
        )
    ]


def _cost(run: RunData) -> list[tuple[str, str]]:
    """Completeness and cost, from the records."""
    records = run.records
    methods = {record["method"] for record in records}
    count = len({record["conversation"] for record in records})
    under = f", under {len(methods)} methods: {len(records):,} dialogs" if len(methods) > 1 else ""
    drift = run.manifest.get("command", "drift") == "drift"
    rows = [
        (
            ("conversations recorded", f"{count:,}{under}")
            if drift
            else ("records", f"{len(records):,}")
        )
    ]
    rows += _turns(records)
    # samples have no turns
    rows += ending_lines(count_endings([record for record in records if "turns" in record]))
    rows += failure_lines(run.failures)
    tokens = [record["tokens"] for record in records if record.get("tokens")]
    forwarded, least = (
        sum(token.get(name) or 0 for token in tokens) for name in ("forwarded", "least")
    )
    if forwarded and least:
        rows.append(
            ("tokens forwarded", f"{forwarded:,}, {forwarded / least:.2f} times the least possible")
        )
    if more := sum(token.get("divergence") or 0 for token in tokens):
        rows.append(("tokens forwarded for divergences", f"{more:,}"))
    seconds = sum(record.get("seconds") or 0.0 for record in records)
    if seconds:
        rows.append(("time", f"{seconds:,.0f} s for all conversations"))
    return rows


_ENDED = {
    "context": "filled the model's context",
    "filter": "met a content filter",
    "failure": "had a request that failed",
    "judge": "had a judge that said neither yes nor no",
}
_EMPTY = {"refusal": "refused", "tool_calls": "called a tool", "empty": "were empty"}


def ending_lines(endings: Endings) -> list[tuple[str, str]]:
    """A heading and a sentence for each that occurred; none of a run that went well."""
    lines = []
    if endings.replayed:
        lines.append(("dialogs replayed", _replayed(endings)))
    if endings.left_out:
        lines.append(("rounds left out", _left_out(endings)))
    if endings.ended:
        lines.append(("dialogs that ended early", _ended(endings)))
    if count := endings.without_content.total():
        why = _listed(endings.without_content.items(), _EMPTY)
        text = f"{count:,} of {endings.replies:,} ({why}); probes are scored as empty"
        lines.append(("replies without content", text))
    if count := endings.unanswered.total():
        why = _listed(endings.unanswered.most_common(), _ENDED)
        lines.append(("probes not answered", f"{count:,} ({why}); left out of the means"))
    return lines


def _replayed(endings: Endings) -> str:
    words = {
        "own": "with the agent’s system prompt as they have it",
        "in place of another": "with it in place of another",
        "added": "with it added",
    }
    how = _listed(endings.replayed.most_common(), words)
    return f"{endings.replayed.total():,} ({how}); later rounds are means over the longer dialogs"


def _left_out(endings: Endings) -> str:
    text = (
        f"in {endings.left_out:,} of {endings.dialogs:,} dialogs replies saw the latest rounds"
        f" alone, from round {endings.left_out_from} on at the earliest; the system prompt stays"
    )
    if endings.summaries:
        text += f", and {endings.summaries:,} summaries stand for the older rounds"
    return text


def failure_lines(failures: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A heading and a sentence where a run has what was asked and not answered."""
    if not failures:
        return []
    why = _listed(Counter(failure["why"] for failure in failures).most_common(), _ENDED)
    count, reason = len(failures), failures[0]["reason"].rstrip(".")
    text = (
        f"{count:,} ({why}); left out of the means, and asked again when the command is repeated;"
        f" the first: {reason}"
    )
    return [("not answered", text)]


def _ended(endings: Endings) -> str:
    count = endings.ended.total()
    text = (
        f"{count:,} of {endings.dialogs:,} ({_listed(endings.ended.most_common(), _ENDED)}), and"
        f" {endings.dialogs - count:,} are whole; later rounds are means over the dialogs that"
        " reached them"
    )
    if endings.example is None:
        return text
    conversation, number, reason = endings.example
    first = f"; the first, conversation {conversation} in round {number}: {reason}"
    return text + first.rstrip(".")


def early_end(ended: Mapping[str, Any]) -> str:
    """'The dialog ended in round 3, as it met a content filter: the reason.'"""
    why = _ENDED.get(ended["why"], ended["why"])
    reason = f": {ended['reason']}" if ended.get("reason") else ""
    return f"The dialog ended in round {ended['round']}, as it {why}{reason}".rstrip(".") + "."


def _listed(counts: Iterable[tuple[str, int]], words: Mapping[str, str]) -> str:
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in counts)
