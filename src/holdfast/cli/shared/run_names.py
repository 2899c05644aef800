"""Names a run's folder after its command, model, suite and seed, if --out is not given."""

import itertools
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.cli.shared.options import ModelOptions
from holdfast.models.model_names import is_url

FOLDER = Path("runs")


def run_folder(command: str, model: str, *names: str, seed: int = 0, shard: str = "") -> Path:
    """The folder of a run, as in `runs/drift-smollm2-core-0`.

    Settings are not part of the name: a command with other settings is refused in the same folder,
    and the setting that differs is named.

    Args:
        names: further names that distinguish the run, such as the suite.
        shard: such as "1/4", as in `runs/drift-smollm2-core-0-1of4`; "" for a whole run.
    """
    parts = [shard.replace("/", "of")] if shard else []
    return named_folder(command, model, *names, str(seed), *parts)


def named_folder(command: str, *names: str) -> Path:
    """The folder of a run that is named after these alone, as in `runs/logs-rules`."""
    return FOLDER / "-".join([command, *map(_safe_name, names)])


class NumberedFolders(NamedTuple):
    """Of folders such as `logs-rules`, `logs-rules-2` and `logs-rules-3`, those at the end."""

    latest: Path  # the last one that exists; if none does, the first
    unused: Path  # the one after it


def numbered_folders(first: Path) -> NumberedFolders:
    """Finds the end of the folders `first`, `first-2`, `first-3` and so on."""
    latest = first
    for number in itertools.count(2):
        following = first.with_name(f"{first.name}-{number}")
        if not following.exists():
            return NumberedFolders(latest, following)
        latest = following
    raise AssertionError("there is always a next number")


def model_of(arguments: ModelOptions, name_at_endpoint: str | None = None) -> str:
    """The name that a model gives its run's folder.

    Args:
        name_at_endpoint: the name of an endpoint's model, once the endpoint is connected. The
            address follows it, as other addresses may serve another model of that name.
    """
    if not is_url(arguments.model):
        return arguments.model
    address = urlsplit(arguments.model.split(",")[0]).netloc
    name = name_at_endpoint or arguments.endpoint_model
    return f"{name}@{address}" if name else address


def _safe_name(name: str) -> str:
    """The last part of a path or name, with only characters that are safe in a file's name."""
    last = name.rstrip("/").split("/")[-1].removesuffix(".yaml").removesuffix(".yml")
    return "".join(ch if ch.isalnum() or ch == "." else "_" for ch in last)
