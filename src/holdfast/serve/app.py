"""The routes of the server, and what each answers."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.serve import about
from holdfast.serve.answers import ChatShapes, CompletionShapes
from holdfast.serve.asked import ask_chat, ask_completion, ask_tokens, check_model
from holdfast.serve.body_fields import chat_fields, completion_fields, tokenize_fields
from holdfast.serve.fields import read_fields
from holdfast.serve.generating import Generating
from holdfast.serve.guard import Gate, guarded
from holdfast.serve.metrics import MEDIA_TYPE
from holdfast.serve.openapi import document
from holdfast.serve.page import PageFile, page_files
from holdfast.serve.selfchat import SelfChat
from holdfast.serve.service import Service
from holdfast.serve.wire import read_json, send_bytes, send_json


def application(service: Service, gate: Gate, origins: Sequence[str] = ()) -> ASGIApp:
    """The server as one ASGI application.

    Args:
        service: what it serves.
        gate: who may ask.
        origins: sites whose pages may ask, as browsers name them; none unless told.
    """
    page = page_files()
    gate = replace(gate, open_paths=gate.open_paths | page.keys())  # the page asks for the key
    routes = _routes(service) + [_get_file(path, file) for path, file in page.items()]
    paths = frozenset(route.path for route in routes)
    router = Router(routes, redirect_slashes=False)
    app = guarded(router, gate, service.metrics, paths)
    if not origins:
        return app
    return CORSMiddleware(
        app, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"]
    )


def _routes(service: Service) -> list[Route]:
    limits = service.limits
    chat = chat_fields(limits)
    ask = functools.partial(ask_chat, default=service.default, limits=limits)
    ask_plain = functools.partial(
        ask_completion,
        default=service.default,
        limits=limits,
        tokenizer=service.model.tokenizer,
    )
    completions = completion_fields(limits)
    since = int(time.time())
    return [
        _post("/v1/chat/completions", Generating(service, chat, ask, ChatShapes())),
        _post("/v1/completions", Generating(service, completions, ask_plain, CompletionShapes())),
        _post("/v1/selfchat", SelfChat(service)),
        _post("/tokenize", _Tokenize(service)),
        _get("/v1/models", lambda: about.models(service, since)),
        _get("/v1/steering", lambda: about.steering(service)),
        _get("/openapi.json", functools.cache(lambda: document(service))),
        _get("/version", lambda: about.version(service)),
        _get("/health", lambda: {"status": "ok"}),
        Route("/ready", _Ready(service), methods=["GET"]),
        Route("/metrics", _Metrics(service), methods=["GET"]),
    ]


def _post(path: str, app: ASGIApp) -> Route:
    return Route(path, app, methods=["POST"])


def _get(path: str, tell: Callable[[], dict[str, Any]]) -> Route:
    return Route(path, _Telling(tell), methods=["GET"])


def _get_file(path: str, file: PageFile) -> Route:
    return Route(path, file, methods=["GET"])


@dataclass(frozen=True)
class _Telling:
    """A route that answers every request alike."""

    tell: Callable[[], dict[str, Any]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, self.tell())


@dataclass(frozen=True)
class _Ready:
    """Whether new requests are taken."""

    service: Service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ready = self.service.engine.ready
        await send_json(send, {"ready": ready}, 200 if ready else 503)


@dataclass(frozen=True)
class _Metrics:
    service: Service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, self.service.metrics.exposition(), MEDIA_TYPE)


@dataclass(frozen=True)
class _Tokenize:
    service: Service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self.service.limits
        values = read_fields(await read_json(scope, receive, limits), tokenize_fields(limits))
        check_model(values["model"], self.service.name)
        request = ask_tokens(values, limits)
        await send_json(send, await asyncio.to_thread(about.tokens, self.service, request))
