"""Rules about what needs the user's approval.

For example:

    Do not push unless asked.       -> asks_before(command="git push", asking="push")
    Ask before adding dependencies. -> asks_before(command="npm install ...", asking="depend|add")
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.acts import acts_in, split_list
from holdfast.drafting.grammar.circumstances import Circumstance
from holdfast.drafting.grammar.clause_tokens import read_tokens
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in
from holdfast.drafting.grammar.commands import command_pattern, is_command, is_runnable
from holdfast.drafting.grammar.forms import CODES, form, literal, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.grammar.named_files import path_glob
from holdfast.drafting.rules_file import Statement

# --- Words for approval

_WORDS_OF_APPROVAL = frozenset(
    """ask asks asked asking request requests requested requesting instruct instructs instructed
    instruction instructions tell told tells say says permission approval approve approves approved
    consent direction confirm confirms confirmed confirmation authorization authorized authorizes
    authorize permitted go-ahead sign-off ok okay""".split()
)
# words around them, which say whom, how and when to ask
_WORDS_AROUND_APPROVAL = frozenset(
    """you you're i the user user's users human maintainer maintainers developer owner reviewer it
    it's they has have been being is are was were for to so do me us them specifically explicitly
    explicit directly first clear clearly my your a an any prior of from by in this session that
    or and exact action current conversation otherwise prompt with written operator someone person
    getting obtaining receiving having given gives give giving who doing again instead please but
    manual manually verbal verbally
    always check wait get obtain seek before authorisation""".split()
)
_ASKS = frozenset("ask confirm check get obtain seek request wait".split())
_NEEDS_OBJECT = frozenset("check get obtain seek request wait".split())  # "get *approval*"
_PEOPLE = frozenset("user me human maintainer developer us owner".split())
_FORBIDDEN_UNLESS = (Relation.WITHOUT, Relation.UNLESS, Relation.UNTIL)
_ALLOWED_UNDER = (
    Relation.WHEN,
    Relation.IF,
    Relation.AFTER,
    Relation.WITH,
    Relation.ONCE,
    Relation.AT_ALL,
)
_FOLLOWED_BY = (Relation.THEN, Relation.EXPLANATION, Relation.ADVICE, Relation.NOT)
# circumstances that are said without a word of their own, and the sign before them
_SIGNS = {
    Relation.THEN: ",",
    Relation.SUBJECT: "",
    Relation.EXPLANATION: "",
    Relation.ADVICE: "",
    Relation.AT_ALL: "",
    Relation.ALONE: "",
}
_REPEATED_ACT = re.compile(r"\b(instructions?|requests?|permission|approval) to \w+$", re.I)
_BY_YOURSELF = re.compile(r" (?:yourself|autonomously|automatically|proactively)$", re.I)

# --- Acts that need approval

_CODE_ACT = form(
    "running `make ship`",
    r"(?:(?P<runs>run|running|execute|executing|use|using) )?"
    r"(?:(?P<name>[a-z -]+) \((?=`[^`]+`\)))?"
    r"`(?P<code>[^`]+)`\)?(?: anything| commands?)?",
)


def ask_rule(clause: Clause) -> list[Draft]:
    """Reads "do not push unless asked" and "ask before adding dependencies"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    acts = _acts_that_need_approval(instruction) if instruction else ""
    acts = re.sub(r"^(?:the |any |you )+", "", acts.strip(" ,"), flags=re.I)
    return _require_approval_of_acts(acts) if acts else []


def _acts_that_need_approval(instruction: Instruction) -> str:
    """The words for what an instruction allows only with approval; "" if it says something else."""
    if instruction.modality is Modality.NEVER:
        return _acts_before_approval(instruction, (*_FORBIDDEN_UNLESS, *_FOLLOWED_BY))
    if instruction.modality is Modality.ONLY:
        return _acts_before_approval(instruction, _ALLOWED_UNDER)
    if instruction.modality is Modality.MUST and instruction.does(_ASKS | {"require"}):
        return _acts_after_asking(instruction)
    return ""


