"""The protocols of steering methods.

A method is a frozen dataclass that has the functions of one protocol below. It may declare its kind
in `kind`, and the abilities that it needs in `requires` (`holdfast.methods.kinds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from holdfast.chat.messages import Message

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.methods.heads import HeadSet


class Method(Protocol):
    """Any steering method: a frozen dataclass with a `name`, whose fields are its parameters."""

    name: ClassVar[str]


class ShiftsAttention(Method, Protocol):
    """An attention method: a function on the log-odds of the attention mass on the span.

    Only its `heads` are moved, whatever `shift` returns for others. With `span_includes_generated`,
    only the rest of the prompt loses mass. For a `TableMethod`, three numbers per head are used
    instead of calling `shift`.
    """

    @property
    def heads(self) -> HeadSet | None:
        """The (layer, head) pairs that it touches; None for all."""

    @property
    def span_includes_generated(self) -> bool:
        """Whether the tokens generated after the prompt count as the span."""

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Returns the log-odds to use instead, which are never lower.

        Args:
            log_odds: float [row, head, query], log-sum-exp of the scores on the span less that on
                the rest. It is -inf where the span is not visible, and +inf where nothing else is;
                both must be returned unchanged.
            layer: counted from 0.
        """


class EditsMessages(Method, Protocol):
    """A prompt method, which works on any model, endpoints included."""

    @property
    def edits_by_prompt(self) -> bool:
        """Whether it uses the text of the system prompt, and so needs one."""

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """Returns the messages the model is shown.

        If one chat continues another, its edited form should continue the edited form of the other.
        Where it does not, the cached prefix is of no use and is computed again.

        Args:
            messages: the chat as people see it; not changed.
            seed: the same for all turns of one conversation.
        """


class PromptRules(Protocol):
    """The rules of a system prompt, and which of them a reply breaks."""

    @property
    def texts(self) -> Sequence[str]:
        """Each rule in one sentence."""

    def broken(self, user: str, reply: str, *, is_cut: bool = False) -> Sequence[str]:
        """Returns the texts of the rules that a reply to a message of the user breaks.

        Args:
            is_cut: whether the reply was cut at the token limit; rules about its end then do not
                count as broken.
        """

    def of_kinds(self, kinds: Sequence[str]) -> PromptRules:
        """Returns the rules of some kinds, such as "closing"; a `UsageError` for unknown kinds."""


@runtime_checkable
class NeedsRules(Method, Protocol):
    """A method that may need the rules of a suite's prompt."""

    @property
    def needs_rules(self) -> bool:
        """Whether it needs the rules with its parameters."""

    @property
    def reads_replies(self) -> bool:
        """Whether it looks at earlier turns, and so comes before methods that add text to them."""

    def with_rules(self, rules: PromptRules) -> Method:
        """Returns the method with these rules, or itself if it does not need rules."""

    def check_context(self, window: int | None, summarises: bool) -> None:
        """Refuses a way of shortening the chat under which the method cannot work.

        Args:
            window: the most rounds that the model is shown; None for all.
            summarises: whether the first message shown has a summary of the other rounds.

        Raises:
            UsageError: the method would do nothing, or hide more than it should.
        """


class RetriesReplies(NeedsRules, Protocol):
    """A method that checks a reply, and may have it drawn again."""

    @property
    def retries(self) -> int:
        """The most times that a reply is drawn again."""

    def broken(self, messages: Sequence[Message], reply: str, *, is_cut: bool) -> Sequence[str]:
        """Returns the texts of the rules that a reply to the chat breaks; see `PromptRules`."""

    def remind(self, messages: Sequence[Message], broken: Sequence[str]) -> tuple[Message, ...]:
        """Returns the chat to draw the reply from again, after one that broke these rules."""


class EditsLogits(Method, Protocol):
    """A logits processor: a second stream reads another chat along with the first, and the logits
    of the two are combined.
    """

    @property
    def masks_span(self) -> bool:
        """Whether the second stream reads a mask token in place of each token of the span."""

    def second_chat(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the chat that the second stream reads."""

    def combine_logits(self, logits: Tensor, second_logits: Tensor) -> Tensor:
        """Returns the logits to draw from, float [row, vocabulary].

        Args:
            logits: of the chat, float [row, vocabulary].
            second_logits: of the second stream's chat, of the same shape.
        """


class EditsKeys(Method, Protocol):
    """A key method: the keys of the span are moved before they are rotated and cached.

    Generated tokens are never part of the span. The edit of a key depends only on that key.
    """

    @property
    def touched_layers(self) -> frozenset[int]:
        """The layers, counted from 0, whose keys or values it edits."""

    @property
    def edits_values(self) -> bool:
        """Whether `edit_values` does anything."""

    def edit_keys(self, keys: Tensor, layer: int) -> Tensor:
        """Returns the keys to use instead; keys outside the span are ignored.

        Args:
            keys: float [row, token, key-value head, size], after their norm and before rotation.
            layer: counted from 0.
        """

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """Returns values of the shape of `values` to use instead; values are not rotated."""


class EditsHidden(Method, Protocol):
    """A residual method: the hidden states after some layers are moved."""

    @property
    def touched_layers(self) -> frozenset[int]:
        """The layers, counted from 0, whose hidden states it edits."""

    @property
    def reply_only(self) -> bool:
        """Whether it moves only generated tokens, while they are generated."""

    def edit_hidden(self, hidden: Tensor, layer: int) -> Tensor:
        """Returns the hidden states to continue with.

        Args:
            hidden: float [row, token, size], after the layer.
            layer: counted from 0.
        """


class NeedsRehearsal(Method, Protocol):
    """A method that becomes an attention method once it has seen a rehearsed first reply."""

    @property
    def heads(self) -> HeadSet | None:
        """The (layer, head) pairs that the attention method will touch; None for all."""

    @property
    def max_rehearsal_tokens(self) -> int:
        """The most tokens that the rehearsed reply may have."""

    def first_turn(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the first messages of a chat, which the rehearsed reply answers."""

    def resolve(self, mass: Tensor) -> ShiftsAttention:
        """Returns the attention method that it becomes.

        Args:
            mass: the share of attention on the span, from 0 to 1, at each token of the rehearsed
                reply, float [layer, head, token].
        """


EditsStates = EditsKeys | EditsHidden
ActsInPass = ShiftsAttention | EditsStates  # a method that acts inside a forward pass
