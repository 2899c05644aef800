"""The "logits processor" through which vLLM tells of requests; it leaves the logits alone.

One class serves both model runners. The old one makes it with (config, device, pinning) and tells
what changed in the batch; the new one with (config, request states) and tells of every request and
its slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor

from holdfast.errors import HoldfastError
from holdfast_vllm import frontend
from holdfast_vllm.status import engine_of
from holdfast_vllm.wire import ADMITTED, Admitted, read_wish


class SteeredRows(LogitsProcessor):
    """Keeps what each row of the batch asked for."""

    def __init__(self, vllm_config: Any, *_: Any) -> None:
        self._engine = engine_of(vllm_config)
        self._engine.has_processor = True

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuses what cannot be read, and every steered request where the frontend is missing.

        Raises:
            VLLMValidationError: the sentence becomes the text of an HTTP 400.
        """
        try:
            wish = read_wish(sampling_params.extra_args)
        except HoldfastError as error:
            raise VLLMValidationError(str(error)) from None
        if wish is not None and not frontend.is_installed():
            raise VLLMValidationError(
                "Holdfast's plug-in was not loaded, so this request cannot be steered; name"
                " holdfast in VLLM_PLUGINS, and see why in the server's log."
            )

    def is_argmax_invariant(self) -> bool:
        """It changes no logit."""
        return True

    def apply(self, logits: Tensor, ctx: Any = None) -> Tensor:
        """The logits as they are."""
        return logits

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """What the old runner tells before a pass."""
        if batch_update is None:
            return
        self._engine.rows.update(
            batch_update.removed,
            ((number, _admitted(params.extra_args)) for number, params, *_ in batch_update.added),
            (
                (source, target, direction == MoveDirectionality.SWAP)
                for source, target, direction in batch_update.moved
            ),
        )

    def add_request(self, req_idx: int, sampling_params: SamplingParams) -> bool:
        """What the new runner tells of a request; its logits need no processing."""
        self._engine.rows.put(req_idx, _admitted(sampling_params.extra_args))
        return False


def _admitted(extra_args: Mapping[str, Any] | None) -> Admitted | None:
    packed = (extra_args or {}).get(ADMITTED)
    return None if packed is None else Admitted.unpacked(packed)
