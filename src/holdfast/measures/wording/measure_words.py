"""The words in which people state the rules that measures decide, and order against them.

Each measure that people put in words has a row: the wordings of its rule ("40 words is the most
that an answer may have" is one of `at_most_words: 40`), the words of orders against it ("explain it
in detail"), and whether a model may propose it for a line of a rules file. docs/causes.md has
examples.

Patterns read sentences as `clause_words.plain_sentence` writes them.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.measures.language_names import CODES, NAMES, names_of
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.rule_kinds import Polarity, RuleKind
from holdfast.measures.wording.command_words import command_cues, runner_words

Arguments = Mapping[str, Any]
MeasureExample = str | dict[str, Any]


@dataclass(frozen=True)
class Wording:
    """A way to word the rule that a measure decides.

    Args:
        patterns: a sentence with this wording matches all of them.
        forbidden: a clause of the sentence that forbids something matches all of them.
        asks: whether the sentence asks for something, and so may have no negation.
        named: a pattern that the sentence matches, or else refers to with a word such as "that":
            "There is a shop called Velox. Never mention that name." "" for none.
    """

    patterns: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    asks: bool = False
    named: str = ""


@dataclass(frozen=True)
class Cues:
    """The words of orders against a measure.

    Args:
        forbidden: tuples of patterns; a request that matches all patterns of one tuple, and negates
            nothing, asks for a thing that the measure forbids.
        demanded: a pattern of the thing that the measure demands, as a request to leave it out
            breaks the rule too; "" for none.
        forbidden_lasts: whether a request for a forbidden thing holds beyond the next turn.
        demanded_lasts: whether a request to leave out a demanded thing does.
        forbidden_there: as `forbidden`, for requests about "it": a pattern of the request, and one
            of the thing, which the request's sentence or the one before names.
    """

    forbidden: tuple[tuple[str, ...], ...] = ()
    demanded: str = ""
    forbidden_lasts: bool = False
    demanded_lasts: bool = True
    forbidden_there: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class KindOfExample:
    """A kind of example that a model writes for a rule.

    Args:
        name: for the model, such as "shell commands".
        entry: makes an entry for a suite from the model's text and the measure's arguments.
    """

    name: str
    entry: Callable[[str, Arguments], MeasureExample]


@dataclass(frozen=True)
class Proposal:
    """How a model proposes a rule with a measure.

    Args:
        meaning: explains the measure to the model.
        arguments: the names of the arguments that the model chooses.
        examples: the kind of examples that it writes, which follow or break the rule.
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
        wordings: returns the wordings of its rule.
        orders_against: returns the cues of orders to break the rule.
        orders_for: returns the cues of orders for what the measure looks for; these break the rule
            of `never` with this measure.
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
_PATHS = KindOfExample("paths", lambda text, arguments: _write_file(text, "x"))
_CODE = KindOfExample(
    "code", lambda text, arguments: _write_file(_path_like(str(arguments["files"])), text)
)


def _write_file(path: str, content: str) -> MeasureExample:
    """Returns a turn of a suite that writes a file."""
    return {"calls": [{"tool": "Write", "arguments": {"file_path": path, "content": content}}]}


def _path_like(glob: str) -> str:
    """Returns a path that matches a glob: a.py for **/*.py."""
    return glob.replace("**/", "").replace("*", "a")


def _asking(*patterns: str) -> Sequence[Wording]:
    """Returns the wordings of a rule that asks for something."""
    return (Wording(patterns, asks=True),)


# says that a rule is about replies
_IN_REPLIES = (
    r"\b(?:repl(?:y|ies)|answers?|respon(?:ds?|ses?)|messages?|output|return|write|speak)\b"
)
# a word that makes a sentence a rule
_ORDERED = (
    r"\b(?:must|have to|has to|should|needs? to|always|every|each|any|anything|never|no|nothing|not"
    r"|first|only|requires?|required|run|runs)\b"
)

# --- Length

