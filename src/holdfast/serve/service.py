"""The state that all routes of one server share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.serve.engine_thread import EngineThread
from holdfast.serve.metrics import Metrics


@dataclass(frozen=True)
class Limits:
    """Bounds of one request."""

    tokens: int = 4096  # new ones of a reply; also the default of a request that gives no number
    seconds: float = 600.0  # from its arrival to its last token
    body_bytes: int = 1 << 20  # of its body
    upload_seconds: float = 30.0  # until its body has arrived
    messages: int = 1000  # of a chat
    choices: int = 16  # replies to one chat (`n`), or prompts of one completion
    emphasis: int = 64  # emphasised parts, asterisks among them


@dataclass(frozen=True)
class Service:
    """One model behind one address."""

    model: LocalModel  # that answers
    engine: EngineThread  # the thread that steps it
    name: str  # of the model, for clients
    metrics: Metrics  # of this server
    limits: Limits = field(default_factory=Limits)  # of a request
    default: Sequence[Method] = ()  # steering of requests that ask for none
    version: str = ""  # of this package
    watched: int = 8  # one request in so many is traced for the metrics, unless 0
    # that the playground offers in place of its own: name, system prompt, message
    prompts: Sequence[Mapping[str, str]] = ()
