"""The routes of the server, as a FastAPI application."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from holdfast.errors import HoldfastError, PromptError
from holdfast.models.grammar_masks import compile_grammar
from holdfast.serve import status_routes
from holdfast.serve.access import AccessControl, AccessRules
from holdfast.serve.answer_formats import (
    ChatAnswer,
    ChatShapes,
    CompletionAnswer,
    CompletionShapes,
    ErrorResponse,
    TokensAnswer,
)
from holdfast.serve.answering import answer, write_choices
from holdfast.serve.bodies import ChatBody, CompletionBody, TokenizeBody
from holdfast.serve.body_model import within_limits
from holdfast.serve.refusals import refusal_of, refusal_of_problem
from holdfast.serve.responses_api import ResponseAnswer, write_response
from holdfast.serve.responses_body import ResponsesBody, chat_of
from holdfast.serve.service import Service
from holdfast.serve.submissions import (
    Submission,
    check_model,
    check_template,
    read_chat,
    read_completion,
    read_tokens,
)
from holdfast.serve.tool_calls import CallParser
from holdfast.serve.wire import CancellableResponse, Json, read_json
from holdfast.validation.pydantic_errors import problem_of

_ERRORS: dict[int | str, str] = {
    400: "Invalid request: a field is missing, unknown, unsupported or out of range.",
    401: "Missing or wrong API key.",
    404: "The model does not exist on this server.",
    408: "The request body took too long to arrive.",
    413: "The request body is too large.",
    415: "The `Content-Type` is not `application/json`.",
    421: "The `Host` header is not this server's; a server without an API key checks it.",
    429: "Too many queued requests; `Retry-After` says when to try again.",
    500: "Internal server error.",
    503: "The server is shutting down.",
    504: "The reply did not finish within the server's time limit.",
    "default": "Any other error.",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INDEX = "index.html"  # served at "/", all other files under "/page/"

RouteHandler = Callable[[Any, float], Awaitable[Response]]


def application(service: Service, gate: AccessRules, origins: Sequence[str] = ()) -> ASGIApp:
    """Builds the server's ASGI application; `origins` are sites whose pages may send requests."""
    app = FastAPI(
        title="Holdfast",
        version=service.version,
        description="OpenAI's chat completions, kept on their system prompt.",
        docs_url=None,  # these pages load from another host
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Json,
        responses={s: {"description": d, "model": ErrorResponse} for s, d in _ERRORS.items()},
        exception_handlers={HTTPException: _raise},  # AccessControl formats all errors
    )
    app.router.route_class = _JsonRoute
    app.state.limits = service.limits
    _add_generating(app, service)
    status_routes.add_routes(app, service)
    page = page_files()
    for path, file in page.items():
        app.add_route(path, functools.partial(_file, file), ["GET"], include_in_schema=False)
    document = app.openapi()
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"key": []}]
    gate = replace(gate, open_paths=gate.open_paths | page.keys())  # the page asks for the key
    paths = frozenset({*document["paths"], *page, "/openapi.json"})
    app.add_middleware(AccessControl, gate=gate, metrics=service.metrics, paths=paths)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
        )
    return app


async def _raise(request: Request, error: Exception) -> Response:
    raise error


async def _file(file: PageFile, request: Request) -> Response:
    return Response(file.body, media_type=file.media_type)


class _JsonRequest(Request):
    """A request whose body was read and parsed already."""

    def __init__(self, request: Request, value: Any):
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"{}"

    async def json(self) -> Any:
        return self._value


class _JsonRoute(APIRoute):
    """Reads the body within the server's limits; an invalid one is refused in one sentence."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        model = self.body_field.field_info.annotation

        async def read_first(request: Request) -> Response:
            request.state.arrived = time.monotonic()
            value = await read_json(request, request.app.state.limits)
            try:
                return await handle(_JsonRequest(request, value))
            except RequestValidationError as error:
                errors = [{**entry, "loc": entry["loc"][1:]} for entry in error.errors()]
                raise refusal_of_problem(problem_of(errors, model, value)) from None

        return read_first


def _post(app: FastAPI, path: str, model: Any, route: RouteHandler, **documented: Any) -> None:
    """Adds a POST route whose body model is only known at server start."""

    async def endpoint(request: Request, body: Any) -> Response:
        return await route(body, request.state.arrived)

    endpoint.__annotations__["body"] = model
    app.post(path, **documented)(endpoint)


def _add_generating(app: FastAPI, service: Service) -> None:
    """Adds the routes that take a chat or a text, two of which generate replies."""
    limits, default, tokenizer = service.limits, service.default, service.model.tokenizer
    parser = CallParser(service.name, service.model)
    event = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
    stream = {200: {"content": {"text/event-stream": {"itemSchema": event}}}}

    async def read(body: ChatBody) -> Submission:
        submission = read_chat(body, default, limits, parser)
        if (grammar := submission.requests[0].grammar) is not None:
            stop_ids = service.model.stop_ids
            try:
                await asyncio.to_thread(compile_grammar, grammar, tokenizer, stop_ids)
            except HoldfastError as error:
                raise refusal_of(error, grammar.option) from None
        return submission

    async def chat(body: ChatBody, arrived: float) -> Response:
        check_model(body.model, service.name)
        check_template(service.name, tokenizer)
        submission = await read(body)
        write = functools.partial(write_choices, ChatShapes())
        return CancellableResponse(functools.partial(answer, service, submission, write, arrived))

    bounded_chat = within_limits(ChatBody, limits)

    async def response(body: ResponsesBody, arrived: float) -> Response:
        check_model(body.model, service.name)
        check_template(service.name, tokenizer)
        submission = await read(chat_of(body, bounded_chat))
        write = functools.partial(write_response, body)
        return CancellableResponse(functools.partial(answer, service, submission, write, arrived))

    async def completion(body: CompletionBody, arrived: float) -> Response:
        check_model(body.model, service.name)
        submission = read_completion(body, default, limits, tokenizer)
        write = functools.partial(write_choices, CompletionShapes())
        return CancellableResponse(functools.partial(answer, service, submission, write, arrived))

    async def tokens(body: TokenizeBody, arrived: float) -> Response:
        check_model(body.model, service.name)
        if body.messages is not None:
            check_template(service.name, tokenizer)
        request = read_tokens(body, limits, parser)
        try:
            return Json(await asyncio.to_thread(status_routes.tokens, service, request))
        except PromptError as error:
            raise refusal_of(error, body.text_field) from None

    for path, body, route, summary, model in (
        ("/v1/chat/completions", ChatBody, chat, "Answers a chat.", ChatAnswer),
        ("/v1/responses", ResponsesBody, response, "Answers a dialog.", ResponseAnswer),
        ("/v1/completions", CompletionBody, completion, "Continues a text.", CompletionAnswer),
        ("/tokenize", TokenizeBody, tokens, "A chat's tokens, and its span.", TokensAnswer),
    ):
        streams = {} if body is TokenizeBody else {"responses": stream}
        bounded = within_limits(body, limits)
        _post(app, path, bounded, route, summary=summary, response_model=model, **streams)


@dataclass(frozen=True)
class PageFile:
    """A file of the playground."""

    body: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """Reads the playground's files by URL path, so that no request path is looked up on disk."""
    page = {}
    for entry in (files("holdfast") / "serve" / "page").iterdir():
        if media_type := _TYPES.get(PurePath(entry.name).suffix):
            path = "/" if entry.name == _INDEX else f"/page/{entry.name}"
            page[path] = PageFile(entry.read_bytes(), media_type)
    return page
