"""Rules that a model proposes for the lines that no form decides.

The model chooses a measure, its arguments, and examples of what follows and what breaks the line.
A proposal becomes a rule only if its arguments are words of the line, and its measure scores every
example as the model labelled it. Whether the examples are right, only a reader can say.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule, UndraftedLine
from holdfast.drafting.drafts import NEEDS_A_JUDGE, NO_MEASURE, Draft, Undrafted
from holdfast.drafting.rule_ids import rule_id
from holdfast.drafting.rules_file import Statement
from holdfast.drafting.suite_text import sentence_of
from holdfast.drift.suite_entries import TurnEntry
from holdfast.errors import RequestFailed, UsageError, cut
from holdfast.generation.sampling import Sampling
from holdfast.measures import build
from holdfast.measures.measure_words import MEASURE_WORDS
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.scores import FOLLOWED, Score
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.grammars import Grammar, read_response_format
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Request

_TEXT = {"type": "string", "minLength": 1, "maxLength": 80}
# the JSON Schema of an argument, by its name; of others, a text
_SCHEMAS = {
    "count": {"type": "integer", "minimum": 1, "maximum": 10_000},
    "words": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 4},
}
_PROPOSALS = {name: words.proposal for name, words in MEASURE_WORDS.items() if words.proposal}
_NONE = "none"
_PROMPT = "\n".join(
    (
        "You turn one line of a rules file into an automatic check. Answer with one JSON object:",
        '{"measure": NAME, its arguments, "follows": [2 examples that keep the rule], "breaks":'
        " [2 examples that break it]}",
        "The measures:",
        *(
            f"- {name}: {proposal.meaning}. Examples are {proposal.examples.name}."
            for name, proposal in _PROPOSALS.items()
        ),
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
    """The rules of a file, which tell one that is proposed again."""

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
    for name, proposal in _PROPOSALS.items():
        arguments = {argument: _SCHEMAS.get(argument, _TEXT) for argument in proposal.arguments}
        fields = {"measure": {"const": name}, **arguments}
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
    question = {"role": "user", "content": f"Line: {sentence_of(statement)}{under}"}
    return ({"role": "system", "content": _PROMPT}, *shots, question)


def _draft_of(reply: str, statement: Statement, undrafted: Undrafted) -> Draft | Undrafted:
    """The rule that a reply proposes, if it passes; else the reason why it is none."""
    fields = _object_in(reply)
    name = fields.get("measure")
    if name == _NONE:
        return undrafted
    proposal = _PROPOSALS.get(name) if isinstance(name, str) else None
    if proposal is None or not {*proposal.arguments} <= fields.keys():
        return Undrafted(f"{undrafted.reason}; the model's answer is no proposal")
    arguments = {argument: fields[argument] for argument in proposal.arguments}
    follows = [*map(str, fields.get("follows") or ())]
    breaks = [*map(str, fields.get("breaks") or ())]
    draft = Draft(
        proposal.kind,
        proposal.polarity,
        {"name": name, **arguments},
        follows=tuple(proposal.examples.entry(text, arguments) for text in follows),
        breaks=tuple(proposal.examples.entry(text, arguments) for text in breaks),
    )
    problem = (
        _problem_of_arguments(arguments, statement)
        or _problem_of_examples(follows, breaks)
        or _problem_of_scores(draft)
    )
    if problem is None:
        return draft
    shown = json.dumps(arguments, ensure_ascii=False)
    return Undrafted(f"the model proposed {name} {shown}{problem}")


def _problem_of_examples(follows: Sequence[str], breaks: Sequence[str]) -> str | None:
    """Why the examples are too few, or none of the model's own; None if they are neither."""
    if len(set(follows)) < 2 or len(set(breaks)) < 2 or set(follows) & set(breaks):
        return " without two examples of each kind"
    copies = [text for text in (*follows, *breaks) if text in _SHOWN]
    return f", with the example {copies[0]!r} of the question" if copies else None


def _problem_of_scores(draft: Draft) -> str | None:
    """Why the measure does not tell the examples apart; None if it does."""
    try:
        problems = (*_wrong_scores(draft, "follows"), *_wrong_scores(draft, "breaks"))
    except UsageError as error:
        return f", which is refused: {error}"
    return f", which {problems[0]}" if problems else None


def _wrong_scores(draft: Draft, label: Literal["follows", "breaks"]) -> Iterable[str]:
    """The examples that the measure does not score as their label says, each as a clause."""
    measure = build(draft.measure)
    for example in draft.follows if label == "follows" else draft.breaks:
        fields = {"reply": example} if isinstance(example, str) else example
        turn = TurnEntry.model_validate(fields).labelled(label == "follows").turn
        score = measure.judge_turn(turn)
        shown = cut(" ".join(str(example).split()), 60)
        if not isinstance(score, Score):
            yield f"does not apply to its example {shown!r} under {label}"
        elif (score.value >= FOLLOWED) != (label == "follows"):
            yield f"scores its example {shown!r} under {label} {score.value:g}"


def _object_in(reply: str) -> dict[str, Any]:
    """The first JSON object in a reply; {} if there is none."""
    start = reply.find("{")
    if start < 0:
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(reply[start:])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_ESCAPE = re.compile(r"\\[AbBdDsSwWZz]")
_WORD = re.compile(r"[^\W_]+")


def _problem_of_arguments(arguments: Mapping[str, Any], statement: Statement) -> str | None:
    """The first word or number of the arguments that the line does not say; None if it says all."""
    line = " ".join((*statement.under, sentence_of(statement))).lower()
    words = set(_WORD.findall(line))
    words |= {str(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS}
    for name, value in arguments.items():
        if name == "files":  # a line says "in TypeScript", and a glob *.ts
            continue
        texts = value if isinstance(value, list) else [value]
        plain = _ESCAPE.sub(" ", " ".join(map(str, texts))).lower()
        for word in _WORD.findall(plain):
            if word not in words:
                return f", but the line does not say {word!r}"
    return None
