"""Where a model runs, as its name says: behind a URL, in another package's engine, or here."""

import os
import re
from dataclasses import dataclass

# neither a URL, nor a host with a port, nor a Windows drive
_NAMED = re.compile(r"([a-z][a-z0-9_-]+):(?!//|\d+(?:/|$)).")

_HERE = r"localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]"
_HOST = rf"(?:{_HERE}|[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*)"
# a host with a port, or the base URL of an API without its scheme
_ADDRESS = re.compile(rf"{_HOST}:\d+(?:/\S*)?|{_HOST}/v1/?|(?:{_HERE})(?:/\S*)?")


def is_url(model: str | None) -> bool:
    """Whether a model is given as the URL of an endpoint."""
    return (model or "").startswith(("http://", "https://"))


@dataclass(frozen=True)
class Endpoint:
    """A model behind an endpoint, as an incomplete name seems to mean it."""

    url: str
    model: str = ""  # its name there; "" if the name does not say
    key: str = ""  # the environment variable in which the vendor's users keep their key


# how the names of vendors' models begin; those of models with open weights have an owner before
_VENDORS = (
    (r"gpt-\d|chatgpt-|o\d(-|$)", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    (r"claude-", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    (
        r"gemini-",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
    ),
    (r"grok-", "https://api.x.ai/v1", "XAI_API_KEY"),
)


def endpoint_meant(model: str | None) -> Endpoint | None:
    """The endpoint that a name seems to mean which is no URL: an address without its scheme, or a
    vendor's model; None if it may be the name of a folder or of a model on the hub.
    """
    if not model or os.path.exists(model):
        return None
    if _ADDRESS.fullmatch(model):
        nearby = re.match(_HERE, model) or ":" in model
        return Endpoint(f"{'http' if nearby else 'https'}://{model}")
    for pattern, url, key in _VENDORS:
        if re.match(pattern, model):
            return Endpoint(url, model, key)
    return None


# Engines with a server of their own, which `holdfast serve` does not replace. They are known by
# name, as a report follows from its records alone, whether or not the engine is installed.
SERVED_ELSEWHERE = frozenset({"vllm"})


def is_served(model: str) -> bool:
    """Whether another server than `holdfast serve` has the model: it is a URL, or in an engine of
    `SERVED_ELSEWHERE`.
    """
    return is_url(model) or engine_in(model) in SERVED_ELSEWHERE


def engine_in(model: str) -> str:
    """The engine that a model's name asks for; "" if it asks for none, or is a path."""
    named = _NAMED.match(model)
    return named[1] if named and not os.path.exists(model) else ""
