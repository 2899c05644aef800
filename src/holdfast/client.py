"""Steering over HTTP with existing clients, such as OpenAI's; does not import torch.

    from openai import OpenAI
    from holdfast.client import steer

    client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")
    client.chat.completions.create(
        model="default", messages=messages, extra_body=steer("boost:factor=2", trace=True)
    )

`holdfast serve` accepts two formats of the same fields; the narrower one is also what vLLM with our
plug-in reads.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from holdfast.chat.emphasis import Part, check_parts
from holdfast.chat.messages import Message, Messages, read_messages
from holdfast.errors import UnknownName, UsageError, shortened
from holdfast.methods import compile_methods, read_methods, spec_of
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.protocols import Method

__all__ = ["WIRE_FORMATS", "edit", "steer"]

# whether masses are requested, and "heads" for those of each head
TraceRequest = bool | Literal["heads"]


def steer(
    method: Sequence[Method | str] | Method | str = "none",
    *,
    emphasis: Sequence[Part] = (),
    trace: TraceRequest = False,
    server: str = "holdfast",
) -> dict[str, Any]:
    """Builds the `extra_body` of a request to a server that steers.

    Args:
        method: a spec, a method, or a list of them; "none" switches off the server's default.
        emphasis: the span to follow in place of the system prompt: texts, (text, occurrence from 1)
            or (message from 0, first, last character).
        trace: True requests the attention mass at every generated token; "heads" requests the mass
            of every head as well.
        server: "holdfast" for `holdfast serve`; "vllm" for the format that vLLM with our plug-in
            and `holdfast serve` both read: at most one text to emphasise, and no trace by head.

    Returns:
        The fields that the OpenAI client takes as `extra_body=`; other clients add them to the
        body.

    Raises:
        UsageError: a method needs the rules of a suite, servers do not know it, or it edits
            messages and the server is vLLM (see `edit`); the emphasis is invalid; or the format of
            `server` cannot express one of the arguments.
    """
    if server not in WIRE_FORMATS:
        raise UnknownName("server", server, WIRE_FORMATS)
    if trace not in (True, False, "heads"):
        raise UsageError(f"steer takes trace as True, False or 'heads', not {shortened(trace)}.")
    compiled = compile_methods(read_methods(method))
    compiled.refuse_without_suite()
    if compiled.messages and server == "vllm":
        spec = spec_of(compiled.messages)
        raise UsageError(
            f"{spec} edits messages, which vLLM takes as they are; send"
            f" holdfast.client.edit(messages, {spec!r}), and steer with the other methods."
        )
    for parsed in compiled.methods:
        if BY_NAME.get(parsed.name) is not type(parsed):
            raise UnknownName("method", parsed.name, BY_NAME, owner="A server")
    check_parts(emphasis)
    return WIRE_FORMATS[server](compiled.spec, emphasis, trace)


def edit(
    messages: Messages, method: Sequence[Method | str] | Method | str, seed: int = 0
) -> list[Message]:
    """Returns the messages as methods such as repetition edit them, to be sent instead.

    Args:
        messages: the chat as people see it; not changed.
        method: a spec, a method, or a list of them, all of which edit messages.
        seed: the same for all turns of one dialog, so that edits of earlier turns repeat exactly.

    Raises:
        UsageError: a method does not edit messages, or a message has no role or no text.
    """
    messages = list(read_messages(messages))
    compiled = compile_methods(read_methods(method))
    compiled.refuse_without_suite()
    if others := compiled.without_edits:
        raise UsageError(
            f"{others.spec} does not edit messages; give it to holdfast.client.steer, whose fields"
            " go beside the messages."
        )
    return list(compiled.edit(messages, seed))


def _holdfast_fields(method: str, emphasis: Sequence[Part], trace: TraceRequest) -> dict[str, Any]:
    """The fields of `holdfast serve`."""
    fields: dict[str, Any] = {"steering": method}
    if emphasis:
        fields["emphasis"] = [part if isinstance(part, str) else list(part) for part in emphasis]
    if trace:
        fields["trace"] = trace
    return fields


def _vllm_fields(method: str, emphasis: Sequence[Part], trace: TraceRequest) -> dict[str, Any]:
    """The fields of our vLLM plug-in, whose values are strings and numbers."""
    if trace == "heads":
        raise UsageError("vLLM does not report the mass of single heads; use trace=True.")
    texts = [part for part in emphasis if isinstance(part, str)]
    if len(emphasis) > 1 or len(texts) < len(emphasis):
        raise UsageError(
            f"vLLM takes one text to emphasise, not {shortened(list(emphasis))}; give one text, or"
            " server='holdfast' if the server is `holdfast serve`."
        )
    fields: dict[str, Any] = {"holdfast": method}
    if texts:
        fields["holdfast_text"] = texts[0]
    if trace:
        fields["holdfast_trace"] = 1
    return {"vllm_xargs": fields}


# For each kind of server, the function that builds its fields from a spec, emphasis and a trace.
WIRE_FORMATS: Mapping[str, Callable[[str, Sequence[Part], TraceRequest], dict[str, Any]]] = {
    "holdfast": _holdfast_fields,
    "vllm": _vllm_fields,
}
