"""Whether steering is live: whether backend, processor and frontend are loaded in their processes.

An engine's state is attached to its configuration, which all parts of a worker share; a module
global would be shared by all engines in a process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from holdfast.models.fingerprint import digest_of
from holdfast_vllm.draws import Draw
from holdfast_vllm.masses import Masses
from holdfast_vllm.rows import Rows
from holdfast_vllm.wire import Admitted

_ATTRIBUTE = "_holdfast_engine"
# keys of a worker's state: the reason why it cannot draw tokens, and why it cannot steer
DRAWS = "draws"
STEERS = "refusal"


@dataclass
class Engine:
    """The worker's side of one engine.

    Args:
        rows: the steering of the rows of its batch.
        draws: the draws of rows with a `holdfast_seed`.
        masses: the masses of requests with a trace.
        has_processor: whether vLLM created the processor, which reports requests.
        backends: names of the backends whose metadata builders were created.
        refusals: for each attention layer, why it cannot be steered; "" if it can.
    """

    rows: Rows[Admitted] = field(default_factory=Rows)
    draws: Rows[Draw] = field(default_factory=Rows)
    masses: Masses = field(default_factory=Masses)
    has_processor: bool = False
    backends: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)


def engine_of(vllm_config: Any) -> Engine:
    """Returns the engine of a configuration; creates it if there is none yet."""
    # copies of a configuration share their compilation part, which also has the model's layers
    attributes = vars(vllm_config.compilation_config)
    if _ATTRIBUTE not in attributes:
        running = vllm_config.scheduler_config.max_num_seqs
        attributes[_ATTRIBUTE] = Engine(masses=Masses(max(Masses.max_requests, 2 * running)))
    engine: Engine = attributes[_ATTRIBUTE]
    return engine


def uses_full_graphs(vllm_config: Any) -> bool:
    """Whether the server was started with --additional-config '{"holdfast_full_graphs": true}'."""
    more = vllm_config.additional_config
    return isinstance(more, dict) and more.get("holdfast_full_graphs") is True


def worker_state(worker: Any) -> dict[str, Any]:
    """Reports a worker's status to the frontend; vLLM calls this as `holdfast_state`."""
    engine = engine_of(worker.vllm_config)
    refusals = [refusal for refusal in engine.refusals if refusal]
    if not engine.backends or not engine.refusals:
        refusals.insert(
            0,
            "its attention backend is not Holdfast's (on CUDA, start the server with"
            " --attention-backend CUSTOM)",
        )
    cannot_draw = "" if engine.has_processor else "its runner did not load Holdfast's processor"
    return {
        DRAWS: cannot_draw,
        STEERS: cannot_draw or next(iter(refusals), ""),
        "backend": sorted(engine.backends),
        "layers": len(engine.refusals),
    }


def worker_mass(worker: Any, name: str) -> dict[str, Any] | None:
    """Returns the mass of a request; vLLM calls this as `holdfast_mass`."""
    return engine_of(worker.vllm_config).masses.read(name)


def worker_heads(worker: Any, name: str) -> list[Any]:
    """Removes and returns a request's mass on this rank's heads; vLLM calls it `holdfast_heads`."""
    return engine_of(worker.vllm_config).masses.take(name)


def worker_fingerprint(worker: Any, chat_template: str) -> str:
    """Returns the fingerprint of this rank's part of the model; vLLM calls this as
    `holdfast_fingerprint`.
    """
    tensors = worker.model_runner.get_model().state_dict().items()
    return digest_of(worker.model_config.hf_config, chat_template, tensors)


def fingerprint_of(ranks: list[str]) -> str:
    """Combines the fingerprints of all ranks into the fingerprint of the whole model."""
    return sha256(" ".join(ranks).encode()).hexdigest()[:32]
