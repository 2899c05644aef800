"""The actors of a model: starts them, checks that they match, and replaces those that are lost."""

from __future__ import annotations

import asyncio
import re
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import ModelError
from holdfast.integrations.ray.actor import Actor, Description, Specification, versions
from holdfast.models.event_loop import task_group
from holdfast.plurals import count_of

_PATIENCE = 120.0  # seconds that a cluster may take to provide an actor's resources
_MAX_FAILED_STARTS = 3  # actors that may be lost in a row before they have loaded the model
_POLL_SECONDS = 1.0
_MAX_CONCURRENT_CALLS = 10_000  # at one actor
_MAX_REASON_CHARACTERS = 200


@dataclass(frozen=True)
class Resources:
    """The processors and GPUs of an actor or of a node."""

    processors: int
    gpus: int

    def __str__(self) -> str:
        gpu = "a GPU and " if self.gpus else ""
        return f"{gpu}{count_of(self.processors, 'processor')}"


@dataclass(eq=False)
class Replica:
    """A running actor: the handle that calls it, and what this process knows about it.

    Attributes:
        handle: calls it through Ray.
        machine: a Ray future of the name of its machine and of the versions installed there.
        requested_at: when it was requested, in monotonic seconds.
        node: its machine's name; "" until it runs.
        loading: a Ray future of `description`; None until it is asked to load the model.
        description: of the model that it has loaded; None until then.
        calls: the number of calls that it is working on.
        reserved: whether it is kept for a call that has to be alone.
    """

    handle: Any
    machine: Any
    requested_at: float = field(default_factory=time.monotonic)
    node: str = ""
    loading: Any = None
    description: Description | None = None
    calls: int = 0
    reserved: bool = False


