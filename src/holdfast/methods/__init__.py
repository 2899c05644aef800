"""Steering methods; this package imports no torch. The names imported here are its interface."""

from collections.abc import Sequence

from holdfast.chat.messages import Message, Messages
from holdfast.methods.attention import Boost, Pasta, SplitSoftmax, Spotlight
from holdfast.methods.contrast import AdaCad, Anchoring, Guidance, PromptStrength
from holdfast.methods.fitted import Fitted, FittedOn, write_fitted
from holdfast.methods.heads import (
    HeadSet,
    Ranking,
    Shape,
    intersection,
    read_heads,
    union,
    write_heads,
)
from holdfast.methods.hold import Floors, Hold
from holdfast.methods.keys import Prism, Seka
from holdfast.methods.kinds import (
    Ability,
    Kind,
    affects_pre_span,
    holds_span,
    in_pass,
    kind_of,
    of_kind,
    requirements,
    states_methods,
    without_target,
)
from holdfast.methods.protocols import (
    EditsHidden,
    EditsKeys,
    EditsLogits,
    EditsMessages,
    Method,
    NeedsWarmup,
    ShiftsAttention,
)
from holdfast.methods.registry import catalogue, schema
from holdfast.methods.repetition import Repetition
from holdfast.methods.residual import Capping, Vector
from holdfast.methods.spec import (
    Methods,
    Sweep,
    is_file,
    parse,
    parse_sweep,
    read_method_file,
    read_methods,
    spell,
)


def edit_messages(messages: Messages, methods: Sequence[Method], seed: int) -> tuple[Message, ...]:
    """The messages the model is shown: every method that edits messages is applied, in order.

    Args:
        seed: the same for all turns of one conversation (`Request.editing_seed`).
    """
    for method in of_kind(methods, Kind.MESSAGES):
        messages = method.edit(messages, seed)
    return tuple(messages)
