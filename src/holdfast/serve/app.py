"""The server as a FastAPI application."""

from collections.abc import Sequence
from dataclasses import replace

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from holdfast.serve.access import AccessControl, AccessRules
from holdfast.serve.answer_formats import ErrorResponse
from holdfast.serve.playground import page_files
from holdfast.serve.routes import JsonRoute, add_routes
from holdfast.serve.service import Service
from holdfast.serve.wire import AsciiJsonResponse

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


def application(service: Service, rules: AccessRules, origins: Sequence[str] = ()) -> ASGIApp:
    """Builds the server's ASGI application.

    Args:
        service: the model and settings that all routes share.
        rules: which requests are allowed.
        origins: other sites whose pages may send requests.
    """
    app = FastAPI(
        title="Holdfast",
        version=service.version,
        description="OpenAI's chat completions, kept on their system prompt.",
        docs_url=None,  # these two pages would load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=AsciiJsonResponse,
        responses={
            status: {"description": description, "model": ErrorResponse}
            for status, description in _ERRORS.items()
        },
        exception_handlers={HTTPException: _raise},  # AccessControl formats all errors
    )
    app.router.route_class = JsonRoute
    app.state.limits = service.limits
    add_routes(app, service)
    page = page_files()
    for path, file in page.items():
        app.routes.append(Route(path, file, methods=["GET"], include_in_schema=False))
    document = app.openapi()
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"key": []}]
    rules = replace(rules, open_paths=rules.open_paths | page.keys())  # the page asks for the key
    paths = frozenset({*document["paths"], *page, "/openapi.json"})
    app.add_middleware(AccessControl, rules=rules, metrics=service.metrics, paths=paths)
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
