"""A gate on steered tokens (after DIRECTER: Kang and Kim 2026, arXiv 2603.06745)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.kinds import Ability, Kind
from holdfast.methods.parameters import ATTENTION_METHODS, method, number, parameter
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.trials import Outputs, Step, Trial, Trials

if TYPE_CHECKING:
    from torch import Tensor


@method
class Gate:
    """Takes a steered token only if the unsteered model gives it at least `threshold` times its
    best token's probability.

    Else the token is drawn again with half of the layers steered (the later ones), then a quarter,
    and at last from the unsteered model, which is forwarded in the same batch. DIRECTER scales keys
    and ranks layers by a sensitivity analysis; here any attention methods are gated, and layers go
    by depth. The first token of a reply falls back to the unsteered model at once, for the prompt's
    pass is not repeated.
    """

    name: ClassVar[str] = "gate"
    kind: ClassVar[Kind] = Kind.TRIALS
    source: ClassVar[str] = "after Kang and Kim 2026, arXiv 2603.06745"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.LOG_ODDS, Ability.SECOND_STREAM})
    keeps_trials: ClassVar[bool] = True
    judges_tokens: ClassVar[bool] = True

    methods: tuple[ShiftsAttention, ...] = parameter(
        "what the gate lets through", ATTENTION_METHODS, "[split-softmax:exponent=0.5]"
    )
    threshold: float = parameter(
        "0 lets every token pass, 1 only those the unsteered model likes best", number(0, 1), "0.1"
    )

    def process(self, step: Step) -> Trials:
        """The steered outputs, or those of fewer layers, or the unsteered ones, per row."""
        outputs, second = step.outputs, step.second
        assert second is not None, "its needs name a second stream"
        layers = 0 if step.is_prefill else step.layers // 2
        refused = self._refused(step, outputs, range(len(step.memory)))
        while refused:
            if not layers:
                return outputs.put(refused, second.of(refused))
            last = range(step.layers - layers, step.layers)
            outputs = outputs.put(refused, (yield Trial(refused, [last] * len(refused))))
            layers //= 2
            refused = self._refused(step, outputs, refused)
        return outputs

    def _refused(self, step: Step, outputs: Outputs, rows: Sequence[int]) -> list[int]:
        """The rows whose token is not accepted; one whose logits are not finite fails elsewhere."""
        import torch

        assert step.second is not None
        chosen, other = outputs.of(rows), step.second.of(rows).logits
        tokens = torch.tensor(step.draw(chosen, rows), device=other.device)
        accepted = self.accepts(tokens.clamp(min=0), other) | (tokens < 0)
        return [row for row, yes in zip(rows, accepted.tolist(), strict=True) if not yes]

    def accepts(self, tokens: Tensor, other: Tensor) -> Tensor:
        """Whether tokens [row] are plausible by unsteered logits [row, vocabulary], bool [row]."""
        chances = other.float().softmax(-1)
        theirs = chances.gather(-1, tokens[:, None])[:, 0]
        return theirs >= self.threshold * chances.amax(-1)
