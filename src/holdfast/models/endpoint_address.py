"""The address of an endpoint, and the settings of its client."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Endpoint:
    """The address of a model, and the settings of its client."""

    url: str  # without credentials and query
    model: str  # the model's name at the endpoint
    key_variable: str  # the environment variable that the key is read from
    timeout: float  # seconds that the server may stay silent
    max_retries: int  # per request
    key: str = field(default="", repr=False, compare=False)  # "" if none is needed
