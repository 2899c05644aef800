"""The kinds of method, what a method needs of a model, and what models can offer.

A method's class declares both as data:

    kind: ClassVar[Kind] = Kind.LOG_ODDS
    requires: ClassVar[frozenset[Ability]] = frozenset({Ability.LOG_ODDS})

and a model has `capabilities`; a method that needs any others is refused. A custom class that
declares no kind has the kind whose functions it has (`kind_of`), and needs what that kind does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from holdfast.methods.protocols import (
        EditsHidden,
        EditsKeys,
        EditsLogits,
        EditsMessages,
        EditsStates,
        InPass,
        Method,
        NeedsWarmup,
        ShiftsAttention,
    )

    Methods = Iterable[Method]


class Kind(Enum):
    """The kind of a method; each has one protocol in `holdfast.methods.protocols`."""

    LOG_ODDS = "attention"  # the log-odds of the mass on the span, in attention
    MESSAGES = "prompt"  # the chat, before it is rendered
    STREAM = "decoding"  # the logits, with those of a second stream that reads another chat
    KEYS = "keys"  # the keys of the span, before they are rotated and cached
    RESIDUAL = "the residual stream"  # the hidden states after a layer
    REHEARSED = "a rehearsed reply"  # becomes an attention method once it has seen one


class Ability(Enum):
    """Something that a model lets callers read or change; the value is its name in messages."""

    MESSAGES = "messages"
    LOG_ODDS = "attention"
    SECOND_STREAM = "a second stream"  # one per reply
    REPLY_SCORES = "log-probabilities of given replies"
    PIECES = "replies piece by piece"
    LAYERS = "hidden states and weights"
    KEYS = "keys before rotation"
    RESIDUAL = "the residual stream"
    REHEARSAL = "a rehearsed reply"


# abilities that need no model in this process
EVERY_MODEL = frozenset({Ability.MESSAGES})

REQUIRED: dict[Kind, frozenset[Ability]] = {
    Kind.LOG_ODDS: frozenset({Ability.LOG_ODDS}),
    Kind.MESSAGES: frozenset({Ability.MESSAGES}),
    Kind.STREAM: frozenset({Ability.SECOND_STREAM}),
    Kind.KEYS: frozenset({Ability.KEYS}),
    Kind.RESIDUAL: frozenset({Ability.RESIDUAL}),
    Kind.REHEARSED: frozenset({Ability.LOG_ODDS, Ability.REHEARSAL}),
}
# the functions that no other kind has
_FUNCTIONS: dict[Kind, tuple[str, ...]] = {
    Kind.LOG_ODDS: ("shift",),
    Kind.MESSAGES: ("edit",),
    Kind.STREAM: ("other", "guide"),
    Kind.KEYS: ("edit_keys", "edit_values"),
    Kind.RESIDUAL: ("edit_hidden",),
    Kind.REHEARSED: ("resolve",),
}
_ATTRIBUTES: dict[Kind, tuple[str, ...]] = {
    Kind.LOG_ODDS: ("heads", "span_includes_generated"),
    Kind.KEYS: ("touched_layers", "edits_values"),
    Kind.RESIDUAL: ("touched_layers", "reply_only"),
    Kind.REHEARSED: ("tokens", "first_turn"),
}
# kinds whose functions run inside a forward pass, so that its keys and values depend on them
_STATES = frozenset({Kind.KEYS, Kind.RESIDUAL})
_IN_PASS = _STATES | {Kind.LOG_ODDS}
_HOLD_SPAN = frozenset({Kind.LOG_ODDS, Kind.KEYS, Kind.REHEARSED, Kind.STREAM})


def members_of(kind: Kind) -> tuple[str, ...]:
    """The members that a method of a kind has."""
    return ("name", *_ATTRIBUTES.get(kind, ()), *_FUNCTIONS[kind])


def kinds_of(method: object) -> tuple[object, ...]:
    """The kind that a class declares, or else the kinds whose functions it has."""
    declared = getattr(method, "kind", None)
    if declared is not None:
        return (declared,)
    return tuple(
        kind for kind, names in _FUNCTIONS.items() if any(hasattr(method, name) for name in names)
    )


def kind_of(method: object) -> Kind | None:
    """The kind of a method, which may be inferred from its functions; None for any other object."""
    kinds = kinds_of(method)
    return kinds[0] if kinds and isinstance(kinds[0], Kind) else None


def requirements(method: object) -> frozenset[Ability]:
    """The abilities that a method needs: those its class declares, or else those of its kind."""
    declared: frozenset[Ability] | None = getattr(method, "requires", None)
    if declared is not None:
        return declared
    kind = kind_of(method)
    return REQUIRED[kind] if kind else frozenset()


@overload
def of_kind(methods: Methods, kind: Literal[Kind.LOG_ODDS]) -> tuple[ShiftsAttention, ...]: ...
@overload
def of_kind(methods: Methods, kind: Literal[Kind.MESSAGES]) -> tuple[EditsMessages, ...]: ...
@overload
def of_kind(methods: Methods, kind: Literal[Kind.STREAM]) -> tuple[EditsLogits, ...]: ...
@overload
def of_kind(methods: Methods, kind: Literal[Kind.KEYS]) -> tuple[EditsKeys, ...]: ...
@overload
def of_kind(methods: Methods, kind: Literal[Kind.RESIDUAL]) -> tuple[EditsHidden, ...]: ...
@overload
def of_kind(methods: Methods, kind: Literal[Kind.REHEARSED]) -> tuple[NeedsWarmup, ...]: ...
def of_kind(methods: Methods, kind: Kind) -> tuple[Any, ...]:
    """The methods of one kind, in their order."""
    return tuple(method for method in methods if kind_of(method) is kind)


def in_pass(methods: Methods) -> tuple[InPass, ...]:
    """The methods that act inside a forward pass, in their order."""
    acting: list[Any] = [method for method in methods if kind_of(method) in _IN_PASS]
    return tuple(acting)


def states_methods(methods: Methods) -> tuple[EditsStates, ...]:
    """The methods that edit keys or hidden states, in their order."""
    editing: list[Any] = [method for method in methods if kind_of(method) in _STATES]
    return tuple(editing)


def holds_span(method: Method) -> bool:
    """Whether a method does nothing without a system prompt or emphasis."""
    return kind_of(method) in _HOLD_SPAN


def without_target(methods: Methods, *, prompted: bool, emphasised: bool) -> tuple[Method, ...]:
    """The methods that have nothing to work on in a chat, in their order: those that steer towards
    a span, without one, and those that edit messages by the system prompt (`edits_by_prompt`),
    without a prompt.

    Args:
        prompted: whether the chat has a system prompt that is not blank.
        emphasised: whether any of its text is emphasised, which then is the span.
    """
    return tuple(
        method
        for method in methods
        if (holds_span(method) and not (prompted or emphasised))
        or (getattr(method, "edits_by_prompt", False) and not prompted)
    )


def affects_pre_span(methods: Methods) -> bool:
    """Whether any method also moves tokens before the span, and with them their keys."""
    return any(kind_of(method) is Kind.RESIDUAL for method in methods)


def in_words(abilities: Iterable[Ability]) -> str:
    """Abilities in a sentence, in the order of `Ability`; "nothing" for none."""
    chosen = set(abilities)
    *others, last = [ability.value for ability in Ability if ability in chosen] or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last
