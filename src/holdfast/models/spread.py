"""One model behind several endpoints, among which conversations are spread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Unpack

from holdfast.errors import ModelError, Unreachable, UsageError
from holdfast.methods import Ability, Method
from holdfast.models.connecting import ConnectOptions, connect
from holdfast.models.endpoint import EndpointModel
from holdfast.models.protocol import Generates, Job, answer_all
from holdfast.models.requests import Reply, Request
from holdfast.models.workers import Line, answer_jobs


@dataclass(frozen=True)
class SpreadModel(Generates):
    """A model behind several endpoints; made by `connect_all`. It is asked from one thread.

    A conversation stays with one of them. Where one is gone, the others go on with what it had,
    from the request that it did not answer: nothing that it said before is lost.

    Args:
        models: behind the endpoints that answer, all of the same model.
        urls: of all endpoints, in the order in which they were given.
    """

    models: tuple[EndpointModel, ...]
    urls: tuple[str, ...]
    _unavailable: dict[str, Unreachable] = field(default_factory=dict, repr=False, compare=False)
    independent: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The model's name at every endpoint."""
        return self.models[0].name

    @property
    def fingerprint(self) -> str:
        """That of the first endpoint alone, so that it does not depend on how many there are."""
        model = self.models[0]  # the first that answers; all tell the same of their model
        return model.fingerprint.replace(model.endpoint.url, self.urls[0], 1)

    @property
    def runtime(self) -> dict[str, str | int]:
        """Nothing, as of one endpoint."""
        return {}

    @property
    def offers(self) -> frozenset[Ability]:
        """The abilities that methods can use."""
        return self.models[0].offers

    @property
    def about(self) -> dict[str, list[str]]:
        """For the manifest: who answers."""
        return {"servers": [model.endpoint.url for model in self.models]}

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that one of the endpoints cannot serve.

        Raises:
            ModelError: names it.
        """
        for model in self.models:
            model.check(methods)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given; as `EndpointModel.generate_batch`.

        Raises:
            Unreachable: all endpoints are gone.
            ModelError: as of one endpoint.
        """
        for request in requests:
            self.check(request.methods)
        return answer_all(self.run, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, as many at a time as every endpoint takes.

        An endpoint that is gone is not asked again by this model, as long as others are there; a
        warning says so.

        Raises:
            Unreachable: all endpoints are gone.
            ModelError: as `EndpointModel.run`.
        """
        before = set(self._unavailable)
        lines = {model.endpoint.url: Line(model) for model in self._there()}
        try:
            answer_jobs(jobs, list(lines.values()))
        finally:
            self._unavailable.update(
                {url: line.unavailable for url, line in lines.items() if line.unavailable}
            )
        for url in self._unavailable.keys() - before:
            warnings.warn(
                f"The others go on without a server: {self._unavailable[url]}", stacklevel=2
            )
        for model in self.models:
            model.tell_of_seeds()

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """Answers one chat piece by piece, by the first endpoint that is not gone.

        Raises:
            ModelError: as `EndpointModel.stream`.
        """
        return self._there()[0].stream(request, tell)

    def _there(self) -> list[EndpointModel]:
        """The endpoints that are not gone; where all were, all may be back."""
        if len(self._unavailable) == len(self.models):
            self._unavailable.clear()
        return [model for model in self.models if model.endpoint.url not in self._unavailable]

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def session(self) -> SpreadModel:
        """The model itself."""
        return self


def connect_all(
    urls: Sequence[str],
    model: str | None = None,
    api_key_env: str = "OPENAI_API_KEY",
    **options: Unpack[ConnectOptions],
) -> EndpointModel | SpreadModel:
    """Connects to endpoints that hold the same model, each of which has to answer now.

    Args:
        urls: of one or several, each once. What names a run is the first, where servers do not tell
            what their weights are.
        model: as of `connect`, for each.
        api_key_env: as of `connect`, for each.
        **options: as of `connect`, for each.

    Raises:
        UsageError: no address, or one twice, or as `connect`.
        Unreachable: none answers; one that does not where others do is left out with a warning.
        ModelError: they do not hold the same model, or as `connect`.
    """
    if not urls or len({url.rstrip("/") for url in urls}) < len(urls):
        raise UsageError(
            f"Endpoints are given by their addresses, each once, not as {','.join(urls)!r}."
        )
    models, silent = list[EndpointModel](), list[Unreachable]()
    for url in urls:
        try:
            connected = connect(url, model, api_key_env, **options)
            connected.reach()
            models.append(connected)
        except Unreachable as error:
            silent.append(error)
    if not models:
        raise silent[0]
    for why in silent:
        warnings.warn(f"The others go on without a server: {why}", stacklevel=2)
    for other in models[1:]:
        _check_alike(models[0], other)
    return models[0] if len(urls) == 1 else SpreadModel(tuple(models), tuple(urls))


def _check_alike(first: EndpointModel, other: EndpointModel) -> None:
    """Refuses servers of different models.

    Raises:
        ModelError: names both, and what differs.
    """
    here, there = first.served, other.served
    for what, seen, instead in (
        ("model", first.name, other.name),
        ("model's fingerprint", here.fingerprint, there.fingerprint),
        ("steering", ", ".join(here.methods) or "none", ", ".join(there.methods) or "none"),
    ):
        if seen != instead:
            raise ModelError(
                f"The {what} is {seen} at {first.endpoint.url} and {instead} at"
                f" {other.endpoint.url}; spread a run over servers of the same model alone."
            )
