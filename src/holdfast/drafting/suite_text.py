"""A drafted suite as YAML: a rule for each line that a measure decides, and every other line as a
comment with the reason why there is none.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from holdfast.common.files import read_text
from holdfast.common.plurals import plural
from holdfast.drafting.bot_prompts import is_of_a_bot
from holdfast.drafting.line_rules import Draft, Undrafted, draft
from holdfast.drafting.rules_file import Statement, read_statements
from holdfast.errors import UsageError


@dataclass(frozen=True)
class DraftedRule:
    """A rule with its id, unique in its file, and the statement that says it."""

    id: str
    statement: Statement
    draft: Draft


@dataclass(frozen=True)
class DraftedFile:
    """A rules file, and what its statements became, in order."""

    path: Path
    text: str
    lines: tuple[DraftedRule | tuple[Statement, Undrafted], ...]

    @property
    def rules(self) -> list[DraftedRule]:
        return [line for line in self.lines if isinstance(line, DraftedRule)]

    @property
    def reasons(self) -> Counter[str]:
        """How many statements became no rule, by reason; the commonest comes first."""
        others = [line[1].reason for line in self.lines if not isinstance(line, DraftedRule)]
        # "the same rule as line 9" counts as one reason, whatever the line
        counts = Counter(re.sub(r" as line \d+$", " as another line", reason) for reason in others)
        return Counter(dict(counts.most_common()))


def draft_file(path: Path | str) -> DraftedFile:
    """Drafts the rules that a file says.

    Raises:
        UsageError: the file is missing, empty or no text, or no line of it is a rule that a
            measure decides.
    """
    return with_rules(draft_lines(path))


def with_rules(drafted: DraftedFile) -> DraftedFile:
    """A drafted file that has rules.

    Raises:
        UsageError: it has none.
    """
    if not drafted.rules:
        raise UsageError(
            f"{drafted.path} has no line that a measure decides ({in_words(drafted.reasons)});"
            " write a suite by hand, as `holdfast docs suites` shows.",
            value=str(drafted.path),
        )
    return drafted


def draft_lines(path: Path | str) -> DraftedFile:
    """As `draft_file`, for a file that may have no rules.

    Raises:
        UsageError: the file is missing, empty or no text.
    """
    path = Path(path)
    text = read_text(path)
    if "\0" in text:
        raise UsageError(f"{path} is a binary file; give a rules file as text.", value=str(path))
    if not text.strip():
        raise UsageError(f"{path} is empty; give a file with rules or a prompt.", value=str(path))
    return DraftedFile(path, text, tuple(_lines(read_statements(text), _is_of_a_bot(path, text))))


_OF_CODING_AGENTS = re.compile(
    r"(?:AGENTS|CLAUDE|GEMINI|CONTRIBUTING|copilot-instructions)\b.*\.md|\.\w+rules|.*\.mdc", re.I
)


def _is_of_a_bot(path: Path, text: str) -> bool:
    return not _OF_CODING_AGENTS.fullmatch(path.name) and is_of_a_bot(text)


def in_words(reasons: Counter[str]) -> str:
    """How many statements became no rule, by reason."""
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items()) or "no other lines"


def _lines(
    statements: Sequence[Statement], of_bot: bool
) -> Iterator[DraftedRule | tuple[Statement, Undrafted]]:
    ids: set[str] = set()
    lines_by_rule: dict[str, int] = {}
    for statement in statements:
        drafts = draft(statement, of_bot)
        if isinstance(drafts, Undrafted):
            yield statement, drafts
            continue
        for rule in drafts:
            spec = json.dumps([rule.measure, rule.when], sort_keys=True)
            if spec in lines_by_rule:
                same = f"the same rule as line {lines_by_rule[spec]}"
                yield statement, Undrafted(same)
                continue
            lines_by_rule[spec] = statement.line
            name = rule.kind if of_bot and len(drafts) > 1 else _name_of(statement)
            yield DraftedRule(_free_id(name, ids), statement, rule)


def new_rule_id(statement: Statement, taken: set[str]) -> str:
    """An id for a rule of a statement, which is added to those that are taken."""
    return _free_id(_name_of(statement), taken)


_SMALL = frozenset(
    "a an the and or not to in of for with on at by is are be do does it its this that you your we"
    " always never please must should all any every each use run don".split()
)


def _name_of(statement: Statement) -> str:
    """The first words of a statement that say something, without accents."""
    text = f"{statement.label} {statement.text}".lower().replace("don't", "")
    plain = "".join(
        sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign)
    )
    words = [word for word in re.findall(r"[a-z0-9]+", plain) if word not in _SMALL]
    return "-".join(words[:4]) or f"line-{statement.line}"


def _free_id(name: str, taken: set[str]) -> str:
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    free = next(candidate for candidate in names if candidate not in taken)
    taken.add(free)
    return free


def suite_text(files: Sequence[DraftedFile], probes: Sequence[str] = ()) -> str:
    """The suite in YAML, one case per file; each rule has these probes, or those of its draft."""
    count = sum(len(file.rules) for file in files)
    names = ", ".join(file.path.name for file in files)
    lines = [
        f"# Drafted by `holdfast suite init` from {names}: {plural(count, 'rule')}.",
        "# Read each one before you trust its number, give it replies or turns under `follows` and",
        "# `breaks`, and run `holdfast suite test`. Every other line stands as a comment.",
        f"name: {_slug(files[0].path)}",
        "cases:",
    ]
    taken: set[str] = set()
    for file in files:
        case = _slug(file.path)
        if case in taken:
            case = f"{case}-{len(taken) + 1}"
        taken.add(case)
        lines += [f"  - id: {case}", *_prompt_lines(file.text), "    rules:"]
        shown: Statement | None = None
        for line in file.lines:
            if not isinstance(line, DraftedRule):
                lines.append(f"      # {_shown(line[0])} ({line[1].reason})")
                continue
            if line.statement is not shown:  # a line may say several rules
                by = line.draft.proposed_by
                proposed = f" (proposed by {by}: check that it says this)" if by else ""
                lines.append(f"      # {_shown(line.statement)}{proposed}")
                shown = line.statement
            lines += _rule_lines(line, probes)
    return "\n".join(lines) + "\n"


def _slug(path: Path) -> str:
    stem = path.name if path.name.startswith(".") else path.stem
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "rules"


def _shown(statement: Statement) -> str:
    return f"line {statement.line}: {sentence_of(statement)}"


def sentence_of(statement: Statement) -> str:
    """A statement on one line, with its label."""
    label = f"{statement.label}: " if statement.label else ""
    return f"{label}{statement.text}".translate(_UNPRINTABLE)


# what YAML takes for the end of a line, or refuses, in a comment
_UNPRINTABLE = {
    **dict.fromkeys((*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF), " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


def _prompt_lines(text: str) -> list[str]:
    """The field `system_prompt` with the whole file, as a block if YAML keeps it as it is."""
    lines = text.rstrip().split("\n")
    plain = all(line.translate(_UNPRINTABLE | {9: "\t"}) == line for line in lines)
    if not plain or not lines[0].strip():
        quoted = yaml.safe_dump(text.rstrip(), default_style='"', allow_unicode=True, width=10**9)
        return [f"    system_prompt: {quoted.strip()}"]
    return ["    system_prompt: |2-", *(f"      {line}" if line else "" for line in lines)]


def _rule_lines(rule: DraftedRule, probes: Sequence[str]) -> list[str]:
    fields = {
        "id": rule.id,
        "kind": rule.draft.kind,
        "polarity": rule.draft.polarity,
        "text": sentence_of(rule.statement),
        **({"when": dict(rule.draft.when)} if rule.draft.when else {}),
        **({"probes": list(rule.draft.probes or probes)} if probes else {}),
        "measure": rule.draft.measure,
        **({"follows": list(rule.draft.follows)} if rule.draft.follows else {}),
        **({"breaks": list(rule.draft.breaks)} if rule.draft.breaks else {}),
    }
    written = [f"{name}: {_flow(value)}" for name, value in fields.items()]
    first, *others = written
    return [f"      - {first}", *(f"        {field}" for field in others)]


def _flow(value: object) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6
    )
    return text.removesuffix("\n").removesuffix("\n...")
