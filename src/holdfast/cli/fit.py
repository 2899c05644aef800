"""`holdfast fit`: learn on a model what a method needs."""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.options import add_placement, begin_loading, is_url, load_here
from holdfast.errors import UsageError

EXAMPLES = """A line of --data for seka, ada-seka and prism:
  {"context": "Anna lives in Rome. It rained.", "answer": "Rome",
   "relevant": "Where does Anna live?", "irrelevant": "Who won?", "expert": "places"}
and for capping, vector and gcad:
  {"prompted": [{"role": "system", "content": "..."}, {"role": "user", "content": "..."}],
   "plain": [{"role": "user", "content": "..."}]}
examples:
  holdfast fit seka --out seka.safetensors
  holdfast generate --system "..." --user "..." --method seka:file=seka.safetensors,gain=1"""


def add_parser(commands) -> None:
    fit = commands.add_parser(
        "fit",
        help="learn on a model what a method needs",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXAMPLES,
        description=(
            "Learns directions for a method from contrastive examples, and writes them into a"
            " safetensors file\nthat serves this model and this method alone (docs/methods.md)."
        ),
    )
    add = fit.option
    fit.add_argument(
        "method", metavar="METHOD", help="seka, ada-seka, prism, capping, vector or gcad"
    )
    add(
        "--model",
        "default",
        "the chat model (default: the one in the package)",
        metavar="default|PATH|HUB_ID",
    )
    add("--out", Path, "where it goes", required=True, metavar="FILE.safetensors")
    add(
        "--data", Path, "examples of your own (default: those in the package)", metavar="FILE.jsonl"
    )
    add("--batch-size", int, "rows generated together at most", metavar="ROWS")
    add_placement(add)
    fit.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast.cli.progress import Bar
    from holdfast.errors import UnknownName
    from holdfast.methods.fitted import SUFFIX
    from holdfast.study.fitting.run import fit, fitted_methods

    if arguments.method not in fitted_methods():
        raise UnknownName("fitted method", arguments.method, fitted_methods())
    if is_url(arguments.model):
        raise UsageError(
            f"--model {arguments.model} is an endpoint, whose hidden states nobody sees; give a"
            " folder or a name on the hub."
        )
    if arguments.out.suffix != SUFFIX:
        raise UsageError(f"--out takes a {SUFFIX} file, not {str(arguments.out)!r}.")
    begin_loading(arguments.model)
    model = load_here(arguments)
    watch = Bar.of("example")
    fitted = fit(arguments.method, model, arguments.out, arguments.data, watch=watch)
    print(f"Fitted on {model.name}: {arguments.out.resolve()}")
    print(f"--method {fitted.method}:file={arguments.out}   (in records: file={fitted.digest})")
