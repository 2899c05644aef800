"""`holdfast fit`: learns the directions that a method needs, from examples."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command, file_to_write
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.local_loading import begin_loading, load_local
from holdfast.cli.shared.model_checks import check_layered_model, refuse_engine_in_name
from holdfast.cli.shared.progress_bar import Bar
from holdfast.errors import UnknownName, UsageError
from holdfast.files import short_path
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.fitted import SUFFIX
from holdfast.methods.parameters import parameters_of
from holdfast.validation.ranges import whole_number

EXAMPLES = """A line of --data for seka and prism:
  {"context": "Anna lives in Rome. It rained.", "answer": "Rome",
   "relevant": "Where does Anna live?", "irrelevant": "Who won?"}
and for capping and vector:
  {"prompted": [{"role": "system", "content": "..."}, {"role": "user", "content": "..."}],
   "plain": [{"role": "user", "content": "..."}]}
examples:
  holdfast fit seka --out seka.safetensors
  holdfast generate --system "..." --user "..." --method seka:file=seka.safetensors,gain=1"""


class FitArguments(options.LocalModelOptions):
    method: Annotated[str, Arg("METHOD", positional=True)]
    """seka, prism, capping or vector"""
    out: Annotated[Path, Arg("FILE.safetensors", type=file_to_write)]
    """the file to write"""
    gguf: Annotated[Path | None, Arg("FILE.gguf", type=file_to_write)] = None
    """for vector: also write a control vector for llama.cpp (llama-server --control-vector)"""
    data: Annotated[Path | None, Arg("FILE.jsonl")] = None
    """your own examples (default: the bundled ones)"""
    batch_size: int | None = None
    """the most sequences forwarded together"""


def run(arguments: FitArguments) -> None:
    _check(arguments)
    refuse_engine_in_name(arguments.model)
    check_layered_model(arguments.model, "hidden states")
    begin_loading(arguments)
    from holdfast.study.fitting.fit import fit, write_control_vector  # imports torch

    model = load_local(arguments, batch_size=arguments.batch_size)
    watch = Bar.of("example")
    fitted = fit(arguments.method, model, arguments.out, arguments.data, watch=watch)
    method = f"{fitted.method}:file={arguments.out}"
    files = [arguments.out.resolve()]
    print(f"Fitted on {model.name}: {short_path(arguments.out)}")
    print(f"--method {method}   (in records: file={fitted.digest})")
    if arguments.gguf is not None:
        write_control_vector(fitted, arguments.gguf)
        print(f"llama-server --control-vector {short_path(arguments.gguf)}")
        files.append(arguments.gguf.resolve())
    write_document({"model": model.name, "method": method, "digest": fitted.digest, "files": files})


def _check(arguments: FitArguments) -> None:
    """Refuses options before torch is imported and the model loaded."""
    fitted_methods = [name for name, method in BY_NAME.items() if "file" in parameters_of(method)]
    if arguments.method not in fitted_methods:
        raise UnknownName("fitted method", arguments.method, fitted_methods)
    if arguments.out.suffix != SUFFIX:
        raise UsageError(f"--out takes a {SUFFIX} file, not {str(arguments.out)!r}.")
    if arguments.batch_size is not None:
        whole_number("fit", "batch_size", arguments.batch_size, 1)
    if arguments.gguf is None:
        return
    if find_spec("gguf") is None:
        raise UsageError("--gguf needs the package gguf; pip install 'holdfast-llm[gguf]'.")
    if arguments.method != "vector":
        raise UsageError(
            f"--gguf {arguments.gguf} is for the method vector; the directions of"
            f" {arguments.method} are not vectors that llama.cpp could add, so leave it out."
        )


COMMAND = Command(
    "fit",
    run,
    FitArguments,
    description=(
        "Learns directions for a method from contrastive examples, and writes them into a"
        " safetensors file that works with this model and this method only (see `holdfast docs"
        " methods`)."
    ),
    examples=EXAMPLES,
)
