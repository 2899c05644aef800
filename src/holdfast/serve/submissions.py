"""Turns request bodies into engine requests, with their sampling and steering."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from transformers import PreTrainedTokenizerFast

from holdfast.chat.messages import Message, Tool, check_end, dialog_seed, has_prompt
from holdfast.errors import HoldfastError, UsageError, option
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.methods import Method, compile_methods, parse, spec_of
from holdfast.models.grammars import Function, Grammar, forced_call, strict_calls
from holdfast.models.requests import Request
from holdfast.serve.answer_formats import AppliedSteering
from holdfast.serve.bodies import (
    ChatBody,
    ChatFields,
    CompletionBody,
    FunctionTool,
    GeneratingBody,
    SpanFields,
    TokenizeBody,
    plain_tools,
)
from holdfast.serve.limits import RequestLimits
from holdfast.serve.refusals import Refusal, refusal_of, refused_field
from holdfast.serve.tool_calls import CallParser


@dataclass(frozen=True)
class Steering:
    """The methods of a request."""

    methods: tuple[Method, ...]  # those that the request names, or the server's default
    why: str | None = None  # why there are none; None if there are any

    def report(self, requests: Sequence[Request]) -> AppliedSteering:
        """Reports the steering of these requests, for their answer.

        Methods that edit messages may leave a chat unchanged; if all methods did, nothing was
        applied.
        """
        report = AppliedSteering(steering=spec_of(self.methods), applied=self.why is None)
        if self.why is not None:
            return {**report, "why": self.why}
        editing = compile_methods(self.methods).messages
        if not editing:
            return report
        report["edited"] = [_list_edited(request) for request in requests]
        if len(editing) == len(self.methods) and not any(report["edited"]):
            report["applied"] = False
            report["why"] = f"{spec_of(editing)} leaves the messages of this chat as they are"
        return report


@dataclass(frozen=True)
class Submission:
    """A body, and the requests to the engine that were made from it.

    Args:
        body: the body.
        requests: one request for each choice, in the order of their indices; those of the same
            prompt are consecutive.
        steering: the methods of all these requests.
        round: the round of the dialog, from 1; 0 if there is no dialog.
        parser: parses tool calls in the replies; None if replies are only text.
        is_call_forced: whether a reply must be exactly one tool call.
    """

    body: ChatBody | CompletionBody
    requests: tuple[Request, ...]
    steering: Steering
    round: int = 0
    parser: CallParser | None = None
    is_call_forced: bool = False


def read_chat(
    body: ChatBody, default: Sequence[Method], limits: RequestLimits, parser: CallParser
) -> Submission:
    """Reads the body of a chat completion; `default` is the server's steering."""
    if body.parses_calls and parser.template is None:
        raise refused_field(
            "tools",
            f"The tokenizer of {parser.name!r} has no response template, so calls of"
            f" {body.tools[0].function.name!r} in its replies cannot be parsed; give tool_choice"
            " none to get them as text, or leave tools out.",
            "no_response_template",
        )
    tools = plain_tools(body.tools)
    messages = [parser.without_calls(message, tools) for message in body.chat]
    grammar = _choose_grammar(body, parser)
    if grammar is not None and body.continue_final_message:
        raise refused_field(
            "continue_final_message",
            f"{option(grammar.option)} asks for {grammar.description}, but continue_final_message"
            " for the end of a message; leave one of them out.",
        )
    request = _make_request(messages, body, _read_sampling(body, limits), limits, tools=tools)
    request = replace(request, grammar=grammar, penalties=_read_penalties(body))
    steering = _choose_methods(
        body, default, prompted=has_prompt(messages), emphasised=bool(request.emphasis)
    )
    if body.seed is None:
        request = replace(request, conversation_seed=dialog_seed(messages))
    seed = _choose_seed(body)
    return Submission(
        body,
        tuple(_steer(request, steering, seed + i, body) for i in range(body.n)),
        steering,
        round=sum(message["role"] == "user" for message in messages),
        parser=parser if body.parses_calls else None,
        is_call_forced=bool(body.forced_tools),
    )