def _acts_before_approval(instruction: Instruction, relations: Sequence[Relation]) -> str:
    """The act of "never push unless asked", up to the circumstance that asks for approval."""
    circumstances = instruction.circumstances
    for number, (relation, text) in enumerate(circumstances):
        rest = f"{text} {_join(circumstances[number + 1 :])}".strip(" ,")
        if relation in relations and _is_approval(rest, must_ask=relation in _FOLLOWED_BY):
            act = f"{' or '.join(instruction.verbs)} {instruction.object}"
            further = _join(circumstances[:number])
            act += further if further.startswith(",") else f" {further}"
            return _BY_YOURSELF.sub("", act.strip())
    return ""


def _acts_after_asking(instruction: Instruction) -> str:
    """The act of "ask the user before pushing" and of "pushing requires approval"."""
    circumstances = instruction.circumstances
    relations = (Relation.BEFORE, Relation.SUBJECT)
    numbers = [n for n, (relation, _) in enumerate(circumstances) if relation in relations]
    if instruction.verbs == ("require",) and not numbers:  # "approval is required to push"
        numbers = [n for n, (relation, _) in enumerate(circumstances) if relation is Relation.TO]
    if len(numbers) != 1 and {circumstances[n].relation for n in numbers} != {Relation.BEFORE}:
        return ""
    number = numbers[0]
    asked = f"{instruction.object} {_join(circumstances[:number])}"
    if not _asks_for_approval(instruction, asked):
        return ""
    return _list_acts(circumstances[number].text, circumstances[number + 1 :])


def _asks_for_approval(instruction: Instruction, asked: str) -> bool:
    """Whether an order such as "get the user's approval" is about approval and nothing else.

    Args:
        asked: the words after its verb, up to the act.
    """
    words = set(_words_in(asked))
    names_approval = bool(words & _WORDS_OF_APPROVAL)
    if instruction.does(["check", "wait", "confirm"]):
        names_approval = names_approval or bool(words & _PEOPLE)
    if instruction.does(_NEEDS_OBJECT | {"require"}) and not names_approval:
        return False
    return words <= _WORDS_OF_APPROVAL | _WORDS_AROUND_APPROVAL


def _list_acts(acts: str, rest: Sequence[Circumstance]) -> str:
    """The acts after "before", with those that the circumstances after them add."""
    further = [text for relation, text in rest if relation is Relation.BEFORE]
    if further:  # "before changing code and before pushing"
        acts = re.sub(r" (?:and|or)$", "", acts.strip(" ,"))
        acts = ", ".join((acts, *further))
        rest = [n for n in rest if n.relation is not Relation.BEFORE]
    if "`" in acts and rest and all(relation is Relation.WITH for relation, _ in rest):
        return ", ".join((acts, *(text for _, text in rest)))  # "before `git add`, `git commit`"
    if rest and _is_approval(_join(rest), must_ask=False, may_be_empty=True):
        return acts
    return " ".join(filter(None, (acts, _join(rest))))


def _join(circumstances: Sequence[Circumstance]) -> str:
    """The text of circumstances, with the words that begin them."""
    text = ""
    for relation, words in circumstances:
        text += f"{_SIGNS.get(relation, f' {relation.value}')} {words}"
    return " ".join(text.split())


def _words_in(text: str) -> list[str]:
    return [token.word or token.text for token in read_tokens(text) if token.word not in (",", "-")]


def _is_approval(text: str, *, must_ask: bool, may_be_empty: bool = False) -> bool:
    """Whether words are about approval and nothing else: "the user explicitly asks you to".

    Args:
        must_ask: whether they must begin with a verb such as "ask".
        may_be_empty: whether they need not name approval.
    """
    # "an explicit instruction to push" and "a request to do so" repeat the act
    words = _words_in(_REPEATED_ACT.sub(r"\1", text))
    verbs = [word for word in words if word not in ("but", "always", "instead", "please")]
    if must_ask and not (verbs and verbs[0] in _ASKS):
        return False
    names_it = may_be_empty or bool(_WORDS_OF_APPROVAL & set(words))
    return names_it and set(words) <= _WORDS_OF_APPROVAL | _WORDS_AROUND_APPROVAL


