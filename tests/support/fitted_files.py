"""Files in the format of `holdfast fit`, with random content, for test models."""

from pathlib import Path

import torch

from holdfast.methods import Fitted, FittedOn, write_fitted
from holdfast.states import sites_of

METHODS = ("seka", "prism", "capping", "vector")


def write_random(
    path: Path, method: str, on: FittedOn, layers=(0, 1, 2), chosen=(1, 2), seed: int = 0
) -> Fitted:
    """Writes a file for a method, with directions drawn at random."""
    draw = torch.Generator().manual_seed(seed)
    count, heads, size, hidden = len(layers), on.key_heads or 1, on.head_size or 4, on.hidden_size

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    def vectors(*front: int) -> torch.Tensor:
        return torch.linalg.qr(normal(*front, size, size))[0]

    def falling(*front: int) -> torch.Tensor:
        return normal(*front, size).abs().sort(-1, descending=True).values

    tensors = {"distance": normal(count, heads).abs()}
    signs, parts = ("positive", "negative"), ("keys", "values")
    if method in ("seka", "prism"):
        for name in signs if method == "seka" else parts:
            tensors[f"{name}.vectors"] = vectors(count, heads)
            tensors[f"{name}.values"] = falling(count, heads)
    if method == "prism":
        tensors["values.distance"] = normal(count, heads).abs()
    elif method == "capping":
        direction = normal(count, hidden)
        tensors = {"direction": direction / direction.norm(dim=-1, keepdim=True)}
        tensors["percentiles"] = normal(count, 101).sort(-1).values
    elif method == "vector":
        tensors = {"difference": normal(count, hidden)}
    fields = {"method": method, "on": on, "layers": layers, "chosen": chosen}
    return write_fitted(path, tensors, **fields, made_from={"recipe": "random"})


def write_for(model, path: Path, method: str, seed: int = 0, **fields) -> Fitted:
    """The same for a loaded model, with its name, fingerprint and shape."""
    sites, config = sites_of(model.hf_model), model.hf_model.config
    shape = config.num_hidden_layers, sites.hidden_size, sites.key_heads, sites.head_size
    on = FittedOn(model.name, model.fingerprint, *shape)
    return write_random(path, method, on, seed=seed, **fields)


def write_all(folder: Path) -> None:
    """Writes a file for every method, named as in its example, for a model that does not exist."""
    on = FittedOn("nobody", "0", 3, 48, 2, 12)
    for method in METHODS:
        write_random(folder / f"{method}.safetensors", method, on)
