"""The state that all routes of one server share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.serve.limits import Limits
from holdfast.serve.metrics import Metrics
from holdfast.serve.served_engine import ServedEngine


@dataclass(frozen=True)
class Service:
    """One model behind one address."""

    model: LocalModel
    engine: ServedEngine  # which runs it
    name: str  # the model's name for clients
    metrics: Metrics
    limits: Limits = field(default_factory=Limits)
    default: Sequence[Method] = ()  # steering of requests that do not specify it
    version: str = ""  # of this package
    # offered by the playground in place of its own: name, system prompt, message
    prompts: Sequence[Mapping[str, str]] = ()
    fitted: Sequence[str] = ()  # the specs of the fitted files that requests may name
