"""Logits processors at work on a step: rows that share one go through it together, and the trials
that all of them ask for share forward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol, cast

from torch import Tensor

from holdfast.engine.batch import ActiveRow, StreamState
from holdfast.engine.cache import Slots
from holdfast.engine.drawing import draw
from holdfast.engine.memory import ran_out_of_memory
from holdfast.engine.runner import Output, Runner
from holdfast.engine.slot_layers import KeyScale
from holdfast.methods.heads import on_layers
from holdfast.methods.kinds import Kind, of_kind
from holdfast.methods.protocols import EditsLogits, ProcessesLogits
from holdfast.methods.trials import AttentionEnds, Outputs, Step, Trial, Trials
from holdfast.states import around_attention


@dataclass
class StepOutputs:
    """The outputs of a pass, by row."""

    rows: list[ActiveRow]  # that draw a token from it
    first: Outputs  # of the streams that write, in the order of the rows
    every: Outputs  # of all streams
    # per row, the number of the stream that reads along in `every`, or None
    seconds: list[int | None]
    uniform: Tensor | None  # the mass if each layer attended evenly, [row, layer], or None

    def seconds_of(self, rows: Sequence[int]) -> Outputs | None:
        """The outputs of these rows' second streams; None where they have none."""
        numbers = [number for row in rows if (number := self.seconds[row]) is not None]
        return self.every.of(numbers) if numbers else None


class Forward(Protocol):
    """Forwards what is not computed of some slots, at least the last token of each."""

    def __call__(
        self, slots: Sequence[int], readings: Sequence[StreamState], *, commit: bool
    ) -> Output: ...


@dataclass(eq=False)
class _Group:
    """Rows, by number in the step, that share a processor and may share a pass."""

    numbers: list[int]
    rows: list[ActiveRow]
    trials: Trials
    trial: Trial | None = None
    answer: Outputs | None = None


@dataclass(frozen=True)
class Processors:
    """The logits processors of a decoder's rows; `slot_of` gives the slot of the writing stream."""

    runner: Runner
    slots: Slots
    slot_of: Callable[[ActiveRow], int]
    forward: Forward

    def process(
        self, step: StepOutputs, *, is_prefill: bool, can_repeat: bool
    ) -> tuple[Outputs, dict[int, Exception]]:
        """The outputs that tokens are drawn from, and by number the rows whose processor failed."""
        outputs, failed = step.first, dict[int, Exception]()
        for turn in range(max(len(row.row.processors) for row in step.rows)):
            numbers: dict[tuple[ProcessesLogits, Hashable], list[int]] = {}
            for number, row in enumerate(step.rows):
                if turn < len(row.row.processors) and number not in failed:
                    length = len(row.readings[0])
                    batch_key = self.runner.batch_key(length - 1, length, length)
                    numbers.setdefault((row.row.processors[turn], batch_key), []).append(number)
            groups = []
            for (method, _), some in numbers.items():
                rows = [step.rows[number] for number in some]
                given = self._step(step, outputs, some, is_prefill, can_repeat)
                groups.append(_Group(some, rows, _trials_of(method, given)))
            while groups:
                for group in list(groups):
                    try:
                        group.trial = group.trials.send(cast(Outputs, group.answer))
                    except StopIteration as done:
                        outputs = outputs.put(group.numbers, done.value)
                        groups.remove(group)
                    except Exception as error:
                        if ran_out_of_memory(error):
                            raise
                        failed |= dict.fromkeys(group.numbers, error)
                        groups.remove(group)
                self._make_trials(groups)
        return outputs, failed

    def _step(
        self,
        step: StepOutputs,
        outputs: Outputs,
        numbers: Sequence[int],
        is_prefill: bool,
        can_repeat: bool,
    ) -> Step:
        """A step as the processor of some rows sees it."""
        rows = [step.rows[number] for number in numbers]

        def draw_some(some: Outputs, chosen: Sequence[int]) -> list[int]:
            draws = [rows[number].next_draw for number in chosen]
            return draw(some.logits, [d.sampling for d in draws], [d.number for d in draws])

        return Step(
            outputs.of(numbers),
            step.seconds_of(numbers),
            draw_some,
            self.runner.layers,
            self.runner.scored_layers if can_repeat else (),
            is_prefill,
            can_repeat,
            [row.memory for row in rows],
        )

    def _make_trials(self, groups: Sequence[_Group]) -> None:
        """Answers the trials of groups; those that leave the same behind share a pass."""
        together: dict[Hashable, list[tuple[_Group, Trial]]] = {}
        for number, group in enumerate(groups):
            assert group.trial is not None
            alone = number if group.trial.observes else -1
            together.setdefault((alone, group.trial.key_scale is None), []).append(
                (group, group.trial)
            )
        for some in together.values():
            rows = [
                (group.rows[row], trial, layers)
                for group, trial in some
                for row, layers in zip(trial.rows, trial.layers, strict=True)
            ]
            rows.sort(key=lambda item: self.slot_of(item[0]))
            for row, _, _ in rows:
                row.forwarded += 1
            readings = [
                self._tried(row.readings[0], trial.key_scale, layers) for row, trial, layers in rows
            ]
            outputs = self._try([self.slot_of(row) for row, _, _ in rows], readings, some[0][1])
            index = {row: number for number, (row, _, _) in enumerate(rows)}
            for group, trial in some:
                group.answer = outputs.of([index[group.rows[row]] for row in trial.rows])

    def _tried(
        self, reading: StreamState, key_scale: float | None, layers: Sequence[int]
    ) -> StreamState:
        """The same tokens under a trial."""
        if key_scale is not None:
            return replace(reading, scaled=KeyScale(key_scale, tuple(layers)))
        stream = reading.stream
        methods = *stream.states, *on_layers(stream.attention, layers, self.runner.heads)
        return replace(reading, stream=replace(stream, methods=methods))

    def _try(self, slots: Sequence[int], readings: Sequence[StreamState], trial: Trial) -> Outputs:
        """Forwards the last tokens of some slots again, as this trial says."""
        if trial.key_scale is None:
            output = self.forward(slots, readings, commit=True)
            return Outputs(output.logits[:, -1], output.mass)
        watched: AbstractContextManager[Mapping[int, AttentionEnds]] = nullcontext({})
        if trial.observes:
            watched = around_attention(self.runner.hf_model, self.runner.scored_layers)
        with self.slots.restored(slots), watched as seen:
            output = self.forward(slots, readings, commit=False)
        ends = {n: AttentionEnds(e.before[:, -1], e.after[:, -1]) for n, e in seen.items()}
        return Outputs(output.logits[:, -1], output.mass, ends)


def _trials_of(method: ProcessesLogits, step: Step) -> Trials:
    """A processor at work on a step; one that makes no trials has its outputs at once."""
    if trying := of_kind([method], Kind.TRIALS):
        return (yield from trying[0].process(step))
    assert step.second is not None, "it has a second stream"
    guides = cast(EditsLogits, method)
    return replace(
        step.outputs, logits=guides.guide(step.outputs.logits.float(), step.second.logits)
    )
