"""Decides whether a statement of a rules file is a rule, and which.

A statement is cut into clauses ("Use pnpm, never npm - it breaks the lockfile"). The readers in
`_READERS` are tried one after the other, until one reads a clause as a rule; the other clauses may
give reasons, but no exceptions. A statement that holds only under a condition that no measure reads
is not a rule here: `draft` then returns the reason. A statement that no reader knows is never
guessed at.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.drafting.agent_rules.asking_rules import ask_rule
from holdfast.drafting.agent_rules.checklist_rules import (
    block_below_heading,
    checklist_rule,
    heads_commands,
    labelled_command_rule,
)
from holdfast.drafting.agent_rules.code_layout_rules import (
    indentation_rule,
    line_length_rule,
    style_list_rule,
)
from holdfast.drafting.agent_rules.code_rules import code_rule
from holdfast.drafting.agent_rules.command_rules import (
    forbidden_command_rule,
)
from holdfast.drafting.agent_rules.commit_form_rules import commit_form_rule, unwanted_prefix_rule
from holdfast.drafting.agent_rules.commit_trailer_rules import co_author_rule, trailer_rule
from holdfast.drafting.agent_rules.committed_file_rules import committed_file_rule
from holdfast.drafting.agent_rules.conventional_commits import (
    commit_type_rule,
    conventional_commit_rule,
    unwanted_type_rule,
)
from holdfast.drafting.agent_rules.file_rules import (
    generated_file_rule,
    labelled_file_rule,
    protected_file_rule,
)
from holdfast.drafting.agent_rules.git_rules import (
    branch_name_rule,
    branches_below,
    git_act_rule,
    push_rule,
)
from holdfast.drafting.agent_rules.import_rules import import_place_rule, import_rule
from holdfast.drafting.agent_rules.preferred_command_rules import (
    package_manager_rule,
    preference_rule,
    replacement_rule,
)
from holdfast.drafting.agent_rules.pull_request_rules import (
    pr_base_rule,
    pr_body_rule,
    pr_title_rule,
)
from holdfast.drafting.agent_rules.run_rules import run_rule
from holdfast.drafting.agent_rules.wrapped_commands import permit_wrapped
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
from holdfast.drafting.grammar.clauses import Clause, clauses_of
from holdfast.drafting.grammar.forms import one_of, word_pattern
from holdfast.drafting.prohibited_statements import (
    NEVER_FIRST,
    as_order,
    is_prohibited,
    may_be_cure,
    prohibits,
    with_prohibition,
)
from holdfast.drafting.reply_rules.bot_rules import agent_reply_rule, bot_rules
from holdfast.drafting.rules_file import Part, Statement

# reads the rules that a clause states; [] if it states none of the reader's kind
Reader = Callable[[Clause], list[Draft]]

_READERS: tuple[Reader, ...] = (
    ask_rule,
    run_rule,
    labelled_command_rule,
    checklist_rule,
    replacement_rule,
    preference_rule,
    forbidden_command_rule,
    push_rule,
    git_act_rule,
    branch_name_rule,
    protected_file_rule,
    generated_file_rule,
    labelled_file_rule,
    pr_title_rule,
    pr_base_rule,
    pr_body_rule,
    conventional_commit_rule,
    commit_type_rule,
    co_author_rule,
    trailer_rule,
    commit_form_rule,
    unwanted_prefix_rule,
    unwanted_type_rule,
    committed_file_rule,
    package_manager_rule,
    style_list_rule,
    code_rule,
    import_rule,
    import_place_rule,
    line_length_rule,
    indentation_rule,
)
_RUN_READERS: tuple[Reader, ...] = (run_rule, labelled_command_rule, checklist_rule)
# these readers take a condition, or an exception, as a part of the rule
_READ_CONDITIONS: tuple[Reader, ...] = (ask_rule, *_RUN_READERS)

# --- Words by which a statement is not a rule

_SOFT = word_pattern(
    *"avoid prefer preferably consider generally usually typically ideally".split(),
    *("try to", "where possible", "when possible", "if possible", "whenever possible"),
    *("as a rule", "in most cases", "should probably", "may want"),
)
_PREFERRED = re.compile(
    r"\((?:strongly |highly )?(?:preferred|recommended|suggested|optional|ideally)\)", re.I
)
_CONDITION = word_pattern(
    *"if when whenever while during once depending".split(),
    *("in case", "for (?:new|existing|complex|large)(?!-)"),
)
_OCCASION = re.compile(
    one_of(
        *"if when whenever before once asked wenn falls bevor si quand cuando quando".split(),
        *(r"should (?:a|an|the|some\w*|any\w*)", "(?:for|to) questions"),
    )
    + r"\b",
    re.I,
)
_KIND_OF_CHANGE = re.compile(r"\b(?:changes?|files?|code|only)$", re.I)  # as in "Rust changes: ..."
_EXCEPTION = word_pattern(
    *("unless", "except", "exempt", "other than"),
    # "catch specific exceptions" is about code
    r"(?<!catch )(?<!raise )(?<!throw )(?<!specific )exceptions?(?! (?:types?|class|handl|messag))",
    *("apart from", "aside from", "however", "but", "allowed", "permitted", "until", "without"),
    *("only (?:if|when|for|in|on|with|as)", "fine", "okay", "ok", "may", "might", "rarely"),
    *("sparingly", "directly in"),
)
_EXCEPTION_AFTER = re.compile(
    r"(?:^|[.!] )"
    + one_of(
        *(r"the (?:only|sole|one) exception", r"exceptions?\b", r"except\b", r"unless\b"),
        *(r"however\b", r"but\b", r"only\b", "if you (?:need|must|have)", r"allowed\b"),
        "it['’]s (?:fine|ok)",
    )
    + r"|\b(?:is|are) exempt\b",
    re.I,
)
_BEGINS = (  # the verbs that an instruction may begin with
    "use add run keep write follow check read update create include put place test document "
    "name return handle format commit open set remove start end reply answer respond call "
    "import export define declare fix verify review see ask wait do stop preserve match "
    "install build edit mark pass treat store validate work delete apply make load state "
    "inspect repeat provide resolve design generate consider try look stay be leave avoid "
    "let implement explain describe change limit group split move rename wrap extract "
    "report log throw raise catch pin bump push rebase merge squash reference link mention "
    "assume confirm search find list reuse lead skip drop note remember understand address "
    "speak talk say tell greet sign close begin finish refer offer recommend suggest thank "
    "introduce express adopt maintain respect translate summarise summarize refuse decline "
    "redirect guide help show give escalate hand transfer"
)
_INSTRUCTION = re.compile(
    r"\b"
    + one_of(
        *("always", "never", "must", "should", "shall", "do not", "don['’]t", "cannot"),
        *("can['’]t", "avoid", "only", "ensure", "make sure", "required", "forbidden"),
        *("prohibited", "banned", "off[- ]limits", "not (?:allowed|permitted)", "prefer", "no"),
    )
    + rf"\b|^{one_of(*_BEGINS.split())}\b",
    re.I,
)
# headings and introductions of lists of examples
_EXAMPLES = re.compile(
    r"\b(?:examples?|for instance)\b[^.]{0,12}:?$"
    r"|^(?:wrong|bad|incorrect|good|correct|before|after)\b[^.\w]{0,3}$",
    re.I,
)
_EXAMPLE_LABEL = re.compile(
    r"(?:example|e\.g\.|for example|bad|good|wrong|correct|incorrect)\b", re.I
)

# --- Words that limit nothing

# a heading that says when its items are done; it is not a condition
_UNCONDITIONAL = re.compile(
    one_of(
        r"(?:when(?:ever)? (?:you )?(?:mak|modif|chang|edit|writ)\w+ (?:any )?(?:code|changes)"
        r"[\w /]*, )?[^`]*\bbefore\b",
        r"when(?:ever)? (?:you )?(?:commit|push)(?:ting|ing)?\b",
        r"(?:when|once|after) (?:the|a|your|you are|you['’]re) ?[\w ]*"
        r"\b(?:finished|done|completed?|ready)\b",
    ),
    re.I,
)

# "Only push when the user says so", behind a rule that says the same
_ONLY_FIRST = re.compile(r"^only\b[^.!]*[.!]? ?", re.I)
# a heading that says when files are edited, and not under which condition
_WHEN_EDITING = re.compile(r"when (?:updating|editing|changing|modifying)[\s:.]*", re.I)
# "If it fails, fix it", behind a rule that something is run
_IF_IT_FAILS = re.compile(
    r"if (?:it|this|they|any|anything|one|something|(?:a|the) \w+)(?: of (?:them|these))? fails?\b",
    re.I,
)


def draft(statement: Statement, of_bot: bool = False) -> list[Draft] | Undrafted:
    """The rules that a statement states, or the reason why it is not a rule.

    Args:
        of_bot: whether it stands in the prompt of a chat bot, whose rules are about replies.
    """
    if statement.part is Part.HEADING and statement.block:
        below = block_below_heading(statement) or branches_below(statement)
        return below or Undrafted(statement.part.value)
    if statement.part is not Part.SENTENCE:
        return Undrafted(statement.part.value)
    if _is_example(statement):
        return Undrafted("an example")
    if _PREFERRED.search(statement.text):
        return A_PREFERENCE
    if any(map(prohibits, statement.under[:-1])) and not NEVER_FIRST.match(statement.text):
        return NEEDS_A_JUDGE
    if may_be_cure(statement):
        return NEEDS_A_JUDGE
    if of_bot:
        statement = with_prohibition(statement)
        if rules := bot_rules(statement):
            return rules
    statement = as_order(statement)
    clauses = list(clauses_of(statement, is_prohibited=is_prohibited(statement)))
    readers = _READERS if of_bot else (agent_reply_rule, *_READERS)
    for reader in readers:
        if rules := _read_by(reader, clauses, statement):
            if isinstance(rules, Undrafted):
                return rules
            return permit_wrapped(rules, statement) or NO_MEASURE
    if of_bot and _OCCASION.match(statement.text):
        return ON_OCCASION
    return _why_not(statement)


def _read_by(
    reader: Reader, clauses: Sequence[Clause], statement: Statement
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
        read_texts.append(clause.text)
        if not _reads_conditions(reader, statement):
            return CONDITIONAL
        others = [text for text in clause.others if not reader(replace(clause, text=text))]
        following = statement.following
        if reader is ask_rule:
            following = _ONLY_FIRST.sub("", following)
        if any(map(_names_exception, others)) or _EXCEPTION_AFTER.search(following):
            return AN_EXCEPTION
        drafts += [rule for rule in rules if rule not in drafts]
    return drafts


def _reads_conditions(reader: Reader, statement: Statement) -> bool:
    """Whether a reader reads all conditions that the label and headings of a statement name."""
    conditions = [
        name
        for name in (statement.label, *statement.under)
        if not _UNCONDITIONAL.match(name) and _CONDITION.search(name)
    ]
    if reader in _RUN_READERS:  # they read a heading such as "When you change `api/`, run:"
        nearest = statement.under[-1:]
        conditions = [n for n in conditions if n not in nearest or not heads_commands(n)]
    if reader is protected_file_rule:
        conditions = [name for name in conditions if not _WHEN_EDITING.fullmatch(name)]
    label = statement.label
    if _KIND_OF_CHANGE.search(label) and not NEVER_FIRST.match(label):
        return False
    return not conditions or (reader in _READ_CONDITIONS and conditions == [label])


def _is_example(statement: Statement) -> bool:
    """Whether a statement is an example, by its label or by the heading above it."""
    below_examples = any(_EXAMPLES.search(name) for name in statement.under[-1:])
    return below_examples or _EXAMPLE_LABEL.match(statement.label) is not None


def _names_exception(text: str) -> bool:
    """Whether a clause beside a rule makes an exception to it."""
    if _IF_IT_FAILS.match(text):
        return False
    if re.match(
        r"(?:always |please |instead,? )?(?:use|run|prefer|see|edit|regenerate)\b", text, re.I
    ):
        return bool(re.search(r"\b(?:unless|except)\b", text, re.I))
    return bool(_EXCEPTION.search(text) or re.match(r"(?:if|when|while|during)\b", text, re.I))


def _why_not(statement: Statement) -> Undrafted:
    """Why a statement that no reader knows is not a rule, as far as its words tell."""
    text = f"{statement.label}: {statement.text}" if statement.label else statement.text
    if _SOFT.search(text):
        return A_PREFERENCE
    if not _INSTRUCTION.search(text):
        return NOT_AN_INSTRUCTION
    if _CONDITION.search(text) or re.search(r"\bunless\b", text):
        return CONDITIONAL
    return NO_MEASURE if "`" in text else NEEDS_A_JUDGE