# says that a number is a maximum
_MOST = (
    r"\b(?:most|maximum|max|limit(?:ed)?|enough|within|or (?:fewer|less)|keep|stay|short|long"
    r"|below|under|cap(?:ped)?|exceed|beyond|above|(?:more|longer) than)\b|[≤<]"
)
# asks for a long reply
_LONG = (
    r"\b(?:in (?:\w+ )?(?:detail|depth|full)|at length|(?:more|every|all the) details?|detailed"
    r"|in-depth|full(?:er)? (?:\w+ )?(?:story|explanation|answer|account|version|text|report)"
    r"|(?:explain|describe|write|tell)\b.*\bfully|whole (?:\w+ )?(?:story|explanation|thing|answer)"
    r"|thorough(?:ly)?|comprehensive(?:ly)?|elaborate|expand on|step[ -]by[ -]step|essay"
    r"|long(?:er|ish)|everything (?:you know|there is)"
    r"|long (?:\w+ )?(?:answer|reply|explanation|version|text|story|message|one|list|form)"
    r"|(?:\d+|several|a few|a couple of|two|three|four|five) (?:paragraphs|pages))\b"
)
_ITEMS = (
    r"reasons|examples|steps|points|ideas|tips|facts|options|alternatives|advantages|benefits"
    r"|bullets|bullet points|items|suggestions|questions|lines|recipes|names|ways|things"
)
# asks for a short reply
_SHORT = (
    r"\b(?:brief(?:ly)?|short(?:er)?|concise(?:ly)?|in (?:a|one) (?:single )?(?:word|sentence|line"
    r"|nutshell)|(?:one|single) (?:word|line|sentence)|yes or no|to the point|sum it up|tl;?dr)\b"
)


def _at_most(arguments: Arguments, unit: str) -> Sequence[Wording]:
    """Returns the wordings of a maximum: "at most 40 words", "below 41 words"."""
    count = int(arguments["count"])
    limit = rf"\b(?:{_number(count)})[ -](?:\w+ )?{unit}s?\b"
    below = rf"\b(?:below|under|fewer than|less than|at most) (?:{_number(count + 1)}) {unit}s?\b"
    no_minimum = r"^(?!.*\b(?:at least|minimum|not at most)\b)"
    return Wording((limit, _MOST, no_minimum)), Wording((below, no_minimum))


def _number(number: int) -> str:
    """Returns a pattern for a number in digits or in words."""
    words = [word for word, value in NUMBER_WORDS.items() if value == number]
    return "|".join([str(number), *map(re.escape, words)])


def _longer(arguments: Arguments, unit: str) -> Cues:
    """Returns the cues of orders for more words or sentences than the rule allows."""
    count = int(arguments.get("count", 1))
    digits = rf"(?:not at most |at least )?(?:{'|'.join(_digits_above(count))})"
    in_words = "|".join(re.escape(word) for word, number in NUMBER_WORDS.items() if number > count)
    at_limit = rf"not at most (?:{count})"
    # a list of more items than words or sentences are allowed needs more of these
    things = rf"(?:{unit}s?|(?:\w+ )?(?:{_ITEMS}))"
    more = rf"(?<!at most )\b(?:{digits}|{in_words}|{at_limit}) {things}\b"
    return Cues(((_LONG,), (more,)))


def _digits_above(count: int) -> Iterator[str]:
    """Yields patterns that together match the whole numbers above `count`, in digits."""
    digits = str(count)
    yield rf"[1-9]\d{{{len(digits)},}}"
    for place, digit in enumerate(digits):
        if digit != "9":
            yield rf"{digits[:place]}[{int(digit) + 1}-9]\d{{{len(digits) - place - 1}}}"


_LENGTH_MEASURES = {
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
        lambda _: _asking(r"\b(?:1|a single) sentence\b", rf"{_IN_REPLIES}|\bonly\b"),
        lambda arguments: _longer(arguments, "sentence"),
    ),
    "one_word": MeasureWords(orders_against=lambda arguments: _longer(arguments, "word")),
    "long_reply": MeasureWords(orders_against=lambda _: Cues(((_SHORT,),))),
}

