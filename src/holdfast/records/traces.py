"""Stores the attention mass of every head at every generated token, in one file per record."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from holdfast.errors import RecordsError, option, reason_of
from holdfast.files import write_whole

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = "traces"
_MAX_NAME_CHARACTERS = 150  # of a method in a file's name, whose length is limited


@dataclass(frozen=True)
class TurnTrace:
    """The attention mass in one turn of the agent."""

    # attention mass on the system prompt, float [layer, head, step]; step t is the query that
    # produced token t
    mass: np.ndarray | Tensor
    # the mass if attention were uniform over the tokens that the layer sees, float [layer, step]
    uniform: np.ndarray | Tensor


def write_traces(run: Path, method: str, conversation: int, turns: Mapping[int, TurnTrace]) -> None:
    """Writes the turns of a conversation, given by round; masses are stored as float16.

    The file is replaced atomically.
    """
    arrays = {}
    for number, turn in turns.items():
        arrays[f"round_{number}"] = np.asarray(turn.mass, dtype=np.float16)
        # "even" is the name in files for the mass under uniform attention
        arrays[f"even_{number}"] = np.asarray(turn.uniform, dtype=np.float32)
    content = io.BytesIO()
    np.savez_compressed(content, rounds=np.array(list(turns)), **arrays)  # type: ignore[arg-type]
    write_whole(_path(run, method, conversation), content.getvalue())


def read_traces(run: Path, method: str, conversation: int) -> dict[int, TurnTrace]:
    """Reads the turns of a conversation by round; all masses are float32.

    Raises:
        RecordsError: the file is missing or damaged.
    """
    path = _path(run, method, conversation)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            turns = {}
            for number in arrays["rounds"]:
                mass = arrays[f"round_{number}"].astype(np.float32)
                # version 0.2 wrote one number for all layers
                shape = mass.shape[0], mass.shape[2]
                uniform = np.broadcast_to(arrays[f"even_{number}"], shape)
                turns[int(number)] = TurnTrace(mass, uniform)
            return turns
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise RecordsError(
            f"Cannot read the trace {path} ({reason_of(error)}); trace into another folder with"
            f" {option('out')}."
        ) from None


def _path(run: Path, method: str, conversation: int) -> Path:
    name = quote(method, safe="=,")
    if len(name) > _MAX_NAME_CHARACTERS:  # as with a long list of heads
        name = f"{name[:_MAX_NAME_CHARACTERS]}-{hashlib.sha256(method.encode()).hexdigest()[:12]}"
    return Path(run) / FOLDER / f"{name}-{conversation}.npz"
