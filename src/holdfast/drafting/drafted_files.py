"""Drafts the rules of a file, and gives the reason why each other line is not a rule.

For example:

    "- Never edit `vendor/`."  -> DraftedRule("never-edit-vendor", Draft(file_not_touched))
    "- Write clean code."      -> UndraftedLine("needs a judge")
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.drafting.drafts import Draft, Undrafted
from holdfast.drafting.grammar.forms import word_pattern
from holdfast.drafting.line_rules import draft
from holdfast.drafting.prohibited_statements import state_in_full
from holdfast.drafting.reply_rules.bot_prompts import is_of_a_bot
from holdfast.drafting.rule_ids import rule_id
from holdfast.drafting.rules_file import Statement, read_statements
from holdfast.errors import UsageError
from holdfast.files import read_text


@dataclass(frozen=True)
class DraftedRule:
    """A rule with its id, which is unique in its file, and the statement that states it."""

    id: str
    statement: Statement
    draft: Draft


class UndraftedLine(NamedTuple):
    """A statement that became no rule, and why."""

    statement: Statement
    why: Undrafted


class FileStatements(NamedTuple):
    """The statements of a file, and whether it is the prompt of a chat bot."""

    statements: list[Statement]
    of_bot: bool


@dataclass(frozen=True)
class DraftedFile:
    """A rules file, and what its statements became, in order.

    Args:
        of_bot: whether the file is the prompt of a chat bot.
        probes: questions whose answers show whether the rules are kept; () if the rules are not
            for conversations.
    """

    path: Path
    text: str
    lines: tuple[DraftedRule | UndraftedLine, ...]
    of_bot: bool = False
    probes: tuple[str, ...] = ()

    @property
    def rules(self) -> list[DraftedRule]:
        return [line for line in self.lines if isinstance(line, DraftedRule)]

    @property
    def reasons(self) -> Counter[str]:
        """How many statements became no rule, by reason; the most common reason comes first."""
        others = [line.why.reason for line in self.lines if isinstance(line, UndraftedLine)]
        # "the same rule as line 9" counts as one reason, whatever the line
        counts = Counter(re.sub(r" as line \d+$", " as another line", reason) for reason in others)
        return Counter(dict(counts.most_common()))


def draft_file(path: Path | str) -> DraftedFile:
    """Drafts the rules of a file.

    Raises:
        UsageError: as for `draft_lines`, and if no line of the file is a rule that a measure
            decides.
    """
    return with_rules(draft_lines(path))


def with_rules(drafted: DraftedFile) -> DraftedFile:
    """Returns a drafted file that has rules.

    Raises:
        UsageError: it has none.
    """
    if not drafted.rules:
        raise UsageError(
            f"{drafted.path} has no line that a measure decides ({_in_words(drafted.reasons)});"
            " write a suite yourself, as `holdfast docs suites` shows.",
            value=str(drafted.path),
        )
    return drafted


MAX_RULES_FILE_CHARACTERS = 500_000  # a file of this size takes half a minute


def draft_lines(path: Path | str) -> DraftedFile:
    """Drafts the rules of a file, which may have none.

    Raises:
        UsageError: the file is missing, empty, not text, longer than
            `MAX_RULES_FILE_CHARACTERS`, or already a suite.
    """
    path = Path(path)
    text = read_text(path)
    if "\0" in text:
        raise UsageError(f"{path} is a binary file; give a rules file as text.", value=str(path))
    if not text.strip():
        raise UsageError(f"{path} is empty; give a file with rules or a prompt.", value=str(path))
    if len(text) > MAX_RULES_FILE_CHARACTERS:
        raise UsageError(
            f"{path} has {len(text):,} characters; a rules file or a prompt may have"
            f" {MAX_RULES_FILE_CHARACTERS:,}, so give the part with the rules.",
            value=str(path),
        )
    if _is_suite(text):
        raise UsageError(
            f"{path} is a suite already, and not a prompt; measure it with `holdfast drift --suite"
            f" {path}`, or test its measures with `holdfast suite test {path}`.",
            value=str(path),
        )
    statements, of_bot = statements_of(path, text)
    return DraftedFile(path, text, tuple(_read_lines(statements, of_bot)), of_bot)


# a code block that holds a text, by its first line
_PROMPT_IN_FENCES = re.compile(
    r"^(?P<marks>`{3,}|~{3,})(?:text|txt|markdown|md|prompt)?[ \t]*\n"
    r"(?P<body>(?!\s*[{\[<])(?:(?!(?P=marks)).*\n)+)(?P=marks)[ \t]*$",
    re.M,
)
_MIN_SHARE_OF_PROMPT = 0.4  # a code block with this share of a file's characters is its prompt
# words on the line before a code block, by which it is an example, a template, or somebody else's
_QUOTES_A_TEXT = word_pattern(
    *"examples? if when bad wrong good not never avoid instead reply answer respond say".split(),
    *("sent", "wrote", "templates?", "e\\.g", "for instance", "don['’]t", "another", "other"),
)
_YOU_ARE = re.compile(r"^\W*(?:You are|You['’]re|Act as|Du bist|Tu es|Eres|Sei)\b", re.M)
# the fields that every suite has: at the beginning of a line, and of an entry
_FIELDS_OF_SUITES = (
    re.compile(r"""^\W*cases["']?[ \t]*:""", re.M),
    re.compile(r"""(?:^[ \t]*(?:- +)?|[{,] *)["']?system_prompt["']?[ \t]*:""", re.M),
)
_FILES_OF_CODING_AGENTS = re.compile(
    r"(?:AGENTS|CLAUDE|GEMINI|CONTRIBUTING|copilot-instructions)\b.*\.md|\.\w+rules|.*\.mdc", re.I
)


