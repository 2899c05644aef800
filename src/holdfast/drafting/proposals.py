"""Rules that a model proposes for the lines that no reader knows.

    "Customers should not hear the word refund from you."
    -> {"measure": "never_contains", "words": ["refund"], "follows": [...], "breaks": [...]}
    -> Draft(never_contains), proposed_by the model

The model chooses a measure, its arguments, and examples of what follows and what breaks the line.
A proposal becomes a rule only if its arguments are words of the line, and if its measure scores
every example as the model labelled it. Whether the examples are right, only a person can say.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule, UndraftedLine
from holdfast.drafting.drafts import NEEDS_A_JUDGE, NO_MEASURE, Draft, Undrafted, measure
from holdfast.drafting.proposable_measures import PROPOSALS
from holdfast.drafting.rule_ids import rule_id
from holdfast.drafting.rules_file import Statement
from holdfast.drafting.suite_text import sentence_of
from holdfast.drift.suite_entries import TurnEntry
from holdfast.errors import RequestFailed, UsageError, cut
from holdfast.generation.sampling import Sampling
from holdfast.measures import build
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.scores import MIN_KEPT_SCORE, Score
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.grammars import Grammar, read_response_format
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Request

_TEXT = {"type": "string", "minLength": 1, "maxLength": 80}
# the JSON Schema of an argument, by its name; any other argument is a text
_SCHEMAS = {
    "count": {"type": "integer", "minimum": 1, "maximum": 10_000},
    "words": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 4},
}
_NONE = "none"
_PROMPT = "\n".join(
    (
        "You turn one line of a rules file into an automatic check. Answer with one JSON object:",
        '{"measure": NAME, its arguments, "follows": [2 examples that keep the rule], "breaks":'
        " [2 examples that break it]}",
        "The measures:",
        *(
            f"- {name}: {proposal.meaning}. Examples are {proposal.examples.name}."
            for name, proposal in PROPOSALS.items()
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
_EXAMPLES_SHOWN = frozenset(
    example
    for _, answer in _SHOTS
    for label in ("follows", "breaks")
    for example in answer.get(label, ())
)
_SAMPLING = Sampling(temperature=0, top_p=1, max_new_tokens=320)
_ESCAPE = re.compile(r"\\[AbBdDsSwWZz]")
_WORD = re.compile(r"[^\W_]+")


def undecided_lines(file: DraftedFile) -> list[Statement]:
    """The lines of a drafted file about which a model is asked."""
    return [line.statement for line in file.lines if _is_undecided(line)]


def _is_undecided(line: DraftedRule | UndraftedLine) -> bool:
    return isinstance(line, UndraftedLine) and line.why in (NO_MEASURE, NEEDS_A_JUDGE)


def propose(
    file: DraftedFile,
    model: ChatModel,
    constrained: bool,
    progress: Callable[[int], None] = lambda count: None,
) -> DraftedFile:
    """Asks a model about the lines that no reader knows. Returns the file with the rules that it
    proposes, and for each other line, why its proposal is not a rule.

    Args:
        constrained: whether a grammar allows nothing but a proposal; for a model in this process.
        progress: receives how many lines were answered, one after another.
    """
    replies = iter(run_sync(_ask_all(model, undecided_lines(file), constrained, progress)))
    accepted = _AcceptedRules(file)
    lines: list[DraftedRule | UndraftedLine] = []
    for line in file.lines:
        if isinstance(line, DraftedRule) or not _is_undecided(line):
            lines.append(line)
            continue
        draft = _read_proposal(next(replies), line.statement, line.why)
        if isinstance(draft, Draft):
            lines.append(accepted.add(replace(draft, proposed_by=model.name), line.statement))
        else:
            lines.append(UndraftedLine(line.statement, draft))
    return replace(file, lines=tuple(lines))


class _AcceptedRules:
    """The rules of a file so far, by which a rule that is proposed again is known."""

    def __init__(self, file: DraftedFile) -> None:
        self._ids = {rule.id for rule in file.rules}
        self._lines = {_key(rule.draft): rule.statement.line for rule in file.rules}

    def add(self, draft: Draft, statement: Statement) -> DraftedRule | UndraftedLine:
        """Accepts a proposal, unless another line states the same rule."""
        key = _key(draft)
        if key in self._lines:
            same = Undrafted(f"the same rule as line {self._lines[key]}")
            return UndraftedLine(statement, same)
        self._lines[key] = statement.line
        return DraftedRule(rule_id(statement, draft, self._ids), statement, draft)


def _key(draft: Draft) -> str:
    """A text that two rules have in common if the same measure decides them."""
    return json.dumps(draft.measure.entry, sort_keys=True)


def grammar_of_proposals() -> Grammar | None:
    """The grammar of the JSON texts that an answer may be."""
    examples = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 160},
                "minItems": 2, "maxItems": 2}  # fmt: skip
    options = [_object_schema({"measure": {"const": _NONE}})]
    for name, proposal in PROPOSALS.items():
        arguments = {argument: _SCHEMAS.get(argument, _TEXT) for argument in proposal.arguments}
        fields = {"measure": {"const": name}, **arguments}
        options.append(_object_schema({**fields, "follows": examples, "breaks": examples}))
    schema = {"name": "proposal", "schema": {"anyOf": options}}
    return read_response_format({"type": "json_schema", "json_schema": schema})


def _object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with exactly these fields."""
    return {"type": "object", "properties": dict(fields), "required": [*fields],
            "additionalProperties": False}  # fmt: skip


