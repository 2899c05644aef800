"""Whether a line of a rules file is a rule, and which.

A statement is cut into clauses ("Use pnpm, never npm - it breaks the lockfile"). One of them has to
be a form of the table below; the others may give reasons, but no exceptions. What the line says
only under a condition that no measure reads is no rule here: `draft` then answers with the reason.
A line that no form fits is never guessed at.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.drafting.asking_rules import ask_rule
from holdfast.drafting.attribution_rules import commit_trailer, no_attribution, signed_off
from holdfast.drafting.bot_rules import bot_rules
from holdfast.drafting.change_rules import change_together, run_after
from holdfast.drafting.clauses import clauses_of
from holdfast.drafting.code_rules import code_rule, file_begins, indentation, line_length
from holdfast.drafting.command_rules import (
    command_below,
    command_never,
    git_never,
    instead_of,
    package_manager,
    preferred,
    push_to,
)
from holdfast.drafting.commands import is_command, path_glob
from holdfast.drafting.commit_rules import (
    commit_form,
    commit_format,
    commit_prefix,
    conventional,
    listed_types,
    not_committed,
)
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
from holdfast.drafting.file_rules import file_below, file_is_generated, file_never
from holdfast.drafting.forms import NEVER
from holdfast.drafting.order_rules import UNCONDITIONAL, heading_before, run_before
from holdfast.drafting.pull_request_rules import pr_body, pr_state, pr_title
from holdfast.drafting.reply_rules import reply_emojis, reply_language, reply_length, reply_words
from holdfast.drafting.rules_file import Part, Statement

_SOFT = re.compile(
    r"\b(?:avoid|prefer|preferably|try to|consider|generally|usually|typically"
    r"|ideally|where possible"
    r"|when possible|if possible|whenever possible|as a rule|in most cases|should"
    r" probably|may want)\b",
    re.I,
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|while|during|once|in case|depending|for (?:new|existing"
    r"|complex|large))\b",
    re.I,
)
_OCCASION = re.compile(
    r"(?:if|when|whenever|before|once|asked|should (?:a|an|the|some\w*|any\w*)|(?:for|to) questions"
    r"|wenn|falls|bevor|si|quand|cuando|quando)\b",
    re.I,
)
_KIND_OF_CHANGE = re.compile(r"\b(?:changes?|files?|code|only)$", re.I)  # as in "Rust changes: ..."
_EXCEPTION = re.compile(
    r"\b(?:unless|except|exceptions?(?! (?:types?|class|handl|messag))|exempt"
    r"|other than|apart from|aside from|however"
    r"|but|allowed|only (?:if|when|for|in|on|with|as)"
    r"|permitted|until|without|fine|okay|ok|may|might|rarely|sparingly|directly in)\b",
    re.I,
)
_EXCEPTION_AFTER = re.compile(
    r"(?:^|[.!] )(?:the (?:only|sole|one) exception|exceptions?\b|except\b|unless\b|however\b"
    r"|but\b|only\b|if you (?:need|must|have)|allowed\b|it['’]s (?:fine|ok))",
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
    r"\b(?:always|never|must|should|shall|do not|don['’]t|cannot|can['’]t|avoid|only|ensure"
    r"|make sure|required|forbidden|prohibited|banned|off[- ]limits|not (?:allowed|permitted)"
    rf"|prefer|no)\b|^(?:{'|'.join(_BEGINS.split())})\b",
    re.I,
)
# headings and introductions of lists that turn what is below into prohibitions
_PROHIBITS = re.compile(
    r"^(?:(?:things|what) (?:you )?(?:(?:must|should) )?(?:not|never)(?: to)?(?: do)?"
    r"|do not|don['’]?ts?"
    r"|never(?: do)?|must not|(?:(?:absolutely|strictly) )?(?:forbidden|prohibited|banned"
    r"|not allowed)(?: \w+)?|you (?:must"
    r"|should) (?:not|never)"
    r"|(?:hard )?(?:nevers|don['’]ts)|never do this)[\s:!.—-]*$",
    re.I,
)
_EXAMPLES = re.compile(
    r"\b(?:examples?|for instance)\b[^.]{0,12}:?$"
    r"|^(?:wrong|bad|incorrect|good|correct|before|after)\b[^.\w]{0,3}$",
    re.I,
)


# reads a clause of a statement, of which it knows whether it stands below "Do not"
Form = Callable[[str, Statement, bool], list[Draft] | None]


def draft(statement: Statement, of_bot: bool = False) -> list[Draft] | Undrafted:
    """The rules that a statement says, or the reason why it is none.

    Args:
        of_bot: whether it stands in the prompt of a chat bot, whose rules are about replies.
    """
    if statement.part is Part.HEADING and statement.block:
        return heading_before(statement) or Undrafted(statement.part.value)
    if statement.part is not Part.SENTENCE:
        return Undrafted(statement.part.value)
    if reason := _context(statement):
        return reason
    if of_bot and (found := bot_rules(statement)) is not None:
        return found
    statement = _without_off_limits(statement)
    clauses = list(clauses_of(statement))
    prohibits = _is_prohibited(statement)
    for form in (form for form in _FORMS if not (of_bot and form in _OF_REPLIES)):
        if found := _read_by(form, clauses, statement, prohibits):
            return found
    if of_bot and _OCCASION.match(statement.text):
        return ON_OCCASION
    return _why_not(statement)


def _read_by(
    form: Form, clauses: Sequence[tuple[str, list[str]]], statement: Statement, prohibits: bool
) -> list[Draft] | Undrafted:
    """The rules that a form reads in the clauses, or why what it reads is none; [] if it reads
    nothing.
    """
    drafts: list[Draft] = []
    read: list[str] = []
    for clause, rest in clauses:
        if any(clause in whole for whole in read):
            continue  # a part of a clause that the form has read as a whole
        said = form(clause, statement, prohibits)
        if said is None:
            continue
        read.append(clause)
        if not _reads_conditions(form, statement):
            return CONDITIONAL
        others = [text for text in rest if form(text, statement, prohibits) is None]
        if any(map(_names_exception, others)) or _EXCEPTION_AFTER.search(statement.following):
            return AN_EXCEPTION
        drafts += [rule for rule in said if rule not in drafts]
    return drafts


_NEVER_FIRST = re.compile(rf"{NEVER}\b", re.I)


def _is_prohibited(statement: Statement) -> bool:
    """Whether what a statement stands under says that it must not be done: "Do not:"."""
    above = [re.sub(r"^\W+", "", name) for name in (statement.label, *statement.under[-1:])]
    return not _NEVER_FIRST.match(statement.text) and any(map(_PROHIBITS.match, above))


def _reads_conditions(form: Form, statement: Statement) -> bool:
    """Whether a form reads the conditions of a statement, which stand in its label and above it."""
    conditions = [
        name
        for name in (statement.label, *statement.under)
        if not UNCONDITIONAL.search(name) and _CONDITION.search(name)
    ]
    label = statement.label
    if _KIND_OF_CHANGE.search(label) and not _NEVER_FIRST.match(label):
        return False
    return not conditions or (form in _READ_CONDITIONS and conditions == [label])


_OFF_LIMITS = re.compile(
    r"(?P<what>[^`]*`(?P<code>[^`]+)`(?: (?:folder|directory|files?))?) (?:is|are)"
    r"(?: (?:strictly|completely|absolutely))? off[- ]limits\b",
    re.I,
)


def _without_off_limits(statement: Statement) -> Statement:
    """ "`vendor/` is off limits" as "Never edit `vendor/`", which the forms read; a command is not
    to be run, and other code not to be used.
    """
    match = _OFF_LIMITS.match(statement.text)
    if match is None:
        return statement
    verb = "use"
    if is_command(match["code"]):
        verb = "run"
    elif path_glob(match["code"]):
        verb = "edit"
    what = match["what"][0].lower() + match["what"][1:]
    return replace(statement, text=f"Never {verb} {what}{statement.text[match.end() :]}")


def _context(statement: Statement) -> Undrafted | None:
    """The reason that lies in where a statement stands."""
    if any(_EXAMPLES.search(name) for name in statement.under[-1:]):
        return Undrafted("an example")
    if re.match(
        r"(?:example|e\.g\.|for example|bad|good|wrong|correct|incorrect)\b", statement.label, re.I
    ):
        return Undrafted("an example")
    return None


def _why_not(statement: Statement) -> Undrafted:
    text = f"{statement.label}: {statement.text}" if statement.label else statement.text
    if _SOFT.search(text):
        return A_PREFERENCE
    if not _INSTRUCTION.search(text):
        return NOT_AN_INSTRUCTION
    if _CONDITION.search(text) or re.search(r"\bunless\b", text):
        return CONDITIONAL
    return NO_MEASURE if "`" in text else NEEDS_A_JUDGE


def _names_exception(text: str) -> bool:
    """Whether a clause beside the rule takes something out of it."""
    if re.match(
        r"(?:always |please |instead,? )?(?:use|run|prefer|see|edit|regenerate)\b", text, re.I
    ):
        return bool(re.search(r"\b(?:unless|except)\b", text, re.I))
    return bool(_EXCEPTION.search(text) or re.match(r"(?:if|when|while|during)\b", text, re.I))


_FORMS: tuple[Form, ...] = (
    ask_rule,
    run_before,
    instead_of,
    preferred,
    signed_off,
    command_never,
    command_below,
    push_to,
    git_never,
    file_never,
    file_is_generated,
    file_below,
    pr_title,
    pr_state,
    pr_body,
    conventional,
    listed_types,
    commit_format,
    no_attribution,
    commit_trailer,
    commit_form,
    commit_prefix,
    not_committed,
    reply_language,
    reply_length,
    reply_emojis,
    reply_words,
    package_manager,
    code_rule,
    line_length,
    indentation,
    file_begins,
    change_together,
    run_after,
)
# in bots' prompts, `bot_rules` reads these and more
_OF_REPLIES: tuple[Form, ...] = (reply_language, reply_length, reply_emojis, reply_words)
# these read a condition, or what takes something out, as a part of the rule
_READ_CONDITIONS: tuple[Form, ...] = (ask_rule, run_after, change_together, pr_state)