# --- Words and their places

# verbs and nouns for what a reply says, in prohibitions of words
_SAYS = (
    r"\b(?:say|saying|said|mention\w*|name|use|using|used|call|called|talk|discuss|write|refer|tell"
    r"|reveal|disclose|give|word|words|phrase|include|contain)\b"
)
# verbs for what a reply says, in requirements of words
_CALLS = r"\b(?:call|address|say|use|include|mention|name|refer|add|put|have)\b"
# says that words are at the start of a reply
_BEGINS = r"\b(?:start\w*|beg[iu]n\w*|open\w*|first|greet\w*|prefix\w*|preface\w*|lead)\b"
# says that words are at the end of a reply
_ENDS = r"\b(?:end\w*|clos\w+|finish\w*|last|final\w*|conclud\w*|sign\w*|bottom)\b"
# says that every reply ends in a certain way
_ENDS_ALWAYS = (
    r"\b(?:end|ends|close|closes|finish|finishes|last|conclude|ask back|always ask|every)\b"
)
# names the start of a reply
_OPENING = (
    r"greeting|opening(?: \w+)?|opener|intro(?:duction)?|first (?:line|sentence|words?|bit|part)"
    r"|salutation|hello|preamble|catch ?phrase|prefix|(?:open|start|begin)(?:ing)? with"
)
# names the end of a reply
_CLOSING = (
    r"clos(?:ing|er)(?: \w+)?|sign[ -]?off|ending|last (?:line|sentence|words?|bit|part)|farewell"
    r"|goodbye|signature|tagline|slogan|catch ?phrase|motto|at the end"
)


def _any_of(words: Sequence[str] | str) -> str:
    """Returns a pattern for any of some words or phrases, as rules quote them."""
    all_words = [words] if isinstance(words, str) else words
    return "|".join(re.escape(word.casefold().strip(" .!?")) for word in all_words)


def _forbidden_words(arguments: Arguments) -> Sequence[Wording]:
    words = rf"(?<!\w)(?:{_any_of(arguments['words'])})(?!\w)"
    return (Wording(forbidden=(_SAYS,), named=words),)


def _orders_for_words(arguments: Arguments) -> Cues:
    return Cues(((rf"\b(?:in|with) (?:\w+ )?(?:{_any_of(arguments['words'])})\b",),))


def _demanded_words(arguments: Arguments) -> Sequence[Wording]:
    words = arguments["words"]
    all_words = [words] if isinstance(words, str) else words
    return _asking(*map(_any_of, all_words), _CALLS)


# begins what is not a name, after "call me": "call me a cab", "call me at six"
_NO_NAME = (
    r"(?:an?|the|my|your|our|some|any|another|one|two|back|up|again|when(?:ever)?|if|once|as|at|on"
    r"|in|for|from|to|before|after|until|later|now|soon|today|tonight|tomorrow|first|please|and|or"
    r"|about|with|this|next|maybe|any ?time|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
)


def _orders_against_words(arguments: Arguments) -> Cues:
    words = _any_of(arguments["words"])
    return Cues(
        ((rf"\b(?:call|address) me (?!{words}|{_NO_NAME})\w",),),
        rf"{words}|nickname|catch ?phrase",
        forbidden_lasts=True,
    )


