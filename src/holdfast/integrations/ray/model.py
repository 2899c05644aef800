"""A model whose replicas are actors of a Ray cluster; this process hands work out to them."""

from __future__ import annotations

import contextlib
import operator
import re
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from holdfast.errors import ModelError, RequestFailed
from holdfast.integrations.ray.actor import Actor, Description, Shares, Specification, versions
from holdfast.methods import Ability, Method
from holdfast.models.failures import MOST_IN_A_ROW
from holdfast.models.protocol import Engine, Generates
from holdfast.models.replicas import Listener, Work
from holdfast.models.requests import Reply, Request

_PATIENCE = 120.0  # seconds for a cluster to provide an actor's resources
_MOST_STARTS = 3  # actors lost in a row before they have loaded the model; then it fails
_POLL = 1.0  # seconds


@dataclass(frozen=True)
class Resources:
    """Processors and GPUs, of an actor or of a node."""

    processors: int
    gpus: int

    def __str__(self) -> str:
        plural = "" if self.processors == 1 else "s"
        gpu = "a GPU and " if self.gpus else ""
        return f"{gpu}{self.processors} processor{plural}"


@dataclass(eq=False)
class Replica:
    """An actor, as this process sees it."""

    handle: Any
    waits_for: Any  # the future of its latest call, or the stream of its share; None while idle
    since: float = field(default_factory=time.monotonic)  # when it was requested
    node: str = ""  # the machine's name, once the actor runs
    description: Description | None = None  # once it has loaded the model
    share: list[int] = field(default_factory=list)  # the units it has not finished

    @property
    def is_working(self) -> bool:
        return self.description is not None and self.waits_for is not None


@dataclass
class Round:
    """One call of `RayModel.work`."""

    work: Any  # a reference into Ray's object store
    units: Mapping[int, Any]
    shares: Shares
    listener: Listener
    lost_in_a_row: int = 0  # units given up since the last one finished


class RayModel(Generates):
    """A chat model whose replicas are actors; see `holdfast.integrations.ray.connect`.

    An actor that is lost is replaced. Each of `count` actors has `resources`; `ours` says whether
    closing the model also closes the connection to the cluster.
    """

    independent: ClassVar[bool] = False

    def __init__(
        self,
        specification: Specification,
        resources: Resources,
        count: int,
        address: str,
        ours: bool,
    ):
        self._specification, self._resources = specification, resources
        self._count, self._address = count, address
        self._replicas: list[Replica] = []
        self._first: Replica | None = None  # to load the model; all others must match it
        self._failed_starts = 0
        self._has_warned = False
        self.close: Callable[[], object] = weakref.finalize(self, _end, self._replicas, ours)
        try:
            self._fill_up()
            while self._first is None:
                self._wait()
        except BaseException:
            self.close()
            raise
        self.name: str = self.description.name
        self.fingerprint: str = self.description.fingerprint
        self.runtime: dict[str, str | int] = self.description.runtime
        self.capabilities: frozenset[Ability] = self.description.capabilities

    def __enter__(self) -> RayModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def description(self) -> Description:
        """The description of the first actor that loaded the model; the others must match it."""
        assert self._first is not None and self._first.description is not None
        return self._first.description

    @property
    def about(self) -> dict[str, Any]:
        """Where the replicas are, for the manifest; no result depends on it."""
        per_actor = {"processors": self._resources.processors, "gpus": self._resources.gpus}
        return {"ray": {"address": self._address, "replicas": self._count, "each": per_actor}}

    def __str__(self) -> str:
        return f"{self._count} replicas on Ray at {self._address}, each with {self._resources}"

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that the model cannot apply, with an actor's own error."""
        self.ask(operator.methodcaller("check", tuple(methods)))

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats on one of the actors."""
        return self.ask(operator.methodcaller("generate_batch", list(requests)))

    def session(self) -> Engine:
        """Raises `ModelError`, as actors only do whole units of work."""
        raise ModelError(
            f"{self.name} has replicas on Ray, which do whole conversations and batches of samples;"
            " load it with holdfast.load() for anything else."
        )

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with an actor's model and further arguments, or raises its error."""
        import ray

        while True:
            for replica in self._loaded():
                try:
                    answer, error = ray.get(replica.handle.compute.remote(function, arguments))
                except ray.exceptions.RayActorError as loss:
                    self._lose(replica, loss, None)
                except ray.exceptions.RayTaskError as unread:
                    raise cause_of(unread, replica.node) from None
                else:
                    if error is not None:
                        raise error
                    return answer
            self._fill_up()
            self._wait()

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        """Runs every unit once.

        A unit whose actor is lost is started again on another. A unit that was lost with three
        actors, the last time on its own, is reported as lost.
        """
        import ray

        together = -(-work.together // self._count)
        shares = Shares(units, together, self._count)
        round_ = Round(ray.put(work), units, shares, listener)
        try:
            while round_.shares or any(replica.is_working for replica in self._replicas):
                self._fill_up()
                for replica in self._loaded():
                    if replica.waits_for is None and (share := round_.shares.next()):
                        given = [(number, units[number]) for number in share]
                        stream = replica.handle.work.options(num_returns="streaming")
                        replica.share = share
                        replica.waits_for = stream.remote(round_.work, given, self._count)
                self._wait(round_)
        except BaseException:
            self._end_those_at_work()
            raise

    def _loaded(self) -> list[Replica]:
        return [replica for replica in self._replicas if replica.description]

    def _fill_up(self) -> None:
        import ray

        remote = ray.remote(Actor).options(
            num_cpus=self._resources.processors,
            num_gpus=self._resources.gpus,
            scheduling_strategy="SPREAD",
        )
        while len(self._replicas) < self._count:
            handle = remote.remote(self._resources.processors)
            self._replicas.append(Replica(handle, handle.about.remote()))

    def _wait(self, round_: Round | None = None) -> None:
        """Handles what actors have answered, waiting for at most a second."""
        import ray

        waiting = {r.waits_for: r for r in self._replicas if r.waits_for is not None}
        ready, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
        if not ready:
            ready, _ = ray.wait(list(waiting), timeout=_POLL)
        for call in ready:
            replica = waiting[call]
            try:
                if replica.is_working and round_ is not None:
                    self._take_events(replica, round_)
                else:
                    replica.waits_for = None
                    self._take_start(replica, ray.get(call))
            except ray.exceptions.RayActorError as error:
                self._lose(replica, error, round_)
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error, replica.node) from None
        self._check_places()

    def _take_start(self, replica: Replica, answer: Any) -> None:
        """Handles the answers of a starting actor: its machine, then its model."""
        if not replica.node:
            replica.node, installed = answer
            check_versions(installed, replica.node)
            replica.waits_for = replica.handle.load.remote(self._specification)
        else:
            self._first = self._first or replica
            replica.description, self._failed_starts = answer, 0
            check_alike(self.description, self._first.node, answer, replica.node)

    def _take_events(self, replica: Replica, round_: Round) -> None:
        import ray

        try:
            events = ray.get(next(replica.waits_for))
        except StopIteration:
            replica.share, replica.waits_for = [], None
            return
        for name, arguments in events:
            if name == "error":
                raise arguments[0]
            getattr(round_.listener, name)(*arguments)
            if name == "over":
                replica.share.remove(arguments[0])
                round_.lost_in_a_row = 0

    def _lose(self, replica: Replica, error: Exception, round_: Round | None) -> None:
        import ray

        ray.kill(replica.handle)  # it may only have been unreachable
        self._replicas.remove(replica)
        why = reason_of(error)
        if replica.description is None:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_STARTS:
                raise ModelError(
                    f"{_MOST_STARTS} actors in a row were lost before they had loaded"
                    f" {self._specification.name!r} ({why}); where memory ran out, use a smaller"
                    " --dtype or fewer --replicas on a machine."
                )
        if round_ is not None:
            give_up(round_, replica.share, why)

    def _check_places(self) -> None:
        """Warns of actors that the cluster has no resources for; raises if it has for none."""
        late = [
            replica
            for replica in self._replicas
            if not replica.node and time.monotonic() - replica.since > _PATIENCE
        ]
        if not late or (self._has_warned and len(late) < len(self._replicas)):
            return
        message = (
            f"The Ray cluster at {self._address!r} has no resources for {len(late)} of"
            f" {self._count} actors after {_PATIENCE:.0f} s, with {self._resources} each"
        )
        if len(late) == len(self._replicas):
            raise ModelError(f"{message}; free some (`ray status` shows usage), or add nodes.")
        self._has_warned = True
        warnings.warn(f"{message}; the others continue without them.", stacklevel=2)

    def _end_those_at_work(self) -> None:
        """Kills actors whose units nobody waits for any longer; the next work starts others."""
        import ray

        for replica in [replica for replica in self._replicas if replica.is_working]:
            with contextlib.suppress(Exception):
                ray.kill(replica.handle)
            self._replicas.remove(replica)


