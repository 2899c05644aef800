"""The words for what measures decide: one row per measure that people speak of.

A row has the wordings of a rule that the measure decides ("40 words is the most that an answer may
have" is one of `at_most_words: 40`), the words of orders against it ("explain it in detail"), and
whether a model may propose it for a line of a rules file. docs/causes.md has the same in prose.

Patterns read sentences as `clause_words.plain_sentence` writes them.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.measures.command_words import command_cues, runner_words
from holdfast.measures.language_names import CODES, NAMES, names_of
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.rule_kinds import Polarity, RuleKind

Arguments = Mapping[str, Any]
Example = str | dict[str, Any]


@dataclass(frozen=True)
class Wording:
    """A wording of the rule that a measure decides.

    Args:
        patterns: a sentence with this wording matches all of these.
        forbidden: patterns that one of its clauses matches which forbids something.
        asks: whether it may have no negation.
        named: a pattern that may be in the sentence before instead, as in "There is a shop called
            Velox. Never mention that name."
    """

    patterns: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    asks: bool = False
    named: str = ""


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


@dataclass(frozen=True)
class KindOfExample:
    """A kind of text that a model writes as an example, and how a suite has it."""

    name: str
    entry: Callable[[str, Arguments], Example]


@dataclass(frozen=True)
class Proposal:
    """How a model proposes a rule with a measure.

    Args:
        meaning: of the measure, for the model.
        arguments: the names of those that the model chooses.
        examples: what it writes as examples of what follows and breaks the rule.
    """

    kind: RuleKind
    polarity: Polarity
    meaning: str
    arguments: tuple[str, ...]
    examples: KindOfExample


@dataclass(frozen=True)
class MeasureWords:
    """The words for what a measure decides; each function takes the measure's arguments.

    Args:
        wordings: of the rule.
        orders_against: it.
        orders_for: what it demands, which break the rule of `never` with this measure.
        proposal: how a model may propose the rule; None if it may not.
    """

    wordings: Callable[[Arguments], Sequence[Wording]] = lambda arguments: ()
    orders_against: Callable[[Arguments], Cues] = lambda arguments: Cues()
    orders_for: Callable[[Arguments], Cues] = lambda arguments: Cues()
    proposal: Proposal | None = None


_REPLIES = KindOfExample("replies", lambda text, arguments: text)
_COMMANDS = KindOfExample("shell commands", lambda text, arguments: {"run": text})
_MESSAGES = KindOfExample(
    "messages", lambda text, arguments: {"run": f"git commit -m {shlex.quote(text)}"}
)
_PATHS = KindOfExample("paths", lambda text, arguments: _written(text, "x"))
_CODE = KindOfExample(
    "code", lambda text, arguments: _written(_path_like(str(arguments["files"])), text)
)


def _written(path: str, content: str) -> Example:
    """A turn that writes a file."""
    return {"calls": [{"tool": "Write", "arguments": {"file_path": path, "content": content}}]}


def _path_like(glob: str) -> str:
    """A path that matches a glob: a.py of **/*.py."""
    return glob.replace("**/", "").replace("*", "a")


def _asked(*patterns: str) -> Sequence[Wording]:
    """The wordings of what is asked for."""
    return (Wording(patterns, asks=True),)


_IN_REPLIES = (
    r"\b(?:repl(?:y|ies)|answers?|respon(?:ds?|ses?)|messages?|output|return|write|speak)\b"
)
_ORDERED = (
    r"\b(?:must|have to|has to|should|needs? to|always|every|each|any|anything|never|no|nothing|not"
    r"|first|only|requires?|required|run|runs)\b"
)

# --- Length

