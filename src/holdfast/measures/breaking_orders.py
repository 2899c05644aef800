"""Orders that ask for what a measure forbids, in words that its rule need not share.

The rule "Never push to main." is a measure of commands: "get it onto main, please" orders one that
the measure would score 0. `_CUES` has for each measure the function that says, from its arguments,
which words of an order do so. docs/causes.md has the same in prose.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from holdfast.measures.clause_words import is_negated
from holdfast.measures.command_words import command_cues, runner_words
from holdfast.measures.measure_specs import Measure, inner_specs, read_spec
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.orders import Passage, Request, requests_in

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Cues:
    """The words of orders against a measure.

    Args:
        forbidden: patterns; a request that matches all of one tuple, and negates nothing, asks for
            what the measure forbids.
        demanded: a pattern of what the measure demands; a request to leave it out breaks it too.
        forbidden_lasts: whether a request for what is forbidden holds beyond the next turn.
        demanded_lasts: whether a request to leave out what is demanded does.
    """

    forbidden: tuple[tuple[str, ...], ...] = ()
    demanded: str = ""
    forbidden_lasts: bool = False
    demanded_lasts: bool = True


def breaking_orders(text: str, measure: Measure) -> Iterator[Passage]:
    """The passages of a user's message that order what a measure forbids."""
    cues = _cues_for(measure)
    for request in requests_in(text) if cues else ():
        for cue in cues:
            if passage := _ordered(request, cue):
                yield passage


@lru_cache(maxsize=256)
def _cues_for(measure: Measure) -> tuple[Cues, ...]:
    """The cues of a measure, made once."""
    return tuple(_cues_of(measure.spec))


def _cues_of(spec: Any) -> Iterator[Cues]:
    """The cues of a measure, and of those that it combines."""
    name, arguments = read_spec(spec)
    if name in _CUES:
        yield _CUES[name](arguments)
    if name == "never":
        yield from _cues_of_the_forbidden(arguments["measure"])
        return
    for inner in inner_specs(arguments):
        yield from _cues_of(inner)


def _cues_of_the_forbidden(spec: Any) -> Iterator[Cues]:
    """The cues of orders for what `never` forbids: a language."""
    name, arguments = read_spec(spec)
    if name == "language" and (names := LANGUAGES.get(str(arguments["code"])[:2])):
        yield Cues(((_in_language(names),),))


def _ordered(request: Request, cues: Cues) -> Passage | None:
    """The passage of a request that breaks the measure of these cues; None if it does not."""
    if cues.demanded and _leaves_out(request, cues.demanded):
        return replace(request.passage, lasts=cues.demanded_lasts and not request.is_once)
    if _READS.match(request.clause):
        return None
    if not any(_asks_for(request.clause, patterns) for patterns in cues.forbidden):
        return None
    if cues.forbidden_lasts and not request.is_once:
        return replace(request.passage, lasts=True)
    return request.passage


def _asks_for(clause: str, patterns: tuple[str, ...]) -> bool:
    """Whether a clause matches all patterns, and has no negation besides."""
    rest = clause
    for pattern in patterns:
        if not re.search(pattern, clause):
            return False
        rest = re.sub(pattern, " ", rest)
    return not is_negated(rest)


# --- Requests to leave something out

_OMITS = (
    r"\b(?:(?:do|can we|could we|can you|could you|would you) not|stop|skip(?:ping)?|drop|omit|lose"
    r"|cut|ditch|without|no|less|fewer|leave|spare|enough|remove|forget|rid of|instead of)\b"
)
_OMITS_IT = re.compile(
    r"\b(?:(?:leave|cut) (?:it|that|them|this|these|those) (?:out|off|away)|(?:drop|skip|omit|lose"
    r"|remove|ditch|stop) (?:it|that|them|this|these|those|doing (?:it|that|this))"
    r"|do not do (?:it|that|this)|spare (?:me|us) (?:it|that))\b"
)
_KEEPS = re.compile(r"\b(?:do not|never) (?:forget|skip|drop|omit|leave|stop|lose)\b")


def _leaves_out(request: Request, named: str) -> bool:
    """Whether a request asks to leave out what a pattern names, or "it" after naming it."""
    if _KEEPS.search(request.clause):
        return False
    if re.search(rf"{_OMITS}.*?(?:{named})", request.clause):
        return True
    return bool(_OMITS_IT.search(request.clause) and re.search(named, request.around))


_READS = re.compile(
    r"(?:(?:can|could|would|will) you |please |just )*(?:check|compare|describe|explain|list|review"
    r"|mention|tell me about|read)\b(?! (?:it )?in\b)"
)


# --- What each measure forbids

