"""Drift without probes: how far a reply's distributions lie from those under a fresh dialog.

Dongre et al. 2025 ("Drift No More?", arXiv 2510.07777): drift at turn t is KL(q_t || p_t) between
the token-level predictive distributions of the model under test and of a goal-consistent reference
model. Ours, where that leaves room: the reference is the same model under a fresh dialog, which has
its system prompt and the message that it answers, and nothing between, so in round 1 the divergence
is 0; the average is over the tokens of the reply, the one that ended it included, in nats per token
at temperature 1; under a method, both chats are read under it; of a replayed turn with tool calls,
the reply is the last text, behind its calls and results. docs/divergence.md says more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.chat.messages import Message
from holdfast.common.seeds import seed_of
from holdfast.drift.asking import Asking
from holdfast.drift.dialog import AGENT_VIEW, Dialog, agent_view
from holdfast.drift.settings import Shown, with_summary
from holdfast.errors import ModelError
from holdfast.methods import Ability, Method
from holdfast.models.capabilities import offers
from holdfast.models.protocol import ChatModel, Compares, Session
from holdfast.models.requests import Compared, Reply, Request, check_comparable

_DIGITS = 6


def check_measurable(model: ChatModel, settings: Iterable[Sequence[Method]]) -> None:
    """Refuses a model or methods that have no divergence, before anything runs."""
    if not offers(model, Ability.DISTRIBUTIONS):
        raise ModelError(
            f"{model.name} does not tell its distributions over the whole vocabulary, which a"
            " divergence compares; give a local model, or leave out --divergence."
        )
    for methods in settings:
        check_comparable(methods)


def note_reply(
    asking: Asking, number: int, reply: Reply, shown: Shown, before: Sequence[Message] = ()
) -> None:
    """Remembers a reply of the agent that is to be compared, before it is part of its dialog; its
    turn's tool calls and results stand `before` it.
    """
    if not asking.settings.divergence:
        return
    dialog = asking.dialog
    chat = [*with_summary(agent_view(dialog, shown=shown), shown), *before]
    fresh = [*agent_view(dialog, shown=Shown(first=number)), *before]
    dialog.compared[number] = Compared(
        _request(asking, chat), _request(asking, fresh), replace(reply, trace=None)
    )


def _request(asking: Asking, messages: Sequence[Message]) -> Request:
    """A chat as the agent reads it."""
    settings, number = asking.settings, asking.dialog.pairing.number
    return Request(
        messages,
        asking.methods,
        conversation_seed=seed_of("methods", settings.seed, number),
        thread=(AGENT_VIEW, number),
        system_as=settings.system_as,
        tools=asking.dialog.tools,
    )


def measure(session: Session, dialog: Dialog) -> None:
    """Compares the replies of a dialog that is over, and notes in each turn what came of it: the
    mean in nats per token, or None where the dialog did not fit into the model's context.
    """
    if not dialog.compared:
        return
    assert isinstance(session, Compares), "the model offers distributions"
    replies = list(dialog.compared.values())
    measured = dict(zip(dialog.compared, session.diverge(replies), strict=True))
    for turn in dialog.turns:
        if turn["speaker"] == "agent" and turn["round"] in measured:
            divergence = measured[turn["round"]]
            turn["divergence"] = None if divergence is None else round(divergence.mean, _DIGITS)
    dialog.forwarded_again = sum(
        divergence.forwarded for divergence in measured.values() if divergence is not None
    )