_EMOJIS = r"emojis?|emoticons?|smil(?:ey|ie)s?"
# words between a verb and what it asks for: "add some fun emojis"
_SOME = (
    r"(?: (?:me|us|an?|some|few|more|many|lots? of|plenty of|the|fun(?:ny)?|nice|one|two|three"
    r"|\d+)){0,4}"
)
# no noun comes next, as in "an emoji picker"
_NO_NOUN = (
    r"(?! (?!(?:in|to|at|on|for|from|or|here|now|please|too|and|again|this|when|if|after|before"
    r"|everywhere|instead|where)\b)\w)"
)
_ORDERS_FOR_EMOJIS = Cues(
    (
        (
            r"\b(?:(?:with|use|using|add|put|include|insert|send|want|would like|some|few|more)"
            rf"{_SOME} (?:{_EMOJIS}){_NO_NOUN}"
            rf"|(?:{_EMOJIS}) (?:is|are) (?:fine|okay|ok|welcome|allowed))\b",
        ),
    )
)
_EMOJI_CLASS = r"\\p\{(?:Emoji|Extended_Pictographic)"


def _orders_against_pattern(pattern: str) -> Cues:
    """Returns the cues of orders for emoji, if a pattern allows none; no other has such words."""
    forbids = re.search(rf"\[\^[^\]]*{_EMOJI_CLASS}", pattern)
    return _ORDERS_FOR_EMOJIS if forbids else Cues()


def _orders_for_pattern(pattern: str) -> Cues:
    """Returns the cues of orders for emoji, if a pattern finds them."""
    finds = re.search(_EMOJI_CLASS, pattern) and "[^" not in pattern
    return _ORDERS_FOR_EMOJIS if finds else Cues()


_WORD_MEASURES = {
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
        lambda arguments: _asking(_any_of(arguments["word"]), _BEGINS),
        lambda arguments: Cues(demanded=f"{_any_of(arguments['word'])}|{_OPENING}"),
        proposal=Proposal(
            "opening", "requirement", "a reply begins with `word`", ("word",), _REPLIES
        ),
    ),
    "ends_with": MeasureWords(
        lambda arguments: _asking(_any_of(arguments["word"]), _ENDS),
        lambda arguments: Cues(demanded=f"{_any_of(arguments['word'])}|{_CLOSING}"),
        proposal=Proposal(
            "closing", "requirement", "a reply ends with `word`", ("word",), _REPLIES
        ),
    ),
    "asks_back": MeasureWords(
        lambda _: _asking(r"\bquestions?\b", _ENDS_ALWAYS),
        lambda _: Cues(demanded=r"questions?|asking|ask"),
    ),
    "emoji": MeasureWords(
        lambda _: _asking(r"\bemojis?\b", rf"{_ORDERED}|\buse\b|\badd\b|\bput\b"),
        lambda _: Cues(demanded=_EMOJIS),
        lambda _: _ORDERS_FOR_EMOJIS,
    ),
    "regex": MeasureWords(
        orders_against=lambda arguments: _orders_against_pattern(arguments["regex"]),
        orders_for=lambda arguments: _orders_for_pattern(arguments["regex"]),
    ),
}

# --- Languages and layouts

# says that a language is that of replies
_LANGUAGE_NAMED = rf"{_IN_REPLIES}|\bonly\b|\balways\b|\blanguage\b|\btalk\b|\bstick\b"
_AMBIGUOUS_NAMES = frozenset({"gun"})  # the name of a language, and an English word
# orders a reply in a language
_SPEAKS = r"\b(?:reply|answer|respond|write|speak|translate|talk|continue|switch|say|chat)\b"
# the object of such a verb, before "in English"
_OBJECTS = (
    r"(?:\s(?:it|that|this|them|me|us|you|to|with|the|your|my|next|reply|replies|answers?|response"
    r"|text|message|everything|all|only|just|back|now|always|again|please|whole|rest|over))*"
)
# after the name of a language: the end of the clause, or a word that concerns the whole order
_ENDS_ORDER = (
    r"(?=\W*$|\s(?:please|now|today|tonight|from|instead|only|again|this|next|for|too|thanks|then"
    r"|anyway|if|because|since|as|rather|not|never|once|always)\b)"
)


