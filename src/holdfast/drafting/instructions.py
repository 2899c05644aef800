"""The grammar of an instruction: a modality, what to do, to what, and under which circumstances.

"Never use `any` in tests, use `unknown`" is NEVER + use + `any` + (in, tests), and "use `unknown`"
is left out, as it says what to do instead. The rules about commands, code and imports are read from
these parts, so that each modality combines with each action.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from holdfast.drafting.forms import NEVER, one_of


class Modality(Enum):
    """How far an instruction binds."""

    MUST = "must"
    NEVER = "never"
    PREFER = "prefer"


class Circumstance(NamedTuple):
    """A circumstance of an instruction, such as "in tests".

    Args:
        word: the word that begins the circumstance, in lower case: "in".
        text: the rest of it: "tests".
    """

    word: str
    text: str


@dataclass(frozen=True)
class Instruction:
    """The parts of a clause that tells what to do.

    Args:
        verbs: what to do, in the infinitive; ("use",) for a clause without a verb: "no `any`".
        object: the words from the verb to the first circumstance.
    """

    modality: Modality
    verbs: tuple[str, ...]
    object: str
    circumstances: tuple[Circumstance, ...]

    def behind(self, *words: str) -> str | None:
        """The text of the first circumstance that begins with one of these words; None if there is
        no such circumstance.
        """
        return next((text for word, text in self.circumstances if word in words), None)

    @property
    def rejected_object(self) -> str | None:
        """`B` in "use `A` instead of `B`"; None if the instruction compares nothing."""
        return self.behind(*_COMPARISONS)

    def has_only(self, *words: str) -> bool:
        """Whether every circumstance begins with one of these words, or gives a reason or an
        alternative, which limits nothing.

        A purpose does limit a prohibition: "never use `sed` to edit files".
        """
        harmless = _HARMLESS
        if self.modality is Modality.NEVER:
            harmless = _HARMLESS - {"to"}
        return all(word in words or word in harmless for word, _ in self.circumstances)

    def does(self, verbs: Iterable[str]) -> bool:
        """Whether each verb of the instruction is one of these."""
        return all(verb in verbs for verb in self.verbs)


# --- Verbs

RUN = frozenset("run execute invoke call type issue use".split())
WRITE = frozenset(
    "use add include introduce write leave insert put import call invoke throw return declare"
    " define export have cast create keep reintroduce commit rely employ hardcode hard-code access"
    " reference".split()
)
_EDIT = frozenset(
    "edit hand-edit modify touch change alter update delete remove rename move overwrite create"
    " add write rewrite regenerate reformat format hand-write".split()
)
_GIT = frozenset(
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
_VERBS = RUN | WRITE | _EDIT | _GIT | _OTHER_VERBS


def _gerund(verb: str) -> str:
    """The -ing form of a verb: "running" of "run"."""
    if re.search(r"(?:put|run|commit|tag|begin|wrap|skip|ship|log|stop)$", verb):
        return f"{verb}{verb[-1]}ing"
    if verb.endswith("e") and not verb.endswith("ee"):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


_INFINITIVES = {**{verb: verb for verb in _VERBS}, **{_gerund(verb): verb for verb in _VERBS}}
_VERB = "|".join(sorted(map(re.escape, _INFINITIVES), key=len, reverse=True))
_VERB_LIST = re.compile(rf"(?:{_VERB})(?:(?:, (?:or |and )?| or | and |/)(?:{_VERB}))*\b", re.I)

_NOUNS_OF_ACTS = {"pushes": "push", "force pushes": "force-push", "force-pushes": "force-push"}
_DIRECT_PUSHES = re.compile(r"(?:(?P<direct>direct) )?(?P<noun>pushes|force[ -]pushes)\b", re.I)
_NO_ORDER = re.compile(
    r"\b(?:never|not|cannot|can|could|may|might|fine|ok|okay|allowed|avoid|stop)\b|n['’]t\b", re.I
)

# --- Modalities

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

# --- Circumstances

_COMPARISONS = ("instead of", "in place of", "rather than", "over", "not", "never", "in favor of")
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


@lru_cache(maxsize=4096)
def instruction_of(text: str, is_prohibited: bool = False) -> Instruction | None:
    """The parts of a clause; None if it does not begin as an instruction.

    Args:
        is_prohibited: whether the clause is below "Do not:".
    """
    text = text.strip(" .!,:")
    if match := _FORBIDDEN.match(text):
        return Instruction(Modality.NEVER, ("use",), match["object"], ())
    text = _LEAD.sub("", text)
    modality = Modality.NEVER if is_prohibited else Modality.MUST
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
    """An instruction from the text behind its verbs, which is cut where a circumstance begins."""
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


def is_imperative(text: str) -> bool:
    """Whether a text begins with a verb that tells what to do, and neither forbids nor permits."""
    first = re.match(
        r"(?:(?:always|please|only|instead|just|you (?:must|should)),? )*([\w-]+)", text, re.I
    )
    return first is not None and first[1].lower() in _VERBS and not _NO_ORDER.search(text)


def infinitive_first(text: str) -> str | None:
    """A text such as "pushing to `main`" or "direct pushes to it" as an order, "push to `main`";
    None if it does not begin with a known act.
    """
    if pushes := _DIRECT_PUSHES.match(text):
        verb = _NOUNS_OF_ACTS[pushes["noun"].lower()]
        if pushes["direct"]:
            verb += " directly"
        return f"{verb}{text[pushes.end() :]}"
    text = re.sub(r"^use of ", "use ", text, flags=re.I)
    word = re.match(r"[\w-]+", text)
    if word is None or word[0].lower() not in _INFINITIVES:
        return None
    return f"{_INFINITIVES[word[0].lower()]}{text[word.end() :]}"
