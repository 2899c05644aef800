"""A drafted suite as YAML: a rule for each line that a measure decides, and every other line as a
comment with the reason why there is none.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from holdfast.drafting.bot_prompts import is_of_a_bot
from holdfast.drafting.drafts import NEEDS_A_JUDGE
from holdfast.drafting.line_rules import Draft, Undrafted, draft
from holdfast.drafting.rule_ids import id_by_words, rule_id
from holdfast.drafting.rules_file import Statement, read_statements
from holdfast.errors import UsageError
from holdfast.files import read_text
from holdfast.plurals import plural

MOST_CHARACTERS = 500_000  # of a rules file, which takes half a minute


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
        UsageError: the file is missing, empty, no text, longer than `MOST_CHARACTERS`, or a suite
            already.
    """
    path = Path(path)
    text = read_text(path)
    if "\0" in text:
        raise UsageError(f"{path} is a binary file; give a rules file as text.", value=str(path))
    if not text.strip():
        raise UsageError(f"{path} is empty; give a file with rules or a prompt.", value=str(path))
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{path} has {len(text):,} characters; a rules file or a prompt may have"
            f" {MOST_CHARACTERS:,}, so give the part with the rules.",
            value=str(path),
        )
    if _is_suite(text):
        raise UsageError(
            f"{path} is a suite already; edit it as it is, and test it with `holdfast suite test`.",
            value=str(path),
        )
    return DraftedFile(path, text, tuple(_lines(read_statements(text), _is_of_a_bot(path, text))))


def _is_suite(text: str) -> bool:
    """Whether a file is one of Holdfast's suites."""
    if not re.search(r"^\W*cases\W*:", text, re.M):
        return False
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return False
    return isinstance(value, dict) and isinstance(value.get("cases"), list)


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
            is_alone = not of_bot or len(drafts) == 1
            yield DraftedRule(rule_id(statement, rule, ids, is_alone), statement, rule)


# of a suite whose rules have probes, by which a rule may be made for their answers alone
_ON_PROBES = (
    "# If you add a rule that looks for words (`contains`, `regex` and so on), give it a `when`;",
    "# without one, `holdfast proxy` does not score it. `when: {user: '.'}` is for every turn.",
)


def suite_text(files: Sequence[DraftedFile], probes: Sequence[str] = ()) -> str:
    """The suite in YAML, one case per file; each rule has these probes, or those of its draft."""
    rules = sum(len(file.rules) for file in files)
    names = ", ".join(file.path.name for file in files)
    lines = [
        f"# Drafted by `holdfast suite init` from {names}: {plural(rules, 'rule')}.",
        "# Read each one before you trust its number, give it replies or turns under `follows` and",
        "# `breaks`, and run `holdfast suite test`. Every other line stands as a comment. Where it",
        "# needs a judge, take away the `# ` of the lines below it, name the judge's model, and",
        "# add replies that test it (`holdfast docs suites`).",
        *(_ON_PROBES if probes else ()),
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
        ids = {rule.id for rule in file.rules}
        shown: Statement | None = None
        for line in file.lines:
            if not isinstance(line, DraftedRule):
                lines.append(f"      # {_shown(line[0])} ({line[1].reason})")
                if line[1] == NEEDS_A_JUDGE:
                    lines += _judge_lines(line[0], ids, probes)
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


def _judge_lines(statement: Statement, ids: set[str], probes: Sequence[str]) -> list[str]:
    """A rule with a judge, as comments; it has to be completed."""
    sentence = sentence_of(statement)
    judge = {"judge": f"Does the reply follow this instruction? {sentence}",
             "model": "http://localhost:8000/v1"}  # fmt: skip
    fields = {
        "id": id_by_words(statement, ids),
        "text": sentence,
        **({"probes": list(probes)} if probes else {}),
        "measure": judge,
    }
    first, *others = (f"{name}: {_flow(value)}" for name, value in fields.items())
    return [
        f"      # - {first}",
        *(f"      #   {field}" for field in others),
        "      #   follows: # a list of four replies or more that keep it",
        "      #   breaks: # and four that break it",
    ]


def _flow(value: object) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6
    )
    return text.removesuffix("\n").removesuffix("\n...")
