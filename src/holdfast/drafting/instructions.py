"""The grammar of an instruction: a modality, what to do, to what, and under which circumstances.

"Never use `any` in tests, use `unknown`" is NEVER + use + `any` + (in, tests) + (use, `unknown`).
The rules of commands, code, files, commits and pull requests are read from these parts, so that
each modality combines with each action.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from holdfast.drafting.forms import NEVER, one_of


class Modality(Enum):
    """How an instruction binds."""

    MUST = "must"
    NEVER = "never"
    PREFER = "prefer"


class Circumstance(NamedTuple):
    """A circumstance of an instruction: "in tests".

    Args:
        word: that begins it, in lower case.
        text: what follows that.
    """

    word: str
    text: str


@dataclass(frozen=True)
class Instruction:
    """A clause by its parts.

    Args:
        verbs: what to do, in the infinitive; ("use",) where a clause has only an object.
        object: the words up to the first circumstance.
    """

    modality: Modality
    verbs: tuple[str, ...]
    object: str
    circumstances: tuple[Circumstance, ...]

    def behind(self, *words: str) -> str | None:
        """The text behind the first of some words that begin a circumstance of the clause."""
        return next((text for word, text in self.circumstances if word in words), None)

    def has_only(self, *words: str) -> bool:
        """Whether all circumstances are among these, or give a reason or an alternative.

        The purpose of a prohibition narrows it: "never use `sed` to edit files".
        """
        harmless = _HARMLESS
        if self.modality is Modality.NEVER:
            harmless = _HARMLESS - {"to"}
        return all(word in words or word in harmless for word, _ in self.circumstances)

    def does(self, verbs: Iterable[str]) -> bool:
        """Whether every verb is among these."""
        return all(verb in verbs for verb in self.verbs)


RUN = frozenset("run execute invoke call type issue use".split())
WRITE = frozenset(
    "use add include introduce write leave insert put import call invoke throw return declare"
    " define export have cast create keep reintroduce commit rely employ hardcode hard-code access"
    " reference".split()
)
EDIT_VERBS = frozenset(
    "edit hand-edit modify touch change alter update delete remove rename move overwrite create"
    " add write rewrite regenerate reformat format hand-write".split()
)
GIT_VERBS = frozenset(
    "commit push merge rebase amend force-push open submit create publish release tag stage"
    " install upgrade delete remove add deploy make switch squash close start".split()
)
_OTHER_VERBS = frozenset(
    "skip bypass disable suppress prefix capitalize capitalise end start begin finish limit wrap"
    " separate follow format sign mark target keep ensure read mock log print hardcode mention"
    " reference credit reply answer respond prefer avoid check verify validate lint test build"
    " generate regenerate sync apply append mention say co-author attribute list describe link"
    " title name base address assign request".split()
)
_VERBS = RUN | WRITE | EDIT_VERBS | GIT_VERBS | _OTHER_VERBS
_NO_ORDER = re.compile(
    r"\b(?:never|not|cannot|can|could|may|might|fine|ok|okay|allowed|avoid|stop)\b|n['’]t\b", re.I
)


def is_imperative(text: str) -> bool:
    """Whether a text begins with a verb that tells what to do, and neither forbids nor permits."""
    first = re.match(
        r"(?:(?:always|please|only|instead|just|you (?:must|should)),? )*([\w-]+)", text, re.I
    )
    return first is not None and first[1].lower() in _VERBS and not _NO_ORDER.search(text)


def _gerund(verb: str) -> str:
    if re.search(r"(?:put|run|commit|tag|begin|wrap|skip|ship|log|stop|rely)$", verb):
        return verb + verb[-1] + "ing" if verb != "rely" else "relying"
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


_INFINITIVES = {**{verb: verb for verb in _VERBS}, **{_gerund(verb): verb for verb in _VERBS}}
_VERB = "|".join(sorted(map(re.escape, _INFINITIVES), key=len, reverse=True))
_VERB_LIST = re.compile(rf"(?:{_VERB})(?:(?:, (?:or |and )?| or | and |/)(?:{_VERB}))*\b", re.I)

_NOUNS_OF_ACTS = {"pushes": "push", "force pushes": "force-push", "force-pushes": "force-push"}
_DIRECT_PUSHES = re.compile(r"(?:(?P<direct>direct) )?(?P<noun>pushes|force[ -]pushes)\b", re.I)


def infinitive_first(text: str) -> str | None:
    """A text such as "pushing to `main`" or "direct pushes to it" as an order, "push to `main`";
    None if it does not begin with a known act.
    """
    if pushes := _DIRECT_PUSHES.match(text):
        verb = _NOUNS_OF_ACTS[pushes["noun"].lower()]
        return f"{verb}{' directly' if pushes['direct'] else ''}{text[pushes.end() :]}"
    text = re.sub(r"^use of ", "use ", text, flags=re.I)
    word = re.match(r"[\w-]+", text)
    if word is None or word[0].lower() not in _INFINITIVES:
        return None
    return f"{_INFINITIVES[word[0].lower()]}{text[word.end() :]}"


_LEAD = re.compile(
    r"^(?:"
    + one_of(
        r"(?:important|critical|note|warning|required|mandatory|rule|hard rule)[:,!]? ",
        *("always ", "please ", "also ", "then ", "instead,? ", "and ", "strictly ", "strongly "),
        *("you (?:must|should|need to) ", "must ", "(?:make|be) sure (?:to |you )"),
        *("ensure (?:that )?(?:you )?", "remember to "),
    )
    + ")+",
    re.I,
)
_BEFORE_VERB = re.compile(rf"^(?:{_LEAD.pattern})?(?:(?:ever|directly|manually) )?", re.I)
_PREFER = re.compile(r"^prefer(?:red)?(?::)? (?:to (?:use |run )|using |running |the )?", re.I)
# "`any` and `as any` are strictly forbidden"
_FORBIDDEN = re.compile(
    r"^(?P<object>(?:`[^`]+`(?:,? (?:and |or )?)?)+(?: [a-z]+)?) (?:is|are)"
    r" (?:strictly |explicitly |absolutely )?(?:forbidden|banned|prohibited|disallowed|not allowed"
    r"|not permitted)\b",
    re.I,
)
_CODE_FIRST = re.compile(r"(?:(?:bare|raw|plain|direct|global|inline) )?`", re.I)  # "raw `fetch`"
_COMPARED = ("instead of", "in place of", "rather than", "over", "not", "never", "in favor of")
_COMPARISON = one_of(
    *("instead of", "in place of", "in favou?r of", "rather than", "over", "not", "never")
)
_CIRCUMSTANCE = one_of(
    *("before", "after", "once", "when(?:ever)?", "while", "during", "if", "unless", "until"),
    *("without", "except", "other than", "because", "so that", "so", "since", "as", "for"),
    *("inside", "within", "into", "in", "on", "onto", "from", "via", "with", "through"),
    *("by hand", "by", "at", "across", "outside(?: of)?", "to", "even", "anywhere"),
    *("everywhere", "directly", "manually", "locally", "yourself", "ever", "unnecessarily"),
)
_CURE = one_of(
    *"use prefer instead run always put import then they it this that which these".split()
)
_CUT = re.compile(
    rf",? (?:and |but )?(?P<comparison>{_COMPARISON})"  # "instead of using"
    r"(?: (?:to )?(?:use|using|run|running))?(?= |$)"
    rf"|,? (?P<circumstance>{_CIRCUMSTANCE})(?= |$)"  # "in tests"
    rf"|, (?P<cure>{_CURE})(?= )",  # ", use it"
    re.I,
)
_HARMLESS = frozenset(
    "because so since to even anywhere everywhere directly manually locally yourself ever use"
    " prefer instead run always put they it this that which these".split()
) | {"so that", "by hand", "in favor of", "in favour of"}


def compared(instruction: Instruction) -> str | None:
    """The thing that an instruction is against: `B` of "use `A` instead of `B`"."""
    return instruction.behind(*_COMPARED)


@lru_cache(maxsize=4096)
def instruction_of(clause: str, prohibits: bool = False) -> Instruction | None:
    """The parts of a clause; None if it does not begin as an instruction."""
    text = clause.strip(" .!,:")
    if match := _FORBIDDEN.match(text):
        return Instruction(Modality.NEVER, ("use",), match["object"], ())
    text = _LEAD.sub("", text)
    modality = Modality.NEVER if prohibits else Modality.MUST
    if match := re.match(rf"(?:only )?{NEVER} ", text, re.I):
        modality = Modality.NEVER
        text = _BEFORE_VERB.sub("", text[match.end() :])
    elif match := re.match(r"no (?:more )?(?=[`a-z])", text, re.I):
        return _parts(Modality.NEVER, ("use",), text[match.end() :])
    elif match := _PREFER.match(text):
        return _parts(Modality.PREFER, ("use",), text[match.end() :])
    text = re.sub(r"^only (?=[a-z])", "", text, flags=re.I)
    if match := _VERB_LIST.match(text):
        verbs = tuple(
            _INFINITIVES[word.lower()]
            for word in re.findall(rf"(?:{_VERB})(?![\w-])", match[0], re.I)
        )
        return _parts(modality, verbs, text[match.end() :].strip())
    if _CODE_FIRST.match(text):
        return _parts(modality, ("use",), text)
    return None


def _parts(modality: Modality, verbs: tuple[str, ...], text: str) -> Instruction:
    """An instruction whose text behind the verbs is cut at its circumstances."""
    text = " " + text
    without_code = re.sub(r"`[^`]*`|\([^()]*\)", lambda match: "\x00" * len(match[0]), text)
    cuts: list[re.Match[str]] = []
    end = len(text)
    for cut in _CUT.finditer(without_code):
        if cut["cure"]:  # from ", use it" on, the sentence says what to do instead
            end = cut.start()
            break
        cuts.append(cut)
    text = text[:end]
    ends = [*(cut.start() for cut in cuts), end]
    circumstances = tuple(
        Circumstance(
            (cut["comparison"] or cut["circumstance"]).lower(),
            text[cut.end() : next_start].strip(" ,").rstrip("."),
        )
        for cut, next_start in zip(cuts, ends[1:], strict=True)
    )
    head = text[: ends[0]].strip(" ,.")
    head = re.sub(r"^(?:the |any |a |an |these |those |all )+", "", head, flags=re.I)
    return Instruction(modality, verbs, head, circumstances)
