"""Rules that a model proposes for the lines that no form decides.

The model chooses a measure, its arguments, and examples of what follows and what breaks the line.
A proposal becomes a rule only if its arguments are words of the line, and its measure scores every
example as the model labelled it. Whether the examples are right, only a reader can say.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule, UndraftedLine
from holdfast.drafting.drafts import NEEDS_A_JUDGE, NO_MEASURE, Draft, Undrafted
from holdfast.drafting.rule_ids import rule_id
from holdfast.drafting.rules_file import Statement
from holdfast.drafting.suite_text import sentence_of
from holdfast.drift.rule_kinds import Polarity, RuleKind
from holdfast.drift.suite_entries import TurnEntry
from holdfast.errors import RequestFailed, UsageError, cut
from holdfast.generation.sampling import Sampling
from holdfast.measures import build
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.scores import FOLLOWED, Score
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.grammars import Grammar, read_response_format
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Request

Example = str | dict[str, Any]


@dataclass(frozen=True)
class _Choice:
    """A measure that a model may propose.

    Args:
        arguments: the JSON Schema of each.
        says: its meaning, and what its examples are, for the model.
        example: a text that the model wrote as `follows` and `breaks` of a suite have it.
    """

    kind: RuleKind
    polarity: Polarity
    arguments: Mapping[str, Any]
    says: str
    example: Callable[[str, Mapping[str, Any]], Example]


# examples as a suite has them, from the texts that a model writes


def _reply(text: str, arguments: Mapping[str, Any]) -> Example:
    return text


def _command(text: str, arguments: Mapping[str, Any]) -> Example:
    return {"run": text}


def _commit(text: str, arguments: Mapping[str, Any]) -> Example:
    return {"run": f"git commit -m {shlex.quote(text)}"}


def _path(text: str, arguments: Mapping[str, Any]) -> Example:
    return {"calls": [{"tool": "Write", "arguments": {"file_path": text, "content": "x"}}]}


def _code(text: str, arguments: Mapping[str, Any]) -> Example:
    path = str(arguments["files"]).replace("**/", "").replace("*", "a")
    return {"calls": [{"tool": "Write", "arguments": {"file_path": path, "content": text}}]}


_TEXT = {"type": "string", "minLength": 1, "maxLength": 80}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 10_000}
_WORDS = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 4}
_CHOICES = {
    "at_most_words": _Choice(
        "length", "requirement", {"count": _COUNT},
        "a reply has at most `count` words. Examples are replies.", _reply,
    ),
    "at_most_sentences": _Choice(
        "length", "requirement", {"count": _COUNT},
        "a reply has at most `count` sentences. Examples are replies.", _reply,
    ),
    "contains": _Choice(
        "format", "requirement", {"words": _WORDS},
        "a reply has all of these `words`. Examples are replies.", _reply,
    ),
    "never_contains": _Choice(
        "forbidden", "prohibition", {"words": _WORDS},
        "a reply has none of these `words`. Examples are replies.", _reply,
    ),
    "starts_with": _Choice(
        "opening", "requirement", {"word": _TEXT},
        "a reply begins with `word`. Examples are replies.", _reply,
    ),
    "ends_with": _Choice(
        "closing", "requirement", {"word": _TEXT},
        "a reply ends with `word`. Examples are replies.", _reply,
    ),
    "command_not_run": _Choice(
        "command", "prohibition", {"command": _TEXT},
        "a shell command that begins with `command` is never run. Examples are shell commands.",
        _command,
    ),
    "runs_before": _Choice(
        "command", "requirement", {"first": _TEXT, "then": _TEXT},
        "the shell command `first` is run before `then`. Examples are shell commands.", _command,
    ),
    "file_not_touched": _Choice(
        "file", "prohibition", {"path": _TEXT},
        "files with the path `path` (with *) are not changed. Examples are paths.", _path,
    ),
    "code_not_written": _Choice(
        "code", "prohibition", {"pattern": _TEXT, "files": _TEXT},
        "code in `files` (such as *.py) never has the regular expression `pattern`. Examples are"
        " code.", _code,
    ),
    "commit_message": _Choice(
        "commit", "requirement", {"pattern": _TEXT},
        "a commit message matches the regular expression `pattern`. Examples are messages.",
        _commit,
    ),
}  # fmt: skip
_NONE = "none"
_PROMPT = "\n".join(
    (
        "You turn one line of a rules file into an automatic check. Answer with one JSON object:",
        '{"measure": NAME, its arguments, "follows": [2 examples that keep the rule], "breaks":'
        " [2 examples that break it]}",
        "The measures:",
        *(f"- {name}: {choice.says}" for name, choice in _CHOICES.items()),
        f"- {_NONE}: no measure above decides the line, as it needs judgement or has a condition."
        ' Answer {"measure": "none"}.',
        "Use only words and numbers of the line as arguments.",
    )
)
_SHOTS = (
    (
        "Deployments with `kubectl delete` are off limits.",
        {"measure": "command_not_run", "command": "kubectl delete",
         "follows": ["kubectl get pods", "kubectl apply -f a.yaml"],
         "breaks": ["kubectl delete pod a", "cd x && kubectl delete ns b"]},
    ),
    ("Write clean and readable code.", {"measure": _NONE}),
    (
        "Customers should not hear the word refund from you.",
        {"measure": "never_contains", "words": ["refund"],
         "follows": ["We can send you a new one.", "Let me look at your order."],
         "breaks": ["You get a refund.", "A refund takes five days."]},
    ),
)  # fmt: skip
_SHOWN = frozenset(
    example
    for _, answer in _SHOTS
    for label in ("follows", "breaks")
    for example in answer.get(label, ())
)
_SAMPLING = Sampling(temperature=0, top_p=1, max_new_tokens=320)


def undecided_lines(file: DraftedFile) -> list[Statement]:
    """The lines of a drafted file that a model is asked about."""
    return [line.statement for line in file.lines if _is_open(line)]


def _is_open(line: DraftedRule | UndraftedLine) -> bool:
    return isinstance(line, UndraftedLine) and line.why in (NO_MEASURE, NEEDS_A_JUDGE)


def propose(
    file: DraftedFile,
    model: ChatModel,
    constrained: bool,
    progress: Callable[[int], None] = lambda count: None,
) -> DraftedFile:
    """The file with the rules that a model proposes for the lines that no form decided, and with
    the reason why a proposal is none beside the other lines.

    Args:
        constrained: whether a grammar allows nothing but a proposal; for a model in this process.
        progress: receives how many lines were answered, one after another.
    """
    replies = iter(run_sync(_ask_all(model, undecided_lines(file), constrained, progress)))
    accepted = _AcceptedRules(file)
    lines: list[DraftedRule | UndraftedLine] = []
    for line in file.lines:
        if isinstance(line, DraftedRule) or not _is_open(line):
            lines.append(line)
            continue
        draft = _draft_of(next(replies), line.statement, line.why)
        if isinstance(draft, Draft):
            lines.append(accepted.add(replace(draft, proposed_by=model.name), line.statement))
        else:
            lines.append(UndraftedLine(line.statement, draft))
    return replace(file, lines=tuple(lines))


class _AcceptedRules:
    """The rules of a file, by which one that is proposed again is known."""

    def __init__(self, file: DraftedFile) -> None:
        self._ids = {rule.id for rule in file.rules}
        self._lines = {_key(rule.draft): rule.statement.line for rule in file.rules}

    def add(self, draft: Draft, statement: Statement) -> DraftedRule | UndraftedLine:
        """Accepts a proposal, unless another line says the same."""
        key = _key(draft)
        if key in self._lines:
            same = Undrafted(f"the same rule as line {self._lines[key]}")
            return UndraftedLine(statement, same)
        self._lines[key] = statement.line
        return DraftedRule(rule_id(statement, draft, self._ids), statement, draft)


def _key(draft: Draft) -> str:
    return json.dumps(draft.measure, sort_keys=True)


def grammar_of_proposals() -> Grammar | None:
    """The JSON texts that an answer may be."""
    examples = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 160},
                "minItems": 2, "maxItems": 2}  # fmt: skip
    options = [_object({"measure": {"const": _NONE}})]
    for name, choice in _CHOICES.items():
        fields = {"measure": {"const": name}, **choice.arguments}
        options.append(_object({**fields, "follows": examples, "breaks": examples}))
    schema = {"name": "proposal", "schema": {"anyOf": options}}
    return read_response_format({"type": "json_schema", "json_schema": schema})


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": [*fields],
            "additionalProperties": False}  # fmt: skip


async def _ask_all(
    model: ChatModel,
    statements: Sequence[Statement],
    constrained: bool,
    progress: Callable[[int], None],
) -> list[str]:
    grammar = grammar_of_proposals() if constrained else None

    async def ask(engine: Engine, statement: Statement) -> str:
        request = Request(_messages(statement), sampling=_SAMPLING, grammar=grammar,
                          name=f"The question for line {statement.line}")  # fmt: skip
        try:
            reply = (await engine.generate(request)).without_reasoning()
        except RequestFailed as error:
            if error.why == "failure":
                raise
            progress(1)
            return ""
        progress(1)
        return reply.text

    async with model.session() as engine, task_group() as group:
        tasks = [group.create_task(ask(engine, statement)) for statement in statements]
    return [task.result() for task in tasks]


def _messages(statement: Statement) -> tuple[dict[str, str], ...]:
    shots = [
        message
        for line, answer in _SHOTS
        for message in (
            {"role": "user", "content": f"Line: {line}"},
            {"role": "assistant", "content": json.dumps(answer)},
        )
    ]
    under = f"\nIt stands under: {' > '.join(statement.under)}" if statement.under else ""
    asked = {"role": "user", "content": f"Line: {sentence_of(statement)}{under}"}
    return ({"role": "system", "content": _PROMPT}, *shots, asked)


def _draft_of(reply: str, statement: Statement, undrafted: Undrafted) -> Draft | Undrafted:
    """The rule that a reply proposes, if it passes; else the reason why it is none."""
    fields = _object_in(reply)
    name = fields.get("measure")
    if name == _NONE:
        return undrafted
    choice = _CHOICES.get(name) if isinstance(name, str) else None
    if choice is None or not choice.arguments.keys() <= fields.keys():
        return Undrafted(f"{undrafted.reason}; the model's answer is no proposal")
    arguments = {argument: fields[argument] for argument in choice.arguments}
    said = f"the model proposed {name} {json.dumps(arguments, ensure_ascii=False)}"
    if strange := _not_in_line(arguments, statement):
        return Undrafted(f"{said}, but the line does not say {strange!r}")
    measure = {"name": name, **arguments}
    follows, breaks = ([*map(str, fields.get(label) or ())] for label in ("follows", "breaks"))
    if min(len(set(follows)), len(set(breaks))) < 2 or {*follows} & {*breaks}:
        return Undrafted(f"{said} without two examples of each kind")
    if copied := next((text for text in (*follows, *breaks) if text in _SHOWN), ""):
        return Undrafted(f"{said}, with the example {copied!r} of the question")
    draft = Draft(
        choice.kind,
        choice.polarity,
        measure,
        follows=tuple(choice.example(text, arguments) for text in follows),
        breaks=tuple(choice.example(text, arguments) for text in breaks),
    )
    try:
        problem = _told_apart(draft)
    except UsageError as error:
        problem = f"which is refused: {error}"
    return Undrafted(f"{said}, {problem}") if problem else draft


def _told_apart(draft: Draft) -> str:
    """Why the measure does not tell the examples apart; "" if it does."""
    measure = build(draft.measure)
    for label, examples in (("follows", draft.follows), ("breaks", draft.breaks)):
        for example in examples:
            fields = {"reply": example} if isinstance(example, str) else example
            entry = TurnEntry.model_validate(fields)
            score = measure.judge_turn(entry.labelled(label == "follows").turn)
            shown = cut(" ".join(str(example).split()), 60)
            if not isinstance(score, Score):
                return f"which does not apply to its example {shown!r} under {label}"
            if (score.value >= FOLLOWED) is not (label == "follows"):
                return f"which scores its example {shown!r} under {label} {score.value:g}"
    return ""


def _object_in(reply: str) -> dict[str, Any]:
    """The first JSON object in a reply; {} if there is none."""
    start = reply.find("{")
    try:
        value, _ = json.JSONDecoder().raw_decode(reply[start:]) if start >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_ESCAPE = re.compile(r"\\[AbBdDsSwWZz]")


def _not_in_line(arguments: Mapping[str, Any], statement: Statement) -> str:
    """The first word or number among the arguments that is not in the line; "" if all are."""
    line = " ".join((*statement.under, sentence_of(statement))).lower()
    words = {*re.findall(r"[^\W_]+", line)}
    words |= {str(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS}
    for name, value in arguments.items():
        if name == "files":  # a line says "in TypeScript", and a glob *.ts
            continue
        texts = value if isinstance(value, list) else [value]
        plain = _ESCAPE.sub(" ", " ".join(map(str, texts))).lower()
        for word in re.findall(r"[^\W_]+", plain):
            if word not in words:
                return word
    return ""
