"""Rules about commands that are run before an event or after a change: "run `make test` before
committing", "after editing `api.proto`, run `make gen`", and lists and code blocks below headings
such as "Before committing".
"""

import re
from collections.abc import Iterable, Sequence

from holdfast.drafting.acts import acts_of, gate_of
from holdfast.drafting.clauses import Clause, codes_in
from holdfast.drafting.commands import (
    is_command,
    is_runnable,
    is_tool,
    parts_of,
    required_pattern,
    without_arguments,
    without_placeholder,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODES, forms, one_of, whole_match
from holdfast.drafting.instruction_words import CHECK, FAILS, PASSES, RUN
from holdfast.drafting.instructions import (
    Circumstance,
    Instruction,
    Modality,
    circumstance_of,
    instruction_of,
)
from holdfast.drafting.occasions import (
    END_OF_WORK,
    OCCASION_WORDS,
    Occasion,
    is_end_of_work,
    occasion_of,
    occasions_of,
)
from holdfast.drafting.path_globs import glob_argument
from holdfast.drafting.rules_file import Statement

MAX_STEP_COMMANDS = 8  # a code block with more commands is a script rather than a list of steps
OPTIONAL = re.compile(r"\b(?:optional(?:ly)?|(?:if|when|as) (?:needed|necessary|required))\b", re.I)

# --- Commands in an instruction

_RUN_VERBS = frozenset("run execute rerun".split())
# verbs of "never mark a task done until ..." and "never finish until ..."
_REPORTS_OR_ENDS = frozenset("mark consider call declare report claim finish complete end".split())
_STATES = one_of(*sorted(PASSES | FAILS, key=len, reverse=True))
_WITHOUT = re.compile(
    r"(?:(?:first|running|having|run|a|passing|successful|clean|re-?running|the|run of) )*"
    rf"(?P<codes>{CODES})(?: first| {_STATES})*",
    re.I,
)
_STATE = re.compile(rf"(?:running |you (?:run|have run) )?(?P<codes>{CODES})(?: {_STATES})?", re.I)
_NO_STATE = re.compile(rf".*` {one_of(*FAILS)}", re.I)
# what must pass a check, if that says nothing about files
_ANYTHING = re.compile(
    r"(?:(?:all|the|your|any|every|of|each|both|new) )*"
    r"(?:code|changes?|tests?|commits?|these|checks?|following|everything|it|work|them)",
    re.I,
)
_ROOT = re.compile(
    r"(?:(?:the|this) )?(?:repo|repository|project|monorepo|codebase|workspace|root)\b.*|`[^`]+`.*",
    re.I,
)
_MANNER = re.compile(r"(?:(?:this|the|that|exact|given) )*(?:sequence|order|turn|full)", re.I)
# behind a command: "`make lint` - *run all linters* before committing"
_DESCRIPTION = re.compile(
    r"(?!.*\b(?:if|when|unless|only|optional)\b)(?:runs?|checks?) [^`]*", re.I
)
_PRE_COMMIT = re.compile(r"(?:the |all |full )*pre-commit(?: hooks| suite| checks)?", re.I)
_THESE = re.compile(
    r"|(?:all |both |each )?(?:of )?(?:these|the following|following|checks|all)(?: \w+){0,3}"
    r"|full validation|validation",
    re.I,
)
_RUNS = re.compile(r"(?:then )?(?:re-?run|run|execute)\b", re.I)
_BESIDE = ("", "first", "command", "commands")  # words beside a command that is named alone
_NEXT_STEP = re.compile(r"(?:and |then |only )*(?P<act>(?:git )?(?:commit|push|merge)\b.*)", re.I)


def run_rule(clause: Clause) -> list[Draft]:
    """Reads "run `make test` before committing" and "after editing `a.proto`, run `make gen`"."""
    if clause.is_prohibited or re.search(r"` \(or (?!equivalent|similar)", clause.statement.text):
        return []
    label = clause.statement.label
    for text in (clause.text, f"{label}: {clause.text}" if label else ""):
        instruction = instruction_of(text) if text else None
        if instruction and (rules := _of_instruction(instruction, clause)):
            return rules
    return _of_label(clause) or _of_item(clause)


def _of_instruction(instruction: Instruction, clause: Clause) -> list[Draft]:
    """The rules of an instruction; [] if it is about something else."""
    if instruction.modality is Modality.NEVER:
        return _of_prohibition(instruction)
    if instruction.modality is Modality.PREFER:
        return []
    if instruction.modality is Modality.ONLY and (rules := _of_condition(instruction)):
        return rules
    if instruction.verbs == ("follow",) and (followed_by := instruction.behind("by")):
        return _behind_change(instruction, followed_by)
    occasion = _occasion(instruction)
    if occasion is None and clause.begins_statement:
        occasion = _before_next_step(instruction) or _at_the_end(instruction)
    if occasion is None or not _is_unlimited(instruction):
        return []
    if instruction.does(["use"]) and instruction.behind("when", "if"):
        return []  # "when committing, use `make commit`" is about the commit itself
    commands = _commands(instruction)
    if commands is None and _runs_block(instruction):
        return require_block(clause.statement.block, occasion)
    return require(commands or [], occasion, are_run=instruction.does(_RUN_VERBS))


def _of_prohibition(instruction: Instruction) -> list[Draft]:
    """Reads "never commit without running `make test`" and "never push if `make test` fails"."""
    commands: list[str] = []
    words = ("without", "until", "unless", "before", "if")
    for word, text in instruction.circumstances:
        if word not in words:
            continue
        match = _STATE.fullmatch(text) if word == "if" else _WITHOUT.fullmatch(text)
        if match is None or (word == "if") != bool(_NO_STATE.fullmatch(text)):
            return []  # a condition that is none of a command
        commands += _listed(match["codes"]) or []
    if not commands:
        return []
    plain = f"{instruction.verbs[-1]} {instruction.object}"
    as_texts = [text for word, text in instruction.circumstances if word == "as"]
    if instruction.does(_REPORTS_OR_ENDS) and is_end_of_work(" ".join([plain, *as_texts])):
        return require(commands, END_OF_WORK)
    return _before_act(instruction, commands, words)


def _of_condition(instruction: Instruction) -> list[Draft]:
    """Reads "only push after `make test` passes"."""
    words = ("after", "once", "when", "if", "with")
    text = instruction.behind(*words) or ""
    match = _STATE.fullmatch(text) or _WITHOUT.fullmatch(text)
    if match is None or _NO_STATE.fullmatch(text):
        return []
    if instruction.does(_REPORTS_OR_ENDS) and is_end_of_work(f"finish {instruction.object}"):
        return require(_listed(match["codes"]) or [], END_OF_WORK)
    return _before_act(instruction, _listed(match["codes"]) or [], words)


def _before_act(
    instruction: Instruction, commands: Sequence[str], words: Sequence[str]
) -> list[Draft]:
    """Requires commands before what an instruction is about: an act, or another command."""
    if acts := acts_of(instruction, *words):
        return require(commands, Occasion(then=gate_of(acts)))
    codes = codes_in(instruction.object)
    is_command_alone = len(codes) == 1 and instruction.object == f"`{codes[0]}`"
    if not is_command_alone or not is_command(codes[0]):
        return []
    if not instruction.does(RUN) or not instruction.has_only(*words):
        return []
    return require(commands, Occasion(then=required_pattern(codes[0])))


def _occasion(instruction: Instruction) -> Occasion | None:
    """The only occasion of an instruction; None if it has none, or one that cannot be told.

    An event counts rather than a change of any code before it, and a change rather than the end of
    the work: "after any code change, run `make lint` before committing".
    """
    occasions = occasions_of(instruction)
    if not occasions:
        return None
    known = [occasion for occasion in occasions if occasion]
    if len(known) < len(occasions):
        is_vague = all(map(_is_vague_change, instruction.circumstances))
        return known[0] if known and is_vague else _before_command(instruction)
    files = [occasion for occasion in known if occasion.changed and not occasion.is_any_change]
    events = [occasion for occasion in known if occasion.then]
    changes = [occasion for occasion in known if occasion.changed]
    if files and events and not _only_names_language(instruction):
        return files[0]
    changes.sort(key=lambda occasion: occasion == END_OF_WORK)
    return (events or changes)[0]


def _before_next_step(instruction: Instruction) -> Occasion | None:
    """The occasion of "run `make test`, then commit"."""
    thens = [text for word, text in instruction.circumstances if word == "then"]
    step = _NEXT_STEP.fullmatch(thens[-1]) if thens else None
    is_all = all(word in ("then", "with") for word, _ in instruction.circumstances)
    return occasion_of(Circumstance("before", step["act"])) if step and is_all else None


def _at_the_end(instruction: Instruction) -> Occasion | None:
    """The occasion of "always finish by running `make check`"."""
    is_end = instruction.does(["finish", "end", "conclude"]) and instruction.has_only("with")
    is_of_work = not instruction.object or is_end_of_work(f"finish {instruction.object}")
    return END_OF_WORK if is_end and is_of_work else None


def _behind_change(instruction: Instruction, commands: str) -> list[Draft]:
    """Reads "any change in `a.proto` must be followed by `make gen`"."""
    places = [f" {word} {text}" for word, text in instruction.circumstances if word != "by"]
    change = Circumstance("after", f"any {instruction.object}{''.join(places)}")
    occasion = occasion_of(change)
    return require(_listed(commands) or [], occasion) if occasion else []


def _only_names_language(instruction: Instruction) -> bool:
    """Whether files are named only by their language, as the work that comes first: "after making
    Go changes, run `go vet` before committing".
    """
    texts = [text for word, text in instruction.circumstances if word == "after"]
    return len(texts) == 1 and "`" not in texts[0] and instruction.behind("if", "when") is None


def _is_vague_change(circumstance: Circumstance) -> bool:
    """Whether a circumstance is no occasion, a known one, or a change of anything: "edits"."""
    if circumstance.word not in OCCASION_WORDS or occasion_of(circumstance):
        return True
    if circumstance.word == "occasion":
        return _ANYTHING.fullmatch(circumstance.text) is not None
    return re.fullmatch(r"(?:making |your )*(?:edits|changes)", circumstance.text) is not None


def _before_command(instruction: Instruction) -> Occasion | None:
    """The occasion before another command: "run `make gen` before running `make test`"."""
    text = instruction.behind("before") or ""
    match = re.fullmatch(
        r"(?:you |first )?(?:(?:run|running|execute|executing|calling|using) )?`([^`]+)`", text
    )
    if match is None or not is_command(match[1]):
        return None
    return Occasion(then=required_pattern(match[1]))


def _is_unlimited(instruction: Instruction) -> bool:
    """Whether nothing but its occasions limits an instruction."""
    goes_on = False  # the place of a change, or a part of a purpose
    for word, text in instruction.circumstances:
        goes_on = goes_on or word in ("to", "on", *OCCASION_WORDS)
        is_place = word in ("in", "from", "at") and not _MANNER.fullmatch(text)
        if is_place and not goes_on and not _ROOT.fullmatch(text):
            return False
        if word == ":" and not _DESCRIPTION.fullmatch(text):
            return False
        if word == "on" and not re.match("every|each|any", text):
            return False
    befores = [text for word, text in instruction.circumstances if word == "before"]
    further = ("with", "then", "to", "on", "in", "inside", "from", "at", "as", ":")
    return instruction.has_only(*OCCASION_WORDS, *further) and len(befores) <= 1


def _commands(instruction: Instruction) -> list[str] | None:
    """The commands that an instruction runs; None if it names none, or offers a choice."""
    texts = [text for word, text in instruction.circumstances if word == "with"]
    if instruction.does(["use"]) and re.sub(CODES, "", instruction.object).strip() not in _BESIDE:
        return None  # "`make lint` ensures cleanliness" is a description
    if instruction.does(RUN | {"require"}):
        texts.append(re.sub(r"^(?:running|run|a passing|passing) ", "", instruction.object))
    elif instruction.does(CHECK):
        codes = codes_in(instruction.object)
        texts += [instruction.object] if all(map(is_command, codes)) else []
    else:
        return None
    texts += [
        text for word, text in instruction.circumstances if word == "then" and _RUNS.match(text)
    ]
    if instruction.does(RUN):
        if _PRE_COMMIT.fullmatch(instruction.object):
            return ["pre-commit run"]
        if is_tool(instruction.object) or _is_named_command(instruction):
            return [instruction.object]
    return _listed(" , ".join(filter(lambda text: "`" in text, texts)))


def _is_named_command(instruction: Instruction) -> bool:
    """Whether the only word behind "run" is a command that people write in backticks elsewhere."""
    return " " not in instruction.object and is_command(instruction.object)


def _listed(text: str) -> list[str] | None:
    """The commands of a list of code spans; None if any one of them is enough."""
    codes = codes_in(text)
    return None if not codes or offers_choice(text) else codes


def offers_choice(codes: str) -> bool:
    """Whether a list of code spans offers a choice: "`make lint` or `make check`"."""
    return re.search(r"`,? or `", codes) is not None


def _runs_block(instruction: Instruction) -> bool:
    """Whether the code block below an instruction is what it runs: "before pushing, run these"."""
    if not instruction.does(RUN | CHECK) or "`" in instruction.object:
        return False
    return not instruction.does(RUN) or _THESE.fullmatch(instruction.object) is not None


# --- Headings, labels and lists

_CHECKLIST = re.compile(
    r"[\W\d]*(?:required |mandatory )?(?:pre-?(?P<event>commit|push|PR|pull request|submission)s?"
    r"|(?P<request>PR|pull request)s?)(?: "
    + one_of(
        *("checklist", "checks?", "requirements?", "steps", "validation", "verification"),
        *("commands", "quality checks", "gates?"),
    )
    + r")+(?: \((?:required|mandatory|must pass)\))?[\s:*.]*",
    re.I,
)
_MARKS = re.compile(r"^[\W\d]*(?:(?:required|mandatory):? )?|\s*\([^()]*\)|[\s:*.]+$", re.I)
_ITEM = forms(
    {
        "Lint the code with `make lint` to find mistakes": (
            r"(?P<head>[\w\s'/:-]{0,50}?)"
            rf"\(?(?P<codes>{CODES})\)?(?: "
            + one_of(*"to for and passes pass must should succeeds is are in from on with".split())
            + r"\b(?:(?! (?:if|when|unless|or|only)\b).)*)?"
        )
    }
)
_RUN_THESE = re.compile(
    r"(?:always |please )?(?:run|execute) (?:all )?(?:of )?(?:these|the following)(?: \w+)?[\s:.]*",
    re.I,
)
_BEGINS_STEP = re.compile(
    r"(?:(?:always|please|must|ensure(?: that)?|make sure(?: that)?|then) )*(?:re-?)?"
    + one_of(
        *"run execute use format lint check test build validate verify regenerate update".split(),
        *("rebuild", "type-?check", "formatting", "linting", "tests", "type checks?", "compile"),
        *("fix", "generate", r"\w+ing", ""),
    )
    + r"\b.*|",
    re.I,
)
_NO_STEP = re.compile(r"\b(?:no|not|never|if|optional\w*|instead|see|read)\b", re.I)


def heads_commands(heading: str) -> bool:
    """Whether a heading names a change after which the commands below it have to be run."""
    occasion = _occasion_of_heading(heading)
    return occasion is not None and bool(occasion.changed)


def _occasion_of_heading(heading: str) -> Occasion | None:
    """The occasion that a heading or an introduction names for the commands below it."""
    if checklist := _CHECKLIST.fullmatch(heading):
        return occasion_of(Circumstance("before", checklist["event"] or checklist["request"]))
    plain = _MARKS.sub("", heading)
    if instruction := instruction_of(plain):
        is_run = instruction.does(RUN | CHECK | {"perform"}) and "`" not in instruction.object
        return _occasion(instruction) if is_run and not instruction.behind("in", "unless") else None
    parts = (plain, plain.split(",")[0], *re.findall(r"\bbefore [^`]+$", plain, re.I))
    alone = filter(None, map(circumstance_of, parts))
    return next(filter(None, map(occasion_of, alone)), None)


def _of_label(clause: Clause) -> list[Draft]:
    """Reads "before committing: `make test`", perhaps with the label as a sentence before it."""
    statement = clause.statement
    name = statement.label or statement.opening.strip(" .:")
    text = clause.text
    if ": `" in text and not name:
        name, _, text = text.partition(": ")
    occasion = _occasion_of_heading(name) if name else None
    instruction = instruction_of(text)
    if occasion is None or instruction is None:
        return []
    if not instruction.binds or instruction.circumstances or not instruction.does(RUN):
        return []
    if not re.fullmatch(CODES, instruction.object):
        return []
    return require(_listed(instruction.object) or [], occasion)


def _of_item(clause: Clause) -> list[Draft]:
    """Reads an item such as "`make test`" below "Before committing:"."""
    statement = clause.statement
    if not statement.under or not clause.begins_statement:
        return []
    occasion = _occasion_of_heading(statement.under[-1])
    if occasion is None and _RUN_THESE.fullmatch(statement.under[-1]) and statement.under[1:]:
        occasion = _occasion_of_heading(statement.under[-2])
    if occasion is None or OPTIONAL.search(f"{statement.label} {statement.text}"):
        return []
    instruction = instruction_of(clause.text)
    tool = instruction.object if instruction and instruction.does(RUN) else ""
    if is_tool(tool) or tool == "pre-commit":
        return require([tool], occasion)
    item = whole_match(_ITEM, clause.text)
    if item is None or re.match(r"(?:if|when|for)\b", statement.label, re.I):
        return []
    if _NO_STEP.search(item["head"]) or not _BEGINS_STEP.fullmatch(item["head"].strip()):
        return []
    codes = _listed(item["codes"]) or []
    if occasion.then and not all(is_command(part) for code in codes for part in parts_of(code)):
        return []
    return require(codes, occasion)


def block_below_heading(statement: Statement) -> list[Draft]:
    """Reads a code block right below the heading "Before committing"."""
    alone = circumstance_of(re.sub(r"^[#\s*]+|[\s:*]+$", "", statement.text))
    occasion = occasion_of(alone) if alone and alone.word == "before" else None
    return require_block(statement.block, occasion) if occasion and occasion.then else []


def require_block(block: Sequence[str], occasion: Occasion) -> list[Draft]:
    """A rule for each command of a code block, up to the commit or push that it is for."""
    commands: list[str] = []
    for line in _joined_lines(block):
        if occasion.then and re.match(r"\s*git (?:add|commit|push)\b", line):
            break
        commands += parts_of(line)
    if not 1 <= len(commands) <= MAX_STEP_COMMANDS:
        return []
    return require(commands, occasion)


def _joined_lines(block: Sequence[str]) -> list[str]:
    """The lines of a code block; a line that ends in a backslash is joined with the next."""
    return re.sub(r"\s*\\\n\s*", " ", "\n".join(block)).split("\n")


# --- Rules


def require(commands: Iterable[str], occasion: Occasion, *, are_run: bool = False) -> list[Draft]:
    """Requires each command on an occasion, with one rule per command; [] if they are too many, or
    if one may not be a command.

    Args:
        commands: as they are written, perhaps several on one line: `make lint && make test`.
        are_run: whether the text says that they are run, so that a plain word is a command too.
    """
    parts = [_without_placeholder(part) for command in commands for part in parts_of(command)]
    parts = [without_arguments(p) for p in parts if not re.match(r"(?:cd|source|export) ", p)]
    if not 1 <= len(parts) <= MAX_STEP_COMMANDS:
        return []
    if not all(_is_step(part, is_run=are_run) for part in parts):
        return []
    if occasion.then and any(re.match(occasion.then, part) for part in parts):
        return []  # "when committing, use `git commit -s`" is about the commit itself
    patterns = dict.fromkeys(map(required_pattern, parts))
    if occasion.then:
        return [
            Draft("command", "gate", {"name": "runs_before", "first": run, "then": occasion.then})
            for run in patterns
        ]
    changed = glob_argument(occasion.changed)
    return [
        Draft("command", "requirement", {"name": "runs_after", "changed": changed, "run": run})
        for run in patterns
    ]


def _without_placeholder(text: str) -> str:
    """A command without placeholders at its end, if more than its program is left."""
    plain = without_placeholder(text)
    return plain if " " in plain else text


def _is_step(text: str, *, is_run: bool) -> bool:
    """Whether a code span is a command rather than a file or a plain word."""
    is_file = re.search(r"^[^ ]+\.(?!sh$|py$|js$|mjs$)\w+$|^[^ ]+/$", text)
    is_word = re.fullmatch(r"[\w-]+", text) and not is_command(text)
    return is_runnable(text) and not is_file and (is_run or not is_word)
