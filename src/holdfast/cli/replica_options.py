"""Options that say where copies of a model run, and the model that they name."""

from __future__ import annotations

import argparse
import sys

from holdfast.errors import UsageError

AS_MANY_AS_PAY = (
    "for a small model on the CPU one per processor, each with at least 8 conversations; else 1"
)


def add_replicas(add, units: str, default: str = "1") -> None:
    """Adds them.

    Args:
        add: a parser's `add_argument`.
        units: what is shared out.
        default: how many forked processes there are, where nothing is said.
    """
    add(
        "--replicas",
        type=int,
        metavar="N",
        help=(
            f"processes that share the {units} (default: {default}); with --ray, actors (default:"
            " one per GPU, or per machine without one)"
        ),
    )
    add(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help=(
            "run the replicas on the Ray cluster at HOST:PORT, or auto (default: RAY_ADDRESS, else"
            " this machine alone)"
        ),
    )


def load_on_ray(arguments: argparse.Namespace):
    """The model that the arguments name, as actors hold it.

    Raises:
        UsageError: a model that is spread over devices.
        HoldfastError: as `integrations.ray.connect`.
    """
    from holdfast.integrations.ray import Specification, connect

    if arguments.device_map is not None:
        raise UsageError(
            f"--device-map {arguments.device_map} spreads a model over the devices of one process,"
            " and an actor on Ray has one; leave out one of the two."
        )
    specification = Specification(
        arguments.model,
        arguments.device,
        arguments.dtype,
        arguments.trust_remote_code,
        arguments.batch_size,
    )
    model = connect(specification, arguments.ray, arguments.replicas)
    print(f"holdfast: {model}.", file=sys.stderr)
    return model