_MOST = (
    r"\b(?:most|maximum|max|limit(?:ed)?|enough|within|or (?:fewer|less)|keep|stay|short|long"
    r"|below|under|cap(?:ped)?|exceed|beyond|above|(?:more|longer) than)\b|[≤<]"
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


def _at_most(arguments: Arguments, unit: str) -> Sequence[Wording]:
    count = int(arguments["count"])
    counted = rf"\b(?:{_number(count)})[ -](?:\w+ )?{unit}s?\b"
    below = rf"\b(?:below|under|fewer than|less than|at most) (?:{_number(count + 1)}) {unit}s?\b"
    not_least = r"^(?!.*\b(?:at least|minimum|not at most)\b)"
    return Wording((counted, _MOST, not_least)), Wording((below, not_least))


def _number(number: int) -> str:
    words = [word for word, value in NUMBER_WORDS.items() if value == number]
    return "|".join([str(number), *map(re.escape, words)])


def _longer(arguments: Arguments, unit: str) -> Cues:
    """Orders for more words or sentences than may be: in words, or as a number."""
    count = int(arguments.get("count", 1))
    digits = rf"(?:not at most |at least )?(?:{'|'.join(_digits_above(count))})"
    in_words = "|".join(re.escape(word) for word, number in NUMBER_WORDS.items() if number > count)
    at_limit = rf"not at most (?:{count})"
    more = rf"(?<!at most )\b(?:{digits}|{in_words}|{at_limit}) {unit}s?\b"
    return Cues(((_LONG,), (more,)))


def _digits_above(count: int) -> Iterator[str]:
    """Patterns that together match the whole numbers above one."""
    digits = str(count)
    yield rf"[1-9]\d{{{len(digits)},}}"
    for place, digit in enumerate(digits):
        if digit != "9":
            yield rf"{digits[:place]}[{int(digit) + 1}-9]\d{{{len(digits) - place - 1}}}"


_OF_LENGTH = {
    "at_most_words": MeasureWords(
        lambda arguments: _at_most(arguments, "word"),
        lambda arguments: _longer(arguments, "word"),
        proposal=Proposal(
            "length", "requirement", "a reply has at most `count` words", ("count",), _REPLIES
        ),
    ),
    "at_most_sentences": MeasureWords(
        lambda arguments: _at_most(arguments, "sentence"),
        lambda arguments: _longer(arguments, "sentence"),
        proposal=Proposal(
            "length", "requirement", "a reply has at most `count` sentences", ("count",), _REPLIES
        ),
    ),
    "one_sentence": MeasureWords(
        lambda _: _asked(r"\b(?:1|a single) sentence\b", rf"{_IN_REPLIES}|\bonly\b"),
        lambda arguments: _longer(arguments, "sentence"),
    ),
    "one_word": MeasureWords(orders_against=lambda arguments: _longer(arguments, "word")),
    "long_reply": MeasureWords(orders_against=lambda _: Cues(((_SHORT,),))),
}

# --- Words and their places

_SAYS = (
    r"\b(?:say|saying|said|mention\w*|name|use|using|used|call|called|talk|discuss|write|refer|tell"
    r"|reveal|disclose|give|word|words|phrase|include|contain)\b"
)
_CALLS = r"\b(?:call|address|say|use|include|mention|name|refer|add|put|have)\b"
_BEGINS = r"\b(?:start\w*|beg[iu]n\w*|open\w*|first|greet\w*|prefix\w*|preface\w*|lead)\b"
_ENDS = r"\b(?:end\w*|clos\w+|finish\w*|last|final\w*|conclud\w*|sign\w*|bottom)\b"
_ENDS_ALWAYS = (
    r"\b(?:end|ends|close|closes|finish|finishes|last|conclude|ask back|always ask|every)\b"
)
_OPENING = (
    r"greeting|opening(?: \w+)?|opener|intro(?:duction)?|first (?:line|sentence|words?|bit|part)"
    r"|salutation|hello|preamble|catch ?phrase|prefix|(?:open|start|begin)(?:ing)? with"
)
_CLOSING = (
    r"clos(?:ing|er)(?: \w+)?|sign[ -]?off|ending|last (?:line|sentence|words?|bit|part)|farewell"
    r"|goodbye|signature|tagline|slogan|catch ?phrase|motto|at the end"
)


def _any_of(words: Sequence[str] | str) -> str:
    """A pattern for any of some words or phrases, as rules quote them."""
    listed = [words] if isinstance(words, str) else words
    return "|".join(re.escape(word.casefold().strip(" .!?")) for word in listed)


def _forbidden_words(arguments: Arguments) -> Sequence[Wording]:
    words = rf"(?<!\w)(?:{_any_of(arguments['words'])})(?!\w)"
    return (Wording(forbidden=(_SAYS,), named=words),)


def _orders_for_words(arguments: Arguments) -> Cues:
    return Cues(((rf"\b(?:in|with) (?:\w+ )?(?:{_any_of(arguments['words'])})\b",),))


def _demanded_words(arguments: Arguments) -> Sequence[Wording]:
    words = arguments["words"]
    listed = [words] if isinstance(words, str) else words
    return _asked(*map(_any_of, listed), _CALLS)


def _orders_against_words(arguments: Arguments) -> Cues:
    words = _any_of(arguments["words"])
    return Cues(
        ((rf"\b(?:call|address) me (?!{words})\w",),),
        rf"{words}|nickname|catch ?phrase",
        forbidden_lasts=True,
    )


_OF_WORDS = {
    "contains": MeasureWords(
        _demanded_words,
        _orders_against_words,
        proposal=Proposal(
            "format", "requirement", "a reply has all of these `words`", ("words",), _REPLIES
        ),
    ),
    "never_contains": MeasureWords(
        _forbidden_words,
        _orders_for_words,
        proposal=Proposal(
            "forbidden", "prohibition", "a reply has none of these `words`", ("words",), _REPLIES
        ),
    ),
    "starts_with": MeasureWords(
        lambda arguments: _asked(_any_of(arguments["word"]), _BEGINS),
        lambda arguments: Cues(demanded=f"{_any_of(arguments['word'])}|{_OPENING}"),
        proposal=Proposal(
            "opening", "requirement", "a reply begins with `word`", ("word",), _REPLIES
        ),
    ),
    "ends_with": MeasureWords(
        lambda arguments: _asked(_any_of(arguments["word"]), _ENDS),
        lambda arguments: Cues(demanded=f"{_any_of(arguments['word'])}|{_CLOSING}"),
        proposal=Proposal(
            "closing", "requirement", "a reply ends with `word`", ("word",), _REPLIES
        ),
    ),
    "asks_back": MeasureWords(
        lambda _: _asked(r"\bquestions?\b", _ENDS_ALWAYS),
        lambda _: Cues(demanded=r"questions?|asking|ask"),
    ),
    "emoji": MeasureWords(
        lambda _: _asked(r"\bemojis?\b", rf"{_ORDERED}|\buse\b|\badd\b|\bput\b"),
        lambda _: Cues(demanded=r"emojis?|emoticons?|smil(?:ey|ie)s?"),
    ),
}

# --- Languages and layouts

_LANGUAGE_NAMED = rf"{_IN_REPLIES}|\bonly\b|\balways\b|\blanguage\b|\btalk\b|\bstick\b"
_HARDLY_MEANT = frozenset({"gun"})  # the name of a language, and an English word
_SPEAKS = r"\b(?:reply|answer|respond|write|speak|translate|talk|continue|switch|say|chat)\b"
# what such a verb is said of, before "in English"
_IT = (
    r"(?:\s(?:it|that|this|them|me|us|you|to|with|the|your|my|next|reply|replies|answers?|response"
    r"|text|message|everything|all|only|just|back|now|always|again|please|whole|rest|over))*"
)
# behind a language: the end of the clause, or what is said of the whole order
_ENDS_ORDER = (
    r"(?=\W*$|\s(?:please|now|today|tonight|from|instead|only|again|this|next|for|too|thanks|then"
    r"|anyway|if|because|since|as|rather|not|never|once|always)\b)"
)


def _in_a_language(codes: Sequence[str], demanded: str = "") -> Cues:
    """Orders for one of some languages.

    Args:
        demanded: the code of another, whose name may have theirs in it: "Egyptian Arabic".
    """
    names = [name for name in CODES if CODES[name] in codes and name not in _HARDLY_MEANT]
    own_names = names_of(demanded) if demanded else ()
    other = "".join(rf"(?<!\b{re.escape(name)})" for name in own_names)
    named = rf"(?:{'|'.join(map(re.escape, names))})\b{other}"
    described = rf"(?:\w+ )?{named}"  # "simple English"
    order = (
        rf"{_SPEAKS}{_IT}\s(?:in|into|to|auf|en)\s{described}"
        rf"|\b(?:in|into|to|auf|en|speak|use|using|with|try)\s{described}{_ENDS_ORDER}"
        rf"|^{named} please|\b{named} (?:version|translation|only)\b"
    )
    return Cues(((order,),))


def _language(arguments: Arguments) -> Sequence[Wording]:
    names = "|".join(map(re.escape, names_of(arguments["code"])))
    return _asked(rf"\b(?:{names})\b", _LANGUAGE_NAMED)


def _orders_for_another_language(arguments: Arguments) -> Cues:
    demanded = arguments["code"]
    return _in_a_language([code for code in NAMES if code != demanded], demanded)


_OTHER_FORM = (
    r"\b(?:in|as|to|into|of)\b.*\b(?:prose|plain (?:text|english|words|language)|running text"
    r"|paragraphs?|(?:normal|full|plain|proper) sentences?|an? (?:\w+ )?table)\b"
)
_OTHER_THAN_JSON = (
    _OTHER_FORM + r"|\b(?:in|as)\b.*\b(?:yaml|xml|csv|markdown|bullets?|bullet points|list|text)\b"
)
_CAPITALS = r"\b(?:capital(?:s|i[sz]e\w*| letters)?|upper ?case|all caps|shout)\b"
_SMALL_LETTERS = r"\b(?:lower ?case|small letters|without caps|normal case)\b"

_OF_LAYOUT = {
    "language": MeasureWords(
        _language,
        _orders_for_another_language,
        lambda arguments: _in_a_language([arguments["code"]]),
    ),
    "json_object": MeasureWords(
        lambda _: _asked(r"\bjson\b", rf"{_IN_REPLIES}|\bobject\b|\bexpects?\b"),
        lambda _: Cues(((_OTHER_THAN_JSON,),), r"json"),
    ),
    "bullet_list": MeasureWords(
        orders_against=lambda _: Cues(((_OTHER_FORM,),), r"bullets?|bullet points|lists?")
    ),
    "numbered_list": MeasureWords(
        orders_against=lambda _: Cues(((_OTHER_FORM,),), r"numbers?|numbering|lists?")
    ),
    "lower_case": MeasureWords(
        lambda _: _asked(r"\b(?:lower ?case|small letters)\b"),
        lambda _: Cues(((_CAPITALS,),)),
    ),
    "upper_case": MeasureWords(
        lambda _: _asked(r"\b(?:upper ?case|capital letters|all caps)\b"),
        lambda _: Cues(((_SMALL_LETTERS,),), r"shouting|yelling|caps|capitals"),
    ),
}

# --- Commands, commits and files

_AT_ONCE = r"\b(?:just|simply|straight|directly|immediately|right away|anyway|as (?:it )?is)\b"
_BEFORE = r"\b(?:before|first|precedes?|pass(?:es|ed)?|green|then)\b"


def _forbidden_command(arguments: Arguments) -> Sequence[Wording]:
    return [Wording(forbidden=patterns) for patterns in command_cues(arguments["command"])]


def _order_of_commands(arguments: Arguments) -> Sequence[Wording]:
    first = runner_words(arguments["first"])
    if not first:
        return ()
    wordings: list[Wording] = []
    for patterns in command_cues(arguments["then"]):
        lacking = rf"\b(?:without|before|until|unless)\b.*{first}"
        never = rf"\b(?:never|not|no|nothing)\b.*(?:{patterns[0]}).*{lacking}"
        wordings.append(Wording((first, _BEFORE, _ORDERED, *patterns), asks=True))
        wordings.append(Wording((never, *patterns)))
    return wordings


def _orders_to_skip(first: str, then: str | None) -> Cues:
    """Orders against "X before Y" or "X after Y": "just Y", or "no X this time"."""
    at_once = tuple((*cue, _AT_ONCE) for cue in command_cues(then)) if then else ()
    return Cues(at_once, runner_words(first), demanded_lasts=False)


_CHANGES = (
    r"\b(?:add|adjust|bump|change|correct|create|delete|edit|extend|fix|insert|modify|move|patch"
    r"|put|remove|rename|replace|rewrite|set|tweak|update|write)\b"
)
_TOUCHES = (
    rf"{_CHANGES}|\b(?:avoid|touch\w*|edit\w*|chang\w+|alone|limits|hands|modif\w+|untouched)\b"
)
_COMMON_FOLDERS = frozenset("src lib app docs doc test tests packages".split())


def _file(path: str) -> str:
    """Names of a file or its folder: migrations/* is "the migration" too; "" if nothing does."""
    segments = [part for part in re.split(r"[/*?]+", path.casefold()) if part]
    telling = [part for part in segments if part not in _COMMON_FOLDERS] or segments
    names = [re.escape(part) for part in dict.fromkeys([*segments[-1:], *telling])]
    names += [re.escape(part[:-1]) for part in telling if part.endswith("s") and len(part) > 4]
    if ".env" in segments:
        names += ["env(?:ironment)? file"]
    if any("lock" in part for part in segments[-1:]):
        names += ["lock ?files?"]
    return rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])" if names else ""


