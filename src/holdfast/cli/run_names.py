"""Names of run folders, if --out is left out: by the command, the model, the suite and the seed."""

from pathlib import Path
from urllib.parse import urlsplit

from holdfast.cli.options import ModelOptions
from holdfast.models.model_names import is_url

FOLDER = Path("runs")


def run_folder(command: str, model: str, *names: str, seed: int = 0, shard: str = "") -> Path:
    """The folder of a run, as in `runs/drift-smollm2-core-0`, or of a shard, as in
    `runs/drift-smollm2-core-0-1of4`.

    Settings are no part of the name: a command with other settings is refused there, with the
    setting that differs.
    """
    parts = [shard.replace("/", "of")] if shard else []
    return named_folder(command, model, *names, str(seed), *parts)


def named_folder(command: str, *names: str) -> Path:
    """The folder of a run that is told apart by these names alone, as in `runs/logs-rules`."""
    return FOLDER / "-".join([command, *map(_plain, names)])


def model_of(arguments: ModelOptions) -> str:
    """The model as a folder is named after it, before it is loaded."""
    if is_url(arguments.model):
        return arguments.endpoint_model or str(urlsplit(arguments.model).hostname)
    return arguments.model


def _plain(name: str) -> str:
    """The last part of a path or name, as a part of a file's name."""
    last = name.rstrip("/").split("/")[-1].removesuffix(".yaml").removesuffix(".yml")
    return "".join(ch if ch.isalnum() or ch == "." else "_" for ch in last)
