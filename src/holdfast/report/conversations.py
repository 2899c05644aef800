"""Conversations as data for the page: an index, and texts unpacked when one is opened."""

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from holdfast.analysis.series import Series
from holdfast.records import Conversation, Participant, Probe, Turn, Unscored
from holdfast.records.conversation import RECORDED, SCRIPTED
from holdfast.report.how_measured import early_end

PER_CHUNK = 24
# up to this many characters in total, chunks stay readable JSON; beyond, they are gzip in base64
PLAIN_LIMIT = 600_000

_NOTES = {
    "length": "cut at the length limit",
    "refusal": "a refusal",
    "tool_calls": "a tool call",
    "empty": "without content",
    RECORDED: "as it was recorded",
    SCRIPTED: "as scripted",
}


def pack(series: Sequence[Series]) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    """The index and the chunks.

    The index holds the series, every prompt and question once, and a row per conversation: its
    series, number, prompts, scores by round and the round in which it ended early. One pair's
    conversations under several methods are adjacent, so that they share a chunk.
    """
    prompts: dict[tuple[str | None, ...], int] = {}
    questions: dict[str, int] = {}
    runs = list(dict.fromkeys(item.run for item in series))
    order = sorted(
        (runs.index(item.run), int(number), at, row)
        for at, item in enumerate(series)
        for row, number in enumerate(item.conversations)
    )
    rows: list[list[Any]] = []
    chunks: list[list[dict[str, Any]]] = []
    for position, (_, number, at, row) in enumerate(order):
        item = series[at]
        record = item.records[row]
        agent, user = (
            prompts.setdefault(_prompt_of(side), len(prompts))
            for side in (record.agent, record.user)
        )
        stability, adoption = _numbers(item.stability[row]), _numbers(item.adoption[row])
        ended = record.ended.round if record.ended else None
        rows.append([at, number, agent, user, stability, adoption, ended])
        if position % PER_CHUNK == 0:
            chunks.append([])
        chunks[-1].append(_texts(record, questions))
    index = {
        "series": [
            {"label": item.label, "run": item.run, "method": item.method} for item in series
        ],
        "prompts": [{"id": key[0], "category": key[1], "text": key[2]} for key in prompts],
        "questions": list(questions),
        "rows": rows,
        "perChunk": PER_CHUNK,
        "rounds": max(item.rounds for item in series),
    }
    return index, chunks


def _prompt_of(side: Participant) -> tuple[str | None, ...]:
    return side.id, side.category, side.system_prompt


def script_json(value: Any) -> Markup:
    """JSON that cannot close or open any tag inside a script element, whatever it contains."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


class Chunk(NamedTuple):
    """Texts of some conversations for an inert script element: JSON, or gzip in base64."""

    text: Markup
    is_packed: bool


def script_chunks(chunks: Sequence[Any]) -> list[Chunk]:
    """Converts chunks to script text: JSON if small in total, otherwise packed."""
    texts = [script_json(chunk) for chunk in chunks]
    if sum(map(len, texts)) <= PLAIN_LIMIT:
        return [Chunk(text, False) for text in texts]
    packed = (gzip.compress(text.encode("ascii"), 9, mtime=0) for text in texts)
    return [Chunk(Markup(base64.b64encode(data).decode("ascii")), True) for data in packed]


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 3) for value in values]


def _texts(record: Conversation, questions: dict[str, int]) -> dict[str, Any]:
    """Turns as [round, speaker, text, note, mass], probes as [round, kind, question,
    reply, score, reason, mass, rule, note], and why the dialog ended early. A note says how a reply
    ended and what it did not see; a score is null if the reply is no evidence.
    """
    summed = {(summary.view, summary.rounds[1]) for summary in record.summaries}
    return {
        "turns": [
            [turn.round, turn.speaker, turn.text, _note(turn, turn.speaker, summed), _mass(turn)]
            for turn in record.turns
        ],
        "probes": [
            [
                *(probe.round, probe.kind),
                questions.setdefault(probe.question, len(questions)),
                *(probe.reply, _score(probe), probe.reason),
                *(_mass(probe), probe.rule, _note(probe, "agent", summed)),
            ]
            for probe in record.answered
        ],
        "ended": early_end(record.ended) if record.ended else None,
    }


def _score(probe: Probe | Unscored) -> float | None:
    """The score of a probe; None if its reply is no evidence."""
    return round(probe.score, 4) if isinstance(probe, Probe) else None


def _note(reply: Turn | Probe | Unscored, view: str, summed: set[tuple[str, int]]) -> str:
    """How a reply ended and which rounds it saw; `summed`: (view, last round) of summaries."""
    notes = [_NOTES.get(reply.stop_reason or "", "")]
    names = dict.fromkeys(
        call["function"]["name"]
        for message in (reply.messages if isinstance(reply, Turn) else ())
        for call in message.get("tool_calls", ())
    )
    if reply.reasoning:
        notes.append("after reasoning")
    if names:
        notes.append(f"with calls of {', '.join(names)}")
    if count := reply.left_out:
        before = "a summary of those before" if (view, count) in summed else "nothing before"
        notes.append(f"saw round {count + 1} and later, and {before}")
    return "; ".join(filter(None, notes))


def _mass(item: Turn | Probe | Unscored) -> float | None:
    return None if item.mass is None else round(item.mass, 4)
