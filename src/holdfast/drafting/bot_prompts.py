"""The system prompt of a chat bot, clause by clause: what a sentence quotes, and which of its
clauses hold for every reply.

Bots' prompts are prose more often than lists, and one sentence says several rules: "Start with
"Ahoy" and finish with "Fair winds!"; 50 words are enough." So their rules are searched for in
clauses, where those of rules files have to fill a whole one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.drafting.drafts import AN_EXCEPTION, ON_OCCASION, Undrafted
from holdfast.drafting.rules_file import Statement

REPLY = (
    r"(?:(?:all|any|every|each|each and every|your|the|whole|entire|one|of|yours?|single"
    r"|written|text|chat) )*"
    r"(?:repl(?:y|ies)|responses?|answers?|messages?)(?: of yours)?"
)
# the words of an instruction that come before its verb
LEAD = (
    r"(?:^|[,:] ?|\b(?:you|and|always|only|please|must|should|ever|will|shall|to|assistant|bot"
    r"|never|then) )"
)


QUOTE = r"⟪\d+⟫"
QUOTES = rf"{QUOTE}(?:(?:, (?:and |or |nor )?| and | or | nor |/){QUOTE})*"

_QUOTED = re.compile(
    r"\"([^\"]{1,160})\"|“([^”“]{1,160})”|«\s*([^«»]{1,160}?)\s*»|„([^„“”]{1,160})[“”]"
    r"|`([^`]{1,80})`|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){2,160})'(?!\w)"
)
_BREAK = re.compile(r"; ?| [-–—]+ |(?<!e\.g)(?<!i\.e)\. (?=[a-z])")
# circumstances that take nothing out: "even if they write in English"
_CONCESSION = re.compile(
    r",? ?\b(?:not )?(?:even|also|auch|anche|aussi|incluso|aunque|même|no matter|regardless"
    r"|quelle que|whatever|whichever|although|à part)\b[^,;]*",
    re.I,
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|(?<!least )once (?!in\b|per\b)|while|until|in case|should (?:an?|the"
    r"|some\w*|any\w*)|asked"
    r"|whether|questions? (?:about|on)|for (?:questions|requests|example)"
    r"|(?<!nothing )(?:after|during|before) (?!or\b|it\b|and\b)|only (?:for|in)|depending|wenn"
    r"|falls|sobald|si|quand|lorsque|cuando|se|quando)\b",
    re.I,
)
_EXCEPTION = re.compile(
    r"\b(?:unless|except|exceptions?|other than|apart from|however|where (?:possible|appropriate)"
    r"|(?:if|when) (?:possible|needed|necessary|appropriate)|sauf|außer|excepto|tranne"
    r"|without (?:being|first)|by default)\b",
    re.I,
)
_SOFT = re.compile(
    r"\b(?:prefer\w*|try to|usually|generally|typically|ideally|(?:about|around|roughly) \d+"
    r"|approximately|sometimes|occasionally|consider|feel free|aim for)\b|~\d",
    re.I,
)
_EXCEPTION_AFTER = re.compile(
    r"^\W*(?:(?:the )?(?:only |sole |one )?exceptions?\b|except\b|unless\b|however\b"
    r"|only (?:if|when)\b|but (?:if|when)\b)",
    re.I,
)
# words of the prompts of coding agents, whose rules are about files and commands
_OF_CODING = re.compile(
    r"\b(?:AGENTS\.md|CLAUDE\.md|commits?|pull requests?|PRs|repo(?:sitory)?|codebase|monorepo|git"
    r"|npm|pnpm|yarn|pytest|cargo|lint(?:er|ing)?|unit tests?|refactor\w*|source code|makefile"
    r"|directory|imports?|docstrings?|typescript|compil\w+|CI)\b",
    re.I,
)
_MOST_OF_CODING = 3  # different such words in the prompt of a bot


@dataclass(frozen=True)
class Clause:
    """A clause whose quotations are replaced by marks: ⟪0⟫ is `quotes[0]`.

    Args:
        limits: why no rule of it holds for every reply; None if all hold.
        is_soft: whether it gives advice, and no rule.
    """

    text: str
    quotes: tuple[str, ...]
    limits: Undrafted | None
    is_soft: bool

    def quoted(self, marks: str) -> list[str]:
        """The quotations of some marks."""
        return [self.quotes[int(number)] for number in re.findall(r"⟪(\d+)⟫", marks)]


def is_of_a_bot(text: str) -> bool:
    """Whether a file is the prompt of a chat bot rather than the rules of a coding agent."""
    words = {word.lower() for word in _OF_CODING.findall(text)}
    return len(words) < _MOST_OF_CODING


def clauses_of_bot(statement: Statement) -> Iterator[Clause]:
    """The clauses of a sentence of a bot's prompt, its label first."""
    text = f"{statement.label}: {statement.text}" if statement.label else statement.text
    quotes: list[str] = []

    def mark(match: re.Match[str]) -> str:
        quotes.append(next(filter(None, match.groups())))
        return f"⟪{len(quotes) - 1}⟫"

    masked = _QUOTED.sub(mark, text)
    masked = re.sub(r"\s*[()]\s*", ", ", masked).replace("’", "'").replace("**", "")
    after = _EXCEPTION_AFTER.search(statement.following)
    # up to a colon, a condition is for all that follows: "When greeted: say ⟪0⟫; be brief"
    head = masked.partition(":")[0] if ":" in masked else ""
    is_headed = bool(_CONDITION.search(_CONCESSION.sub("", head)))
    for part in _BREAK.split(masked):
        plain = _CONCESSION.sub("", part)
        limits = ON_OCCASION if is_headed or _CONDITION.search(plain) else None
        if _EXCEPTION.search(part) or after:
            limits = AN_EXCEPTION
        yield Clause(plain.strip(" ,."), tuple(quotes), limits, bool(_SOFT.search(plain)))
