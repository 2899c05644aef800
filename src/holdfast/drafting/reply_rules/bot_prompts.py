"""The clauses of a chat bot's prompt, with the phrases that they quote and what limits them.

The prompt of a bot is prose more often than lists, and one sentence states several rules: "Start
with "Ahoy" and finish with "Fair winds!"; 50 words are enough." So rules are searched for within
clauses, whereas a rule of a rules file has to fill a whole clause.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.drafting.drafts import AN_EXCEPTION, ON_OCCASION, Undrafted
from holdfast.drafting.grammar.forms import any_words, one_of, word_pattern
from holdfast.drafting.rules_file import ABBREVIATIONS, Statement
from holdfast.measures.language_names import ANY_NAME
from holdfast.measures.number_words import NUMBER_WORDS

# "each and every reply", "your messages"
REPLY = (
    any_words(
        *"all any every each your the whole entire one of yours? single written text chat".split(),
        "each and every",
    )
    + r"(?:repl(?:y|ies)|responses?|answers?|messages?)(?: of yours| to (?:me|the user|users)\b)?"
)
_BEFORE_VERB = one_of(
    *"you and always only please must should ever will shall to assistant bot then".split()
)
# what may come before the verb of an instruction
LEAD = rf"(?:^|[,:] ?|\b{_BEFORE_VERB} )"
# a quoted phrase, replaced by its number, and a list of them
QUOTE = r"⟪\d+⟫"
QUOTES = rf"{QUOTE}(?:(?:, (?:and |or |nor )?| and | or | nor |/){QUOTE})*"
# a quotation without a second one beside it, of which either would do
SOLE_QUOTE = rf"(?P<quote>{QUOTE})(?!(?:,| or| and|/)? ?(?:or |and )?⟪)"
PLACEHOLDER = re.compile(r"[\[{<][A-Za-z]|\.\.\.|…|\bX\b|_{2,}|%s|\$")


@dataclass(frozen=True)
class BotClause:
    """A clause of a bot's prompt, whose quotations are replaced by marks: ⟪0⟫ is `quotes[0]`.

    Args:
        limits: why the rules in the clause do not hold for every reply; None if they do.
        is_soft: whether the clause gives advice rather than a rule.
    """

    text: str
    quotes: tuple[str, ...]
    limits: Undrafted | None
    is_soft: bool

    @property
    def as_written(self) -> str:
        """The clause with its quotations instead of their marks."""
        return re.sub(r"⟪(\d+)⟫", lambda mark: f'"{self.quotes[int(mark[1])]}"', self.text)

    def quotations_in(self, marks: str) -> list[str]:
        """The quotations that a text with marks such as "⟪0⟫ or ⟪1⟫" stands for."""
        return [self.quotes[int(number)] for number in re.findall(r"⟪(\d+)⟫", marks)]


# words from the prompts of coding agents, whose rules are about files and commands
_CODING_WORDS = word_pattern(
    *(r"AGENTS\.md", r"CLAUDE\.md", "commits?", "pull requests?", "PRs", "repo(?:sitory)?"),
    *"codebase monorepo git npm pnpm yarn pytest cargo makefile directory typescript".split(),
    *("lint(?:er|ing)?", "unit tests?", r"refactor\w*", "source code", "imports?", "docstrings?"),
    *(r"compil\w+", "CI"),
)
_MAX_CODING_WORDS = 3  # a bot's prompt has fewer different words of them


def is_of_a_bot(text: str) -> bool:
    """Whether a text is the prompt of a chat bot rather than the rules of a coding agent."""
    words = {word.lower() for word in _CODING_WORDS.findall(text)}
    return len(words) < _MAX_CODING_WORDS


_QUOTED = re.compile(
    "|".join(
        (
            *(r"\"([^\"]{1,160})\"", r"“([^”“]{1,160})”", r"„([^„“”]{1,160})[“”]"),
            *(r"«\s*([^«»]{1,160}?)\s*»", r"`([^`]{1,80})`"),
            r"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){2,160})'(?!\w)",  # not the apostrophe of "don't"
        )
    )
)
_NOT_ABBREVIATED = "".join(rf"(?<!\b{re.escape(word)})" for word in ABBREVIATIONS)
# "max. forty words"
_IS_LIMIT = rf"(?<=\b(?:max|min)\. )(?:{'|'.join(NUMBER_WORDS)})\b"
_BREAK = re.compile(rf"; ?| [-–—]+ |{_NOT_ABBREVIATED}\. (?-i:(?=[a-z]))(?!{_IS_LIMIT})", re.I)
# a circumstance that limits nothing: "even if they write in English"
_CONCESSION = re.compile(
    r",? ?\b(?:not )?"
    + one_of(
        *"even also regardless whatever whichever although auch anche aussi incluso".split(),
        *("aunque", "même", "no matter", "quelle que", "à part"),
    )
    + r"\b[^,;]*",
    re.I,
)
_CONDITION = word_pattern(
    *"if when whenever while until whether asked depending".split(),
    *("in case", r"(?<!least )once (?!in\b|per\b)", r"should (?:an?|the|some\w*|any\w*)"),
    *("questions? (?:about|on)", "for (?:questions|requests|example)", "only for"),
    # "only in German" is for all replies
    rf"only in (?!(?:\w+ ){{0,2}}(?:{ANY_NAME})(?=\W*$|[,.;:!)]| (?:and|with|to|even)\b))",
    # "if they write in French, reply in it; otherwise reply in English"
    r"(?:otherwise|else),? (?:always )?(?:reply|respond|answer|write|speak|talk|use|say|stick)",
    r"(?<!nothing )(?:after|during|before) (?!or\b|it\b|and\b)",
    *"wenn falls sobald si quand lorsque cuando se quando".split(),
)
# "For simple questions: reply in a sentence"
_FOR_SOME = re.compile(r"^for (?!(?:every|each|all|any)\b)(?:[\w'-]+,? ){1,8}?[\w'-]+: ", re.I)
_EXCEPTION = word_pattern(
    *("unless", "except", "exceptions?", "other than", "apart from", "however", "by default"),
    *("where (?:possible|appropriate)", "(?:if|when) (?:possible|needed|necessary|appropriate)"),
    *("without (?:being|first)", "sauf", "außer", "excepto", "tranne"),
)
_NO_OTHER_LANGUAGE = re.compile(r"\blanguage (?:other than|except|apart from)\b", re.I)
# "never, ever", "do not, under any circumstances,"
_STRESSED_NEGATION = re.compile(
    r"(\bnever|\bnot|n't),? (?:(?:ever|under (?:any|no) circumstances?|for any reason|in any case"
    r"|at any (?:time|point))\b,? ?)+",
    re.I,
)
_SOFT = re.compile(
    r"\b"
    + one_of(
        *(r"prefer\w*", "try to", "usually", "generally", "typically", "ideally", "ideal"),
        *("sometimes", r"(?:about|around|roughly) \d+", "approximately", "occasionally"),
        *("consider", "feel free", "aim for", "(?:for|in) most", "normally", "in general"),
        *("approx", "ca"),
    )
    + r"\b|~\d",
    re.I,
)
# the beginning of the next sentence: "The only exception is ..."
_EXCEPTION_AFTER = re.compile(
    r"^\W*(?:(?:the )?(?:only |sole |one )?exceptions?\b|except\b|unless\b|however\b"
    r"|only (?:if|when)\b|but (?:if|when)\b)",
    re.I,
)
_BEGINS_WITH_CONDITION = re.compile(r"(?:if|when|whenever|while) [^,;:]+,", re.I)
# a last rule that has a place or an exception of its own: "start with ⟪0⟫ and have no more than two
# sentences before the signature", "no emoji, no exclamation marks except in the greeting"
_WITH_OWN_LIMIT = re.compile(
    r"(?P<first>[^,]+)(?:,? and |, )(?P<last>"
    r"(?:have|use|keep|write|add|put) (?:(?! and )[^,])*\b(?:before|after) (?:the|your|its)"
    r" (?:signature|sign-?off|closing|greeting|farewell|opening)"
    r"|no (?:(?! and )[^,])*\bexcept (?:in|for|at) (?:(?! and )[^,])+)",
    re.I,
)


def clauses_of_bot(statement: Statement) -> Iterator[BotClause]:
    """The clauses of a sentence in a bot's prompt; the label counts as the first of them."""
    text = f"{statement.label}: {statement.text}" if statement.label else statement.text
    quotes: list[str] = []

    def mark(match: re.Match[str]) -> str:
        quotes.append(next(filter(None, match.groups())))
        return f"⟪{len(quotes) - 1}⟫"

    masked = _QUOTED.sub(mark, text)
    masked = re.sub(r"\s*[()]\s*", ", ", masked).replace("’", "'").replace("**", "")
    masked = _STRESSED_NEGATION.sub(r"\1 ", masked)
    has_exception_after = _EXCEPTION_AFTER.search(statement.following) is not None
    is_conditional = _begins_with_condition(masked)
    clauses = [clause for part in _BREAK.split(masked) for clause in _split_at_own_limit(part)]
    for clause in clauses:
        plain = _CONCESSION.sub("", clause)
        limits: Undrafted | None = None
        if has_exception_after or _EXCEPTION.search(_NO_OTHER_LANGUAGE.sub("", clause)):
            limits = AN_EXCEPTION
        elif is_conditional or _CONDITION.search(plain):
            limits = ON_OCCASION
        yield BotClause(plain.strip(" ,."), tuple(quotes), limits, bool(_SOFT.search(plain)))


def _begins_with_condition(sentence: str) -> bool:
    """Whether a sentence begins with a condition, which limits all that follows: "When greeted: say
    ⟪0⟫; be brief", "If asked, say ⟪0⟫; be brief".
    """
    head = ""
    if ":" in sentence:
        head = sentence.partition(":")[0]
    if not head and _BEGINS_WITH_CONDITION.match(sentence):
        head = sentence.partition(",")[0]
    return bool(_CONDITION.search(_CONCESSION.sub("", head)) or _FOR_SOME.match(sentence))


def _split_at_own_limit(clause: str) -> list[str]:
    """A clause in two, if only the last of its two rules is limited; otherwise as it is."""
    match = _WITH_OWN_LIMIT.fullmatch(clause.strip(" .!"))
    if match is None or _EXCEPTION.search(match["first"]) or _CONDITION.search(match["first"]):
        return [clause]
    return [match["first"], match["last"]]
