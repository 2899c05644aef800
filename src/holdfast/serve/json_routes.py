"""Routes that take a JSON body, which is read within the server's limits."""

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from holdfast.serve.refusals import refusal_of_problem
from holdfast.serve.wire import read_json
from holdfast.validation.pydantic_errors import problem_of

RouteHandler = Callable[[Any, float], Awaitable[Response]]


class _JsonRequest(Request):
    """A request whose body has already been read and parsed."""

    def __init__(self, request: Request, value: Any):
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"{}"

    async def json(self) -> Any:
        return self._value


class JsonRoute(APIRoute):
    """A route that reads the body within the server's limits, and refuses an invalid one in one
    sentence.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Reads the body as JSON before FastAPI does, so that refusals have our form."""
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


def add_post(app: FastAPI, path: str, model: Any, route: RouteHandler, **documented: Any) -> None:
    """Adds a POST route whose body model is only known when the server starts.

    Args:
        app: the application.
        path: the path of the route.
        model: the Pydantic model of the body.
        route: makes the response from the body and the time at which the request arrived, by
            `time.monotonic`.
        documented: further arguments of `FastAPI.post`, for the OpenAPI document.
    """

    async def endpoint(request: Request, body: Any) -> Response:
        return await route(body, request.state.arrived)

    endpoint.__annotations__["body"] = model
    app.post(path, **documented)(endpoint)
