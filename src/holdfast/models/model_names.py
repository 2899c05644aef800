"""Reads from a model's name where it runs: behind a URL, in another package's engine, or here."""

import os
import re
from dataclasses import dataclass
from typing import NamedTuple

# vllm:default; not https://host, localhost:8000 or the Windows drive in c:/models
_IN_ENGINE = re.compile(r"(?P<engine>[a-z][a-z0-9_-]+):(?!//|\d+(?:/|$)).")

_THIS_MACHINE = r"localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]"
_HOST = rf"(?:{_THIS_MACHINE}|[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*)"
# an address without its scheme: host:8000/v1, api.host.com/v1, or localhost
_ADDRESS = re.compile(rf"{_HOST}:\d+(?:/\S*)?|{_HOST}/v1/?|(?:{_THIS_MACHINE})(?:/\S*)?")


class _Vendor(NamedTuple):
    """A vendor of models that are only behind its endpoint."""

    name: str  # how the names of its models begin, as a pattern
    url: str
    key: str  # the environment variable in which its users keep their key


# Models with open weights do not match: their names on the hub begin with an owner.
_VENDORS = (
    # gpt-5, chatgpt-4o-latest, o3, o3-mini
    _Vendor(r"gpt-\d|chatgpt-|o\d(-|$)", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    _Vendor(r"claude-", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    _Vendor(
        r"gemini-",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
    ),
    _Vendor(r"grok-", "https://api.x.ai/v1", "XAI_API_KEY"),
)

# Engines with their own server, which `holdfast serve` does not replace. They are listed by name
# because a report follows from its records alone, whether or not the engine is installed.
SERVED_ELSEWHERE = frozenset({"vllm"})


@dataclass(frozen=True)
class GuessedEndpoint:
    """The endpoint that an incomplete name seems to mean."""

    url: str
    model: str = ""  # the model's name at the endpoint; "" if the name does not say
    key: str = ""  # the environment variable in which the vendor's users keep their key


def is_url(model: str | None) -> bool:
    """Whether a model is given as the URL of an endpoint."""
    return (model or "").startswith(("http://", "https://"))


def guess_endpoint(model: str | None) -> GuessedEndpoint | None:
    """Guesses the endpoint that a name means: an address without its scheme, or a vendor's model.

    None if the name may be that of a folder, or of a model on the hub.
    """
    if not model or os.path.exists(model):
        return None
    if _ADDRESS.fullmatch(model):
        is_plain = re.match(_THIS_MACHINE, model) or ":" in model
        return GuessedEndpoint(f"http://{model}" if is_plain else f"https://{model}")
    for vendor in _VENDORS:
        if re.match(vendor.name, model):
            return GuessedEndpoint(vendor.url, model, vendor.key)
    return None


def is_served(model: str) -> bool:
    """Whether a server other than `holdfast serve` has the model, because it is a URL or in an
    engine of `SERVED_ELSEWHERE`.
    """
    return is_url(model) or engine_in(model) in SERVED_ELSEWHERE


def engine_in(model: str) -> str:
    """The engine in a name such as "vllm:MODEL"; "" if the name has none, or is a path."""
    match = _IN_ENGINE.match(model)
    return match["engine"] if match and not os.path.exists(model) else ""
