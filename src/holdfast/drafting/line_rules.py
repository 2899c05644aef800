"""Decides whether a statement of a rules file is a rule, and which.

    "Use pnpm, never npm."                          -> [Draft(command_not_run)]
    "When you add a page, you must update `docs/`." -> CONDITIONAL, an Undrafted

A statement is cut into clauses ("Use pnpm, never npm - it breaks the lockfile"). The readers are
asked one after the other, until one reads a clause as a rule; the other clauses may give reasons,
but no exceptions. A statement that holds only under a condition that no measure reads is not a rule
here: `draft` then returns the reason. A statement that no reader knows is never guessed at.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.drafting.agent_rules.agent_readers import (
    AGENT_READERS,
    CONDITION_READERS,
    RUN_READERS,
    ClauseReader,
)
from holdfast.drafting.agent_rules.asking_rules import (
    ask_rule,
    lifted_by_request,
    without_request,
)
from holdfast.drafting.agent_rules.checklist_rules import block_below_heading, heads_commands
from holdfast.drafting.agent_rules.command_rules import permit_wrapped
from holdfast.drafting.agent_rules.commit_form_rules import commit_shape_below
from holdfast.drafting.agent_rules.file_rules import protected_file_rule
from holdfast.drafting.agent_rules.folder_headings import narrow_to_part
from holdfast.drafting.agent_rules.git_rules import branches_below
from holdfast.drafting.drafts import (
    A_PREFERENCE,
    AN_EXCEPTION,
    CONDITIONAL,
    NEEDS_A_JUDGE,
    NO_MEASURE,
    NOT_AN_INSTRUCTION,
    ON_OCCASION,
    Draft,
    Undrafted,
)
from holdfast.drafting.grammar.clauses import (
    Clause,
    all_known,
    clauses_of,
    coordinated_prohibitions,
)
from holdfast.drafting.grammar.named_files import with_files_as_code
from holdfast.drafting.prohibited_statements import (
    NEVER_FIRST,
    add_never,
    as_order,
    is_prohibited,
    may_be_advice,
    prohibits,
    turn_into_prohibition,
    without_introduction,
)
from holdfast.drafting.reply_rules.reply_readers import agent_reply_rule, bot_rules
from holdfast.drafting.rules_file import Element, Statement
from holdfast.drafting.statement_limits import (
    begins_with_exception,
    conditions_above,
    is_example,
    is_for_others,
    is_for_some_code,
    is_marked_as_preference,
    is_not_in_force,
    is_of_an_occasion,
    is_of_some_changes,
    is_taken_back,
    is_where_possible,
    names_exception,
    says_when_editing,
    why_unread,
)

# "Only push when the user says so", after a sentence that says the same
_ONLY_FIRST = re.compile(r"^only\b[^.!]*[.!]? ?", re.I)
_MAX_CHARACTERS = 1_500  # a longer sentence is no rule, and the readers would take long over it


def draft(statement: Statement, of_bot: bool = False) -> list[Draft] | Undrafted:
    """The rules that a statement states, or the reason why it is not a rule.

    Args:
        of_bot: whether it stands in the prompt of a chat bot, whose rules are about replies.
    """
    if statement.element is Element.HEADING:
        if below := _rules_of_block_below(statement):
            return below
        statement = as_order(statement)
    if reason := _why_no_rule(statement, of_bot):
        return reason
    statement = without_introduction(statement)
    as_written = statement.text
    with_code = with_files_as_code(as_written)
    statement = replace(statement, text=with_code)
    if _says_what_to_do_instead(statement):
        return NEEDS_A_JUDGE
    if of_bot:
        statement = add_never(statement)
        if rules := bot_rules(statement):
            return rules
    elif statement.text.endswith("?"):
        return NOT_AN_INSTRUCTION
    statement = turn_into_prohibition(statement)
    if result := _prohibitions(statement, of_bot) or _ask_readers(statement, of_bot):
        return result
    if of_bot and is_of_an_occasion(statement):
        return ON_OCCASION
    if not of_bot and (rules := _lifted_by_request(statement)):
        return rules
    reason = why_unread(replace(statement, text=as_written))
    says_never = statement.text != with_code  # which its heading implies
    return why_unread(statement) if says_never and reason == NOT_AN_INSTRUCTION else reason


def _rules_of_block_below(heading: Statement) -> list[Draft]:
    """The rules of the code block right below a heading; [] if there is none, or it states none."""
    if not heading.block:
        return []
    return block_below_heading(heading) or branches_below(heading) or commit_shape_below(heading)


def _why_no_rule(statement: Statement, of_bot: bool) -> Undrafted | None:
    """Why a statement is no rule, by its form or the words around it; None if it may be one."""
    if statement.element is not Element.SENTENCE:
        return Undrafted(statement.element.value)
    if len(statement.text) > _MAX_CHARACTERS:
        return why_unread(statement)
    if is_example(statement):
        return Undrafted("an example")
    if is_not_in_force(statement) or (is_for_others(statement) and not of_bot):
        return NOT_AN_INSTRUCTION
    if is_marked_as_preference(statement):
        return A_PREFERENCE
    if is_taken_back(statement):
        return NOT_AN_INSTRUCTION
    return CONDITIONAL if is_for_some_code(statement) else None


def _says_what_to_do_instead(statement: Statement) -> bool:
    """Whether a statement below "Do not:" may say what to do instead, and forbid nothing."""
    is_far_below = any(map(prohibits, statement.under[:-1]))
    return (is_far_below and not NEVER_FIRST.match(statement.text)) or may_be_advice(statement)


def _prohibitions(statement: Statement, of_bot: bool) -> list[Draft]:
    """The rules of a statement that forbids several acts, "never edit `a` or delete `b`"; [] if it
    forbids only one.
    """
    parts = coordinated_prohibitions(statement.text)
    results = [draft(replace(statement, text=part), of_bot) for part in parts]
    return [rule for result in results if isinstance(result, list) for rule in result]


def _ask_readers(statement: Statement, of_bot: bool) -> list[Draft] | Undrafted:
    """The rules that the first reader who knows the statement finds in it; [] if none knows it."""
    clauses = list(clauses_of(statement, is_prohibited=is_prohibited(statement)))
    readers = AGENT_READERS if of_bot else (agent_reply_rule, *AGENT_READERS)
    for reader in readers:
        if rules := _read_by(reader, clauses, statement):
            if isinstance(rules, Undrafted):
                return rules
            narrowed = [narrow_to_part(rule, statement) for rule in rules]
            return permit_wrapped(filter(None, narrowed), statement) or NO_MEASURE
    return []


def _lifted_by_request(statement: Statement) -> list[Draft]:
    """The rules of "no `any` unless explicitly asked", which a request of the user lifts; [] if a
    statement makes no such exception.
    """
    always = without_request(statement)
    rules = draft(always) if always else []
    if always is None or isinstance(rules, Undrafted):
        return []
    return all_known([lifted_by_request(rule, always.text) for rule in rules])


def _read_by(
    reader: ClauseReader, clauses: Sequence[Clause], statement: Statement
) -> list[Draft] | Undrafted:
    """The rules that a reader finds in the clauses of a statement, or why these are not rules after
    all; [] if it finds none.
    """
    drafts: list[Draft] = []
    read_texts: list[str] = []
    for clause in clauses:
        if any(clause.text in whole for whole in read_texts):
            continue  # a part of a clause that was read as a whole
        rules = reader(clause)
        if not rules:
            continue
        if is_where_possible(clause.text):
            return A_PREFERENCE
        read_texts.append(clause.text)
        if not _reads_conditions(reader, statement):
            return CONDITIONAL
        others = [text for text in clause.others if not reader(replace(clause, text=text))]
        following = statement.following
        if reader is ask_rule:
            following = _ONLY_FIRST.sub("", following)
        if any(map(names_exception, others)) or begins_with_exception(following):
            return AN_EXCEPTION
        drafts += [rule for rule in rules if rule not in drafts]
    return drafts


def _reads_conditions(reader: ClauseReader, statement: Statement) -> bool:
    """Whether a reader reads all conditions that the label and headings of a statement name."""
    conditions = conditions_above(statement)
    if reader in RUN_READERS:  # they read a heading such as "When you change `api/`, run:"
        nearest = statement.under[-1:]
        conditions = [n for n in conditions if n not in nearest or not heads_commands(n)]
    if reader is protected_file_rule:
        conditions = [name for name in conditions if not says_when_editing(name)]
    names_change = reader in RUN_READERS and heads_commands(statement.label, statement.document)
    if is_of_some_changes(statement) and not names_change:
        return False
    return not conditions or (reader in CONDITION_READERS and conditions == [statement.label])
