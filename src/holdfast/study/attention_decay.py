"""Runs self-chats and records the attention mass at every generated token (Li et al. 2024,
section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast import drift
from holdfast.analysis.decay import TracedTurns
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Method, compile_methods, spec_of
from holdfast.models.capabilities import require_layers
from holdfast.records import Conversation
from holdfast.records.traces import read_traces
from holdfast.validation import ranges

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


class TracedRun(NamedTuple):
    """Self-chats, in order, with the attention traces of each."""

    records: list[Conversation]
    dialogs: Sequence[TracedTurns]


def run_traced(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    settings: drift.Settings,
    methods: Sequence[Method] = (),
    running: drift.Running = drift.Running(),
) -> TracedRun:
    """Runs self-chats, or resumes those in `out`, with their attention traces."""
    check_traceable(model)
    if compile_methods(methods).spares_replies:
        raise UsageError(
            "attenuate acts on earlier replies, and under it the attention mass on the prompt is"
            " not traced; trace another method.",
            option="method",
            value=spec_of(methods),
        )
    running = replace(running, traces=True)
    run = drift.run(model, suite, out, settings, [methods], running=running)
    records = sorted(run.conversations, key=lambda record: record.conversation)
    dialogs = [read_traces(Path(out), record.method, record.conversation) for record in records]
    return TracedRun(records, dialogs)


def traced_settings(conversations: int = 40, rounds: int = 8, seed: int = 0) -> drift.Settings:
    """Returns the protocol of the dialogs.

    Raises:
        ParameterOutOfRange: there are fewer than two dialogs, which an interval needs, or fewer
            than two rounds.
    """
    ranges.whole_number("trace", "conversations", conversations, 2)
    ranges.whole_number("trace", "rounds", rounds, 2)
    return drift.Settings(rounds=rounds, conversations=conversations, seed=seed, adoption=False)


def check_traceable(model: LocalModel) -> None:
    """Refuses a model that cannot be traced, before anything runs.

    Raises:
        ModelError: its layers or their attention are out of reach.
    """
    if not hasattr(model, "steerable"):  # an engine that steers reports a mass, but not by layer
        require_layers(model, "layers, so there is no attention mass to read")
    if not model.steerable:
        raise ModelError(
            f"The attention of {model.name} ({type(model.hf_model).__name__}) cannot be reached, so"
            " there is no mass to read; give another model."
        )
