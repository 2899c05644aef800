"""Layout: lists, brackets, JSON, hyphens, openings and endings."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence

from holdfast.measures.arguments import Flag, Flags, MaybeCount, MaybeTexts, Text
from holdfast.measures.counting import closeness
from holdfast.measures.patterns import compile_regex, find, looks_at_end
from holdfast.measures.reasons import explain_mismatch
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, WhenCut, exceeds, share_true, verdict
from holdfast.measures.text import fold, folded_words, lines_of, words_of

_BULLET = re.compile(r"[-*•–]\s+\S")  # "- tea"
_NUMBERED = re.compile(r"(?P<number>\d{1,3})[.)]\s+\S")  # "2. tea", "2) tea"
_PLAIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")  # "don't"; "well-known" is two
_CLOSED_BRACKETS = re.compile(r"\[(?P<inside>[^\[\]]*)\]")  # "[tea, milk]"
_OPENING_FENCE = re.compile(r"\A```\w*[ \t]*\n?")  # "```json"
_FENCED = re.compile(rf"{_OPENING_FENCE.pattern}(?P<inside>.*?)\s*```\Z", re.DOTALL)
_MAX_OBJECT_STARTS = 50  # braces tried as the start of a JSON object, so that no text takes long


@measure
def starts_with(text: str, word: Text, case: Flag = False) -> Score:
    """1 if the reply starts with this word or phrase; punctuation is ignored.

    With `word: 'Yes'`, "Yes, I do." scores 1, and "Yesterday" 0.
    """
    phrase = _words(word, case=case)
    if not phrase:  # a sign or an emoji
        starts = text.strip().startswith(word)
        return verdict(starts, f"the reply starts {'' if starts else 'not '}with {word!r}")
    start = _words(text, case=case)[: len(phrase)]
    return verdict(start == phrase, f"the reply starts with {' '.join(start)!r}")


@measure(when_cut=WhenCut.NOT_JUDGED)
def ends_with(text: str, word: Text, case: Flag = False) -> Score:
    """1 if the reply ends with this word or phrase; punctuation is ignored.

    With `word: over and out`, "We landed. Over and out!" scores 1, and "Over and out, he said." 0.
    """
    phrase = _words(word, case=case)
    if not phrase:
        ends = text.strip().endswith(word)
        return verdict(ends, f"the reply ends {'' if ends else 'not '}with {word!r}")
    end = _words(text, case=case)[-len(phrase) :]
    return verdict(end == phrase, f"the reply ends with {' '.join(end)!r}")


def _words(text: str, *, case: bool) -> list[str]:
    return words_of(text) if case else folded_words(text)


@measure(when_cut=WhenCut.NOT_JUDGED)
def wrapped_in(text: str, open: Text, close: Text) -> Score:
    """0.5 for starting with `open` and 0.5 for ending with `close`, spaces aside.

    With `open: '<<', close: '>>'`, "<<hi>>" scores 1, and "<<hi" 0.5.
    """
    body = text.strip()
    starts = body.startswith(open)
    ends = body.endswith(close)
    if len(body) < len(open) + len(close):
        return Score(0.0, f"the reply is too short to hold {open!r} and {close!r}")
    return Score((starts + ends) / 2, f"starts with {body[:12]!r}, ends with {body[-12:]!r}")


def _bullet_lines(text: str) -> list[bool]:
    """Returns for each line whether it is a bullet."""
    return [bool(_BULLET.match(line)) for line in lines_of(text)]


def _numbered_lines(text: str) -> list[bool]:
    """Returns for each line whether it has the next number, from 1."""
    marks: list[bool] = []
    number = 1
    for line in lines_of(text):
        match = _NUMBERED.match(line)
        has_number = match is not None and int(match["number"]) == number
        marks.append(has_number)
        if has_number:
            number += 1
    return marks


@measure(when_cut=lambda text, count: exceeds(sum(_bullet_lines(text)), count))
def bullet_list(text: str, count: MaybeCount = None) -> Score:
    r"""Share of lines that are bullets; `count` of them if given.

    "- tea\n- cake" scores 1, and "Here:\n- tea" 0.5.
    """
    return _score_list(_bullet_lines(text), count, "bullets")


@measure(when_cut=lambda text, count: exceeds(sum(_numbered_lines(text)), count))
def numbered_list(text: str, count: MaybeCount = None) -> Score:
    r"""Share of lines that are numbered in order from 1; `count` of them if given.

    "1. tea\n2. cake" scores 1, and "1. tea\n1. cake" 0.5.
    """
    return _score_list(_numbered_lines(text), count, "numbered in order")


def _score_list(marks: list[bool], target: int | None, kind: str) -> Score:
    """Share of lines that belong to a list, times how close their number is to the target.

    Args:
        marks: for each line, whether it belongs to the list.
        target: None for any number.
        kind: what such lines are, for the reason: "bullets".
    """
    good = sum(marks)
    result = share_true(marks, f"lines are {kind}")
    if target is None:
        return result
    share_of_target = closeness(good, target, "line").value
    return Score(result.value * share_of_target, f"{result.reason}, {target} asked for")


def _brackets_when_cut(text: str, brackets: bool) -> WhenCut:
    is_closed = _CLOSED_BRACKETS.search(text) is not None
    return WhenCut.JUDGED if is_closed or not brackets else WhenCut.NOT_JUDGED


@measure(when_cut=_brackets_when_cut)
def comma_list(text: str, brackets: Flag = False) -> Score:
    """Share of comma-separated items that are one word; with `brackets`, of the first [...].

    "tea, cake, scones" scores 1, and "green tea, cake" 0.5.
    """
    if brackets:
        match = _CLOSED_BRACKETS.search(text)
        if match is None:
            return Score(0.0, "there are no [brackets]")
        text = match["inside"]
    items = text.split(",")
    if len(items) < 2:
        return Score(0.0, "there are no commas")
    return share_true((len(item.split()) == 1 for item in items), "items are one word")


def _json_when_cut(text: str, keys: Sequence[str] | None) -> WhenCut:
    """Judges a cut reply that has text around the object; an unfinished object may be completed."""
    body = _OPENING_FENCE.sub("", text.strip())
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
    r"""1 if the reply is just a JSON object, with just these keys in this order if given.

    A code fence around the object is allowed; text before or after it, and other keys, are not.

    With `keys: [a, b]`, "{\"a\": 1, \"b\": 2}" scores 1, and "Sure: {\"a\": 1, \"b\": 2}" 0.
    """
    body = _FENCED.sub(r"\g<inside>", text.strip())
    try:
        item = json.loads(body, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        item = None
    if not isinstance(item, dict):
        if next(objects_in(text), None) is None:
            return Score(0.0, "there is no JSON object")
        return Score(0.0, "the reply is more than a JSON object")
    return score_keys(item, keys, are_right=keys is None or list(item) == list(keys))


def score_keys(item: dict[str, object], keys: Sequence[str] | None, *, are_right: bool) -> Score:
    """1 for an object whose keys are right, else 0; `keys` are asked for, None for any."""
    reason = f"a JSON object with the keys {', '.join(item)[:80] or 'none'}"
    if keys and not are_right:
        reason += f", asked for {', '.join(keys)[:80]}"
    return Score(float(are_right), reason)


def objects_in(text: str) -> Iterator[dict[str, object]]:
    """Yields the JSON objects in a text, outermost first; numbers stay strings."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    for brace in itertools.islice(re.finditer(r"\{", text), _MAX_OBJECT_STARTS):
        try:
            value, _ = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        yield value


@measure
def hyphenated(text: str) -> Score:
    """Share of gaps between words that are a single hyphen.

    "This-is-how-we-talk." scores 1, and "well-known place" 0.5.
    """
    gaps = _PLAIN_WORD.split(text)[1:-1]
    if not gaps:
        return Score(0.0, "there are no two words to join")
    return share_true((gap in ("-", "‐", "‑") for gap in gaps), "gaps are hyphens")


@measure
def dashed_characters(text: str) -> Score:
    """Share of pieces between dashes that are a single character.

    "H-e-y" scores 1, and "Hey" 0.
    """
    pieces = map(str.strip, text.split("-"))
    return share_true((len(piece) == 1 for piece in pieces if piece), "pieces are one character")


def _phrase_when_cut(text: str, phrase: str) -> WhenCut:
    """Judges a cut reply unless it is the beginning of the phrase, which more text may complete."""
    so_far = fold(text).strip()
    whole = fold(phrase).strip()
    if words_of(phrase):
        # the last word may be incomplete
        so_far = " ".join(folded_words(text))
        whole = " ".join(folded_words(phrase))
    return WhenCut.NOT_JUDGED if whole.startswith(so_far) else WhenCut.JUDGED


@measure(when_cut=_phrase_when_cut)
def exact_phrase(text: str, phrase: Text) -> Score:
    """1 if the reply is this phrase and nothing else, ignoring case and punctuation.

    With `phrase: I am Bob.`, "i am bob" scores 1, and "I am Bob. And you?" 0.
    """
    same = folded_words(text) == folded_words(phrase) and (
        words_of(phrase) or fold(text).strip() == fold(phrase).strip()
    )
    reply = "the phrase" if same else repr(text.strip()[:60])
    return verdict(same, f"the reply is {reply}")


def _regex_when_cut(text: str, regex: str, flags: str) -> WhenCut:
    return WhenCut.NOT_JUDGED if looks_at_end(regex) else WhenCut.JUDGED


@measure(empty_is_zero=False, check=compile_regex, when_cut=_regex_when_cut)
def regex(text: str, regex: Text, flags: Flags = "") -> Score:
    """1 if the regular expression is found anywhere; flags are letters of 'aimsux'.

    With `regex: '^[0-9]+$'`, "12" scores 1, and "12a" 0.
    """
    match = find(regex, text, flags)
    if match is None:
        return Score(0.0, explain_mismatch("the reply", text, regex, flags))
    return Score(1.0, f"found {match[0][:60]!r}")