def _untouched_file(arguments: Arguments) -> Sequence[Wording]:
    file = _file(arguments["path"])
    return (Wording(forbidden=(file, _TOUCHES)),) if file else ()


def _orders_to_change(arguments: Arguments) -> Cues:
    """Orders for a change of a file that is named, or of what its folder is called."""
    file = _file(arguments["path"])
    return Cues(((_CHANGES, file),)) if file else Cues()


_OF_WORK = {
    "command_not_run": MeasureWords(
        _forbidden_command,
        lambda arguments: Cues(tuple(command_cues(arguments["command"]))),
        proposal=Proposal(
            "command",
            "prohibition",
            "a shell command that begins with `command` is never run",
            ("command",),
            _COMMANDS,
        ),
    ),
    "prefers": MeasureWords(
        orders_against=lambda arguments: Cues(tuple(command_cues(arguments["rather_than"])))
    ),
    "runs_before": MeasureWords(
        _order_of_commands,
        lambda arguments: _orders_to_skip(arguments["first"], arguments["then"]),
        proposal=Proposal(
            "command",
            "requirement",
            "the shell command `first` is run before `then`",
            ("first", "then"),
            _COMMANDS,
        ),
    ),
    "runs_after": MeasureWords(
        orders_against=lambda arguments: _orders_to_skip(arguments["run"], arguments.get("after"))
    ),
    "asks_before": MeasureWords(
        orders_against=lambda _: Cues(
            demanded=r"asking|ask|confirm\w*|permission|questions?", demanded_lasts=False
        )
    ),
    "file_not_touched": MeasureWords(
        _untouched_file,
        _orders_to_change,
        proposal=Proposal(
            "file",
            "prohibition",
            "files with the path `path` (with *) are not changed",
            ("path",),
            _PATHS,
        ),
    ),
    "code_not_written": MeasureWords(
        proposal=Proposal(
            "code",
            "prohibition",
            "code in `files` (such as *.py) never has the regular expression `pattern`",
            ("pattern", "files"),
            _CODE,
        )
    ),
    "commit_message": MeasureWords(
        orders_against=lambda _: Cues(
            demanded=r"\b(?:ticket|prefix|scope|issue)(?: (?:number|id|key))?s?\b",
            demanded_lasts=False,
        ),
        proposal=Proposal(
            "commit",
            "requirement",
            "a commit message matches the regular expression `pattern`",
            ("pattern",),
            _MESSAGES,
        ),
    ),
}

MEASURE_WORDS: Mapping[str, MeasureWords] = {**_OF_LENGTH, **_OF_WORDS, **_OF_LAYOUT, **_OF_WORK}
