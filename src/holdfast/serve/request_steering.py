"""Chooses the methods of a request, and reports them in its answer.

For example:

    "steering": "boost:factor=2"  -> its methods; refused if there is no text to steer towards
    no "steering"                 -> the server's default; none, with the reason, if there is none
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from holdfast.errors import HoldfastError, UsageError
from holdfast.methods import Method, compile_methods, parse, spec_of
from holdfast.models.requests import Request
from holdfast.serve.answer_formats import AppliedSteering
from holdfast.serve.refusals import refusal_of, refused_field


@dataclass(frozen=True)
class Steering:
    """The methods of a request, or why it has none.

    Args:
        methods: those that the request names, or the server's default.
        why: why there are none; None if there are any.
    """

    methods: tuple[Method, ...]
    why: str | None = None

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
        report["edited"] = [_edited_messages(request) for request in requests]
        if len(editing) == len(self.methods) and not any(report["edited"]):
            report["applied"] = False
            report["why"] = f"{spec_of(editing)} leaves the messages of this chat as they are"
        return report


def _edited_messages(request: Request) -> list[int]:
    """The numbers, from 0, of the messages that methods have edited."""
    edited_messages = request.compiled.edit(request.messages, request.editing_seed)
    pairs = zip_longest(request.messages, edited_messages)
    return [number for number, (sent, edited) in enumerate(pairs) if sent != edited]


def choose_steering(
    spec: str | None, default: Sequence[Method], *, prompted: bool, emphasised: bool
) -> Steering:
    """Chooses between the methods that a request names and the server's default.

    Args:
        spec: the methods that the request names; None if it names none.
        prompted: whether its chat has a system prompt.
        emphasised: whether it emphasises text.
    """
    if spec is None:
        return _default_steering(default, prompted=prompted, emphasised=emphasised)
    return _named_steering(spec, prompted=prompted, emphasised=emphasised)


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


def read_spec(spec: str) -> tuple[Method, ...]:
    """Parses a spec string that came over the wire, which must not name files."""
    try:
        return parse(spec, files=False)
    except HoldfastError as error:
        raise refusal_of(error, "steering") from None
