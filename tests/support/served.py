"""A real server on a free loopback port, in a thread of the test's own process."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import openai
import uvicorn

from holdfast.models.loading import load
from holdfast.models.local import LocalModel
from holdfast.serve.access import AccessRules
from holdfast.serve.app import application
from holdfast.serve.connections import configuration
from holdfast.serve.limits import RequestLimits
from holdfast.serve.metrics import Metrics
from holdfast.serve.served_engine import ServedEngine
from holdfast.serve.server import bind
from holdfast.serve.service import Service

FRENCH = [
    {"role": "system", "content": "Always reply in French."},
    {"role": "user", "content": "Do you like the garden?"},
]


class PromptServer(uvicorn.Server):
    """A server that ends soon after it is told to; uvicorn's looks ten times a second."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            await asyncio.wait_for(self._end_of_requests(), self.config.timeout_graceful_shutdown)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()

    async def _end_of_requests(self) -> None:
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.005)


@dataclass(frozen=True)
class RunningServer:
    """A running server: its address without a path, and what it serves."""

    url: str
    service: Service


@contextlib.contextmanager
def served(
    model: LocalModel,
    limits: RequestLimits,
    *,
    gate: AccessRules | None = None,
    origins: Sequence[str] = (),
    queue: int = 64,
    default=(),
    watched: int = 2,
    prompts=(),
) -> Iterator[RunningServer]:
    """Serves a model as "default" inside the block."""
    engine = ServedEngine(model, queue)
    metrics = Metrics(engine, watched)
    service = Service(model, engine, "default", metrics, limits, default, "0", prompts)
    bound = bind("127.0.0.1", 0)
    app = application(service, gate or AccessRules(), origins)
    server = PromptServer(configuration(app, limits))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.005)
    try:
        yield RunningServer(f"http://127.0.0.1:{bound.getsockname()[1]}", service)
    finally:
        server.should_exit = True
        thread.join()
        engine.close()


@cache
def default_model() -> LocalModel:
    """The default model, loaded once."""
    return load("default")


def client_of(server: RunningServer) -> openai.OpenAI:
    """OpenAI's own client of a server."""
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
