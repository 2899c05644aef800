"""Whether a line of a rules file is a rule, and which.

A statement is cut into clauses ("Use pnpm, never npm - it breaks the lockfile"). One of the readers
in the table at the end has to read one of them as a rule; the others may give reasons, but no
exceptions. What the line says only under a condition that no measure reads is no rule here: `draft`
then answers with the reason. A line that no reader knows is never guessed at.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.drafting.asking_rules import ask_rule
from holdfast.drafting.attribution_rules import commit_trailer, no_attribution, signed_off
from holdfast.drafting.bot_rules import bot_rules
from holdfast.drafting.change_rules import change_together, run_after
from holdfast.drafting.clauses import Clause, clauses_of
from holdfast.drafting.code_rules import (
    code_rule,
    file_begins,
    indentation,
    line_length,
    style_list,
)
from holdfast.drafting.command_rules import (
    command_below,
    command_never,
    git_never,
    instead_of,
    package_manager,
    preferred,
    push_to,
)
from holdfast.drafting.commands import is_command
from holdfast.drafting.commit_form_rules import commit_form
from holdfast.drafting.commit_format_rules import commit_format, commit_prefix
from holdfast.drafting.committed_file_rules import not_committed
from holdfast.drafting.conventional_commits import conventional, listed_types
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
from holdfast.drafting.forms import NEVER, forms, one_of, whole_match, word_pattern
from holdfast.drafting.order_rules import UNCONDITIONAL, heading_before, run_before
from holdfast.drafting.path_globs import path_glob
from holdfast.drafting.pull_request_rules import pr_body, pr_state, pr_title
from holdfast.drafting.reply_rules import (
    reply_emojis,
    reply_language,
    reply_length,
    reply_never,
    reply_words,
)
from holdfast.drafting.rules_file import Part, Statement

_SOFT = word_pattern(
    *"avoid prefer preferably consider generally usually typically ideally".split(),
    *("try to", "where possible", "when possible", "if possible", "whenever possible"),
    *("as a rule", "in most cases", "should probably", "may want"),
)
_CONDITION = word_pattern(
    *"if when whenever while during once depending".split(),
    *("in case", "for (?:new|existing|complex|large)"),
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
    *("unless", "except", "exceptions?(?! (?:types?|class|handl|messag))", "exempt", "other than"),
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
# headings and introductions of lists that turn what is below into prohibitions
_PROHIBITS = forms(
    {
        "Things you must not do:": (
            r"(?:things|what) (?:you )?(?:(?:must|should) )?(?:not|never)(?: to)?(?: do)?[\s:!.—-]*"
        ),
        "Do not:": r"(?:do not|don['’]?ts?|must not)[\s:!.—-]*",
        "Never do:": r"never(?: do(?: this)?)?[\s:!.—-]*",
        "Strictly forbidden actions:": (
            r"(?:(?:absolutely|strictly) )?(?:forbidden|prohibited|banned|not allowed)(?: \w+)?"
            r"[\s:!.—-]*"
        ),
        "You must never:": r"you (?:must|should) (?:not|never)[\s:!.—-]*",
        "Hard nevers": r"(?:hard )?(?:nevers|don['’]ts)[\s:!.—-]*",
        "What to avoid:": (
            r"(?:(?:things|what|words|phrases|behaviou?rs?|always|strictly) )*(?:to )?avoid"
            r"(?: (?:this|these|the following|at all costs))*[\s:!.—-]*"
        ),
    }
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


# reads a clause of a statement, of which it knows whether it stands below "Do not"
Reader = Callable[[str, Statement, bool], list[Draft] | None]


def draft(statement: Statement, of_bot: bool = False) -> list[Draft] | Undrafted:
    """The rules that a statement says, or the reason why it is none.

    Args:
        of_bot: whether it stands in the prompt of a chat bot, whose rules are about replies.
    """
    if statement.part is Part.HEADING and statement.block:
        return heading_before(statement) or Undrafted(statement.part.value)
    if statement.part is not Part.SENTENCE:
        return Undrafted(statement.part.value)
    if _is_example(statement):
        return Undrafted("an example")
    if any(map(_prohibits, statement.under[:-1])) and not _NEVER_FIRST.match(statement.text):
        return NEEDS_A_JUDGE
    if _may_be_cure(statement):
        return NEEDS_A_JUDGE
    if of_bot:
        statement = _with_prohibition(statement)
        if (found := bot_rules(statement)) is not None:
            return found
    statement = _without_off_limits(statement)
    clauses = list(clauses_of(statement))
    prohibits = _is_prohibited(statement)
    for reader in (reader for reader in _READERS if not (of_bot and reader in _OF_REPLIES)):
        if found := _read_by(reader, clauses, statement, prohibits):
            return found
    if of_bot and _OCCASION.match(statement.text):
        return ON_OCCASION
    return _why_not(statement)


def _read_by(
    reader: Reader, clauses: Sequence[Clause], statement: Statement, prohibits: bool
) -> list[Draft] | Undrafted:
    """The rules that a reader finds in the clauses, or why what it reads is none; [] if it reads
    nothing.
    """
    drafts: list[Draft] = []
    read: list[str] = []
    for clause in clauses:
        if any(clause.text in whole for whole in read):
            continue  # a part of a clause that was read as a whole
        said = reader(clause.text, statement, prohibits)
        if said is None:
            continue
        read.append(clause.text)
        if not _reads_conditions(reader, statement):
            return CONDITIONAL
        others = [text for text in clause.rest if reader(text, statement, prohibits) is None]
        following = statement.following
        if reader is ask_rule:  # "Only push when the user says so" repeats it
            following = _ONLY_FIRST.sub("", following)
        if any(map(_names_exception, others)) or _EXCEPTION_AFTER.search(following):
            return AN_EXCEPTION
        drafts += [rule for rule in said if rule not in drafts]
    return drafts


_ONLY_FIRST = re.compile(r"^only\b[^.!]*[.!]? ?", re.I)
_NEVER_FIRST = re.compile(rf"{NEVER}\b", re.I)


def _is_prohibited(statement: Statement) -> bool:
    """Whether what a statement stands under says that it must not be done: "Do not:"."""
    if _NEVER_FIRST.match(statement.text):
        return False
    if _may_be_cure(statement):
        return False
    return any(map(_prohibits, (statement.label, *statement.under[-1:])))


def _prohibits(heading: str) -> bool:
    return whole_match(_PROHIBITS, re.sub(r"^\W+", "", heading)) is not None


_INSTEAD = re.compile(r"\binstead\b(?! of\b)", re.I)


def _may_be_cure(statement: Statement) -> bool:
    """Whether a statement below "Do not:" may say what to do instead: "- Use npm. Use pnpm."."""
    if _NEVER_FIRST.match(statement.text):
        return False
    below = any(map(_prohibits, statement.under[-1:]))
    if below and statement.opening:
        return True
    return (below or _prohibits(statement.label)) and bool(_INSTEAD.search(statement.text))


def as_said(statement: Statement) -> Statement:
    """A statement as it is meant: with the "never" or "avoid" of what it stands below."""
    said = _with_prohibition(statement)
    if said != statement and _IS_NO_VERB.match(said.text):
        said = replace(said, text=said.text.replace("Never", "Avoid", 1))
    is_below = any(map(_prohibits, statement.under[-1:]))
    return replace(said, under=said.under[:-1]) if said != statement and is_below else said


# "Never starting with ...", "Never emojis", "Never long answers"
_IS_NO_VERB = re.compile(
    r"Never (?:(?!bring\b|sing\b)[\w-]*(?:ing|(?<![su])s)|an?|any|the|too|overly|very|long|short"
    r"|excessive|unnecessary)\b",
    re.I,
)


def _with_prohibition(statement: Statement) -> Statement:
    text, label = statement.text, statement.label
    if label and not _prohibits(label):
        text = f"{label}: {text}"
    if not _is_prohibited(statement) or _NO_FIRST.match(text):
        return statement
    begins = text[:1].lower() if text[1:2].islower() else text[:1]
    return replace(statement, label="", text=f"Never {begins}{text[1:]}")


_NO_FIRST = re.compile(r"(?:no|not|never|avoid|stop|without|nothing|refrain)\b", re.I)


def _reads_conditions(reader: Reader, statement: Statement) -> bool:
    """Whether a reader reads the conditions of a statement, which are in its label and above it."""
    conditions = [
        name
        for name in (statement.label, *statement.under)
        if not UNCONDITIONAL.search(name) and _CONDITION.search(name)
    ]
    if reader is file_never:
        conditions = [name for name in conditions if not _WHEN_EDITING.fullmatch(name)]
    label = statement.label
    if _KIND_OF_CHANGE.search(label) and not _NEVER_FIRST.match(label):
        return False
    return not conditions or (reader in _READ_CONDITIONS and conditions == [label])


_WHEN_EDITING = re.compile(r"when (?:updating|editing|changing|modifying)[\s:.]*", re.I)
_OFF_LIMITS = re.compile(
    r"(?P<what>[^`]*`(?P<code>[^`]+)`(?: (?:folder|directory|files?))?) (?:is|are)"
    r"(?: (?:strictly|completely|absolutely))? off[- ]limits\b",
    re.I,
)


def _without_off_limits(statement: Statement) -> Statement:
    """A statement such as "`vendor/` is off limits" as "Never edit `vendor/`", which is read; a
    command is not to be run, and other code not to be used.
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


def _is_example(statement: Statement) -> bool:
    """Whether a statement is an example, by its label or by what it stands under."""
    below_examples = any(_EXAMPLES.search(name) for name in statement.under[-1:])
    return below_examples or _EXAMPLE_LABEL.match(statement.label) is not None


def _why_not(statement: Statement) -> Undrafted:
    """Why no reader knows a statement, by its words."""
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


_READERS: tuple[Reader, ...] = (
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
    reply_never,
    package_manager,
    style_list,
    code_rule,
    line_length,
    indentation,
    file_begins,
    change_together,
    run_after,
)
# in bots' prompts, `bot_rules` reads these and more
_OF_REPLIES: tuple[Reader, ...] = (
    *(reply_language, reply_length, reply_emojis, reply_words, reply_never),
)
# these read a condition, or what takes something out, as a part of the rule
_READ_CONDITIONS: tuple[Reader, ...] = (ask_rule, run_after, change_together, pr_state)