def _in_a_language(codes: Sequence[str], demanded: str = "") -> Cues:
    """Returns the cues of orders for one of some languages.

    Args:
        demanded: the code of another language, whose name may have one of theirs in it: "Egyptian
            Arabic"; "" for none.
    """
    names = [name for name in CODES if CODES[name] in codes and name not in _AMBIGUOUS_NAMES]
    own_names = names_of(demanded) if demanded else ()
    not_demanded = "".join(rf"(?<!\b{re.escape(name)})" for name in own_names)
    language = rf"(?:{'|'.join(map(re.escape, names))})\b{not_demanded}"
    described = rf"(?:\w+ )?{language}"  # "simple English"
    order = (
        rf"{_SPEAKS}{_OBJECTS}\s(?:in|into|to|auf|en)\s{described}"
        rf"|\b(?:in|into|to|auf|en|speak|use|using|with|try)\s{described}{_ENDS_ORDER}"
        rf"|^{language} please|\b{language} (?:version|translation|only)\b"
    )
    return Cues(((order,),))


def _language(arguments: Arguments) -> Sequence[Wording]:
    names = "|".join(map(re.escape, names_of(arguments["code"])))
    return _asking(rf"\b(?:{names})\b", _LANGUAGE_NAMED)


def _orders_for_another_language(arguments: Arguments) -> Cues:
    demanded = arguments["code"]
    return _in_a_language([code for code in NAMES if code != demanded], demanded)


# orders another layout than a list
_OTHER_FORM = (
    r"\b(?:in|as|to|into|of)\b.*\b(?:prose|plain (?:text|english|words|language)|running text"
    r"|paragraphs?|(?:normal|full|plain|proper) sentences?|an? (?:\w+ )?table)\b"
)
# orders another layout than JSON
_OTHER_THAN_JSON = (
    _OTHER_FORM + r"|\b(?:in|as)\b.*\b(?:yaml|xml|csv|markdown|bullets?|bullet points|list|text)\b"
)
# orders capital letters
_CAPITALS = r"\b(?:capital(?:s|i[sz]e\w*| letters)?|upper ?case|all caps|shout)\b"
# orders small letters
_SMALL_LETTERS = r"\b(?:lower ?case|small letters|without caps|normal case)\b"

_LAYOUT_MEASURES = {
    "language": MeasureWords(
        _language,
        _orders_for_another_language,
        lambda arguments: _in_a_language([arguments["code"]]),
    ),
    "json_object": MeasureWords(
        lambda _: _asking(r"\bjson\b", rf"{_IN_REPLIES}|\bobject\b|\bexpects?\b"),
        lambda _: Cues(((_OTHER_THAN_JSON,),), r"json"),
    ),
    "bullet_list": MeasureWords(
        orders_against=lambda _: Cues(((_OTHER_FORM,),), r"bullets?|bullet points|lists?")
    ),
    "numbered_list": MeasureWords(
        orders_against=lambda _: Cues(((_OTHER_FORM,),), r"numbers?|numbering|lists?")
    ),
    "lower_case": MeasureWords(
        lambda _: _asking(r"\b(?:lower ?case|small letters)\b"),
        lambda _: Cues(((_CAPITALS,),)),
    ),
    "upper_case": MeasureWords(
        lambda _: _asking(r"\b(?:upper ?case|capital letters|all caps)\b"),
        lambda _: Cues(((_SMALL_LETTERS,),), r"shouting|yelling|caps|capitals"),
    ),
}

# --- Commands, commits and files

# orders a step without the one that should come before it
_AT_ONCE = (
    r"\b(?:just|simply|straight|directly|immediately|right (?:away|now)|anyway|as (?:it )?is)\b"
)
# says that a step may come later
_WAITS = r"\b(?:can (?:\w+ )?wait|later|afterwards?|another time)\b"
# says that one step comes before another
_BEFORE = r"\b(?:before|first|precedes?|pass(?:es|ed)?|green|then)\b"


def _forbidden_command(arguments: Arguments) -> Sequence[Wording]:
    return [Wording(forbidden=patterns) for patterns in command_cues(arguments["command"])]


