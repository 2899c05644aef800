"""Where a model runs, as its name says: behind a URL, in another package's engine, or here."""

import os
import re

_NAMED = re.compile(r"([a-z][a-z0-9_-]+):(?!//).")  # neither a URL nor a Windows drive


def is_url(model: str | None) -> bool:
    """Whether a model is given as the URL of an endpoint."""
    return (model or "").startswith(("http://", "https://"))


def is_served(model: str) -> bool:
    """Whether a model is behind a URL or in vLLM, where `holdfast serve` does not load it."""
    return is_url(model) or engine_in(model) == "vllm"


def engine_in(model: str) -> str:
    """The engine that a model's name asks for; "" if it asks for none, or is a path."""
    named = _NAMED.match(model)
    return named[1] if named and not os.path.exists(model) else ""