def _choose_grammar(body: ChatBody, parser: CallParser) -> Grammar | None:
    """The grammar of the replies; None if they may be any text."""
    if not body.forced_tools and not body.strict_tools:
        return body.format_grammar
    form = parser.form
    if form is None:
        name, value = ("tool_choice", "required") if body.forced_tools else ("tools", "strict")
        raise refused_field(
            name,
            f"{value} cannot be enforced, because the template of {parser.name!r} does not write"
            " calls with JSON arguments that can be read back; leave it out.",
            "no_call_form",
        )
    if body.forced_tools:
        functions = [_grammar_function(tool, strict=True) for tool in body.forced_tools]
        return forced_call(form, functions)
    functions = [_grammar_function(tool, strict=tool.function.strict) for tool in body.tools]
    return strict_calls(form, functions)


def _grammar_function(tool: FunctionTool, *, strict: bool) -> Function:
    """The function of a tool; its arguments may be any object unless it is `strict`."""
    parameters = (tool.function.parameters or {}) if strict else {}
    return Function(tool.function.name, parameters)


def read_completion(
    body: CompletionBody,
    default: Sequence[Method],
    limits: RequestLimits,
    tokenizer: PreTrainedTokenizerFast,
) -> Submission:
    """Reads the body of a completion, as `read_chat` does; only emphasis can be its span."""
    prompts = body.prompts
    if len(prompts) * body.n > limits.choices:
        raise refused_field(
            "n",
            f"{len(prompts)} prompts with n {body.n} make more than the {limits.choices} choices"
            " that this server takes; send fewer in one request.",
        )
    sampling = _read_sampling(body, limits)
    seed = _choose_seed(body)
    requests = list[Request]()
    steering = Steering(())
    for prompt in prompts:
        text = prompt if isinstance(prompt, str) else _text_of(prompt, tokenizer)
        messages = [{"role": "user", "content": text}]
        request = _make_request(messages, body, sampling, limits, plain=True)
        request = replace(request, penalties=_read_penalties(body))
        if body.steering is not None:  # refuses methods that work on the messages of a chat
            _steer(request, Steering(read_spec(body.steering)), seed, body)
        steering = _choose_methods(body, default, prompted=False, emphasised=bool(request.emphasis))
        chat_only = compile_methods(steering.methods).chat_only
        if body.steering is None and chat_only:
            why = f"{chat_only[0].name} works on the messages of a chat, and this is not a chat"
            steering = Steering((), why)
        for _ in range(body.n):
            requests.append(_steer(request, steering, seed + len(requests), body))
    return Submission(body, tuple(requests), steering)


def read_tokens(body: TokenizeBody, limits: RequestLimits, parser: CallParser) -> Request:
    """Reads the chat or text whose tokens a `/tokenize` body asks for."""
    if (body.messages is None) == (body.prompt is None):
        raise refused_field("messages", "Give either messages or a prompt.")
    tools = plain_tools(body.tools)
    messages = [parser.without_calls(m.plain(), tools) for m in body.messages or ()]
    is_plain = body.prompt is not None
    if is_plain:
        messages = [{"role": "user", "content": body.prompt}]
    return _make_request(messages, body, Sampling(), limits, plain=is_plain, tools=tools)


def read_spec(spec: str) -> tuple[Method, ...]:
    """Parses a spec string that came over the wire, which must not name files."""
    try:
        return parse(spec, files=False)
    except HoldfastError as error:
        raise refusal_of(error, "steering") from None


def check_model(name: str | None, served: str) -> None:
    """Refuses any model name but the served one."""
    if name is not None and name != served:
        message = f"There is no model {name[:100]!r} here; this server has {served!r}."
        raise Refusal(message, param="model", code="model_not_found", status=404)


def check_template(name: str, tokenizer: PreTrainedTokenizerFast) -> None:
    """Refuses a chat if the model has no template for one."""
    if not tokenizer.chat_template:
        raise refused_field(
            "messages",
            f"The model {name!r} has no chat template, so it can only continue texts; send a prompt"
            " to /v1/completions, or have the server started with --chat-template plain.",
            "no_chat_template",
        )


def _choose_methods(
    body: GeneratingBody, default: Sequence[Method], *, prompted: bool, emphasised: bool
) -> Steering:
    """Chooses between the methods that a request names and the server's default."""
    if body.steering is None:
        return _default_steering(default, prompted=prompted, emphasised=emphasised)
    return _named_steering(body.steering, prompted=prompted, emphasised=emphasised)