def _order_of_commands(arguments: Arguments) -> Sequence[Wording]:
    """Returns the wordings of "run X before Y"."""
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
    """Returns the cues of orders against "X before Y", such as "just Y" or "no X this time"."""
    at_once = tuple((*cue, _AT_ONCE) for cue in command_cues(then)) if then else ()
    checks = runner_words(first)
    waits = ((checks, _WAITS),) if checks else ()
    return Cues((*at_once, *waits), checks, demanded_lasts=False)


# orders a change of a file
_CHANGES = (
    r"\b(?:add|adjust|bump|change|correct|create|delete|edit|extend|fix|insert|modify|move|patch"
    r"|put|remove|rename|replace|rewrite|set|tweak|update|write)\b"
)
# orders a change of what was named before: "fix it there"
_CHANGES_IT = (
    rf"{_CHANGES} (?:it|this|that|them)(?: (?:there|now|please|too|directly|in place))*\W*$"
)
# speaks of a change of a file, in prohibitions
_TOUCHES = (
    rf"{_CHANGES}|\b(?:avoid|touch\w*|edit\w*|chang\w+|alone|limits|hands|modif\w+|untouched)\b"
)
# names of folders that do not tell files apart
_COMMON_FOLDERS = frozenset("src lib app docs doc test tests packages".split())


def _file(path: str) -> str:
    """Returns a pattern for the names of a file and its folder; "" if it has none.

    People call migrations/* "the migration" too.
    """
    segments = [part for part in re.split(r"[/*?]+", path.casefold()) if part]
    telling = [part for part in segments if part not in _COMMON_FOLDERS] or segments
    names = [re.escape(part) for part in dict.fromkeys([*segments[-1:], *telling])]
    names += [re.escape(part[:-1]) for part in telling if part.endswith("s") and len(part) > 4]
    if ".env" in segments:
        names += ["env(?:ironment)? file"]
    if any("lock" in part for part in segments[-1:]):
        names += ["lock ?files?"]
    if any(part == "alembic" or part.startswith("migrat") for part in segments):
        names += ["migrations?"]
    return rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])" if names else ""


def _names_of_files(globs: Sequence[str] | str) -> str:
    """Returns a pattern for the names of files; "" if they have none.

    CHANGELOG.md is also "the changelog", but index.md is not "the index". What is left out *from* a
    file is not the file.
    """
    names: list[str] = []
    for glob in [globs] if isinstance(globs, str) else globs:
        name = glob.casefold().rpartition("/")[2]
        stem = name.partition(".")[0]
        names += [name, stem] if stem in ("changelog", "readme") else [name]
    plain = [re.escape(name) for name in dict.fromkeys(names) if name and "*" not in name]
    files = "|".join(plain)
    return rf"(?<![\w-])(?<!from )(?<!from the )(?:{files})(?![\w-])" if plain else ""


def _untouched_file(arguments: Arguments) -> Sequence[Wording]:
    file = _file(arguments["path"])
    return (Wording(forbidden=(file, _TOUCHES)),) if file else ()


def _orders_to_change(arguments: Arguments) -> Cues:
    """Returns the cues of orders to change a file, which they may name by its folder."""
    file = _file(arguments["path"])
    if not file:
        return Cues()
    return Cues(((_CHANGES, file),), forbidden_there=((_CHANGES_IT, file),))


_WORK_MEASURES = {
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
    "changes_together": MeasureWords(
        orders_against=lambda arguments: Cues(
            demanded=_names_of_files(arguments["also"]), demanded_lasts=False
        )
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
    "commit_branch": MeasureWords(
        orders_against=lambda _: Cues(
            demanded=r"\b(?:on|to) (?:main|master|(?:the|this) (?:\w+ )?branch)\b",
            demanded_lasts=False,
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

MEASURE_WORDS: Mapping[str, MeasureWords] = {
    **_LENGTH_MEASURES,
    **_WORD_MEASURES,
    **_LAYOUT_MEASURES,
    **_WORK_MEASURES,
}