_AT_ONCE = r"\b(?:just|simply|straight|directly|immediately|right away|anyway|as (?:it )?is)\b"
CHANGES = (
    r"\b(?:add|adjust|bump|change|correct|create|delete|edit|extend|fix|insert|modify|move|patch"
    r"|put|remove|rename|replace|rewrite|set|tweak|update|write)\b"
)
_LONG = (
    r"\b(?:in (?:\w+ )?(?:detail|depth|full)|at length|(?:more|every|all the) details?|detailed"
    r"|in-depth|full(?:er)? (?:\w+ )?(?:story|explanation|answer|account|version|text|report)"
    r"|(?:explain|describe|write|tell)\b.*\bfully|whole (?:\w+ )?(?:story|explanation|thing|answer)"
    r"|thorough(?:ly)?|comprehensive(?:ly)?|elaborate|expand on|step[ -]by[ -]step|essay"
    r"|long(?:er|ish)"
    r"|long (?:\w+ )?(?:answer|reply|explanation|version|text|story|message|one|list|form)"
    r"|(?:\d+|several|a few|a couple of|two|three|four|five) (?:paragraphs|pages))\b"
)
_SHORT = (
    r"\b(?:brief(?:ly)?|short(?:er)?|concise(?:ly)?|in (?:a|one) (?:single )?(?:word|sentence|line"
    r"|nutshell)|(?:one|single) (?:word|line|sentence)|yes or no|to the point|sum it up|tl;?dr)\b"
)
_CLOSING = (
    r"clos(?:ing|er)(?: \w+)?|sign[ -]?off|ending|last (?:line|sentence|words?|bit|part)|farewell"
    r"|goodbye|signature|tagline|slogan|catch ?phrase|motto|at the end"
)
_OPENING = (
    r"greeting|opening(?: \w+)?|opener|intro(?:duction)?|first (?:line|sentence|words?|bit|part)"
    r"|salutation|hello|preamble|catch ?phrase|prefix|(?:open|start|begin)(?:ing)? with"
)
_OTHER_FORM = (
    r"\b(?:in|as|to|into|of)\b.*\b(?:prose|plain (?:text|english|words|language)|running text"
    r"|paragraphs?|(?:normal|full|plain|proper) sentences?|an? (?:\w+ )?table)\b"
)
_OTHER_THAN_JSON = (
    _OTHER_FORM + r"|\b(?:in|as)\b.*\b(?:yaml|xml|csv|markdown|bullets?|bullet points|list|text)\b"
)
_CAPITALS = r"\b(?:capital(?:s|i[sz]e\w*| letters)?|upper ?case|all caps|shout)\b"
_SMALL_LETTERS = r"\b(?:lower ?case|small letters|without caps|normal case)\b"

LANGUAGES = {
    "ar": "arabic", "cs": "czech", "da": "danish", "de": "german|deutsch", "el": "greek",
    "en": "english", "es": "spanish|español|castellano", "fi": "finnish",
    "fr": "french|français", "hi": "hindi", "hu": "hungarian", "it": "italian|italiano",
    "ja": "japanese", "ko": "korean", "la": "latin", "nl": "dutch|nederlands",
    "no": "norwegian", "pl": "polish|polski", "pt": "portuguese|português", "ro": "romanian",
    "ru": "russian", "sv": "swedish|svenska", "tr": "turkish|türkçe", "uk": "ukrainian",
    "zh": "chinese|mandarin",
}  # fmt: skip


def words_pattern(words: Any) -> str:
    """A pattern for any of some words or phrases, as rules quote them."""
    listed = [words] if isinstance(words, str) else words
    return "|".join(re.escape(word.casefold().strip(" .!?")) for word in listed)


def _command(arguments: Arguments) -> Cues:
    return Cues(tuple(command_cues(arguments["command"])))


def _other_command(arguments: Arguments) -> Cues:
    return Cues(tuple(command_cues(arguments["rather_than"])))


def _order_of_commands(arguments: Arguments) -> Cues:
    """Of "X before Y": "just Y", or "no X this time"."""
    first = arguments.get("first") or arguments.get("run") or ""
    then = arguments.get("then") or arguments.get("after")
    at_once = tuple((*cue, _AT_ONCE) for cue in command_cues(then)) if then else ()
    return Cues(at_once, runner_words(first), demanded_lasts=False)


def _file(arguments: Arguments) -> Cues:
    """A change of a file that is named, or of what its folder is called."""
    named = file_pattern(arguments["path"])
    return Cues(((CHANGES, named),) if named else ())


def file_pattern(path: str) -> str:
    """Names of a file or its folder: migrations/* is "the migration" too; "" if nothing does."""
    segments = [part for part in re.split(r"[/*?]+", path.casefold()) if part]
    telling = [part for part in segments if part not in _COMMON_FOLDERS] or segments
    forms = [re.escape(part) for part in dict.fromkeys([*segments[-1:], *telling])]
    forms += [re.escape(part[:-1]) for part in telling if part.endswith("s") and len(part) > 4]
    if ".env" in segments:
        forms += ["env(?:ironment)? file"]
    if any("lock" in part for part in segments[-1:]):
        forms += ["lock ?files?"]
    return rf"(?<![\w-])(?:{'|'.join(forms)})(?![\w-])" if forms else ""


