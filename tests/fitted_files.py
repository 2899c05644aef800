"""Files as `holdfast fit` writes them, with random content, for models of tests."""

from __future__ import annotations

from pathlib import Path

import torch

from holdfast.methods import Fitted, FittedOn, write_fitted
from holdfast.states import sites_of

METHODS = ("seka", "prism", "capping", "vector")


def write_random(
    path: Path,
    method: str,
    on: FittedOn,
    layers: tuple[int, ...] = (0, 1, 2),
    chosen: tuple[int, ...] = (1, 2),
    query_heads: int = 4,
    seed: int = 0,
) -> Fitted:
    """A file for a method whose directions are drawn at random."""
    draw = torch.Generator().manual_seed(seed)
    count, heads, size, hidden = len(layers), on.key_heads or 1, on.head_size or 4, on.hidden_size

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    def vectors(*front: int) -> torch.Tensor:
        return torch.linalg.qr(normal(*front, size, size))[0]

    def falling(*front: int) -> torch.Tensor:
        return normal(*front, size).abs().sort(-1, descending=True).values

    tensors = {"distance": normal(count, heads).abs()}
    if method == "seka":
        for sign in ("positive", "negative"):
            tensors |= {
                f"{sign}.vectors": vectors(count, heads),
                f"{sign}.values": falling(count, heads),
            }
    elif method == "prism":
        for part in ("keys", "values"):
            tensors |= {
                f"{part}.vectors": vectors(count, heads),
                f"{part}.values": falling(count, heads),
            }
        tensors["values.distance"] = normal(count, heads).abs()
    elif method == "capping":
        direction = normal(count, hidden)
        tensors = {
            "direction": direction / direction.norm(dim=-1, keepdim=True),
            "percentiles": normal(count, 101).sort(-1).values,
        }
    else:
        tensors = {"difference": normal(count, hidden)}
    return write_fitted(
        path,
        tensors,
        method=method,
        on=on,
        layers=layers,
        chosen=chosen,
        made_from={"recipe": "random"},
    )


def write_for(model, path: Path, method: str, seed: int = 0, **more) -> Fitted:
    """The same for a loaded model, of all layers that have what the method edits."""
    sites, config = sites_of(model.hf_model), model.hf_model.config
    on = FittedOn(
        model.name,
        model.fingerprint,
        config.num_hidden_layers,
        sites.hidden_size,
        sites.key_heads,
        sites.head_size,
    )
    return write_random(path, method, on, seed=seed, **more)


def write_all(folder: Path) -> None:
    """A file for every method under the name of its example, for a model that there is not."""
    on = FittedOn("nobody", "0", 3, 48, 2, 12)
    for method in METHODS:
        write_random(folder / f"{method}.safetensors", method, on)