def statements_of(path: Path, text: str) -> FileStatements:
    """The statements of a file with this name and text; AGENTS.md, for one, is no bot's prompt."""
    of_bot = not _FILES_OF_CODING_AGENTS.fullmatch(path.name) and is_of_a_bot(text)
    statements = read_statements(_without_fences(text) if of_bot else text)
    return FileStatements(statements, of_bot)


def _without_fences(text: str) -> str:
    """A file whose prompt is in a code block, with blank lines for the marks around the block."""
    longest = max(_PROMPT_IN_FENCES.finditer(text), key=lambda match: len(match[0]), default=None)
    if longest is None or len(longest["body"]) < _MIN_SHARE_OF_PROMPT * len(text):
        return text
    before = text[: longest.start()].rstrip().rpartition("\n")[2]
    if _QUOTES_A_TEXT.search(before) or _is_prompt(text[: longest.start()], text[longest.end() :]):
        return text
    return f"{text[: longest.start()]}\n{longest['body']}\n{text[longest.end() + 1 :]}"


def _is_prompt(*parts: str) -> bool:
    """Whether the text around a code block is itself the prompt, and the block a part of it."""
    statements = (statement for part in parts for statement in read_statements(part))
    return any(map(_YOU_ARE.search, parts)) or any(
        isinstance(draft(statement, of_bot=True), list) for statement in statements
    )


def _is_suite(text: str) -> bool:
    """Whether a text is one of Holdfast's suites, even one that is not valid YAML yet."""
    return all(pattern.search(text) for pattern in _FIELDS_OF_SUITES)


def _in_words(reasons: Counter[str]) -> str:
    """How many statements became no rule, by reason, as in "3 needs a judge"."""
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items()) or "no other lines"


def _read_lines(
    statements: Sequence[Statement], of_bot: bool
) -> Iterator[DraftedRule | UndraftedLine]:
    """The rules that each statement states, or why it states none, or none that is new."""
    ids: set[str] = set()
    lines_by_rule: dict[str, int] = {}
    for statement in statements:
        drafts = draft(statement, of_bot)
        if isinstance(drafts, Undrafted):
            yield UndraftedLine(statement, drafts)
            continue
        for rule in drafts:
            spec = json.dumps([rule.measure.entry, rule.when], sort_keys=True)
            if spec in lines_by_rule:
                same = Undrafted(f"the same rule as line {lines_by_rule[spec]}")
                yield UndraftedLine(statement, same)
                continue
            lines_by_rule[spec] = statement.line
            is_alone = not of_bot or len(drafts) == 1
            name = rule_id(state_in_full(statement), rule, ids, is_alone=is_alone)
            yield DraftedRule(name, statement, rule)
