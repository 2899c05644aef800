"""Forks of dialogs at their breaches, in which a model is asked for its rules.

For example:

    system "Never push.", user "Fix it.", assistant `git push` (the breach)
    -> system "Never push.", user "Fix it." and the question for the rules
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.chat.messages import Message
from holdfast.drift.cases import Case, Rule
from holdfast.drift.pairing import RECALL_QUESTION
from holdfast.logs.context import Contexts
from holdfast.logs.dialogs import LoggedDialog
from holdfast.logs.rule_sightings import breach_position
from holdfast.records import LogDialog
from holdfast.transcripts.transcript import Event, EventKind

_BEFORE = "(The log begins here.)"  # the user's message if a dialog begins with the assistant


class AnswerKey(NamedTuple):
    """Identifies an answer, by the fingerprint of the model and the digest of a fork's messages."""

    model: str
    digest: str


class BreachPlace(NamedTuple):
    """Where a breach is: the row of its dialog in the run, and the position of its score there."""

    row: int
    probe: int


@dataclass(frozen=True)
class Fork:
    """A breach, and the messages that the model gets when it is asked about it."""

    place: BreachPlace
    case: Case
    rule: Rule
    messages: tuple[Message, ...]

    def key(self, model: str) -> AnswerKey:
        digest = hashlib.sha256(json.dumps(self.messages, sort_keys=True).encode())
        return AnswerKey(model, digest.hexdigest())


def make_fork(
    place: BreachPlace, record: LogDialog, dialog: LoggedDialog, cases: Mapping[str, Case]
) -> Fork:
    """Rebuilds the context of a breach from its dialog."""
    probe = record.probes[place.probe]
    case = cases[record.agent.id]
    rule = next(rule for rule in case.rules if (rule.id or None) == probe.rule)
    turn = next(turn for turn in dialog.turns if turn.number == probe.round)
    path = dialog.transcript.path
    breach = breach_position(rule.measure, turn, path)
    events = Contexts(path).before(breach).events
    return Fork(place, case, rule, tuple(messages_of(events)))


def messages_of(events: Iterable[Event]) -> list[Message]:
    """The texts of events as a chat that ends with the question. Tool calls and results, which a
    template may not know, are put in words, and consecutive messages of one role are joined.
    """
    prompts: list[str] = []
    spoken: list[Message] = []
    for event in events:
        message = _message_of(event)
        if message is None:
            continue
        role = message["role"]
        text = message["content"]
        if role == "system":
            prompts.append(text)
        elif spoken and spoken[-1]["role"] == role:
            spoken[-1] = {"role": role, "content": f"{spoken[-1]['content']}\n\n{text}"}
        else:
            spoken.append(message)
    if spoken and spoken[0]["role"] == "assistant":
        spoken.insert(0, {"role": "user", "content": _BEFORE})
    question = RECALL_QUESTION
    if spoken and spoken[-1]["role"] == "user":
        question = f"{spoken.pop()['content']}\n\n{question}"
    spoken.append({"role": "user", "content": question})
    if prompts:
        spoken.insert(0, {"role": "system", "content": "\n\n".join(prompts)})
    return spoken


def _message_of(event: Event) -> Message | None:
    """An event as a message of a chat; None for an event that the model did not see."""
    if event.kind in (EventKind.ERROR, EventKind.INTERRUPTION, EventKind.CLEARING):
        return None
    if event.call is not None:
        arguments = json.dumps(dict(event.call.arguments), ensure_ascii=False, default=str)
        return {"role": "assistant", "content": f"[calls {event.call.name} {arguments}]"}
    if event.kind is EventKind.TOOL_RESULT:
        return {"role": "user", "content": f"[result]\n{event.text}"}
    role = event.role if event.kind is EventKind.MESSAGE else "user"
    return {"role": role, "content": event.text}