def give_up(round_: Round, unfinished: Sequence[int], why: str) -> None:
    """Hands lost units out again; raises `ModelError` if too many are given up in a row."""
    for number in round_.shares.lose(unfinished):
        round_.lost_in_a_row += 1
        if round_.lost_in_a_row >= MOST_IN_A_ROW:
            raise ModelError(
                f"Stopped, as {round_.lost_in_a_row} units of work in a row each lost three actors"
                f" ({why}); look at the logs of the Ray cluster, and repeat the command to"
                " continue."
            )
        reason = f"Three actors were lost while they worked on it ({why})."
        round_.listener.lost(number, RequestFailed(reason))


def check_versions(installed: dict[str, str], node: str) -> None:
    """Refuses a machine whose software versions differ from this one's."""
    for name, version in versions().items():
        if installed.get(name) != version:
            raise ModelError(
                f"{name} is {version} here and {installed.get(name)} on {node}; install the same"
                " versions on every machine."
            )


def check_alike(first: Description, first_node: str, other: Description, node: str) -> None:
    """Refuses an actor whose model would give different replies from the first one's."""
    for name in ("fingerprint", "runtime"):
        expected, actual = getattr(first, name), getattr(other, name)
        if expected != actual:
            raise ModelError(
                f"The {name} of {first.name!r} is {expected} on {first_node} and {actual} on"
                f" {node}; give every machine the same files and the same kind of device."
            )


def cause_of(error: Any, node: str) -> Exception:
    """The error that an actor raised, without Ray's wrapping."""
    import ray

    if isinstance(error, ray.exceptions.RaySystemError):  # what was sent could not be unpickled
        last = str(error).strip().splitlines()[-1]
        return ModelError(
            f"The work cannot be read on {node} ({last}); put modules of your own, as measures"
            " have, where every machine's Python finds them."
        )
    return error.cause


def reason_of(error: Exception) -> str:
    """Why an actor was lost, in a few words from Ray's message."""
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))
    if missing := re.findall(r"ModuleNotFoundError: (No module named '[^']+')", text):
        return f"{missing[-1]} there; install the same on every machine"
    why = re.search(r"is dead because (.+?)(?:\. |\.?$)", text, re.MULTILINE)
    return (why[1] if why else " ".join(text.split()))[:200].rstrip(".")


def _end(replicas: list[Replica], ours: bool) -> None:
    import ray

    if ray.is_initialized():
        for replica in replicas:
            ray.kill(replica.handle)
        if ours:
            ray.shutdown()
    replicas.clear()
