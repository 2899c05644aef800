"""Writes drafted rules as a suite in YAML.

    # line 3: Never edit `vendor/`.
    - id: never-edit-vendor
      measure: {name: file_not_touched, path: vendor/*}
    # line 4: Write clean code. (needs a judge)

A line that a measure decides becomes a rule; every other line is a comment with the reason.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule
from holdfast.drafting.drafts import NEEDS_A_JUDGE
from holdfast.drafting.probing import is_shown_by_replies
from holdfast.drafting.prohibited_statements import state_in_full
from holdfast.drafting.rule_ids import id_by_words
from holdfast.drafting.rules_file import Statement
from holdfast.drift.cases import is_about_content
from holdfast.plurals import count_of

# a comment in a suite with probes, where a rule without `when` is made for the answers to them
_ON_PROBES = (
    "# If you add a rule that looks for words (`contains`, `regex` and so on), give it a `when`;",
    "# without one, `holdfast proxy` does not score it. `when: {user: '.'}` is for every turn.",
)


def suite_text(files: Sequence[DraftedFile]) -> str:
    """The suite in YAML, with one case for each file; its rules have probes if the file has."""
    rules = sum(len(file.rules) for file in files)
    names = ", ".join(file.path.name for file in files)
    lines = [
        f"# Drafted by `holdfast suite init` from {names}: {count_of(rules, 'rule')}.",
        "# Read each rule before you trust its numbers, give it replies or turns under `follows`",
        "# and `breaks`, and run `holdfast suite test`. Every other line is a comment. Where it",
        "# needs a judge, remove the `# ` before the lines below it, name the model of the judge,",
        "# and add replies that test it (`holdfast docs suites`).",
        *(_ON_PROBES if any(file.probes for file in files) else ()),
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
        lines += _lines_of_rules(file)
    return "\n".join(lines) + "\n"


def _lines_of_rules(file: DraftedFile) -> Iterator[str]:
    """The rules of a file, each below its line as a comment, and the other lines as comments."""
    ids = {rule.id for rule in file.rules}
    previous: Statement | None = None
    for line in file.lines:
        if not isinstance(line, DraftedRule):
            yield f"      # {_numbered_line(line.statement)} ({line.why.reason})"
            if line.why == NEEDS_A_JUDGE:
                yield from _judge_lines(line.statement, ids, file.probes)
            continue
        if line.statement is not previous:  # a line may state several rules
            model = line.draft.proposed_by
            proposed = f" (proposed by {model}: check that it says this)" if model else ""
            untested = "; ".join(line.draft.untested).translate(_UNPRINTABLE)
            note = f" (not tested: {untested})" if untested else ""
            yield f"      # {_numbered_line(line.statement)}{proposed}{note}"
            previous = line.statement
        yield from _rule_lines(line, file.probes)


def _slug(path: Path) -> str:
    """The name of a file in lower case, without its ending, as an id."""
    stem = path.name if path.name.startswith(".") else path.stem
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "rules"


def _numbered_line(statement: Statement) -> str:
    return f"line {statement.line}: {sentence_of(statement)}"


# the `when` of a rule about every reply, which would otherwise be about the answers to its probes
_EVERY_TURN = {"user": "."}
# characters that YAML takes for the end of a line, or refuses, in a comment
_UNPRINTABLE = {
    **dict.fromkeys((*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF), " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


def sentence_of(statement: Statement) -> str:
    """A statement on one line, with its label."""
    label = f"{statement.label}: " if statement.label else ""
    return f"{label}{statement.text}".translate(_UNPRINTABLE)


def _prompt_lines(text: str) -> list[str]:
    """The field `system_prompt` with the whole file: as a block, or quoted if YAML would change a
    block.
    """
    lines = text.rstrip().split("\n")
    plain = all(line.translate(_UNPRINTABLE | {9: "\t"}) == line for line in lines)
    if not plain or not lines[0].strip():
        quoted = yaml.safe_dump(text.rstrip(), default_style='"', allow_unicode=True, width=10**9)
        return [f"    system_prompt: {quoted.strip()}"]
    return ["    system_prompt: |2-", *(f"      {line}" if line else "" for line in lines)]


def _rule_lines(rule: DraftedRule, probes: Sequence[str]) -> list[str]:
    """A rule of the suite, which is asked the probes if a reply to them can break it."""
    draft = rule.draft
    questions: Sequence[str] = ()
    if probes and is_shown_by_replies(draft):
        questions = draft.probes or probes
    when = draft.when
    if not when and questions and is_about_content(draft.measure.entry):
        when = _EVERY_TURN
    fields = {
        "id": rule.id,
        "kind": draft.kind,
        "polarity": draft.polarity,
        "text": sentence_of(state_in_full(rule.statement)),
        "when": dict(when),
        "unless": dict(draft.unless),
        "probes": list(questions),
        "measure": draft.measure.entry,
        "follows": list(draft.follows),
        "breaks": list(draft.breaks),
    }
    first, *others = (f"{name}: {_flow(value)}" for name, value in fields.items() if value)
    return [f"      - {first}", *(f"        {field}" for field in others)]


def _judge_lines(statement: Statement, ids: set[str], probes: Sequence[str]) -> list[str]:
    """A rule with a judge, as comments: the reader has to complete it."""
    statement = state_in_full(statement)
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
