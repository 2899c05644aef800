"""DIRECTER: scaled scores, kept while they stay plausible (Kang and Kim 2026, arXiv 2603.06745)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.kinds import Ability, Kind
from holdfast.methods.parameters import method, number, parameter
from holdfast.methods.trials import AttentionEnds, Outputs, Step, Trial, Trials

if TYPE_CHECKING:
    from torch import Tensor


@method
class Directer:
    """Multiplies the scores on the span, in as many layers as the unsteered model finds plausible.

    Published, as the abstract, the project's page and the authors' program tell (the paper itself
    could not be read): for the query that a token is drawn from, and no other, the keys of the span
    are multiplied by `scale` (alpha). That stretches scores, and does not shift them: those below 0
    fall. Of the steered pass nothing is kept, so the history is the unsteered model's. Its
    distribution is taken if the unsteered model gives its best token more than `threshold` (beta)
    times what it gives its own; else half of the layers are steered, then a quarter, and once a
    single one would be left, none. Those stay that a ranking puts first, which is made at a reply's
    first token: each layer is steered alone, and each layer's attention is judged by 2 - cos(x, y')
    - cos(y, x'), x and y what goes into it and comes out, unsteered, and x', y' steered. As in the
    program, a layer counts by the mean of its own values over all that are steered: by what it
    suffers, where the program's comment says what it causes. Where no second token is plausible,
    nothing is tried. Ours: where the program is greedy, sampling draws from the distribution that
    is taken; no step is tried in vain, the first one included; what is no number is not taken;
    layers without attention are left out; and with other methods, what they make is the unsteered
    model.
    """

    name: ClassVar[str] = "directer"
    kind: ClassVar[Kind] = Kind.TRIALS
    source: ClassVar[str] = "Kang and Kim 2026, arXiv 2603.06745"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.SCORES})
    keeps_trials: ClassVar[bool] = False
    judges_tokens: ClassVar[bool] = False

    scale: float = parameter("alpha; 1 changes nothing, 100 is the paper's", number(1), "100")
    threshold: float = parameter(
        "beta; 0 takes every steered token, 1 none", number(0, 1), default=0.5
    )

    def process(self, step: Step) -> Trials:
        """The outputs of the most layers that are plausible, or the unsteered ones, per row."""
        outputs = plain = step.outputs
        if not step.can_repeat:
            return outputs
        yield from self._rank(step)
        rows = [row for row, may in enumerate(self.may_change(plain.logits).tolist()) if may]
        for trial in range(step.layers):
            layers = {row: self.layers_at(trial, step.memory[row]["ranking"]) for row in rows}
            rows = [row for row in rows if layers[row]]
            if not rows:
                break
            steered = yield Trial(rows, [layers[row] for row in rows], self.scale)
            takes = self.is_plausible(steered.logits, plain.of(rows).logits).tolist()
            numbers = [number for number, yes in enumerate(takes) if yes]
            outputs = outputs.put([rows[number] for number in numbers], steered.of(numbers))
            rows = [row for row, yes in zip(rows, takes, strict=True) if not yes]
        return outputs

    def _rank(self, step: Step) -> Generator[Trial, Outputs, None]:
        """Ranks the layers of new rows by their disturbance where each is steered alone."""
        import torch

        new = [row for row, memory in enumerate(step.memory) if "ranking" not in memory]
        if not new:
            return
        plain = (yield Trial(new, [()] * len(new), self.scale, observes=True)).ends
        sums = torch.zeros(())
        for layer in step.attending:
            ends = (yield Trial(new, [(layer,)] * len(new), self.scale, observes=True)).ends
            rows = [self.disturbance(plain[index], ends[index]) for index in step.attending]
            sums = torch.stack(rows).cpu() + sums  # [layer, row]
        orders = (sums / len(step.attending)).argsort(dim=0, descending=True, stable=True)
        for row, order in zip(new, orders.T.tolist(), strict=True):
            step.memory[row]["ranking"] = tuple(step.attending[number] for number in order)

    def may_change(self, unsteered: Tensor) -> Tensor:
        """Whether unsteered logits [row, vocabulary] make a second token plausible, bool [row]."""
        best = unsteered.float().softmax(-1).topk(2).values
        return best[:, 1] >= self.threshold * best[:, 0]

    def is_plausible(self, steered: Tensor, unsteered: Tensor) -> Tensor:
        """Whether the steered pass's best token is plausible by unsteered logits, bool [row]."""
        chances = unsteered.float().softmax(-1)
        best = chances.gather(-1, steered.argmax(-1, keepdim=True))[:, 0]
        return (best > self.threshold * chances.amax(-1)) & ~steered.isnan().any(-1)

    def layers_at(self, trial: int, ranking: tuple[int, ...]) -> tuple[int, ...]:
        """The layers that a trial, counted from 0, steers, of a ranking of all; () for none."""
        count = len(ranking) >> trial
        return ranking[:count] if count > 1 else ()

    def disturbance(self, plain: AttentionEnds, steered: AttentionEnds) -> Tensor:
        """How far a steered pass is from the unsteered one at one layer's attention, [row]."""
        import torch

        wide = torch.promote_types(plain.before.dtype, torch.float32)
        across = torch.cosine_similarity(plain.before.to(wide), steered.after.to(wide), dim=-1)
        back = torch.cosine_similarity(plain.after.to(wide), steered.before.to(wide), dim=-1)
        return (2 - across - back).clamp(min=0)
