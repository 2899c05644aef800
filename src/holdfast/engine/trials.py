"""Passes that are tried under scaled scores: whose logits are taken, and which layers stay longest.

A trial reads a row's last token again. What it computes is thrown away, so that a row goes on from
what the unsteered model computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from holdfast.engine.runner import Output, Runner
from holdfast.engine.running import ActiveRow
from holdfast.methods.protocols import ScalesScores
from holdfast.states import around_attention

# forwards the last tokens of rows with the scores on their spans scaled, each in layers of its own
Try = Callable[[Sequence[ActiveRow], Sequence[tuple[int, ...]]], Output]
Methods = Sequence[ScalesScores | None]  # of rows; None of one that scales nothing


def tried(
    rows: Sequence[ActiveRow], unsteered: Tensor, mass: Tensor | None, try_scaled: Try
) -> tuple[Tensor, Tensor | None]:
    """The logits to draw from, and the mass under which they were made.

    Args:
        rows: those that scale scores are ranked.
        unsteered: logits [row, vocabulary].
        mass: of the unsteered pass, [row, layer, head], or None.
        try_scaled: makes a trial of some rows.
    """
    methods = [row.row.scaling for row in rows]
    open_places = _worth_trying(methods, unsteered)
    logits, trial = unsteered, 0
    while open_places:
        layers = {place: _layers_at(rows[place], trial) for place in open_places}
        open_places = [place for place in open_places if layers[place]]
        if not open_places:
            break
        output = try_scaled(
            [rows[place] for place in open_places], [layers[place] for place in open_places]
        )
        steered = output.logits[:, -1]
        tried_by = [methods[place] for place in open_places]
        numbers = _plausible(tried_by, steered, unsteered[open_places])
        taken = [open_places[number] for number in numbers]
        logits = _put(logits, taken, steered[numbers])
        if mass is not None and output.mass is not None:
            mass = _put(mass, taken, output.mass[numbers])
        open_places = [place for place in open_places if place not in taken]
        trial += 1
    return logits, mass


def rank(runner: Runner, rows: Sequence[ActiveRow], try_scaled: Try) -> None:
    """Ranks the layers of each row by how far they are disturbed where layers are steered alone."""
    together: dict[Hashable, list[ActiveRow]] = {}
    for row in rows:
        length = len(row.readings[0])
        batch_key = runner.batch_key(length - 1, length, length)
        together.setdefault((batch_key, row.row.scaling), []).append(row)
    for group in together.values():
        method = group[0].row.scaling
        assert method is not None
        for row, ranking in zip(group, _rankings(runner, method, group, try_scaled), strict=True):
            row.ranking = ranking


def _rankings(
    runner: Runner, method: ScalesScores, rows: Sequence[ActiveRow], try_scaled: Try
) -> list[tuple[int, ...]]:
    """Of rows that share a pass and a method."""
    layers = runner.scored_layers
    with around_attention(runner.hf_model, layers) as seen:
        try_scaled(rows, [()] * len(rows))
        plain, sums = dict(seen), torch.zeros(())
        for steered in layers:
            try_scaled(rows, [(steered,)] * len(rows))
            each = [
                method.disturbance(
                    plain[layer].before[:, -1],
                    plain[layer].after[:, -1],
                    seen[layer].before[:, -1],
                    seen[layer].after[:, -1],
                )
                for layer in layers
            ]
            sums = torch.stack(each).cpu() + sums  # [layer, row]
    orders = (sums / len(layers)).argsort(dim=0, descending=True, stable=True)
    return [tuple(layers[place] for place in order) for order in orders.T.tolist()]


def _worth_trying(methods: Methods, unsteered: Tensor) -> list[int]:
    """The rows whose method may change their token."""
    worth = list[int]()
    for method, own in _by_method(methods).items():
        told = method.may_change(unsteered[own]).tolist()
        worth += [row for row, yes in zip(own, told, strict=True) if yes]
    return sorted(worth)


def _plausible(methods: Methods, steered: Tensor, unsteered: Tensor) -> list[int]:
    """The rows whose steered logits their method takes."""
    plausible = list[int]()
    for method, own in _by_method(methods).items():
        told = method.is_plausible(steered[own], unsteered[own]).tolist()
        plausible += [row for row, yes in zip(own, told, strict=True) if yes]
    return sorted(plausible)


def _by_method(methods: Methods) -> dict[ScalesScores, list[int]]:
    """The rows of each method."""
    rows: dict[ScalesScores, list[int]] = {}
    for row, method in enumerate(methods):
        if method is not None:
            rows.setdefault(method, []).append(row)
    return rows


def _layers_at(row: ActiveRow, trial: int) -> tuple[int, ...]:
    method = row.row.scaling
    return () if method is None else method.layers_at(trial, row.ranking)


def _put(every: Tensor, places: Sequence[int], rows: Tensor) -> Tensor:
    """A copy with other rows in some places."""
    where = torch.tensor(places, dtype=torch.long, device=every.device)
    return every.index_copy(0, where, rows)
