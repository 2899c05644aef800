"""Steering methods, one file per published method; this package imports no torch.

none                           the model as it is
split-softmax:exponent=0.5     attention    Li et al. 2024, section 6.2
pasta:alpha=0.01               attention    Zhang et al. 2024
boost:factor=4                 attention    InstABoost, arXiv 2506.13734; GUIDE, arXiv 2409.19001
spotlight:target=0.3           attention    arXiv 2505.12025
repetition:probability=0.5     prompt       Li et al. 2024, section 6.1
guidance:scale=1.5             decoding     Li et al. 2024, equation 5
gate:threshold=0.1,methods=[split-softmax:exponent=0.5]   decoding   after Kang and Kim 2026
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.chat.messages import Message
from holdfast.methods.boost import Boost
from holdfast.methods.gate import Gate
from holdfast.methods.guidance import Guidance
from holdfast.methods.heads import (
    HeadSet,
    Ranking,
    Shape,
    intersection,
    read_heads,
    union,
    write_heads,
)
from holdfast.methods.kinds import (
    Ability,
    Kind,
    attention_methods,
    kind_of,
    needs_of,
    of_kind,
)
from holdfast.methods.pasta import Pasta
from holdfast.methods.protocols import (
    EditsLogits,
    EditsMessages,
    GatesTokens,
    Method,
    ShiftsAttention,
)
from holdfast.methods.reading import read_methods
from holdfast.methods.repetition import Repetition
from holdfast.methods.spec import (
    Sweep,
    catalogue,
    is_file,
    parse,
    parse_sweep,
    read_method_file,
    spell,
)
from holdfast.methods.split_softmax import SplitSoftmax
from holdfast.methods.spotlight import Spotlight

__all__ = [
    "Ability",
    "Boost",
    "EditsLogits",
    "EditsMessages",
    "Gate",
    "GatesTokens",
    "Guidance",
    "HeadSet",
    "Kind",
    "Method",
    "Pasta",
    "Ranking",
    "Repetition",
    "Shape",
    "ShiftsAttention",
    "SplitSoftmax",
    "Spotlight",
    "Sweep",
    "attention_methods",
    "catalogue",
    "edit_messages",
    "intersection",
    "is_file",
    "kind_of",
    "needs_of",
    "of_kind",
    "parse",
    "parse_sweep",
    "read_heads",
    "read_method_file",
    "read_methods",
    "spell",
    "union",
    "write_heads",
]


def edit_messages(
    messages: Sequence[Message], methods: Sequence[Method], seed: int
) -> tuple[Message, ...]:
    """The messages the model is shown: every method that edits messages is applied, in order.

    Args:
        messages: the chat as people see it; not changed.
        methods: of any kind; those that do not edit messages are passed over.
        seed: the same for all turns of one conversation (`Request.editing_seed`).
    """
    for method in of_kind(methods, Kind.MESSAGES):
        messages = method.edit(messages, seed)
    return tuple(messages)
