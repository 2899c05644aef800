"""Connects to a Ray cluster, or starts one on this machine, and divides it among actors."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.errors import ModelError, UsageError
from holdfast.integrations.ray.actor import Specification
from holdfast.integrations.ray.actors import Resources
from holdfast.integrations.ray.ray_model import RayModel
from holdfast.validation import ranges

LOCAL = "local"  # the address of a cluster of only this machine, which ends with the command
_CONNECT_SECONDS = 10.0  # to wait for a head node to answer


def connect(
    specification: Specification,
    address: str = "",
    replicas: int | None = None,
    *,
    processors: int | None = None,
) -> RayModel:
    """Starts actors that each load a model; a `with` statement ends them.

    If the cluster has GPUs, each actor has one of them to itself, unless the specification names
    another device. Otherwise the processors are divided evenly among the actors.

    Args:
        specification: the model, which every actor loads itself.
        address: HOST:PORT of the cluster's head; "auto" for the cluster that this machine belongs
            to; "local" for a cluster of only this machine, started here; "" for the environment
            variable RAY_ADDRESS, or else "local". If the program is already connected to a cluster,
            the address is ignored.
        replicas: the number of actors; None: one per GPU, or per node if no GPUs are used.
        processors: processors per actor; None: an even share of all.

    Raises:
        UsageError: Ray is not installed, or the address is malformed.
        ModelError: the cluster cannot be reached, or has no room; an actor cannot load the model,
            or its software versions differ from those here.
    """
    if importlib.util.find_spec("ray") is None:
        raise UsageError(
            "--ray needs ray, which is not installed; pip install 'holdfast-llm[ray]'.",
            option="ray",
        )
    for name, number in (("replicas", replicas), ("processors", processors)):
        if number is not None:
            ranges.whole_number("a run on Ray", name, number, 1)
    import ray

    is_own_connection = not ray.is_initialized()
    if is_own_connection:
        address = address or os.environ.get("RAY_ADDRESS", LOCAL)
        _open(address)
    else:
        address = ray.get_runtime_context().gcs_address
    try:
        nodes = [_resources_of(node["Resources"]) for node in ray.nodes() if node["Alive"]]
        wants_gpus = specification.device in (None, "cuda") and any(node.gpus for node in nodes)
        resources, count = _share_out(nodes, replicas, address, wants_gpus=wants_gpus)
        if processors is not None:
            resources = replace(resources, processors=processors)
        return RayModel(
            specification, resources, count, address, closes_connection=is_own_connection
        )
    except BaseException:
        if is_own_connection:
            ray.shutdown()
        raise


def _open(address: str) -> None:
    """Connects this process to Ray, without Ray's messages, dashboard and usage statistics."""
    if address.startswith("ray://"):
        raise UsageError(
            f"{address} is an address for Ray's client, which runs no driver here; give --ray"
            " HOST:PORT of the head, on a machine of the cluster."
        )
    if address not in (LOCAL, "auto"):
        _check_answers(address)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    import ray

    _silence()
    options: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **options)
    except Exception as error:  # it may have several types, some of which are private to Ray
        reason = " ".join(str(error).split())[:300].rstrip(".")
        if address == LOCAL:
            raise ModelError(
                f"Ray does not start on this machine ({reason}); try again when the machine is less"
                " busy, or leave out --ray."
            ) from None
        raise ModelError(
            f"Cannot reach a Ray cluster at {address!r} ({reason}); check that `ray status` shows"
            " it there, and if it needs a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
        ) from None


def _check_answers(address: str) -> None:
    """Raises an error for an address where nothing listens; Ray itself would wait long for it."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal()):
        raise UsageError(
            f"{address!r} is not the address of a Ray cluster for --ray; write HOST:PORT (Ray's own"
            " default is 6379), or auto.",
            option="ray",
            value=address,
            allowed="HOST:PORT or auto",
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ModelError(
            f"Cannot reach a Ray cluster at {address!r} ({error}); check that `ray status` shows it"
            " there, or leave out the address to start one on this machine."
        ) from None


def _silence() -> None:
    """Keeps Ray from printing that a worker died, which we report; it has no setting for that."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *values, **more: None


def _resources_of(node: Mapping[str, float]) -> Resources:
    """Returns the resources of a node, from Ray's list of them."""
    return Resources(int(node.get("CPU", 0)), int(node.get("GPU", 0)))


def _share_out(
    nodes: list[Resources], replicas: int | None, address: str, *, wants_gpus: bool
) -> tuple[Resources, int]:
    """Returns the resources of each actor, and the number of actors."""
    if wants_gpus:
        gpus = sum(node.gpus for node in nodes)
        count = replicas or gpus
        if count > gpus:
            raise _no_room(count, "GPU", gpus, address)
        processors_per_gpu = min(node.processors // node.gpus for node in nodes if node.gpus)
        return Resources(processors=max(1, processors_per_gpu), gpus=1), count
    processors = sum(node.processors for node in nodes)
    count = replicas or sum(node.processors > 0 for node in nodes)
    if not 0 < count <= processors:
        raise _no_room(max(count, 1), "processor", processors, address)
    share = processors // count
    while sum(node.processors // share for node in nodes) < count:
        share -= 1  # an actor cannot have processors of several nodes
    return Resources(processors=share, gpus=0), count


def _no_room(count: int, resource: str, available: int, address: str) -> ModelError:
    """Returns the error for a cluster that has no room for all actors."""
    message = (
        f"{count} actors with a {resource} each do not fit into the Ray cluster at {address!r},"
        f" which has {available}; use --replicas {available}, or add nodes."
    )
    if not available:
        message = f"The Ray cluster at {address!r} has no {resource}s to give to actors; add nodes."
    return ModelError(message, option="replicas", value=count, allowed=available)
