"""Whether steering is live: the backend, the processor and the frontend, each in its process.

What belongs to one engine hangs on that engine's configuration, which all parts of a worker share;
a module's global would be shared by two engines of a process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast_vllm.masses import Masses
from holdfast_vllm.rows import Rows

_PLACE = "_holdfast_engine"


@dataclass
class Engine:
    """The worker's side of one engine.

    Args:
        rows: what the rows of its batch asked for.
        masses: of requests that ask for it.
        has_processor: whether vLLM made the processor, which tells of requests.
        backends: the builders of attention metadata, by their class.
        refusals: of each attention layer, why it cannot be steered; "" where it can.
    """

    rows: Rows = field(default_factory=Rows)
    masses: Masses = field(default_factory=Masses)
    has_processor: bool = False
    backends: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)


def engine_of(vllm_config: Any) -> Engine:
    """The engine that a configuration belongs to, made where there is none yet."""
    # Copies of a configuration share their compilation part, which also knows the model's layers.
    kept = vars(vllm_config.compilation_config)
    if _PLACE not in kept:
        kept[_PLACE] = Engine()
    engine: Engine = kept[_PLACE]
    return engine


def worker_state(worker: Any) -> dict[str, Any]:
    """What the frontend asks every worker; vLLM calls it as `holdfast_state`."""
    engine = engine_of(worker.vllm_config)
    refusals = [refusal for refusal in engine.refusals if refusal]
    if not engine.backends or not engine.refusals:
        refusals.insert(
            0,
            "its attention backend is not Holdfast's (on CUDA, start the server with"
            " --attention-backend CUSTOM)",
        )
    if not engine.has_processor:
        refusals.insert(0, "its runner did not load Holdfast's processor")
    return {
        "refusal": refusals[0] if refusals else "",
        "backend": sorted(engine.backends),
        "layers": len(engine.refusals),
    }


def worker_mass(worker: Any, name: str) -> dict[str, Any] | None:
    """The mass of a request, as vLLM's `holdfast_mass`."""
    return engine_of(worker.vllm_config).masses.read(name)
