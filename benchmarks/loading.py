"""Measures how long a GGUF file takes to load in a fresh process, against transformers' loader.

The three ways alternate, each in a separate process:

- "first": `holdfast.load`, with an empty cache of tokenizers
- "later": the same, with the tokenizer in the cache
- "transformers": `AutoTokenizer` and `AutoModelForCausalLM.from_pretrained(gguf_file=...)`

The file is in the system's page cache. Seconds are of the whole process (with the imports) until
the model is loaded, and of the load alone. Holdfast also tries whether the model can be steered,
and digests the file. After that, each process digests its weights and its tokenizer, which have to
be those of the others, bit for bit.

    python benchmarks/loading.py --out benchmarks/results/loading.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from stamp import measured_on, write_record

WAYS = ("first", "later", "transformers")


class Loaded(NamedTuple):
    """A model and its tokenizer, as transformers has them."""

    model: Any
    tokenizer: Any


def load_by_holdfast(file: Path, dtype: str) -> Loaded:
    import holdfast

    loaded = holdfast.load(file, "cpu", dtype)
    return Loaded(loaded.hf_model, loaded.tokenizer)


def load_by_transformers(file: Path, dtype: str) -> Loaded:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=dtype)
    return Loaded(model, tokenizer)


def digest_of(loaded: Loaded) -> str:
    """A digest of every weight's name, dtype and bits, and of the tokenizer."""
    import torch

    digest = hashlib.sha256(loaded.tokenizer.backend_tokenizer.to_str().encode())
    for name, weight in sorted(loaded.model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_once(way: str, file: Path, dtype: str) -> None:
    """Loads in this process; prints the times and the digest as JSON."""
    warnings.simplefilter("ignore")
    import transformers

    if way == "transformers":
        from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: F401
    else:
        import holdfast.models.loading  # noqa: F401
    transformers.logging.set_verbosity_error()
    started = time.perf_counter()
    load = load_by_transformers if way == "transformers" else load_by_holdfast
    loaded = load(file, dtype)
    times = {
        "loaded_at": time.time(),
        "load_s": time.perf_counter() - started,
        "cpu_s": time.process_time(),
    }
    print(json.dumps(times | {"digest": digest_of(loaded)}))


def load_in_subprocess(way: str, file: Path, dtype: str, cache: Path) -> dict:
    """The times and the digest of one load in a fresh process.

    Args:
        way: one of `WAYS`.
        cache: the folder in which Holdfast keeps tokenizers.
    """
    command = [sys.executable, __file__, "--way", way, "--file", str(file), "--dtype", dtype]
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "HF_HUB_OFFLINE": "1"}
    started = time.time()
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    result = json.loads(ran.stdout.splitlines()[-1])
    return result | {"process_s": result.pop("loaded_at") - started}


def measure(name: str, dtype: str, repetitions: int) -> dict:
    """Loads a model in each way, in turn; returns its part of the record."""
    from holdfast.models.checkpoint import find_source

    gguf = find_source(name).gguf
    assert gguf is not None, f"{name} is no GGUF file"
    file = gguf.path.absolute()
    file.read_bytes()  # into the page cache
    results: dict[str, list[dict]] = {way: [] for way in WAYS}
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:
            for way in WAYS:
                results[way].append(load_in_subprocess(way, file, dtype, Path(cache)))
                print(f"{name}, {way}: {results[way][-1]['process_s']:.1f} s", file=sys.stderr)
    digests = {run["digest"] for runs in results.values() for run in runs}
    return {
        "model": name,
        "file": file.name,
        "dtype": dtype,
        "same_weights_and_tokenizer": len(digests) == 1,
        "rows": [{"way": way, **median_times(runs)} for way, runs in results.items()],
    }


def median_times(runs: list[dict]) -> dict:
    """The median of each time over the runs, and all of them."""
    times = {}
    for name in ("process_s", "load_s", "cpu_s"):
        seconds = [run[name] for run in runs]
        times[name] = {
            "median": round(statistics.median(seconds), 2),
            "all": [round(value, 2) for value in seconds],
        }
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["qwen-0.5b", "smollm2", "gemma-3-270m"])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        load_once(arguments.way, arguments.file, arguments.dtype)
        return
    record = {
        "benchmark": "loading",
        "measured_on": measured_on(),
        "repetitions": arguments.repetitions,
        "models": [
            measure(name, arguments.dtype, arguments.repetitions) for name in arguments.models
        ],
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