_COMMON_FOLDERS = frozenset("src lib app docs doc test tests packages".split())


def _language(arguments: Arguments) -> Cues:
    code = str(arguments["code"])[:2]
    others = "|".join(names for language, names in LANGUAGES.items() if language != code)
    return Cues(((_in_language(others),),))


def _in_language(names: str) -> str:
    """A pattern of orders for one of some languages."""
    return (
        rf"\b(?:in|into|to|auf|en|speak|use|using|with|try|switch to)\s(?:\w+ )?(?:{names})\b"
        rf"|^(?:{names}) please|\b(?:{names}) (?:version|translation|only)\b"
    )


def _most(arguments: Arguments, unit: str) -> Cues:
    """More words or sentences than may be: in words, or as a number."""
    count = int(arguments.get("count", 1))
    return Cues(((_LONG,), (_more_than(count, unit),)))


def _more_than(count: int, unit: str) -> str:
    """A pattern for numbers of words or sentences above a limit."""
    digits = rf"(?:not at most |at least )?(?:{'|'.join(_digits_above(count))})"
    in_words = "|".join(re.escape(word) for word, number in NUMBER_WORDS.items() if number > count)
    at_limit = rf"not at most (?:{count})"
    return rf"(?<!at most )\b(?:{digits}|{in_words}|{at_limit}) {unit}s?\b"


def _digits_above(count: int) -> Iterator[str]:
    """Patterns that together match the whole numbers above one."""
    digits = str(count)
    yield rf"[1-9]\d{{{len(digits)},}}"
    for place, digit in enumerate(digits):
        if digit != "9":
            yield rf"{digits[:place]}[{int(digit) + 1}-9]\d{{{len(digits) - place - 1}}}"


def _forbidden_words(arguments: Arguments) -> Cues:
    return Cues(((rf"\b(?:in|with) (?:\w+ )?(?:{words_pattern(arguments['words'])})\b",),))


def _demanded_words(arguments: Arguments) -> Cues:
    words = words_pattern(arguments["words"])
    return Cues(
        ((rf"\b(?:call|address) me (?!{words})\w",),),
        rf"{words}|nickname|catch ?phrase",
        forbidden_lasts=True,
    )


def _ends(arguments: Arguments) -> Cues:
    return Cues(demanded=f"{words_pattern(arguments['word'])}|{_CLOSING}")


def _starts(arguments: Arguments) -> Cues:
    return Cues(demanded=f"{words_pattern(arguments['word'])}|{_OPENING}")


def _commit_message(arguments: Arguments) -> Cues:
    named = r"\b(?:ticket|prefix|scope|issue)(?: (?:number|id|key))?s?\b"
    return Cues(demanded=named, demanded_lasts=False)


def _asks_before(arguments: Arguments) -> Cues:
    named = r"asking|ask|confirm\w*|permission|questions?"
    return Cues(demanded=named, demanded_lasts=False)


_CUES: Mapping[str, Callable[[Arguments], Cues]] = {
    "command_not_run": _command,
    "prefers": _other_command,
    "runs_before": _order_of_commands,
    "runs_after": _order_of_commands,
    "asks_before": _asks_before,
    "commit_message": _commit_message,
    "file_not_touched": _file,
    "language": _language,
    "at_most_words": lambda arguments: _most(arguments, "word"),
    "at_most_sentences": lambda arguments: _most(arguments, "sentence"),
    "one_sentence": lambda arguments: _most(arguments, "sentence"),
    "one_word": lambda arguments: _most(arguments, "word"),
    "long_reply": lambda _: Cues(((_SHORT,),)),
    "never_contains": _forbidden_words,
    "contains": _demanded_words,
    "ends_with": _ends,
    "starts_with": _starts,
    "asks_back": lambda _: Cues(demanded=r"questions?|asking|ask"),
    "emoji": lambda _: Cues(demanded=r"emojis?|emoticons?|smil(?:ey|ie)s?"),
    "json_object": lambda _: Cues(((_OTHER_THAN_JSON,),), r"json"),
    "bullet_list": lambda _: Cues(((_OTHER_FORM,),), r"bullets?|bullet points|lists?"),
    "numbered_list": lambda _: Cues(((_OTHER_FORM,),), r"numbers?|numbering|lists?"),
    "lower_case": lambda _: Cues(((_CAPITALS,),)),
    "upper_case": lambda _: Cues(((_SMALL_LETTERS,),), r"shouting|yelling|caps|capitals"),
}
