"""Compiled methods: one object that says what a list of methods does, and what it needs.

    compiled = compile_methods(parse("repetition:probability=1+boost:factor=4"))
    compiled.edit(messages, seed)       the chat that the model is shown
    compiled.attention, .table          the attention methods, and their three numbers per head
    compiled.keys, .hidden              edits of keys and values, and of hidden states
    compiled.processors                 logits processors, each with a second stream
    compiled.rehearsed                  methods that a rehearsed reply turns into attention methods
    compiled.spec                       the methods as a spec string

Every request, every row of a batch and every cache carries this object. They read its attributes,
and none asks what kind a method is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast.chat.messages import Message, Messages
from holdfast.errors import UsageError
from holdfast.methods.exchanges import without_suite
from holdfast.methods.kinds import TRAITS, Ability, MethodKind, require_kind, requirements
from holdfast.methods.protocols import (
    EditsHidden,
    EditsKeys,
    EditsLogits,
    EditsMessages,
    EditsStates,
    Method,
    NeedsRehearsal,
    NeedsRules,
    RetriesReplies,
    ShiftsAttention,
)
from holdfast.methods.spec import spec_of
from holdfast.methods.table import HeadTable, head_table


def compile_methods(methods: Iterable[Method]) -> CompiledMethods:
    """Compiles methods, which are given in the order in which they apply.

    Raises:
        UsageError: one of them is no method, or two of them act on different spans.
    """
    return CompiledMethods(tuple(methods))


@dataclass(frozen=True)
class CompiledMethods:
    """Methods, sorted by what they change; `compile_methods` makes it.

    Two are equal if their methods are.
    """

    methods: tuple[Method, ...]  # in the order in which they apply
    kinds: tuple[MethodKind, ...] = field(init=False, repr=False, compare=False)  # the kind of each

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(map(require_kind, self.methods)))
        self._check_spans()

    def _check_spans(self) -> None:
        """Refuses methods that act on different spans: there is one for all methods of a chat."""
        if not self.spares_replies:
            return
        masking = [method for method in self.processors if method.masks_span]
        for method in (*self.attention, *self.keys, *self.rehearsed, *masking):
            if Ability.REPLY_SPANS not in requirements(method):
                raise UsageError(
                    f"{spec_of([method])} acts on the system prompt, and attenuate on earlier"
                    " replies; give only one of them.",
                    option="method",
                    value=spec_of(self.methods),
                )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return compile_methods, (self.methods,)  # a hash means nothing to another process

    def __bool__(self) -> bool:
        return bool(self.methods)

    @cached_property
    def spec(self) -> str:
        """The methods as a spec string, such as "boost:factor=4"."""
        return spec_of(self.methods)

    # What the methods change

    @cached_property
    def messages(self) -> tuple[EditsMessages, ...]:
        """The methods that edit the chat before it is rendered."""
        return self._of_kinds(MethodKind.MESSAGES)

    @cached_property
    def attention(self) -> tuple[ShiftsAttention, ...]:
        """The methods that move the attention mass on the span."""
        return self._of_kinds(MethodKind.LOG_ODDS)

    @cached_property
    def table(self) -> HeadTable | None:
        """The bias, exponent and floor of each head that together do what `attention` does.

        None if three numbers per head cannot; the methods are then called one by one.
        """
        return head_table(self.attention)

    @cached_property
    def keys(self) -> tuple[EditsKeys, ...]:
        """The methods that edit the keys of the span, and perhaps its values."""
        return self._of_kinds(MethodKind.KEYS)

    @cached_property
    def hidden(self) -> tuple[EditsHidden, ...]:
        """The methods that edit hidden states."""
        return self._of_kinds(MethodKind.RESIDUAL)

    @property
    def states(self) -> tuple[EditsStates, ...]:
        """The methods that edit something inside a pass other than attention."""
        return (*self.keys, *self.hidden)

    @cached_property
    def processors(self) -> tuple[EditsLogits, ...]:
        """The methods that combine the logits with those of a second stream."""
        return self._of_kinds(MethodKind.LOGITS)

    @cached_property
    def rehearsed(self) -> tuple[NeedsRehearsal, ...]:
        """The methods that become attention methods once they have seen a rehearsed reply."""
        return self._of_kinds(MethodKind.REHEARSED)

    @cached_property
    def retries(self) -> tuple[RetriesReplies, ...]:
        """The methods that have a reply drawn again if it broke a rule."""
        return self._of_kinds(MethodKind.RETRIES)

    @property
    def retry(self) -> RetriesReplies | None:
        """The one method in `retries`, None without it; several are refused before this is read."""
        return self.retries[0] if self.retries else None

    @cached_property
    def edits_requests(self) -> bool:
        """Whether a proxy can apply them all: each edits messages or has replies drawn again."""
        return bool(self.methods) and {*self.kinds} <= {MethodKind.MESSAGES, MethodKind.RETRIES}

    @cached_property
    def needs_rules(self) -> bool:
        """Whether any method needs the rules of a suite, which `holdfast serve` does not have."""
        return any(isinstance(method, NeedsRules) and method.needs_rules for method in self.methods)

    def refuse_without_suite(self) -> None:
        """Refuses methods that need the rules of a suite, where no suite can be given.

        Raises:
            UsageError: one of the methods needs them.
        """
        for method in self.methods:
            if isinstance(method, NeedsRules) and method.needs_rules:
                spec = spec_of([method])
                raise UsageError(without_suite(spec), option="method", value=spec)

    def edit(self, messages: Messages, seed: int) -> tuple[Message, ...]:
        """Returns the messages that the model is shown.

        Args:
            seed: the same for all turns of one conversation (`Request.editing_seed`).
        """
        for method in self._in_editing_order:
            messages = method.edit(messages, seed)
        return tuple(messages)

    @cached_property
    def _in_editing_order(self) -> tuple[EditsMessages, ...]:
        """The methods that edit messages, first the methods that read replies.

        The text that the others add must not look like a part of a reply.
        """

        def adds_text(method: EditsMessages) -> bool:
            return not (isinstance(method, NeedsRules) and method.reads_replies)

        return tuple(sorted(self.messages, key=adds_text))

    # What the methods need

    @cached_property
    def requires(self) -> frozenset[Ability]:
        """The abilities that the methods need of a model."""
        return frozenset().union(*map(requirements, self.methods))

    @cached_property
    def needs_span(self) -> bool:
        """Whether any method does nothing in a chat without a system prompt or emphasis."""
        return any(TRAITS[kind].needs_span for kind in self.kinds)

    @cached_property
    def needs_system_prompt(self) -> bool:
        """Whether any method edits messages by the system prompt, even if text is emphasised."""
        return any(method.edits_by_prompt for method in self.messages)

    @cached_property
    def spares_replies(self) -> bool:
        """Whether the span is everything but the model's earlier replies, not the system prompt."""
        return Ability.REPLY_SPANS in self.requires

    @cached_property
    def chat_only(self) -> tuple[Method, ...]:
        """The methods that work on the messages of a chat, and so not on a plain text."""
        on_messages = self._of_kinds(MethodKind.MESSAGES, MethodKind.LOGITS)
        return (*on_messages, *(self.attention if self.spares_replies else ()))

    def lacking_target(self, *, prompted: bool, emphasised: bool) -> CompiledMethods:
        """Returns the methods that have nothing to work on in a chat.

        Args:
            prompted: whether the chat has a system prompt that is not blank.
            emphasised: whether any of its text is emphasised, which then is the span.
        """
        by_prompt = [method for method in self.messages if method.edits_by_prompt]
        pairs = zip(self.methods, self.kinds, strict=True)
        return compile_methods(
            method
            for method, kind in pairs
            if (
                TRAITS[kind].needs_span
                and Ability.REPLY_SPANS not in requirements(method)
                and not (prompted or emphasised)
            )
            or (method in by_prompt and not prompted)
        )

    # How the methods act inside a forward pass

    @cached_property
    def in_pass(self) -> CompiledMethods:
        """The methods that act inside a forward pass.

        Two requests can share cached keys and values only if these are equal.
        """
        return self._where(lambda kind: TRAITS[kind].acts_in_pass)

    def in_pass_over(self, span: Sequence[bool]) -> CompiledMethods:
        """Returns the methods of `in_pass` that do something in a text with this span.

        Args:
            span: for each token, whether it is in the span.
        """
        return self.in_pass if any(span) else self.in_pass.without_span

    @cached_property
    def affects_pre_span(self) -> bool:
        """Whether any method also changes the states of tokens before the span."""
        return any(TRAITS[kind].affects_pre_span for kind in self.kinds)

    @cached_property
    def span_includes_generated(self) -> bool:
        """Whether any attention method counts generated tokens as the span."""
        return any(method.span_includes_generated for method in self.attention)

    @cached_property
    def agrees_on_span(self) -> bool:
        """Whether generated tokens count as the span for all attention methods, or for none."""
        return len({method.span_includes_generated for method in self.attention}) < 2

    @cached_property
    def treats_generated_apart(self) -> bool:
        """Whether a generated token gets different keys than the same token in a prompt."""
        return self.span_includes_generated or any(method.reply_only for method in self.hidden)

    @cached_property
    def masks_span(self) -> bool:
        """Whether the second stream reads a mask token in place of each token of the span."""
        return any(method.masks_span for method in self.processors)

    # The same methods without some

    @cached_property
    def without_edits(self) -> CompiledMethods:
        """The methods that act on the rendered chat, so all but those that edit messages."""
        return self._without(MethodKind.MESSAGES)

    @cached_property
    def without_retries(self) -> CompiledMethods:
        """The methods that act on a single draw of a reply."""
        return self._without(MethodKind.RETRIES)

    @cached_property
    def without_rehearsed(self) -> CompiledMethods:
        """The methods that need no rehearsed reply."""
        return self._without(MethodKind.REHEARSED)

    @cached_property
    def without_span(self) -> CompiledMethods:
        """The methods that also do something in a text without a span."""
        return self._where(lambda kind: not TRAITS[kind].needs_span)

    @cached_property
    def _hash(self) -> int:
        return hash(self.methods)

    def _of_kinds(self, *kinds: MethodKind) -> tuple[Any, ...]:
        """Returns the methods of these kinds.

        Each property above names the protocol of its kind, which a type checker cannot infer. They
        have it, because `kinds.check_method` refuses a method that lacks a member.
        """
        pairs = zip(self.methods, self.kinds, strict=True)
        return tuple(method for method, kind in pairs if kind in kinds)

    def _without(self, left_out: MethodKind) -> CompiledMethods:
        return self._where(lambda kind: kind is not left_out)

    def _where(self, is_wanted: Callable[[MethodKind], bool]) -> CompiledMethods:
        """Returns the methods of the wanted kinds.

        If these are all, returns this object itself, whose properties may be computed already.
        """
        pairs = zip(self.methods, self.kinds, strict=True)
        members = [method for method, kind in pairs if is_wanted(kind)]
        return self if len(members) == len(self.methods) else compile_methods(members)


UNSTEERED = compile_methods(())


def head_tables(rows: Iterable[CompiledMethods]) -> list[HeadTable] | None:
    """Returns the `table` of each row's methods, or None if any row has no table."""
    tables: list[HeadTable] = []
    for methods in rows:
        if methods.table is None:
            return None
        tables.append(methods.table)
    return tables
