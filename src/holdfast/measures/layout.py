"""Layout: lists, brackets, JSON, hyphens, openings and endings."""

import json
import re
from collections.abc import Iterator, Sequence

from holdfast.measures.arguments import Flag, Flags, MaybeCount, MaybeTexts, Text
from holdfast.measures.patterns import compiled, find, looks_at_end
from holdfast.measures.reasons import mismatch
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, exceeds, share_true, verdict
from holdfast.measures.text import fold, folded_words, lines_of, words_of

BULLET = re.compile(r"[-*•–]\s+\S")
NUMBERED = re.compile(r"(\d{1,3})[.)]\s+\S")
PLAIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
FENCED = re.compile(r"\A```\w*[ \t]*\n?(.*?)\s*```\Z", re.DOTALL)
OBJECTS_TRIED = 50  # starts tried for a JSON object, at most, so that no text takes long


@measure
def starts_with(text: str, word: Text, case: Flag = False) -> Score:
    """1 if the reply starts with this word or phrase; punctuation is ignored."""
    phrase = _words(word, case)
    if not phrase:  # a sign or an emoji
        starts = text.strip().startswith(word)
        return verdict(starts, f"the reply starts {'' if starts else 'not '}with {word!r}")
    start = _words(text, case)[: len(phrase)]
    return verdict(start == phrase, f"the reply starts with {' '.join(start)!r}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ends_with(text: str, word: Text, case: Flag = False) -> Score:
    """1 if the reply ends with this word or phrase; punctuation is ignored."""
    phrase = _words(word, case)
    if not phrase:
        ends = text.strip().endswith(word)
        return verdict(ends, f"the reply ends {'' if ends else 'not '}with {word!r}")
    end = _words(text, case)[-len(phrase) :]
    return verdict(end == phrase, f"the reply ends with {' '.join(end)!r}")


def _words(text: str, case: bool) -> list[str]:
    return words_of(text) if case else folded_words(text)


@measure(when_cut=WhenCut.NOT_JUDGED)
def wrapped_in(text: str, open: Text, close: Text) -> Score:
    """0.5 for starting with `open` and 0.5 for ending with `close`, spaces aside."""
    body = text.strip()
    starts = body.startswith(open)
    ends = body.endswith(close)
    if len(body) < len(open) + len(close):
        return Score(0.0, f"the reply is too short to hold {open!r} and {close!r}")
    return Score((starts + ends) / 2, f"starts with {body[:12]!r}, ends with {body[-12:]!r}")


def _bullets(text: str) -> list[bool]:
    """Whether each line is a bullet."""
    return [bool(BULLET.match(line)) for line in lines_of(text)]


def _numbered(text: str) -> list[bool]:
    """Whether each line has the next number, from 1."""
    marks: list[bool] = []
    number = 1
    for line in lines_of(text):
        match = NUMBERED.match(line)
        has_number = match is not None and int(match[1]) == number
        marks.append(has_number)
        if has_number:
            number += 1
    return marks


@measure(when_cut=lambda text, count: exceeds(sum(_bullets(text)), count))
def bullet_list(text: str, count: MaybeCount = None) -> Score:
    """Share of lines that are bullets; `count` of them if given."""
    return listing(_bullets(text), count, "bullets")


@measure(when_cut=lambda text, count: exceeds(sum(_numbered(text)), count))
def numbered_list(text: str, count: MaybeCount = None) -> Score:
    """Share of lines that are numbered in order from 1; `count` of them if given."""
    return listing(_numbered(text), count, "numbered in order")


def listing(marks: list[bool], target: int | None, what: str) -> Score:
    """Share of list lines, times how close their number comes to the target."""
    good = sum(marks)
    result = share_true(marks, f"lines are {what}")
    if target is None:
        return result
    closeness = 1 - min(abs(good - target) / target, 1)
    return Score(result.value * closeness, f"{result.reason}, {target} asked for")


def _brackets_when_cut(text: str, brackets: bool) -> WhenCut:
    is_closed = re.search(r"\[[^\[\]]*\]", text) is not None
    return WhenCut.JUDGED if is_closed or not brackets else WhenCut.NOT_JUDGED


@measure(when_cut=_brackets_when_cut)
def comma_list(text: str, brackets: Flag = False) -> Score:
    """Share of comma-separated items that are one word; with `brackets`, of the first [...]."""
    if brackets:
        inside = re.search(r"\[([^\[\]]*)\]", text)
        if inside is None:
            return Score(0.0, "there are no [brackets]")
        text = inside.group(1)
    items = text.split(",")
    if len(items) < 2:
        return Score(0.0, "there are no commas")
    return share_true((len(item.split()) == 1 for item in items), "items are one word")


def _json_when_cut(text: str, keys: Sequence[str] | None) -> WhenCut:
    """Text around an object cannot be undone; an object that is unfinished may still be closed."""
    body = re.sub(r"\A```\w*[ \t]*\n?", "", text.strip())
    if body.startswith("`") or not body:
        return WhenCut.NOT_JUDGED
    try:
        _, end = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode(body)
    except (ValueError, RecursionError):
        return WhenCut.NOT_JUDGED if body.startswith("{") else WhenCut.JUDGED
    is_over = body[end:].strip().strip("`") != "" or not body.startswith("{")
    return WhenCut.JUDGED if is_over else WhenCut.NOT_JUDGED


@measure(when_cut=_json_when_cut)
def json_object(text: str, keys: MaybeTexts = None) -> Score:
    """1 if the reply is just a JSON object, with just these keys in this order if given.

    A code fence around the object is allowed; text before or after it, and other keys, are not.
    """
    body = FENCED.sub(r"\1", text.strip())
    try:
        item = json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        item = None
    if not isinstance(item, dict):
        if next(objects_in(text), None) is None:
            return Score(0.0, "there is no JSON object")
        return Score(0.0, "the reply is more than a JSON object")
    return has_keys(item, keys, keys is None or list(item) == list(keys))


def has_keys(item: dict[str, object], keys: Sequence[str] | None, are_right: bool) -> Score:
    """The score of an object with the right keys or wrong ones."""
    reason = f"a JSON object with the keys {', '.join(item)[:80] or 'none'}"
    if keys and not are_right:
        reason += f", asked for {', '.join(keys)[:80]}"
    return Score(float(are_right), reason)


def objects_in(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects in a text, outermost first; numbers stay strings, however long."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    for start in [match.start() for match in re.finditer(r"\{", text)][:OBJECTS_TRIED]:
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield value


@measure
def hyphenated(text: str) -> Score:
    """Share of gaps between words that are a single hyphen."""
    gaps = PLAIN_WORD.split(text)[1:-1]
    if not gaps:
        return Score(0.0, "there are no two words to join")
    return share_true((gap in ("-", "‐", "‑") for gap in gaps), "gaps are hyphens")


@measure
def dashed_characters(text: str) -> Score:
    """Share of pieces between dashes that are a single character."""
    pieces = map(str.strip, text.split("-"))
    return share_true((len(piece) == 1 for piece in pieces if piece), "pieces are one character")


def _phrase_when_cut(text: str, phrase: str) -> WhenCut:
    """More text helps only as long as the reply so far is the beginning of the phrase."""
    so_far = fold(text).strip()
    whole = fold(phrase).strip()
    if words_of(phrase):
        # the last word may be incomplete
        so_far = " ".join(folded_words(text))
        whole = " ".join(folded_words(phrase))
    return WhenCut.NOT_JUDGED if whole.startswith(so_far) else WhenCut.JUDGED


@measure(when_cut=_phrase_when_cut)
def exact_phrase(text: str, phrase: Text) -> Score:
    """1 if the reply is this phrase and nothing else, ignoring case and punctuation."""
    same = folded_words(text) == folded_words(phrase) and (
        words_of(phrase) or fold(text).strip() == fold(phrase).strip()
    )
    reply = "the phrase" if same else repr(text.strip()[:60])
    return verdict(same, f"the reply is {reply}")


def _regex_when_cut(text: str, regex: str, flags: str) -> WhenCut:
    return WhenCut.NOT_JUDGED if looks_at_end(regex) else WhenCut.JUDGED


@measure(empty_is_zero=False, check=compiled, when_cut=_regex_when_cut)
def regex(text: str, regex: Text, flags: Flags = "") -> Score:
    """1 if the regular expression is found anywhere; flags are letters of 'aimsux'."""
    match = find(regex, text, flags)
    if match is None:
        return Score(0.0, mismatch("the reply", text, regex, flags))
    return Score(1.0, f"found {match[0][:60]!r}")
