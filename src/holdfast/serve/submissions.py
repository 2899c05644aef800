"""Turns request bodies into engine requests, with their sampling and steering.

For example:

    {"messages": [...], "n": 2, "seed": 7}
    -> Submission(requests=(Request(seed=7), Request(seed=8)), steering=Steering(methods=()))
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformers import PreTrainedTokenizerFast

from holdfast.chat.messages import Message, Tool, check_end, dialog_seed, has_prompt
from holdfast.errors import HoldfastError, option
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.methods import Method, compile_methods
from holdfast.models.grammars import Function, Grammar, forced_call, strict_calls
from holdfast.models.requests import Request
from holdfast.serve.bodies import (
    ChatBody,
    ChatFields,
    CompletionBody,
    GeneratingBody,
    SpanFields,
    TokenizeBody,
)
from holdfast.serve.body_parts import FunctionTool, plain_tools
from holdfast.serve.limits import RequestLimits
from holdfast.serve.refusals import Refusal, refusal_of, refused_field
from holdfast.serve.request_steering import Steering, choose_steering, read_spec
from holdfast.serve.tool_calls import CallParser


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
    steering = choose_steering(
        body.steering, default, prompted=has_prompt(messages), emphasised=bool(request.emphasis)
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
        steering = _completion_steering(body, default, emphasised=bool(request.emphasis))
        for _ in range(body.n):
            requests.append(_steer(request, steering, seed + len(requests), body))
    return Submission(body, tuple(requests), steering)


def _completion_steering(
    body: CompletionBody, default: Sequence[Method], *, emphasised: bool
) -> Steering:
    """The methods of a completion; none of the server's default if one of these needs a chat."""
    steering = choose_steering(body.steering, default, prompted=False, emphasised=emphasised)
    chat_only = compile_methods(steering.methods).chat_only
    if body.steering is None and chat_only:
        why = f"{chat_only[0].name} works on the messages of a chat, and this is not a chat"
        return Steering((), why)
    return steering


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
