"""Conversations that broke down, replies that are broken, and all that a run could not ask."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.series import Series
from holdfast.drift.dialog import with_repetition
from holdfast.drift.dialogs import GIVEN
from holdfast.measures.language import LISTS, identifier
from holdfast.measures.repetition import NO_NEWS_FROM, UNSPACED_SIGN, Repeats, loops
from holdfast.measures.text import fold, words_of
from holdfast.models.requests import NO_CONTENT

COUNTED = ("cut", "own", "other", "loops", "broken")
MANY_CUT = 0.25  # share of turns from which a run says so
MANY_BROKEN = 0.2
LASTING = 3  # broken turns that make a collapse


@dataclass(frozen=True)
class Turn:
    """A turn that a model wrote.

    Args:
        round: from 1.
        cut: whether it ended at the token limit.
        repetition: how much of it is repeated.
    """

    round: int
    cut: bool
    repetition: Repeats


@dataclass(frozen=True)
class Collapse:
    """The turns of a series, counted.

    Attributes:
        turns: that models wrote.
        counts: of these, by `COUNTED`: how many ended at the token limit ("cut"), repeat their own
            speaker, the other one or themselves ("loops"), or do any of these three ("broken").
        collapsed: conversation -> the round from which on it has collapsed.
        conversations: all of them.
    """

    turns: int
    counts: Mapping[str, int]
    collapsed: Mapping[int, int]
    conversations: int

    def share(self, name: str) -> float:
        """Of the turns, from 0 to 1."""
        return self.counts[name] / self.turns if self.turns else 0.0

    @property
    def notable(self) -> bool:
        """Whether so many turns are cut or broken that the run says so."""
        return self.share("cut") >= MANY_CUT or self.share("broken") >= MANY_BROKEN


def collapse_of(series: Series) -> Collapse:
    """The turns of a series, counted."""
    dialogs = [model_turns(record) for record in series.records]
    turns = [turn for dialog in dialogs for turn in dialog]
    started = [
        (int(number), collapsed_from(dialog))
        for number, dialog in zip(series.conversations, dialogs, strict=True)
    ]
    return Collapse(
        turns=len(turns),
        counts={
            "cut": sum(turn.cut for turn in turns),
            **{
                name: sum(turn.repetition.shares[name] >= NO_NEWS_FROM for turn in turns)
                for name in COUNTED[1:4]
            },
            "broken": sum(turn.repetition.broken for turn in turns),
        },
        collapsed={number: first for number, first in started if first is not None},
        conversations=len(dialogs),
    )


def model_turns(record: Mapping[str, Any]) -> list[Turn]:
    """The turns of a recorded dialog that a model wrote: all but the starter, and what a file gave
    the user to say. Of a record of an earlier version, repetition is measured on its texts.
    """
    turns = record["turns"]
    if any("repeats" not in turn for turn in turns):
        turns = with_repetition(turns)
    return [
        Turn(
            turn["round"],
            turn["stop_reason"] == "length",
            Repeats(*map(turn["repeats"].get, ("own", "other", "loops"))),
        )
        for turn in turns[1:]
        if turn["speaker"] == "agent" or turn["stop_reason"] not in GIVEN
    ]


def collapsed_from(turns: Sequence[Turn]) -> int | None:
    """The round from which on a conversation has collapsed; None where it has not.

    It is the round of the first broken turn such that, of this turn and all that follow, at least
    half are broken, and at least `LASTING`.
    """
    broken = [turn.repetition.broken for turn in turns]
    for start, turn in enumerate(turns):
        rest = broken[start:]
        if broken[start] and sum(rest) >= max(LASTING, len(rest) / 2):
            return turn.round
    return None


def without_collapsed(series: Series, collapse: Collapse) -> Series:
    """The series without the conversations that have collapsed."""
    import numpy as np

    return series.rows(~np.isin(series.conversations, list(collapse.collapsed)))


MANY = 1 / 3
_LIKELIEST = 3  # languages that a reply may be in, beside English,
_POSSIBLE = 0.01  # if their probability is this
_SURE = 0.9  # probability at which a reply is in a language without a list
_SPELLED = re.compile(r"(?<![^\W_])[^\W\d_](?:[-‐‑][^\W\d_]){3,}(?![^\W_])")


def is_broken(text: str) -> bool:
    """Whether a reply is empty, loops, or is made of what are no words."""
    return not text.strip() or loops(text) >= NO_NEWS_FROM or no_words(text) >= MANY


@functools.lru_cache(maxsize=100_000)
def no_words(text: str) -> float:
    """The share of a reply's words that are none; 0 where there is nothing to tell by."""
    letters = sum((len(match.group()) + 1) // 2 for match in _SPELLED.finditer(text))
    words = [word for word in words_of(_SPELLED.sub(" ", text)) if _may_be_judged(word)]
    total = letters + len(words)
    if not total:
        return 0.0
    unknown = _unknown(words, "en")
    if unknown:
        likeliest = identifier().rank(text)[:_LIKELIEST]
        if likeliest[0][0] not in LISTS and likeliest[0][1] >= _SURE:
            return letters / total
        for code, chance in likeliest:
            if code in LISTS and chance >= _POSSIBLE:
                unknown = _unknown(unknown, code)
    return (letters + len(unknown)) / total


def _may_be_judged(word: str) -> bool:
    is_name = word[:1].isupper() and not word.isupper()
    return not is_name and not any(s.isdigit() or UNSPACED_SIGN.match(s) for s in word)


def _unknown(words: Sequence[str], language: str) -> list[str]:
    return [word for word in words if not _is_known(fold(word), language)]


@functools.lru_cache(maxsize=100_000)
def _is_known(word: str, language: str) -> bool:
    from wordfreq import zipf_frequency

    return zipf_frequency(word, LISTS[language]) > 0


def broken_share(record: Mapping[str, Any]) -> float:
    """Of a conversation, the share of the agent's replies, in turns and probes, that are broken."""
    replies = [
        turn["text"]
        for turn in record["turns"]
        if turn["speaker"] == "agent" and turn["stop_reason"] not in GIVEN
    ]
    replies += [probe["reply"] for probe in record["probes"] if "reply_of" not in probe]
    return float(np.mean([is_broken(reply) for reply in replies])) if replies else float("nan")


@dataclass(frozen=True)
class Endings:
    """Counts of all that a run could not ask or measure.

    Attributes:
        dialogs: how many were held.
        ended: how many of them ended early, by why.
        example: the first of these whose record says more than why: its conversation, round and
            reason; None where none does.
        replies: how many were asked for.
        without_content: how many of them have none, by why.
        unanswered: how many probes were not answered, by why.
        left_out: in how many dialogs the oldest rounds were left out, for the model's context.
        left_out_from: the earliest round of a reply that did not see all before it; None where
            there is none.
        summaries: how many were made of what was left out.
        replayed: how many dialogs were replayed, by where their system prompt is from.
    """

    dialogs: int
    ended: Counter[str]
    example: tuple[int, int, str] | None
    replies: int
    without_content: Counter[str]
    unanswered: Counter[str]
    left_out: int
    left_out_from: int | None
    summaries: int
    replayed: Counter[str]


def count_endings(records: Sequence[Mapping[str, Any]]) -> Endings:
    """Counts all that the records of a drift run lack."""
    replies: Counter[str | None] = Counter()
    unanswered: Counter[str] = Counter()
    for record in records:
        # the first turn is the starter, which is given
        replied = (*record["turns"][1:], *record["probes"])
        reasons = [reply.get("stop_reason") for reply in replied]
        replies.update(reason for reason in reasons if reason not in GIVEN)
        unanswered.update(probe["why"] for probe in record.get("unanswered", ()))
    ended = [record for record in records if "ended" in record]
    narrowed = [first for record in records if (first := _left_out_from(record)) is not None]
    return Endings(
        dialogs=len(records),
        ended=Counter(record["ended"]["why"] for record in ended),
        example=next(filter(None, map(_example, ended)), None),
        replies=replies.total(),
        without_content=Counter({why: replies[why] for why in NO_CONTENT if replies[why]}),
        unanswered=unanswered,
        left_out=len(narrowed),
        left_out_from=min(narrowed, default=None),
        summaries=sum(len(record.get("summaries", ())) for record in records),
        replayed=Counter(r["replayed"]["system_prompt"] for r in records if "replayed" in r),
    )


def _left_out_from(record: Mapping[str, Any]) -> int | None:
    """The first round of a dialog's reply that did not see all before it."""
    replies = (*record["turns"], *record["probes"])
    return min((reply["round"] for reply in replies if reply.get("left_out")), default=None)


def _example(record: Mapping[str, Any]) -> tuple[int, int, str] | None:
    end = record["ended"]
    reason = end.get("reason")
    return (record["conversation"], end["round"], reason) if reason else None
