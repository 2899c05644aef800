"""Reads the steering of a request from `vllm_xargs`, which has these keys:

    holdfast         methods as spec strings: "boost:factor=2"
    holdfast_text    the span as text, which must occur in the rendered prompt exactly once
    holdfast_span    the span as tokens: first, last (exclusive), first, last, ...
    holdfast_trace   1 to record the attention mass on the span
    holdfast_seed    a seed, from which tokens are then drawn as by Holdfast's own engine,
                     independently of the batch; a whole number, or its digits as text

Without a text or a span, the span of a chat is its system prompt. This module imports neither vLLM
nor torch.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from holdfast.errors import UsageError
from holdfast.methods import (
    Ability,
    Method,
    ShiftsAttention,
    compile_methods,
    parse,
    schema,
    spec_of,
)
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.kinds import in_words, requirements

METHODS, TEXT, SPAN, TRACE, SEED = KEYS = (
    "holdfast",
    "holdfast_text",
    "holdfast_span",
    "holdfast_trace",
    "holdfast_seed",
)
ADMITTED = "holdfast_admitted"  # passed from the frontend to the workers; refused from outside
MAX_SPAN_PARTS = 8  # parts of a span with full CUDA graphs, which have room for a fixed number
# similarity from which an unknown key counts as misspelled; other keys may be another plug-in's
_MIN_SIMILARITY = 0.75

_MAX_SEEDS = 2**128
# parameters by which vLLM would change logits after our draw, with their neutral values; a model's
# generation_config.json may set some of them
_SHAPES_DRAWS: dict[str, tuple[float, ...]] = {
    "top_k": (0, -1),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}

Range = tuple[int, int]  # first and last token (exclusive)


@dataclass(frozen=True)
class RequestedSteering:
    """The steering of a request, before its prompt is known.

    Args:
        methods: attention methods, in order.
        text: the span as text; "" if not given.
        span: the span as token ranges; () if not given.
        trace: whether to record the mass.
        seed: the seed of the draw; None leaves the draw to vLLM.
    """

    methods: tuple[ShiftsAttention, ...]
    text: str = ""
    span: tuple[Range, ...] = ()
    trace: bool = False
    seed: int | None = None

    @property
    def needs_span(self) -> bool:
        """Whether the request needs a span, to steer or trace attention."""
        return bool(self.methods) or self.trace


@dataclass(frozen=True)
class Drawing:
    """How the tokens of a reply are drawn, in place of vLLM's own draw.

    Args:
        seed: the seed of the draw.
        temperature: divides the logits; 0 takes the likeliest token.
        top_p: the share of the probability from whose likeliest tokens the draw is made.
        tokens: the maximum length of the reply.
    """

    seed: int
    temperature: float
    top_p: float
    tokens: int


@dataclass(frozen=True, eq=False)  # compared by identity, which is fast
class Admitted:
    """The steering of an admitted request, whose span is known.

    Args:
        methods: attention methods, in order; () if attention is only traced, or not at all.
        ranges: the span's token ranges, in order and disjoint.
        prompt: the number of tokens in the prompt.
        trace: the name under which the mass is kept; "" if it is not recorded.
        drawing: how tokens are drawn; None leaves that to vLLM.
    """

    methods: tuple[ShiftsAttention, ...]
    ranges: tuple[Range, ...]
    prompt: int
    trace: str = ""
    drawing: Drawing | None = None

    def pack(self) -> dict[str, Any]:
        """Converts to plain data, which vLLM sends to its workers."""
        drawing = None
        if self.drawing is not None:  # the seed as text, as it may exceed the wire's numbers
            drawing = [str(self.drawing.seed), *astuple(self.drawing)[1:]]
        return {
            "methods": spec_of(self.methods),
            "ranges": [token for part in self.ranges for token in part],
            "prompt": self.prompt,
            "trace": self.trace,
            "drawing": drawing,
        }

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> Admitted:
        """Restores what `pack` has converted."""
        ranges = packed["ranges"]
        drawing = packed.get("drawing")
        return cls(
            compile_methods(parse(packed["methods"])).attention,
            tuple(zip(ranges[::2], ranges[1::2], strict=True)),
            packed["prompt"],
            packed["trace"],
            None if drawing is None else Drawing(int(drawing[0]), *drawing[1:]),
        )

    def salt(self, user_salt: str | None) -> str | None:
        """Returns the salt of the prefix cache, as keys and values depend on methods and span.

        If generated tokens count as the span, the prompt's length is part of the salt, so that a
        reply is recomputed when it becomes part of a later prompt.

        Args:
            user_salt: the user's own salt, which keeps its effect.
        """
        if not self.methods:
            return user_salt
        counts = any(method.span_includes_generated for method in self.methods)
        parts = [spec_of(self.methods), self.ranges, self.prompt if counts else None, user_salt]
        return "holdfast-" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_steering(xargs: Mapping[str, Any] | None) -> RequestedSteering | None:
    """Reads the steering from a request's `vllm_xargs`; None if it asks for none.

    Raises:
        UsageError: an unknown or misspelled key, a value of the wrong kind, or a method that this
            server cannot apply.
    """
    xargs = xargs or {}
    for key in xargs:
        _check_key(key)
    if not any(key in xargs for key in KEYS):
        return None
    trace = _read_trace(xargs.get(TRACE, 0))
    seed = _read_seed(xargs.get(SEED))
    if METHODS not in xargs and not trace and (seed is None or TEXT in xargs or SPAN in xargs):
        raise UsageError(
            f"The request has {next(key for key in KEYS if key in xargs)} but not {METHODS!r}; give"
            ' the methods too, as in {"holdfast": "boost:factor=2"}.'
        )
    methods = _read_methods(xargs.get(METHODS, "none"))
    if not methods and not trace and seed is None:
        return None
    text = _read_text(xargs.get(TEXT))
    span = _read_span(xargs.get(SPAN))
    if text and span:
        raise UsageError(f"A request can have {TEXT} or {SPAN}, not both; leave one out.")
    return RequestedSteering(methods, text, span, trace, seed)


def _check_key(key: str) -> None:
    if key in KEYS:
        return
    near = difflib.get_close_matches(key.lower(), KEYS, n=1, cutoff=_MIN_SIMILARITY)
    if key.lower().startswith("holdfast") or near:
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(KEYS)}."
        raise UsageError(f"There is no key {key!r} in vllm_xargs; {hint}")


def _read_methods(spec: object) -> tuple[ShiftsAttention, ...]:
    """Parses attention methods; the server opens no files that a request names."""
    if not isinstance(spec, str):
        raise UsageError(
            f"{METHODS} takes methods as a spec string, such as 'boost:factor=2', not {spec!r}."
        )
    if ".json" in spec:
        raise UsageError(
            f"{METHODS} names a file ({spec!r}), but the server reads no files of its clients;"
            " write out its contents, as in 'boost:factor=2,heads=3.0/3.5'."
        )
    for part in spec.split("+"):  # check the methods by name first, before parsing their parameters
        if (method_class := BY_NAME.get(part.partition(":")[0].strip())) is not None:
            _check_needs(method_class)
    methods = parse(spec, files=False)
    for method in methods:
        _check_needs(method)
    return compile_methods(methods).attention


def offered_methods() -> list[dict[str, Any]]:
    """Describes the methods that requests may name, as `holdfast.methods.schema` does."""
    offered = [Ability.LOG_ODDS.value]
    return [method for method in schema() if method["needs"] == offered]


def _check_needs(method: Method | type[Any]) -> None:
    needs = requirements(method) - {Ability.LOG_ODDS}
    if not needs:
        return
    if Ability.MESSAGES in needs:
        raise UsageError(
            f"{method.name} edits messages, which has to be done by the client; send the edited"
            " messages (see holdfast.client), and leave the method out here."
        )
    raise UsageError(
        f"{method.name} needs {in_words(needs)}, which vLLM does not offer; use an attention"
        " method, or serve the model with holdfast."
    )


def _read_text(text: object) -> str:
    if text is None:
        return ""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{TEXT} takes the words to steer towards, not {text!r}.")
    return text.strip()


def _read_span(tokens: object) -> tuple[Range, ...]:
    if tokens is None:
        return ()
    if (
        not isinstance(tokens, Sequence)
        or isinstance(tokens, str)
        or not tokens
        or len(tokens) % 2
        or any(type(token) is not int for token in tokens)
    ):
        raise UsageError(
            f"{SPAN} takes whole numbers, the first and last token (exclusive) of each part, such"
            f" as [4, 32], not {tokens!r}."
        )
    return tuple(zip(tokens[::2], tokens[1::2], strict=True))


def _read_trace(trace: object) -> bool:
    if trace not in (0, 1) or isinstance(trace, float):
        raise UsageError(f"{TRACE} takes 1 or 0, not {trace!r}.")
    return bool(trace)


def _read_seed(seed: object) -> int | None:
    if seed is None:
        return None
    digits = str(seed) if type(seed) in (int, str) else ""
    if not (digits.isascii() and digits.isdigit()) or int(digits) >= _MAX_SEEDS:
        raise UsageError(
            f"{SEED} takes a whole number of at least 0 and below 2**128, or its digits as text,"
            f" not {seed!r}."
        )
    return int(digits)


def check_draw(request: object) -> None:
    """Refuses a draw with settings other than temperature and top_p.

    Args:
        request: has vLLM's settings as attributes, which are None if not given.

    Raises:
        UsageError: names the first such setting.
    """
    for name, accepted in _SHAPES_DRAWS.items():
        value = getattr(request, name, None)
        if value is not None and value not in accepted:
            raise UsageError(
                f"{SEED} draws only by temperature and top_p, but this request has {name}={value};"
                f" send {name}={accepted[0]}, or leave {SEED} out."
            )


def check_heads(methods: Sequence[ShiftsAttention], layers: int, heads: int) -> None:
    """Refuses heads that the model does not have.

    Raises:
        UsageError: names the head, and how many the model has.
    """
    for method in methods:
        for layer, head in sorted(method.heads or ()):
            if layer >= layers or head >= heads:
                raise UsageError(
                    f"{method.name} names head {head} in layer {layer}, but the model has {layers}"
                    f" layers of {heads} heads, counted from 0."
                )
