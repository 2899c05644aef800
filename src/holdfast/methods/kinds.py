"""The kinds of method, what a method needs of a model, and what models can offer.

A method's class declares both as data:

    kind: ClassVar[Kind] = Kind.LOG_ODDS
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.LOG_ODDS})

and a model has `offers`, so that a refusal is a difference of two sets. A class of one's own that
declares no kind is of the kind whose function it has (`kind_of`), and needs what that kind does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from holdfast.methods.protocols import (
        EditsLogits,
        EditsMessages,
        GatesTokens,
        Method,
        ShiftsAttention,
    )


class Kind(Enum):
    """What a method sees and changes; each kind is one protocol (`holdfast.methods.protocols`)."""

    LOG_ODDS = "attention"  # the log-odds of the mass on the span, in attention
    MESSAGES = "prompt"  # the chat, before it is rendered
    STREAM = "decoding"  # the logits, with those of a second stream that reads another chat
    GATE = "gate"  # the tokens, with an unsteered second stream of the same chat


class Ability(Enum):
    """What a model lets others see or change; the value is its name in sentences."""

    MESSAGES = "messages"
    LOG_ODDS = "attention"
    SECOND_STREAM = "a second stream"  # one per reply
    REPLY_SCORES = "log-probabilities of given replies"
    PIECES = "replies piece by piece"
    LAYERS = "hidden states and weights"


# what needs no model in this process
EVERY_MODEL = frozenset({Ability.MESSAGES})

MEMBERS: dict[Kind, tuple[str, ...]] = {
    Kind.LOG_ODDS: ("name", "heads", "span_includes_generated", "shift"),
    Kind.MESSAGES: ("name", "edit"),
    Kind.STREAM: ("name", "other", "guide"),
    Kind.GATE: ("name", "methods", "accepts"),
}
NEEDS: dict[Kind, frozenset[Ability]] = {
    Kind.LOG_ODDS: frozenset({Ability.LOG_ODDS}),
    Kind.MESSAGES: frozenset({Ability.MESSAGES}),
    Kind.STREAM: frozenset({Ability.SECOND_STREAM}),
    Kind.GATE: frozenset({Ability.LOG_ODDS, Ability.SECOND_STREAM}),
}
_TOLD_BY = {
    "shift": Kind.LOG_ODDS,
    "edit": Kind.MESSAGES,
    "guide": Kind.STREAM,
    "other": Kind.STREAM,
    "accepts": Kind.GATE,
}


def kinds_of(method: object) -> tuple[object, ...]:
    """The kind that a class declares, or else the kinds whose functions it has."""
    declared = getattr(method, "kind", None)
    if declared is not None:
        return (declared,)
    return tuple(
        dict.fromkeys(kind for function, kind in _TOLD_BY.items() if hasattr(method, function))
    )


def kind_of(method: object) -> Kind | None:
    """The kind of a method; None for what is none.

    The only place where an undeclared kind is inferred; `read_methods` refuses what has the
    functions of several.
    """
    kinds = kinds_of(method)
    return kinds[0] if kinds and isinstance(kinds[0], Kind) else None


def needs_of(method: object) -> frozenset[Ability]:
    """What a method needs of a model: what its class declares, or else what its kind needs."""
    declared: frozenset[Ability] | None = getattr(method, "needs", None)
    if declared is not None:
        return declared
    kind = kind_of(method)
    return NEEDS[kind] if kind else frozenset()


@overload
def of_kind(
    methods: Iterable[Method], kind: Literal[Kind.LOG_ODDS]
) -> tuple[ShiftsAttention, ...]: ...
@overload
def of_kind(
    methods: Iterable[Method], kind: Literal[Kind.MESSAGES]
) -> tuple[EditsMessages, ...]: ...
@overload
def of_kind(methods: Iterable[Method], kind: Literal[Kind.STREAM]) -> tuple[EditsLogits, ...]: ...
@overload
def of_kind(methods: Iterable[Method], kind: Literal[Kind.GATE]) -> tuple[GatesTokens, ...]: ...
def of_kind(methods: Iterable[Method], kind: Kind) -> tuple[Any, ...]:
    """The methods of one kind, in their order."""
    return tuple(method for method in methods if kind_of(method) is kind)


def attention_methods(methods: Iterable[Method]) -> tuple[ShiftsAttention, ...]:
    """The methods that steer attention, in their order, those behind a gate among them."""
    steering: list[ShiftsAttention] = []
    for method in methods:
        steering += of_kind([method], Kind.LOG_ODDS)
        for gate in of_kind([method], Kind.GATE):
            steering += gate.methods
    return tuple(steering)


def in_words(abilities: Iterable[Ability]) -> str:
    """Abilities in a sentence, in the order of `Ability`; "nothing" for none."""
    chosen = set(abilities)
    *others, last = [ability.value for ability in Ability if ability in chosen] or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last
