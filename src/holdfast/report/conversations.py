"""Conversations as data for the page: an index, and texts that are unpacked when one is opened.

JSON has a list for each NamedTuple here, which conversations.js reads by position.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from markupsafe import Markup

from holdfast.analysis.series import Series
from holdfast.records import Conversation, Participant, Probe, Turn, Unscored
from holdfast.records.conversation import RECORDED, SCRIPTED
from holdfast.report.shortfalls import early_end_sentence

T = TypeVar("T")

PER_CHUNK = 24  # conversations whose texts are packed together
MAX_PLAIN_CHARACTERS = 600_000  # of all chunks as readable JSON; longer ones are compressed

_NOTES = {
    "length": "cut at the length limit",
    "refusal": "a refusal",
    "tool_calls": "a tool call",
    "empty": "without content",
    RECORDED: "as it was recorded",
    SCRIPTED: "as scripted",
}


class PackedRow(NamedTuple):
    """A conversation in the index."""

    series: int  # the number of its series
    conversation: int
    agent: int  # the number of its prompt; `user` too
    user: int
    stability: list[float | None]  # by round; `adoption` too
    adoption: list[float | None]
    ended: int | None  # the round in which it ended early


class PackedTurn(NamedTuple):
    """A turn of a conversation."""

    round: int
    speaker: str
    text: str
    note: str  # how it ended, and what the model did not see
    mass: float | None


class PackedProbe(NamedTuple):
    """A probe with a reply."""

    round: int
    kind: str
    question: int  # the number of its text
    reply: str
    score: float | None  # None if the reply is no evidence
    reason: str
    mass: float | None
    rule: str | None
    note: str  # how its reply ended, and what the model did not see


class _PromptText(NamedTuple):
    """The prompt of a side."""

    id: str | None
    category: str | None
    text: str


class _PackedPosition(NamedTuple):
    """Where a conversation is. The index is sorted by these fields, in their order."""

    run: int
    conversation: int
    series: int
    row: int  # in the series


class PackedConversations(NamedTuple):
    """All conversations of a page.

    Attributes:
        listing: every prompt and question once, and a `PackedRow` for each conversation.
        chunks: the texts of `PER_CHUNK` conversations each, in the order of the rows.
    """

    listing: dict[str, Any]
    chunks: list[list[dict[str, Any]]]


class Chunk(NamedTuple):
    """The texts of some conversations for an inert script element.

    Attributes:
        text: JSON, or gzip in base64 if it is packed.
    """

    text: Markup
    is_packed: bool


def pack(all_series: Sequence[Series]) -> PackedConversations:
    """Packs the conversations of some series.

    Conversations of one pair under several methods are adjacent, so that they share a chunk.
    """
    runs = list(dict.fromkeys(series.run for series in all_series))
    positions = sorted(
        _PackedPosition(runs.index(series.run), int(number), index, row)
        for index, series in enumerate(all_series)
        for row, number in enumerate(series.conversations)
    )
    records = [all_series[position.series].records[position.row] for position in positions]
    sides = (side for record in records for side in (record.agent, record.user))
    prompts = _number_distinct(map(_prompt_of, sides))
    questions = _number_distinct(probe.question for record in records for probe in record.answered)
    rows = [_pack_row(all_series, position, prompts) for position in positions]
    listing = {
        "prompts": [prompt._asdict() for prompt in prompts],
        "questions": list(questions),
        "rows": rows,
        "perChunk": PER_CHUNK,
        "rounds": max(series.rounds for series in all_series),
    }
    texts = [_pack_texts(record, questions) for record in records]
    starts = range(0, len(texts), PER_CHUNK)
    return PackedConversations(listing, [texts[start : start + PER_CHUNK] for start in starts])


def _pack_row(
    all_series: Sequence[Series], position: _PackedPosition, prompts: Mapping[_PromptText, int]
) -> PackedRow:
    """The row of the conversation at a position; `prompts` has the number of each prompt."""
    series = all_series[position.series]
    record = series.records[position.row]
    return PackedRow(
        series=position.series,
        conversation=position.conversation,
        agent=prompts[_prompt_of(record.agent)],
        user=prompts[_prompt_of(record.user)],
        stability=_rounded(series.stability[position.row]),
        adoption=_rounded(series.adoption[position.row]),
        ended=record.ended.round if record.ended else None,
    )


def _number_distinct(values: Iterable[T]) -> dict[T, int]:
    """Numbers the distinct values in the order in which they first occur."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _prompt_of(side: Participant) -> _PromptText:
    return _PromptText(side.id, side.category, side.system_prompt)


def script_json(value: Any) -> Markup:
    """JSON that cannot close or open any tag inside a script element, whatever it contains."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def script_chunks(chunks: Sequence[Any]) -> list[Chunk]:
    """Converts chunks to script text: readable JSON if it is short in total, else compressed."""
    texts = [script_json(chunk) for chunk in chunks]
    if sum(map(len, texts)) <= MAX_PLAIN_CHARACTERS:
        return [Chunk(text, False) for text in texts]
    compressed = (gzip.compress(text.encode("ascii"), 9, mtime=0) for text in texts)
    return [Chunk(Markup(base64.b64encode(data).decode("ascii")), True) for data in compressed]


def _rounded(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 3) for value in values]


def _pack_texts(record: Conversation, questions: Mapping[str, int]) -> dict[str, Any]:
    """The turns and probes of a conversation, and why it ended early."""
    summarised = {(summary.view, summary.rounds[1]) for summary in record.summaries}
    turns = [
        PackedTurn(
            round=turn.round,
            speaker=turn.speaker,
            text=turn.text,
            note=_note(turn, turn.speaker, summarised),
            mass=_rounded_mass(turn),
        )
        for turn in record.turns
    ]
    probes = [
        PackedProbe(
            round=probe.round,
            kind=probe.kind,
            question=questions[probe.question],
            reply=probe.reply,
            score=round(probe.score, 4) if isinstance(probe, Probe) else None,
            reason=probe.reason,
            mass=_rounded_mass(probe),
            rule=probe.rule,
            note=_note(probe, "agent", summarised),
        )
        for probe in record.answered
    ]
    why_ended = early_end_sentence(record.ended) if record.ended else None
    return {"turns": turns, "probes": probes, "ended": why_ended}


def _note(reply: Turn | Probe | Unscored, view: str, summarised: set[tuple[str, int]]) -> str:
    """How a reply ended and which rounds it saw; "" if there is nothing to say.

    Args:
        view: the speaker whose view of the dialog the reply saw.
        summarised: the view and the last round of each summary.
    """
    notes = [_NOTES.get(reply.stop_reason or "", "")]
    if reply.reasoning:
        notes.append("after reasoning")
    if names := _called_tools(reply):
        notes.append(f"with calls to {', '.join(names)}")
    if count := reply.left_out:
        before = "a summary of those before" if (view, count) in summarised else "nothing before"
        notes.append(f"saw round {count + 1} and later, and {before}")
    return "; ".join(filter(None, notes))


def _called_tools(reply: Turn | Probe | Unscored) -> list[str]:
    """The names of the tools that a turn calls, each once."""
    messages = reply.messages if isinstance(reply, Turn) else ()
    calls = (call for message in messages for call in message.get("tool_calls", ()))
    return list(dict.fromkeys(call["function"]["name"] for call in calls))


def _rounded_mass(item: Turn | Probe | Unscored) -> float | None:
    return None if item.mass is None else round(item.mass, 4)