async def _ask_all(
    model: ChatModel,
    statements: Sequence[Statement],
    constrained: bool,
    progress: Callable[[int], None],
) -> list[str]:
    """The model's reply about each statement; "" if it refused the request."""
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
    """The question about a statement, after the instructions and the examples of answers."""
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


def _read_proposal(reply: str, statement: Statement, undrafted: Undrafted) -> Draft | Undrafted:
    """The rule that a reply proposes, or the reason why the proposal is not a rule.

    Args:
        undrafted: why the statement was no rule before.
    """
    fields = _first_json_object(reply)
    name = str(fields.get("measure"))
    if name == _NONE:
        return undrafted
    proposal = PROPOSALS.get(name)
    if proposal is None or not {*proposal.arguments} <= fields.keys():
        return Undrafted(f"{undrafted.reason}; the model's answer is no proposal")
    arguments = {argument: fields[argument] for argument in proposal.arguments}
    follows = [*map(str, fields.get("follows") or ())]
    breaks = [*map(str, fields.get("breaks") or ())]
    draft = Draft(
        proposal.kind,
        proposal.polarity,
        measure(name, **arguments),
        follows=tuple(proposal.examples.entry(text, arguments) for text in follows),
        breaks=tuple(proposal.examples.entry(text, arguments) for text in breaks),
    )
    problem = (
        _find_unsaid_word(arguments, statement)
        or _find_faulty_examples(follows, breaks)
        or _find_wrong_score(draft)
    )
    if problem is None:
        return draft
    spec = f"{name} {json.dumps(arguments, ensure_ascii=False)}"
    return Undrafted(f"the model proposed {spec}, but {problem}")


def _first_json_object(reply: str) -> dict[str, Any]:
    """The first JSON object in a reply; {} if there is none."""
    start = reply.find("{")
    if start < 0:
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(reply[start:])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _find_unsaid_word(arguments: Mapping[str, Any], statement: Statement) -> str | None:
    """A word or number of the arguments that the line does not say; None if it says all of them."""
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
                return f"the line does not say {word!r}"
    return None


def _find_faulty_examples(follows: Sequence[str], breaks: Sequence[str]) -> str | None:
    """Finds a fault of the examples that needs no scoring; returns None if there is none."""
    if len(set(follows)) < 2 or len(set(breaks)) < 2 or set(follows) & set(breaks):
        return "it came without two examples of each kind"
    copies = [text for text in (*follows, *breaks) if text in _EXAMPLES_SHOWN]
    return f"it repeats the example {copies[0]!r} of the question" if copies else None


def _find_wrong_score(draft: Draft) -> str | None:
    """Which example the measure does not score as it is labelled; None if it scores all so."""
    try:
        problems = (*_wrong_scores(draft, "follows"), *_wrong_scores(draft, "breaks"))
    except UsageError as error:
        return f"its arguments are refused: {error}"
    return problems[0] if problems else None


def _wrong_scores(draft: Draft, label: Literal["follows", "breaks"]) -> Iterator[str]:
    """A clause about each example that the measure does not score as it is labelled."""
    built = build(draft.measure.entry)
    for example in draft.follows if label == "follows" else draft.breaks:
        fields = {"reply": example} if isinstance(example, str) else example
        turn = TurnEntry.model_validate(fields).labelled(label == "follows").turn
        score = built.judge_turn(turn)
        text = cut(" ".join(str(example).split()), 60)
        if not isinstance(score, Score):
            yield f"it does not apply to its example {text!r} under {label}"
        elif (score.value >= MIN_KEPT_SCORE) != (label == "follows"):
            yield f"it scores its example {text!r} under {label} {score.value:g}"
