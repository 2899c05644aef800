"""Requests and replies, whether the model runs here or behind an endpoint."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.chat.emphasis import Part, TextRange, read_marks, resolve
from holdfast.chat.messages import (
    Message,
    Messages,
    Tool,
    check_end,
    check_system_as,
    check_tool,
    has_prompt,
    read_messages,
)
from holdfast.chat.reasoning import split_reasoning
from holdfast.errors import ParameterOutOfRange, UsageError, option, shortened
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.methods import CompiledMethods, Method, Methods, compile_methods, read_methods
from holdfast.models.grammars import Grammar
from holdfast.validation import ranges

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.attention.batch_steering import AttentionTrace


ReplyTokens = tuple[int, tuple[int, ...]]  # the index of a message, and its tokens


class TokenUsage(NamedTuple):
    """The tokens of a reply and of the chat before it, whether or not they were forwarded."""

    read: int  # of the chat
    written: int  # of the reply


@dataclass(frozen=True)
class Reply:
    """One generated message.

    Args:
        text: the reply, without the tokens that end it. A local model's text may begin with
            reasoning, which `without_reasoning` moves to `reasoning`; an endpoint's does not.
        token_ids: the generated tokens; None if the model does not report them.
        stop_reason: "stop" (the model ended the reply), "length" (it was cut off at
            `max_new_tokens` or at the end of the model's context) or, only from an engine,
            "context" (the chat leaves no room for a reply, or less than the requested `room`; the
            reply is then empty). An endpoint may also give "refusal" (there is no content; the text
            is the refusal), "tool_calls" (the model called a tool; the text is anything else that
            it wrote) or "empty" (there is no content).
        trace: the attention mass on the span, if it was requested and is accessible.
        forwarded: the tokens that went through the model for this reply; 0 if unknown.
        prompt_ids: the tokens of the rendered chat; None if the model does not report them.
        masses: for each generated token, the mean of the mass over all heads, from a server that
            steers; None if there is a `trace`, or if none was requested.
        billed: the tokens of the chat and of the reply as counted by an endpoint; None if it does
            not count them, or if the model runs here.
        reasoning: the model's reasoning before the reply; "" if there is none, or if it is hidden.
        cached: the tokens of the chat that did not go through the model, because their keys and
            values were kept; 0 if unknown.
        discarded: the replies that were drawn for the same request but not used, because they broke
            more rules (`check-and-retry`).
        retry_failed: whether it breaks a rule, and drawing it again failed.
    """

    text: str
    token_ids: tuple[int, ...] | None
    stop_reason: str
    trace: AttentionTrace | None = field(default=None, repr=False)
    forwarded: int = 0
    prompt_ids: tuple[int, ...] | None = field(default=None, repr=False)
    masses: tuple[float, ...] | None = None
    billed: TokenUsage | None = None
    reasoning: str = field(default="", repr=False)
    cached: int = field(default=0, repr=False, compare=False)
    discarded: tuple[Reply, ...] = field(default=(), repr=False)
    retry_failed: bool = field(default=False, repr=False)

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of the chat and of the reply; None if they are unknown."""
        if self.billed is None and self.prompt_ids is not None and self.token_ids is not None:
            return TokenUsage(len(self.prompt_ids), len(self.token_ids))
        return self.billed

    @property
    def token_masses(self) -> tuple[float, ...]:
        """The mass on the span at each generated token, mean over heads; () if not traced.

        The token that ended the reply, which `token_ids` lacks, comes last.
        """
        if self.trace is None:
            return self.masses or ()
        return tuple(self.trace.mass.mean((0, 1)).tolist())

    def without_reasoning(self) -> Reply:
        """Moves reasoning from the text to `reasoning`, as readers of the chat do not see it."""
        if self.reasoning:
            return self
        reasoning, text = split_reasoning(self.text)
        return self if text == self.text else replace(self, text=text, reasoning=reasoning)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, as an engine streams it.

    Args:
        token_id: the token; the one that ends a reply is not streamed.
        mass: the attention mass on the span when it was drawn, mean over all heads; None unless the
            request is traced and has a span.
        uniform: the same mass under uniform attention, where a layer gives all tokens that it sees
            the same weight.
        heads: the mass in each head, float32 [layer, head].
        logprob: its log-probability at temperature 1 over the whole vocabulary; None unless
            requested.
        top: the likeliest tokens and their log-probabilities, likeliest first.
        cached: the tokens of the chat that did not go through the model, as their
            keys and values were kept from an earlier request.
        text: its text once it is decoded; "" if a later token completes its character.
    """

    token_id: int
    mass: float | None = None
    uniform: float | None = None
    heads: Tensor | None = field(default=None, repr=False)
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    cached: int = 0
    text: str = ""


@dataclass(frozen=True)
class Request:
    """One reply to generate, independent of the others in its batch.

    Args:
        messages: the chat so far: at least one message, each with a role and a text.
        methods: the steering of this reply only: a list of methods, a method, or a spec string.
        sampling: how its tokens are drawn.
        seed: determines the draws of this reply; at least 0 and below 2**128.
        conversation_seed: the seed of methods that edit messages; None uses `seed`. All turns of a
            conversation need the same one, or such a method may change its decisions about earlier
            messages.
        thread: names a conversation inside a session; requests of the same thread share the keys
            and values of their common prefix.
        keep: whether the reply becomes part of the thread; if not, the request forks the thread.
        trace: whether to trace the attention mass on the span; under `attenuate`, whose span is
            not the prompt, there is no trace.
        system_as: "role", or "first-user" to put the system prompt before the first user message.
        emphasis: the text that attention methods emphasise in place of the system prompt: texts,
            (text, occurrence from 1) or (message from 0, first, last character), in messages of any
            role. All parts form one set, which is kept as ranges.
        marks: whether `*like this*` in a message is emphasis too. Marks are removed from the
            messages, and kept as ranges.
        plain: whether the text of the only message is the prompt, without a chat template;
            attention methods then use only `emphasis`.
        room: the tokens of the model's context that must be left for the reply, at most a quarter
            of the context; if fewer are left, the stop reason is "context". Endpoints have their
            own rule.
        reply_token_ids: (message from 0, token ids) for replies among the messages, in order, with
            the tokens that the model generated. A text has several tokenizations, after which a
            conversation would continue differently. A `thread` that the session knows keeps its
            own.
        tools: the tools that the chat declares, in OpenAI's format. The reply is always text: an
            endpoint is asked not to call tools.
        continue_final_message: whether the reply continues the last message, which must be the
            assistant's; the reply is then only the text after it. If this is False, such a chat is
            refused.
        penalties: lower the logits of tokens that the reply already has; need a model in this
            process.
        grammar: the texts that the reply may be, as from `read_response_format`; None allows any. A
            reply that is cut off at the token limit is the beginning of such a text. Needs a model
            in this process.
        name: identifies the request in errors; "" if it is the only one.

    Raises:
        PromptError: an emphasised text is in no message.
        UsageError: a message has no role or no text, or another argument is not as described.
        ParameterOutOfRange: the seed is below 0, or too large for the random generator.
    """

    messages: tuple[Message, ...]
    methods: tuple[Method, ...] = ()
    sampling: Sampling = Sampling()
    seed: int = 0
    conversation_seed: int | None = None
    thread: Hashable | None = None
    keep: bool = False
    trace: bool = False
    system_as: str = "role"
    emphasis: tuple[TextRange, ...] = ()
    marks: bool = False
    plain: bool = False
    room: int = 1
    reply_token_ids: tuple[ReplyTokens, ...] = ()
    tools: tuple[Tool, ...] = ()
    continue_final_message: bool = False
    penalties: Penalties = Penalties()
    grammar: Grammar | None = None
    name: str = field(default="", compare=False)

    if TYPE_CHECKING:  # the constructor accepts more types than the fields keep

        def __init__(
            self,
            messages: Messages,
            methods: Methods = (),
            sampling: Sampling = Sampling(),
            seed: int = 0,
            conversation_seed: int | None = None,
            thread: Hashable | None = None,
            keep: bool = False,
            trace: bool = False,
            system_as: str = "role",
            emphasis: Sequence[Part] = (),
            marks: bool = False,
            plain: bool = False,
            room: int = 1,
            reply_token_ids: Sequence[ReplyTokens] = (),
            tools: Sequence[Tool] = (),
            continue_final_message: bool = False,
            penalties: Penalties = Penalties(),
            grammar: Grammar | None = None,
            name: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        set_field("methods", read_methods(self.methods))
        set_field("messages", read_messages(self.messages or ()))
        set_field("tools", tuple(self.tools))
        self._check_fields()
        emphasis: Sequence[Part] = self.emphasis
        if self.marks:
            unmarked, marked = read_marks(self.messages)
            set_field("messages", unmarked)
            set_field("marks", False)
            emphasis = (*marked, *emphasis)
        set_field("emphasis", resolve(self.messages, emphasis))
        if self.emphasis and self.compiled.spares_replies:
            raise UsageError(
                "attenuate acts on earlier replies, so it cannot be combined with emphasis; leave"
                " one of them out.",
                option="emphasis",
                value=self.compiled.spec,
            )

    def _check_fields(self) -> None:
        """Refuses messages and arguments that are not as described, or exclude each other."""
        if not self.messages:
            raise UsageError(
                "A request needs at least one message, not []; add one with the role 'user'.",
                option="messages",
                value=[],
            )
        check_end(self.messages, continues=self.continue_final_message)
        for tool in self.tools:
            check_tool(tool)
        if ranges.whole_number("a request", "seed", self.seed, 0) >= 2**128:
            raise ParameterOutOfRange(
                f"a request takes {option('seed')} below 2**128, not {shortened(self.seed)}.",
                option="seed",
                value=self.seed,
                allowed="below 2**128",
            )
        ranges.whole_number("a request", "room", self.room, 1)
        check_system_as(self.system_as)
        if self.plain:
            self._check_plain()
        if self.grammar is not None and self.continue_final_message:
            raise UsageError(
                f"{self.grammar.option} describes a whole reply, but with continue_final_message"
                " the reply is only the end of a message; leave one of them out.",
                option=self.grammar.option,
                value=self.grammar.description,
            )
        self._check_reply_tokens()

    def _check_plain(self) -> None:
        """Refuses what a plain request cannot have, as no template renders it."""
        if len(self.messages) != 1:
            raise UsageError(
                f"A plain request has one message, whose text is the prompt, not"
                f" {len(self.messages)}; join their texts.",
                option="messages",
                value=len(self.messages),
                allowed=1,
            )
        if self.tools:
            raise UsageError(
                f"The tool {self.tools[0]['function']['name']!r} needs a chat template, and a plain"
                " request has none; leave it out.",
                option="tools",
                value=self.tools[0],
            )
        for method in self.compiled.chat_only:
            raise UsageError(
                f"{method.name} works on the messages of a chat, and a plain request has none;"
                " use boost, split-softmax or another method that needs none.",
                option="methods",
                value=method.name,
            )

    def _check_reply_tokens(self) -> None:
        """Refuses reply tokens of messages that are no replies, or are not in order."""
        last = 0
        for number, _ in self.reply_token_ids:
            if (
                not last < number < len(self.messages)
                or self.messages[number]["role"] != "assistant"
            ):
                raise UsageError(
                    "A request takes tokens of the assistant's messages, each once and in order,"
                    f" not of message {number}; leave them out.",
                    option="reply_token_ids",
                    value=number,
                )
            last = number

    def check_span(self, name: str = "") -> None:
        """Raises a `UsageError` if a method needs a span and the chat has none.

        `name` identifies the request among several in the error; "" if it is the only one.
        """
        untargeted = self.compiled.lacking_target(
            prompted=not self.plain and has_prompt(self.messages),
            emphasised=bool(self.emphasis),
        )
        if not untargeted:
            return
        prefix = f"{name}: " if name else ""
        if untargeted.needs_system_prompt:
            raise UsageError(
                f"{prefix}{untargeted.spec} needs a system prompt, and this chat has none; add a"
                " message with the role 'system'.",
                option="messages",
                value=untargeted.spec,
                allowed="a system prompt",
            )
        raise UsageError(
            f"{prefix}{untargeted.spec} needs a system prompt or emphasis, and this chat has"
            " neither; add a message with the role 'system', or give emphasis.",
            option="messages",
            value=untargeted.spec,
            allowed="a system prompt or emphasis",
        )

    @cached_property
    def compiled(self) -> CompiledMethods:
        """All its methods, compiled; `TokenPrompt.pass_methods` are those inside a pass."""
        return compile_methods(self.methods)

    @property
    def editing_seed(self) -> int:
        """The seed for methods that edit messages."""
        return self.seed if self.conversation_seed is None else self.conversation_seed
