"""Runs uvicorn on a bound socket, with signals that shut it down gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

import uvicorn

from holdfast.errors import UsageError, reason_of
from holdfast.plurals import count_of

_BACKLOG = 2048  # connections that wait to be accepted; uvicorn's own default


class Drains(Protocol):
    """The part of a server that answers its requests, and can be shut down gracefully."""

    @property
    def open(self) -> int:
        """The number of requests that have not ended."""

    async def drain(self) -> None:
        """Refuses new requests; returns when all accepted ones have ended."""

    def close(self) -> None:
        """Stops at once."""


def bind(host: str, port: int) -> socket.socket:
    """Binds a socket to an address, without listening yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # only with an explicit protocol does asyncio set TCP_NODELAY, which sends small pieces at once
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise _cannot_listen(host, port, error) from None
    return bound


def listen(bound: socket.socket) -> None:
    """Begins to listen; raises a `UsageError` if another process already does."""
    try:
        bound.listen(_BACKLOG)
    except OSError as error:
        host, port = bound.getsockname()[:2]
        raise _cannot_listen(host, port, error) from None


def _cannot_listen(host: str, port: int, error: Exception) -> UsageError:
    return UsageError(
        f"Cannot listen on {host}, port {port} ({reason_of(error)}); choose others with --host and"
        " --port."
    )


def is_loopback(host: str) -> bool:
    """Whether an address is only reachable from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run(
    configuration: uvicorn.Config,
    engine: Drains,
    bound: socket.socket,
    note: Callable[[str], None],
) -> None:
    """Serves until a signal arrives, then closes the engine.

    At the first SIGTERM or SIGINT the server refuses new requests and finishes the others; at the
    second it stops at once.

    Args:
        configuration: uvicorn's configuration, with the application.
        engine: answers the requests.
        bound: the socket to serve on.
        note: prints a status line.
    """
    server = uvicorn.Server(configuration)
    gc.collect()
    # A full collection would go through all imported modules, and block all requests for 250 ms.
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=configuration.get_loop_factory()) as runner:
            runner.run(_serve(server, engine, bound, note))
    finally:
        gc.unfreeze()
        engine.close()


async def _serve(
    server: uvicorn.Server, engine: Drains, bound: socket.socket, note: Callable[[str], None]
) -> None:
    serving = asyncio.ensure_future(server.serve([bound]))
    while not (server.started or serving.done()):
        await asyncio.sleep(0.01)
    with _signals(_Shutdown(server, engine, note)):
        await serving


class _Shutdown:
    """Shuts the server down when signals arrive."""

    def __init__(self, server: uvicorn.Server, engine: Drains, note: Callable[[str], None]):
        self._server = server
        self._engine = engine
        self._note = note
        self._draining: asyncio.Task[None] | None = None

    def on_signal(self) -> None:
        """Begins to drain the engine; at the second signal, stops at once."""
        if self._draining is not None:
            self._server.force_exit = True
            self._server.should_exit = True
            return
        if self._engine.open:
            requests = count_of(self._engine.open, "request")
            self._note(f"Finishing {requests}; a second signal stops the server at once.")
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        await self._engine.drain()
        self._server.should_exit = True


@contextlib.contextmanager
def _signals(shutdown: _Shutdown) -> Iterator[None]:
    """Within this context, handles signals in place of uvicorn's own handlers."""
    loop = asyncio.get_running_loop()
    handled = (signal.SIGTERM, signal.SIGINT)
    for number in handled:
        loop.add_signal_handler(number, shutdown.on_signal)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
