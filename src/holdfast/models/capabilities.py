"""The abilities of chat models, and checks that refuse methods which need more."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import ModelError, Unsteerable, UsageError
from holdfast.methods import Method, compile_methods, spec_of
from holdfast.methods.exchanges import without_suite
from holdfast.methods.kinds import EVERY_MODEL, TRAITS, Ability, in_words
from holdfast.models.protocol import require_chat_model
from holdfast.models.requests import Request

# The abilities of every model in this process. One whose attention can be reached has more.
LOCAL_ABILITIES = frozenset(
    {Ability.MESSAGES, Ability.SECOND_STREAM, Ability.REPLY_SCORES, Ability.PIECES, Ability.LAYERS}
)
# The abilities of every endpoint. A server that steers has more.
ENDPOINT_ABILITIES = EVERY_MODEL | {Ability.PIECES}
_USED_BY_METHODS = frozenset().union(*(traits.requires for traits in TRAITS.values()))


def supports(model: object, ability: Ability) -> bool:
    """Whether a model declares an ability; without a declaration, it only has those of messages."""
    declared: frozenset[Ability] = getattr(model, "capabilities", EVERY_MODEL)
    return ability in declared


def require_layers(model: object, needed: str) -> None:
    """Refuses a model that is not in this process.

    Args:
        model: a chat model.
        needed: the part of the model that is needed, as in "MODEL does not show its ...".

    Raises:
        ModelError: the model is not in this process.
    """
    require_chat_model(model)
    if not supports(model, Ability.LAYERS):
        name = getattr(model, "name", model)
        raise ModelError(
            f"{name} does not show its {needed}; give a model that is loaded here.",
            option="model",
            value=name,
        )


def require_free_reply(request: Request, description: str) -> None:
    """Refuses a request that constrains the draws, for a model that draws its tokens elsewhere.

    Args:
        request: the request.
        description: the model, as the subject of the error's sentence.

    Raises:
        ModelError: the request has penalties or a grammar.
    """
    option = "response_format" if request.grammar is None else request.grammar.option
    for name, constraint in ((option, request.grammar), ("penalties", request.penalties)):
        if constraint:
            raise ModelError(
                f"{description} draws its own tokens, so Holdfast cannot apply {name}; leave it"
                " out, or load the model in this process.",
                option=name,
                value=constraint,
            )


def check_requirements(
    methods: Sequence[Method], offered: frozenset[Ability], description: str, cure: str
) -> None:
    """Refuses methods that a model cannot apply.

    Args:
        methods: the methods of a request.
        offered: the abilities of the model.
        description: the model in words, for error messages.
        cure: the last clause of an error message.

    Raises:
        Unsteerable: a method needs an ability that the model lacks.
        UsageError: two methods need a second stream each.
    """
    usable = offered & _USED_BY_METHODS
    for method in methods:
        if lacking := compile_methods([method]).requires - offered:
            spec = spec_of([method])
            if Ability.RETRIES in lacking:
                raise Unsteerable(without_suite(spec), option="method", value=spec, allowed=usable)
            supported = f"supports only {in_words(usable)}" if usable else "supports no methods"
            raise Unsteerable(
                f"{spec} needs {in_words(lacking)}, and {description} {supported}; {cure}.",
                option="method",
                value=spec,
                allowed=usable,
            )
    processors = [method.name for method in compile_methods(methods).processors]
    if len(processors) > 1:
        raise UsageError(
            f"{' and '.join(processors)} each need a second stream, and there is one; use one of"
            " them.",
            option="method",
            value=processors,
        )
