"""The "logits processor" through which vLLM reports requests.

It changes only the logits of requests that have a `holdfast_seed`. The same class serves both model
runners: the old one constructs it with (config, device, pinning) and reports changes of the batch;
the new one constructs it with (config, request states) and reports every request with its slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor

from holdfast.errors import HoldfastError
from holdfast_vllm import frontend
from holdfast_vllm.draws import draw_of, draw_rows
from holdfast_vllm.rows import RowMove
from holdfast_vllm.status import engine_of
from holdfast_vllm.wire import ADMITTED, Admitted, read_steering


class SteeredRows(LogitsProcessor):
    """Records the steering of each row of the batch, and draws for rows with a `holdfast_seed`."""

    def __init__(self, vllm_config: Any, *_: Any) -> None:
        self._engine = engine_of(vllm_config)
        self._engine.has_processor = True

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuses malformed requests, and every steered request if the frontend is not installed.

        Raises:
            VLLMValidationError: its message becomes the text of an HTTP 400.
        """
        try:
            requested = read_steering(sampling_params.extra_args)
        except HoldfastError as error:
            raise VLLMValidationError(str(error)) from None
        if requested is not None and not frontend.is_installed():
            raise VLLMValidationError(
                "Holdfast's plug-in was not loaded, so this request cannot be steered; add holdfast"
                " to VLLM_PLUGINS, and look for the cause in the server's log."
            )

    def is_argmax_invariant(self) -> bool:
        """Returns False, as in a row with a draw the drawn token becomes the argmax."""
        return False

    def apply(self, logits: Tensor, ctx: Any = None) -> Tensor:
        """Leaves only the drawn token in the logits of rows that have a draw.

        Args:
            logits: [row, vocabulary]; without speculative decoding, every row is a request.
            ctx: from the new runner; None from the old one, which numbers requests by their rows.
        """
        draws = self._engine.draws
        if not draws.by_number:
            return logits
        if ctx is None:
            return draw_rows(logits, draws, range(len(logits)), None)
        return draw_rows(logits, draws, ctx.idx_mapping_np, ctx.seq_lens_upper_bound_np)

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Applies the old runner's update before a pass."""
        if batch_update is None:
            return
        admitted = [
            (number, _read_admitted(params.extra_args), generated)
            for number, params, _, generated in batch_update.added
        ]
        moved = [
            RowMove(source, target, direction == MoveDirectionality.SWAP)
            for source, target, direction in batch_update.moved
        ]
        removed: Sequence[int] = batch_update.removed
        rows = [(number, request) for number, request, _ in admitted]
        self._engine.rows.update(removed, rows, moved)
        draws = [(number, draw_of(request, generated)) for number, request, generated in admitted]
        self._engine.draws.update(removed, draws, moved)

    def add_request(self, req_idx: int, sampling_params: SamplingParams) -> bool:
        """Records a request of the new runner; returns whether its logits will be changed."""
        admitted = _read_admitted(sampling_params.extra_args)
        draw = draw_of(admitted)
        self._engine.rows.put(req_idx, admitted)
        self._engine.draws.put(req_idx, draw)
        return draw is not None


def _read_admitted(extra_args: Mapping[str, Any] | None) -> Admitted | None:
    packed = (extra_args or {}).get(ADMITTED)
    return None if packed is None else Admitted.unpack(packed)