# --- What the user's request lifts: "no `any` unless explicitly asked"

_UNLESS_ASKED = re.compile(
    r"(?P<before>.+?),? (?:unless|except (?:if|when)|without(?! confirm))"
    r" (?P<approval>[^.,;:()—–]+?)"
    r"(?P<after>(?: [—–-]{1,2} |;| \().*)?[.!]?",
    re.I,
)
# after a prohibition: "Only create one if the user explicitly asks."
_ONLY_IF_ASKED = re.compile(
    r"only (?P<act>[^.]+?) (?:if|when|after) (?P<approval>[^.]+)(?:\. ?|$)", re.I
)
_UNASKED = re.compile(r" (?:proactively|on your own(?: initiative)?|unprompted|unasked)\b", re.I)
# words of a prohibition that are hardly its subject
_GENERAL_WORDS = frozenset(
    """types type imports import comments comment files file code library libraries packages
    statements calls call using more other these those with from into classes components""".split()
)
_MIN_TELLING_LETTERS = 4  # of a name that is no usual word, unlike `any`


def without_request(statement: Statement) -> Statement | None:
    """A statement such as "no `any` unless explicitly asked" without the exception; None if it
    makes none for requests of the user.
    """
    text = statement.text
    match = _UNLESS_ASKED.fullmatch(text)
    if match and _UNLESS_ASKED.fullmatch(match["before"]):
        return None  # several exceptions
    if match and _is_approval(match["approval"], must_ask=False):
        return replace(statement, text=f"{match['before']}{match['after'] or '.'}")
    following = statement.following
    only = _ONLY_IF_ASKED.match(following)
    if only and _is_approval(only["approval"], must_ask=False):
        following = following[only.end() :]
    asked = replace(statement, text=_UNASKED.sub("", text), following=following)
    return asked if asked != statement else None


def lifted_by_request(rule: Draft, prohibition: str) -> Draft | None:
    """A rule that a request of the user lifts; None if it cannot be told which words request it.

    Args:
        prohibition: the text of the rule without the exception.
    """
    if rule.measure.name == "file_not_touched":
        return _require_approval_of_file(str(rule.measure.arguments["path"]))
    unless = _request_of(prohibition)
    return replace(rule, unless=unless) if unless and rule.polarity == "prohibition" else None


def _request_of(prohibition: str) -> dict[str, str]:
    """The words of the user that ask for what a prohibition forbids, as `unless` of a suite; {} if
    it cannot be told which these are.

    >>> _request_of("Do not use `useMemo` or Redux")
    {'user': '(?i)(?<!\\\\w)(?:useMemo|redux)'}
    """
    instruction = instruction_of(prohibition)
    if instruction is None:
        return {}
    names = [re.sub(r"^\W+|\W+$", "", code) for code in codes_in(instruction.object)]
    words = re.findall(r"[A-Za-z-]{4,}", re.sub(r"`[^`]*`", "", instruction.object))
    telling = [word for word in words if word.lower() not in _GENERAL_WORDS]
    names += [word.lower().removesuffix("s") for word in telling or ([] if names else words)]
    asking = [*map(_pattern_of_request, dict.fromkeys(filter(None, names)))]
    return {"user": rf"(?i)(?<!\w){one_of(*asking)}"} if asking else {}


def _pattern_of_request(name: str) -> str:
    """The pattern of the words that ask for a thing: `any` alone is a usual word."""
    if name.startswith("document"):
        return "doc"
    if len(name) >= _MIN_TELLING_LETTERS:
        return literal(name)
    return rf"(?:`|(?:use|using|allow|add|with) ){literal(name)}\b"


# --- Rules about changes of files

_FILE_ACT = form(
    "modify `global.json` or files in `schemas/`",
    r"(?P<verbs>(?:(?:edit|chang|modify|touch|alter|updat|delet|remov|creat|add)(?:e|ing)?"
    r"(?:,? (?:or|and) |, |/)?)+) ?(?:(?:the|any|existing|files?|anything|code) )*"
    rf"(?:(?:in|under|inside|to) )?(?P<files>{CODES})(?: files?| folders?| director(?:y|ies))?",
)