def _default_steering(default: Sequence[Method], *, prompted: bool, emphasised: bool) -> Steering:
    """The server's default, unless the request has nothing that it could act on."""
    if not default:
        return Steering((), "neither the request nor the server asks for steering")
    compiled = compile_methods(default)
    if compiled.spares_replies and emphasised:
        why = f"{compiled.spec} acts on earlier replies, and the request emphasises text"
        return Steering((), why)
    untargeted = compiled.lacking_target(prompted=prompted, emphasised=emphasised)
    if not untargeted:
        return Steering(tuple(default))
    if untargeted.needs_system_prompt:
        return Steering((), f"{untargeted.spec} needs a system prompt, and there is none")
    return Steering((), "there is no system prompt and no emphasis to steer towards")


def _named_steering(spec: str, *, prompted: bool, emphasised: bool) -> Steering:
    """The methods that a request names; refuses those that lack a span."""
    methods = read_spec(spec)
    if not methods:
        return Steering((), "the request asks for none")
    compiled = compile_methods(methods)
    try:
        compiled.refuse_without_suite()
    except UsageError as error:
        raise refusal_of(error, "steering") from None
    if untargeted := compiled.lacking_target(prompted=prompted, emphasised=emphasised):
        if untargeted.needs_system_prompt:
            message = (
                f"steering {untargeted.spec} needs a system prompt, and there is none; add one, or"
                " ask for steering none."
            )
        else:
            message = (
                f"steering {untargeted.spec} needs a system prompt or emphasis, and there is"
                " neither; add one, or ask for steering none."
            )
        raise refused_field("steering", message, "nothing_to_hold")
    return Steering(methods)


def _list_edited(request: Request) -> list[int]:
    """The numbers, from 0, of the messages that methods have edited."""
    edited_messages = request.compiled.edit(request.messages, request.editing_seed)
    pairs = zip_longest(request.messages, edited_messages)
    return [number for number, (sent, edited) in enumerate(pairs) if sent != edited]


def _steer(request: Request, steering: Steering, seed: int, body: GeneratingBody) -> Request:
    """Gives a request its methods and its seed."""
    try:
        steered = replace(request, methods=steering.methods, seed=seed, trace=bool(body.trace))
    except HoldfastError as error:
        raise refusal_of(error, "steering") from None
    if body.trace and steered.compiled.spares_replies:
        raise refused_field(
            "trace",
            f"Under {steered.compiled.spec}, which acts on earlier replies, the attention mass on"
            ' the prompt is not traced; leave out "trace", or send other "steering".',
        )
    return steered


def _make_request(
    messages: list[Message],
    body: SpanFields,
    sampling: Sampling,
    limits: RequestLimits,
    *,
    plain: bool = False,
    tools: Sequence[Tool] = (),
) -> Request:
    """Makes a request without methods; refuses messages and emphasis that do not fit together."""
    field = "marks" if body.marks else "emphasis"
    continues = isinstance(body, ChatFields) and body.continue_final_message
    try:
        check_end(messages, continues=continues)
    except HoldfastError as error:
        raise refusal_of(error, "messages") from None
    try:
        request = Request(
            messages,
            sampling=sampling,
            system_as=body.system_as,
            emphasis=body.emphasis,
            marks=body.marks,
            plain=plain,
            tools=tools,
            continue_final_message=continues,
        )
    except HoldfastError as error:
        raise refusal_of(error, field) from None
    if len(request.emphasis) > limits.emphasis:
        raise refused_field(
            field,
            f"{len(request.emphasis)} parts are emphasised, and this server takes"
            f" {limits.emphasis} at most.",
        )
    return request


def _read_sampling(body: GeneratingBody, limits: RequestLimits) -> Sampling:
    return Sampling(body.temperature, body.top_p, body.token_limit or limits.tokens)


def _read_penalties(body: GeneratingBody) -> Penalties:
    return Penalties(body.frequency_penalty, body.presence_penalty)


def _choose_seed(body: GeneratingBody) -> int:
    return secrets.randbits(62) if body.seed is None else body.seed


def _text_of(ids: list[int], tokenizer: PreTrainedTokenizerFast) -> str:
    """Finds the text that is tokenized to these ids; refuses ids without such a text."""
    decoded = str(tokenizer.decode(ids)) if max(ids) < len(tokenizer) else ""
    for text in (decoded, decoded.removeprefix(str(tokenizer.bos_token))):
        if text and list(tokenizer(text).input_ids) == ids:
            return text
    raise refused_field(
        "prompt",
        f"The text of the prompt's {len(ids)} token ids is tokenized to other ids; send the text.",
    )
