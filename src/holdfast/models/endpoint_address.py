"""Where an endpoint is, and how to ask it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Endpoint:
    """The address of a model, and how to ask it."""

    url: str  # without credentials and query
    model: str  # its name there
    key_variable: str  # the environment variable the key is read from
    timeout: float  # seconds that the server may stay silent
    max_retries: int  # per request
    key: str = field(default="", repr=False, compare=False)  # empty if none is needed