def _require_approval_of_changes(acts: str) -> list[Draft]:
    """The rules about changing the files that acts name: "modify `global.json`"; [] for acts of
    another kind.
    """
    match = whole_match(_FILE_ACT, acts)
    codes = codes_in(match["files"]) if match else []
    globs = all_known([path_glob(code) for code in codes])
    return all_known([_require_approval_of_file(glob) for glob in globs])


def _require_approval_of_file(glob: str) -> Draft | None:
    """The rule that a file is changed only with approval; None if it has no name that a question
    could refer to.
    """
    name = glob.removesuffix("{,/*}").strip("*/").rpartition("/")[2].strip("*")
    if not re.search(r"\w{3}", name):
        return None
    word = rf"(?i){literal(name)}"
    return Draft("file", "gate", measure("asks_before", changed=glob, asking=word, ordered=word))


# "use destructive commands like `git reset --hard` or recursive delete"
_COMMANDS_LIKE = re.compile(
    r"(?:use|run|execute|issue) (?:any )?(?:(?:destructive|dangerous|irreversible|risky|git) )*"
    r"(?:operations|commands|actions) (?:like|such as|including) (?=`)",
    re.I,
)


def _require_approval_of_acts(acts: str) -> list[Draft]:
    """The rules about running the listed commands, or about acts that have commands; [] if none
    has, or if one of the words is not understood.
    """
    if drafts_of_files := _require_approval_of_changes(acts):
        return drafts_of_files
    is_example = _COMMANDS_LIKE.match(acts) is not None
    acts = _COMMANDS_LIKE.sub("", acts)
    drafts: list[Draft] = []
    others: list[str] = []
    for part in split_list(acts):
        code = whole_match(_CODE_ACT, part)
        if code and _is_run(code):
            command = command_pattern(code["code"])
            drafts.append(_require_approval(command, _word_for(code["code"], code["name"] or "")))
        else:
            others.append(part)
    named = acts_in(acts if not drafts else ", ".join(others), may_name_others=True)
    drafts += [_require_approval(_of_branch(act.command, acts), act.word) for act in named]
    most_are_known = len(drafts) > 2 * len(others)
    return drafts if named or not others or is_example or most_are_known else []


def _of_branch(command: str, acts: str) -> str:
    """The pattern of pushes to the branch that the acts name: "push to `main`"."""
    branch = re.search(r"\bto `?(main|master|develop)`?", acts)
    if branch is None:
        return command
    return command.replace("git push", rf"git push(?=.*[ :]{branch[1]}(?!\S))")


def _is_run(match: re.Match[str]) -> bool:
    """Whether the code span of an act is a command, by itself or by the verb before it."""
    names_running = (match["runs"] or "").startswith(("run", "execut"))
    return is_command(match["code"]) or (names_running and is_runnable(match["code"]))


def _word_for(command: str, name: str) -> str:
    """A pattern of the words by which a question refers to a command: "push" for `git push`.

    Args:
        name: what the act is called beside the command: "migrations".
    """
    words = [word for word in re.findall(r"[A-Za-z]{3,}", command) if word != "run"]
    words = words or [command.split(" ")[0]]  # `rm -rf`
    if words[:2] == ["git", "add"]:  # which people call a part of committing
        words = [*words, "stage", "commit"]
    names = [word.removesuffix("s") for word in re.findall(r"[A-Za-z]{4,}", name)]
    return rf"\b(?:{'|'.join(map(re.escape, (*names, *(words[1:] or words)[:4])))})"


def _require_approval(command: str, word: str) -> Draft:
    """Requires the user's approval of the commands that a pattern matches.

    Args:
        word: the pattern of a word for what the commands do.
    """
    word = f"(?i){word}"  # finds a question about an act, and an order of it
    spec = measure("asks_before", command=command, asking=word, ordered=word)
    return Draft("command", "gate", spec)
