"""The model and the settings that all routes of one server share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.serve.limits import RequestLimits
from holdfast.serve.metrics import Metrics
from holdfast.serve.served_engine import ServedEngine


@dataclass(frozen=True)
class Service:
    """One model behind one address.

    Args:
        model: the model.
        engine: runs the model.
        name: the model's name for clients.
        metrics: the counters of the server.
        limits: the limits of one request.
        default: the steering of requests that do not specify any.
        version: the version of this package.
        prompts: the examples in the playground in place of its own, each with `name`, `system` and
            `message`.
        fitted: the specs of the fitted files that requests may name.
    """

    model: LocalModel
    engine: ServedEngine
    name: str
    metrics: Metrics
    limits: RequestLimits = field(default_factory=RequestLimits)
    default: Sequence[Method] = ()
    version: str = ""
    prompts: Sequence[Mapping[str, str]] = ()
    fitted: Sequence[str] = ()
