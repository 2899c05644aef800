"""Figures 3 and 9: stability and adoption in self-chats, on this model and behind an API."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.analysis.series import Series, read_series
from holdfast.analysis.statistics import change, estimate_columns
from holdfast.analysis.verdicts import UNDECIDED
from holdfast.report.figures import write_figures
from holdfast.reproduce.findings import Claim, Figure, claim_that, pngs, spelled
from holdfast.reproduce.li2024.setup import Setup

_PLACES = {"role": "in the system role", "first-user": "before the first user message"}


def figure_3(setup: Setup) -> list[Figure]:
    """Stability falls, adoption rises."""
    (series,) = read_series(setup.self_chats("figure-3", setup.model))
    images = write_figures([series], setup.figures("3"), whiskers=True)
    claims = (
        _moves(
            "A: over eight rounds the model follows its own system prompt less and less.",
            series,
            "stability",
            -1,
        ),
        _moves(
            "B: it begins to follow the prompt of its partner, which it never saw.",
            series,
            "adoption",
            +1,
        ),
    )
    figure = Figure(
        number="3",
        title="the agent lets go of its prompt, and takes on the other's",
        how="Self-chat of two copies of the model, probed at every round.",
        images=pngs(images, "drift"),
        claims=claims,
    )
    return [figure]


def figure_9(setup: Setup) -> list[Figure]:
    """The system prompt in its role, or before the first user message."""
    model = setup.other or setup.model
    by_place = {place: _with_prompt_in(place, setup) for place in _PLACES}
    images = write_figures(list(by_place.values()), setup.figures("9"), whiskers=True)
    claims = [
        _moves(
            f"a model behind an API loses stability too, with the prompt {_PLACES[place]}.",
            series,
            "stability",
            -1,
        )
        for place, series in by_place.items()
    ]
    who = (
        "The endpoint" if setup.other else "No endpoint was given (--endpoint), so the model itself"
    )
    figure = Figure(
        number="9",
        title="the system prompt in its role, and before the first user message",
        how=f"{who} ({model.name}) with both places of the prompt.",
        images=pngs(images, "drift"),
        claims=tuple(claims),
    )
    return [figure]


def _with_prompt_in(place: str, setup: Setup) -> Series:
    """Self-chats with the system prompt in that place."""
    model = setup.other or setup.model
    run = setup.self_chats(f"figure-9-{place}", model, system_as=place, adoption=False)
    return replace(read_series(run)[0], run=f"as {place}")


def _moves(text: str, series: Series, kind: str, sign: int) -> Claim:
    """The claim that stability or adoption rises (+1) or falls (-1)."""
    values = series.values(kind)
    if values.shape[1] < 2 or np.isnan(values).all():
        return Claim(text, UNDECIDED, f"{kind.capitalize()} was measured in one round only.")
    rounds, moved = estimate_columns(values), change(values)
    ends = f"{rounds[0].mean:.3f} to {rounds[-1].mean:.3f}"
    return claim_that(text, moved, sign, f"{kind.capitalize()} {ends}, change {spelled(moved)}.")