class Actors:
    """The actors of a run: `count` of them, each with `resources`, which load the same model."""

    def __init__(
        self, specification: Specification, resources: Resources, count: int, address: str
    ):
        self.specification = specification
        self.resources = resources
        self.count = count
        self.address = address
        self.replicas: list[Replica] = []
        # the first to load the model; the others must match it
        self.first_loaded: Replica | None = None
        self._failed_starts = 0
        self._has_warned = False
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def loaded(self) -> list[Replica]:
        """The actors that have loaded the model and can be called."""
        return [replica for replica in self.replicas if replica.description]

    async def supervise(self) -> None:
        """Keeps starting actors while some are missing, until it is cancelled.

        Raises:
            ModelError: an actor does not match the others, several in a row were lost while they
                loaded the model, or the cluster has no resources for any.
        """
        starting = set[Replica]()
        async with task_group() as starts:
            while True:
                self._request_missing()
                for replica in self.replicas:
                    if replica.description is None and replica not in starting:
                        starting.add(replica)
                        starts.create_task(self._start(replica))
                is_complete = len(self.loaded) == self.count
                self._check_resources()
                await self.wait_for_change(None if is_complete else _POLL_SECONDS)

    async def wait_for_change(self, timeout: float | None = None) -> None:
        """Waits until an actor has been loaded, lost or freed; or until the timeout, in seconds."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(changed)
        try:
            await asyncio.wait([changed], timeout=timeout)
        finally:
            self._waiting.remove(changed)

    def notify(self) -> None:
        """Wakes all tasks that wait for a change."""
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    def lose(self, replica: Replica, loss: Exception) -> str:
        """Removes an actor that is lost; returns the reason in a few words."""
        import ray

        reason = reason_lost(loss)
        if replica not in self.replicas:
            return reason
        ray.kill(replica.handle)  # it may only have been unreachable
        self.replicas.remove(replica)
        self.notify()
        if replica.description is None:
            self._failed_starts += 1
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise ModelError(
                    f"{_MAX_FAILED_STARTS} actors in a row were lost before they had loaded"
                    f" {self.specification.name!r} ({reason}); if memory ran out, use a smaller"
                    " --dtype or fewer --replicas on a machine."
                )
        return reason

    def _request_missing(self) -> None:
        """Requests actors from the cluster until there are `count`."""
        import ray

        remote = ray.remote(Actor).options(
            num_cpus=self.resources.processors,
            num_gpus=self.resources.gpus,
            scheduling_strategy="SPREAD",
            max_concurrency=_MAX_CONCURRENT_CALLS,
        )
        while len(self.replicas) < self.count:
            handle = remote.remote(self.resources.processors)
            self.replicas.append(Replica(handle, handle.about.remote()))

    async def _start(self, replica: Replica) -> None:
        """Waits until an actor has loaded the model, and compares it with the others."""
        import ray

        try:
            replica.node, installed = await replica.machine
            check_versions(installed, replica.node)
            if replica.loading is None:
                replica.loading = replica.handle.load.remote(self.specification)
            description = await replica.loading
        except ray.exceptions.RayActorError as loss:
            self.lose(replica, loss)
            return
        except ray.exceptions.RayTaskError as error:
            raise cause_of(error, replica.node) from None
        replica.description = description
        self._failed_starts = 0
        if self.first_loaded is None:
            self.first_loaded = replica
        first = self.first_loaded
        assert first.description is not None
        check_alike(first.description, first.node, description, replica.node)
        self.notify()

    def _check_resources(self) -> None:
        """Warns if the cluster has no resources for some actors; raises an error if for none."""
        requested_before = time.monotonic() - _PATIENCE
        late = [
            replica
            for replica in self.replicas
            if not replica.node and replica.requested_at < requested_before
        ]
        all_late = len(late) == len(self.replicas)
        if not late or (self._has_warned and not all_late):
            return
        message = (
            f"The Ray cluster at {self.address!r} has no resources for {len(late)} of"
            f" {self.count} actors after {_PATIENCE:.0f} s, with {self.resources} each"
        )
        if all_late:
            raise ModelError(
                f"{message}; free some (`ray status` shows usage), or add nodes.", value=len(late)
            )
        self._has_warned = True
        warnings.warn(f"{message}; the run continues without these.", stacklevel=2)


def check_versions(installed: dict[str, str], node: str) -> None:
    """Raises an error if a machine has other versions of software than this one."""
    for name, version in versions().items():
        if installed.get(name) != version:
            raise ModelError(
                f"{name} is {version} here and {installed.get(name)} on {node}; install the same"
                " versions on every machine.",
                option=name,
                value=installed.get(name),
                allowed=version,
            )


def check_alike(first: Description, first_node: str, other: Description, node: str) -> None:
    """Raises an error if an actor's model would not give the same replies as the first actor's."""
    for name in ("fingerprint", "runtime"):
        expected = getattr(first, name)
        actual = getattr(other, name)
        if expected != actual:
            raise ModelError(
                f"The {name} of {first.name!r} is {expected} on {first_node} and {actual} on"
                f" {node}; give every machine the same files and the same kind of device.",
                option=name,
                value=actual,
                allowed=expected,
            )


def cause_of(error: Any, node: str) -> Exception:
    """Returns the error that an actor raised, without Ray's own error around it."""
    import ray

    if isinstance(error, ray.exceptions.RaySystemError):  # the actor could not unpickle the call
        last = str(error).strip().splitlines()[-1]
        return ModelError(
            f"The work cannot be read on {node} ({last}); install your own modules, such as those"
            " of measures, where every machine's Python finds them."
        )
    return error.cause


def reason_lost(error: Exception) -> str:
    """Returns in a few words why an actor was lost, from Ray's message.

    For example, "The actor 0a1b is dead because its node has died. Check ..." gives "its node has
    died".
    """
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))  # without colours
    if missing := re.findall(r"ModuleNotFoundError: (No module named '[^']+')", text):
        return f"{missing[-1]} there; install the same on every machine"
    match = re.search(r"is dead because (.+?)(?:\. |\.?$)", text, re.MULTILINE)
    reason = match[1] if match else " ".join(text.split())
    return reason[:_MAX_REASON_CHARACTERS].rstrip(".")
