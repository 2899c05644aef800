"""The default model as GGUF files, run by llama.cpp and by Holdfast itself."""

from __future__ import annotations

import os

os.environ.update({"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"})

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import llama_cpp
import pytest
from gguf_files import write_default
from holdfast_llama.model import LlamaModel, load
from holdfast_llama.native import has_amx

import holdfast

# Every method of the steering table, on all heads and on chosen ones.
METHODS = (
    "boost:factor=4",
    "boost:factor=8,heads=1.2/2.3/3.0",
    "pasta:alpha=0.05",
    "pasta:alpha=0.05,generated=keep",
    "split-softmax:exponent=0.5",
    "split-softmax:exponent=0.3,heads=0.1/3.7",
    "spotlight:target=0.3",
    "hold",
    "boost:factor=2+split-softmax:exponent=0.7",
)


@pytest.fixture(scope="session", autouse=True)
def stock_without_amx() -> Iterator[None]:
    """llama-cpp-python's own models without AMX kernels, as ours are loaded by default."""
    parameters = llama_cpp.llama_model_default_params()
    parameters.use_extra_bufts = not has_amx()
    with mock.patch("llama_cpp.llama_cpp.llama_model_default_params", lambda: parameters):
        yield


def chat(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


CHATS = [
    chat("Answer in uppercase letters only.", "Tell me about gardens."),
    chat("End every sentence with an exclamation mark! Speak of music.", "What is new?"),
    chat("You are a pirate, and you talk like one. Never say yes. " * 6, "Is bread good?"),
]


@pytest.fixture(scope="session")
def file_of(tmp_path_factory) -> Callable[[str], Path]:
    """file_of(kind) -> the model as a file with weights of that type."""
    folder = tmp_path_factory.mktemp("gguf")

    @cache
    def path_of(kind: str = "F32") -> Path:
        return write_default(folder / f"default-{kind}.gguf", kind)

    return path_of


@pytest.fixture(scope="session")
def in_llama(file_of) -> Callable[..., LlamaModel]:
    """in_llama(kind, **options) -> the model in llama.cpp."""

    @cache
    def loaded(kind: str = "F32", **options: Any) -> LlamaModel:
        standard = {"cache": "f32" if kind == "F32" else "f16", "context": 1024, "threads": 1}
        return load(str(file_of(kind)), **{**standard, **options})

    return loaded


@pytest.fixture(scope="session")
def local_model(file_of) -> holdfast.LocalModel:
    """The model as Holdfast runs it, in float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its size
        return holdfast.load(str(file_of("F32")), dtype="float32")
