"""The abilities of chat models, and checks that refuse a model, a method or a request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import ModelError, Unsteerable, UsageError
from holdfast.methods import Method, compile_methods, spec_of
from holdfast.methods.exchanges import without_suite
from holdfast.methods.kinds import EVERY_MODEL, TRAITS, Ability, in_words
from holdfast.models.model_names import is_url
from holdfast.models.requests import Request

# The abilities of every model in this process. One whose attention can be reached has more.
LOCAL_ABILITIES = frozenset(
    {Ability.MESSAGES, Ability.SECOND_STREAM, Ability.REPLY_SCORES, Ability.PIECES, Ability.LAYERS}
)
# The abilities of every endpoint. A server that steers has more.
ENDPOINT_ABILITIES = EVERY_MODEL | {Ability.PIECES}
_USED_BY_METHODS = frozenset().union(*(traits.requires for traits in TRAITS.values()))


def require_chat_model(model: object) -> None:
    """Refuses a value that is not a chat model, such as the name of one or a client of OpenAI's.

    Raises:
        UsageError: says which function makes a model of it.
    """
    if not all(callable(getattr(model, name, None)) for name in ("check", "session")):
        raise UsageError(
            f"{_as_subject(model)} is not a chat model; {_how_to_make(model)}.",
            option="model",
            value=model,
        )


def _as_subject(value: object) -> str:
    """A value as the subject of a sentence: a name, a function by its name, or a type."""
    if value is None or isinstance(value, (str, Path)):
        return repr(value if value is None else str(value))
    if callable(value) and hasattr(value, "__name__"):
        return f"The function {value.__name__}"
    return f"{type(value).__name__}(...)"


def _how_to_make(value: object) -> str:
    """Says which function makes a chat model of a value: 'load it with holdfast.load("x")'."""
    package = type(value).__module__.partition(".")[0]
    if isinstance(value, (str, Path)):
        function = "connect" if is_url(str(value)) else "load"
        return f"make one with holdfast.{function}({str(value)!r})"
    if package == "openai":
        url = str(getattr(value, "base_url", "URL")).rstrip("/")
        return f"connect to its server with holdfast.connect({url!r})"
    if package == "transformers":
        folder = getattr(value, "name_or_path", "") or "FOLDER"
        return f"load it with holdfast.load({folder!r})"
    if callable(value):
        name = getattr(value, "__name__", "answer")
        return f'make one of it with holdfast.from_function({name}, "my bot")'
    return (
        "make one with holdfast.load(NAME), holdfast.connect(URL) or"
        " holdfast.from_function(FUNCTION, NAME)"
    )


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
