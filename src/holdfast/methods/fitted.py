"""Fitted files: what a method has learned from a model, as safetensors.

The header's one key, `holdfast`, is JSON: the method, the model it was fitted on and that model's
shape, and the data it was fitted on. Reading a file executes nothing. A file is identified by its
content, not by its path: two files with the same bytes are equal, and a spec string names the
digest of the content.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError, reason_of
from holdfast.files import write_whole

if TYPE_CHECKING:
    import torch
    from torch import Tensor

HEADER = "holdfast"
SUFFIX = ".safetensors"
_DIGITS = 16  # how many digits of the digest a spec string has
_DIGEST = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
# The files that this process has read, by digest: records, requests and other processes name a
# file only by its digest.
_FILES_READ: dict[str, Fitted] = {}


@dataclass(frozen=True)
class FittedOn:
    """The model that a file was fitted on, which is the only one that it can be used with."""

    model: str  # its name, for people
    fingerprint: str  # of the model
    layers: int  # the number of layers
    hidden_size: int  # of its hidden states
    key_heads: int = 0  # key-value heads of a layer; 0 if its keys were not read
    head_size: int = 0  # of a key-value head; 0 in the same case


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A file that `holdfast fit` wrote; equal to any other with the same content."""

    digest: str  # the first digits of the content's SHA-256
    method: str = field(compare=False)  # the name of the method it was fitted for
    on: FittedOn = field(compare=False)
    # the layers that it covers, in the order of the first dimension of its tensors
    layers: tuple[int, ...] = field(compare=False)
    chosen: tuple[int, ...] = field(compare=False)  # the layers steered unless the user names some
    # describes the data, for people
    made_from: Mapping[str, Any] = field(compare=False, hash=False, repr=False)
    path: Path = field(compare=False)  # of the file that was read

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (str(self.path), self.digest)

    def index_of(self, layer: int) -> int:
        """Returns the index of a layer in the first dimension of the tensors."""
        return self.layers.index(layer)

    def tensor(self, name: str, device: torch.device | str = "cpu") -> Tensor:
        """Returns a float32 tensor, layers first; a `UsageError` if the file has changed."""
        return _on_device(self, name, str(device))

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        """All tensors by name, on the host."""
        import torch
        from safetensors.torch import load

        content = _content(self.path)
        if _digest(content) != self.digest:
            raise UsageError(
                f"The file {str(self.path)!r} has changed since it was read ({self.digest} then,"
                f" {_digest(content)} now); name it again.",
                option="file",
                value=self.digest,
                allowed=_digest(content),
            )
        with torch.inference_mode(False):  # passes with gradients use it too
            return load(content)


@lru_cache(maxsize=256)
def _on_device(fitted: Fitted, name: str, device: str) -> Tensor:
    import torch

    with torch.inference_mode(False):  # passes with gradients use it too
        return fitted._tensors[name].to(device)


def read_fitted(text: str, method: str, *, files: bool = True) -> Fitted:
    """Reads the file that a spec string names by its path, or by the digest of its content.

    A digest is looked up among the files that this process has read, and then, unless `files` is
    False, among the fitted files in the working folder.

    Args:
        files: False for a spec string from elsewhere, which may not make this process read files.
    """
    if text.endswith(SUFFIX):
        if not files:
            raise UsageError(
                f"{text!r} names a file, which a spec string from elsewhere may not do; write"
                " the digest of a file that was read here.",
                option="file",
                value=text,
            )
        fitted = read_any_fitted(text)
    elif _DIGEST.fullmatch(text):
        fitted = _find_by_digest(text, files=files)
    else:
        raise UsageError(
            f"{method} takes file as the path of a {SUFFIX} file, not {text!r}; make one with"
            f" `holdfast fit {method}`.",
            option="file",
            value=text,
            allowed=SUFFIX,
        )
    if fitted.method != method:
        raise UsageError(
            f"The file {str(fitted.path)!r} was fitted for {fitted.method}, not for {method}; make"
            f" another with `holdfast fit {method}`.",
            option="file",
            value=fitted.method,
            allowed=method,
        )
    return fitted


def read_any_fitted(path: Path | str) -> Fitted:
    """Reads a fitted file of any method, so that its digest is known from then on.

    Raises:
        UsageError: the file cannot be read, or `holdfast fit` did not write it.
    """
    path = Path(path)
    digest = _digest(_content(path))
    try:
        header = json.loads(_metadata(path)[HEADER])
        fitted = Fitted(
            digest=digest,
            method=str(header["method"]),
            on=FittedOn(**header["on"]),
            layers=tuple(map(int, header["layers"])),
            chosen=tuple(map(int, header["chosen"])),
            made_from=header["made_from"],
            path=path,
        )
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{str(path)!r} is not a file that `holdfast fit` wrote"
            f" ({type(error).__name__}: {error}); make one with it.",
            option="file",
            value=str(path),
        ) from None
    earlier = _FILES_READ.get(digest)
    if earlier is not None and earlier.path == path:
        return earlier
    _FILES_READ[digest] = fitted  # an earlier path with this content may no longer exist
    return fitted


def write_fitted(
    path: Path | str,
    tensors: Mapping[str, Tensor],
    *,
    method: str,
    on: FittedOn,
    layers: tuple[int, ...],
    chosen: tuple[int, ...],
    made_from: Mapping[str, Any],
) -> Fitted:
    """Writes a fitted file and returns it as read; the same content gives the same bytes.

    Tensors are stored as float32, with `layers` as the first dimension; for the rest, see `Fitted`.
    """
    from safetensors.torch import save

    if not str(path).endswith(SUFFIX):
        raise UsageError(
            f"A fitted file is named FILE{SUFFIX}, not {str(path)!r}; give another name.",
            option="out",
            value=str(path),
            allowed=SUFFIX,
        )
    header = {
        "method": method,
        "on": asdict(on),
        "layers": layers,
        "chosen": chosen,
        "made_from": dict(made_from),
    }
    ready = {name: tensor.float().contiguous().cpu() for name, tensor in tensors.items()}
    # a single key, because several would have no fixed order
    content = save(ready, {HEADER: json.dumps(header, sort_keys=True)})
    write_whole(path, content, "another place with --out")
    return read_any_fitted(path)


def _find_by_digest(digest: str, *, files: bool) -> Fitted:
    """Returns the file with this content; with `files`, it may be read from the working folder."""
    if digest not in _FILES_READ and files:
        _read_folder(Path())
    if digest in _FILES_READ:
        return _FILES_READ[digest]
    if files:
        raise UsageError(
            f"No fitted file with the digest {digest} was read before, and none is in this folder;"
            " give the path of the file.",
            option="file",
            value=digest,
        )
    raise UsageError(
        f"No fitted file with the digest {digest} was read here; a server knows only the files"
        " that it was started with.",
        option="file",
        value=digest,
    )


def _read_folder(folder: Path) -> None:
    """Reads the fitted files in a folder."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if HEADER in _metadata(path):
            read_any_fitted(path)


def _reopen(path: str, digest: str) -> Fitted:
    return _FILES_READ[digest] if digest in _FILES_READ else read_any_fitted(path)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a null byte in the path is a ValueError
        raise UsageError(
            f"The fitted file {str(path)!r} cannot be read ({reason_of(error)}); check the path.",
            option="file",
            value=str(path),
        ) from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _metadata(path: Path) -> dict[str, str]:
    """Reads the metadata of a safetensors file, but not its tensors; {} if it has no metadata."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError):
        return {}
