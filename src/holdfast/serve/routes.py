"""The routes of the server, on a FastAPI application.

Four take a JSON body, which is read within the server's limits: three generate replies, and one
returns the tokens of a chat. The others describe the server: its model, its methods and its state.
"""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Path
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response

from holdfast import methods
from holdfast.errors import HoldfastError, PromptError
from holdfast.models.grammar_masks import compile_grammar
from holdfast.models.offered_steering import OfferedLimits, OfferedMethod, SteeringAnswer
from holdfast.models.rendering import render_one
from holdfast.models.requests import Request
from holdfast.serve.answer_formats import (
    ChatAnswer,
    ChatShapes,
    CompletionAnswer,
    CompletionShapes,
    TokensAnswer,
)
from holdfast.serve.answering import Write, answer, write_choices
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
from holdfast.serve.wire import AsciiJsonResponse, CancellableResponse, read_json
from holdfast.validation.pydantic_errors import problem_of

RouteHandler = Callable[[Any, float], Awaitable[Response]]


def add_routes(app: FastAPI, service: Service) -> None:
    """Adds all routes to an application whose route class is `JsonRoute`."""
    _add_generating_routes(app, service)
    _add_model_routes(app, service)
    _add_status_routes(app, service)


class _JsonRequest(HttpRequest):
    """A request whose body has already been read and parsed."""

    def __init__(self, request: HttpRequest, value: Any):
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

    def get_route_handler(self) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        """Reads the body as JSON before FastAPI does, so that refusals have our form."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        model = self.body_field.field_info.annotation

        async def read_first(request: HttpRequest) -> Response:
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

    async def endpoint(request: HttpRequest, body: Any) -> Response:
        return await route(body, request.state.arrived)

    endpoint.__annotations__["body"] = model
    app.post(path, **documented)(endpoint)


def _add_generating_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes that take a JSON body."""
    parser = CallParser(service.name, service.model)
    routes = _GeneratingRoutes(service, parser, within_limits(ChatBody, service.limits))
    event = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
    stream = {200: {"content": {"text/event-stream": {"itemSchema": event}}}}
    add_post(
        app,
        "/v1/chat/completions",
        within_limits(ChatBody, service.limits),
        routes.chat,
        summary="Answers a chat.",
        response_model=ChatAnswer,
        responses=stream,
    )
    add_post(
        app,
        "/v1/responses",
        within_limits(ResponsesBody, service.limits),
        routes.response,
        summary="Answers a dialog.",
        response_model=ResponseAnswer,
        responses=stream,
    )
    add_post(
        app,
        "/v1/completions",
        within_limits(CompletionBody, service.limits),
        routes.completion,
        summary="Continues a text.",
        response_model=CompletionAnswer,
        responses=stream,
    )
    add_post(
        app,
        "/tokenize",
        within_limits(TokenizeBody, service.limits),
        routes.tokens,
        summary="A chat's tokens, and its span.",
        response_model=TokensAnswer,
    )


@dataclass(frozen=True)
class _GeneratingRoutes:
    """The handlers of the routes that take a JSON body, each with the time at which it arrived."""

    service: Service
    parser: CallParser
    bounded_chat: type[ChatBody]

    async def chat(self, body: ChatBody, arrived: float) -> Response:
        self._check_chat(body.model)
        submission = await self._read(body)
        return self._answer(submission, functools.partial(write_choices, ChatShapes()), arrived)

    async def response(self, body: ResponsesBody, arrived: float) -> Response:
        self._check_chat(body.model)
        submission = await self._read(chat_of(body, self.bounded_chat))
        return self._answer(submission, functools.partial(write_response, body), arrived)

    async def completion(self, body: CompletionBody, arrived: float) -> Response:
        service = self.service
        check_model(body.model, service.name)
        submission = read_completion(body, service.default, service.limits, service.model.tokenizer)
        write = functools.partial(write_choices, CompletionShapes())
        return self._answer(submission, write, arrived)

    async def tokens(self, body: TokenizeBody, arrived: float) -> Response:
        if body.messages is None:
            check_model(body.model, self.service.name)
        else:
            self._check_chat(body.model)
        request = read_tokens(body, self.service.limits, self.parser)
        try:
            return AsciiJsonResponse(await asyncio.to_thread(tokens_of, self.service, request))
        except PromptError as error:
            raise refusal_of(error, body.text_field) from None

    def _check_chat(self, model: str | None) -> None:
        """Refuses another model than the served one, and one that has no chat template."""
        check_model(model, self.service.name)
        check_template(self.service.name, self.service.model.tokenizer)

    async def _read(self, body: ChatBody) -> Submission:
        """Reads a chat, and compiles its grammar, which takes a while, in a thread."""
        service = self.service
        submission = read_chat(body, service.default, service.limits, self.parser)
        if (grammar := submission.requests[0].grammar) is not None:
            model = service.model
            try:
                await asyncio.to_thread(compile_grammar, grammar, model.tokenizer, model.stop_ids)
            except HoldfastError as error:
                raise refusal_of(error, grammar.option) from None
        return submission

    def _answer(self, submission: Submission, write: Write, arrived: float) -> Response:
        return CancellableResponse(
            functools.partial(answer, self.service, submission, write, arrived)
        )


def _add_model_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes that describe the model and its steering."""
    description = {
        "id": service.name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "holdfast",
        "max_model_len": service.model.context,
    }

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The served model, in a list."""
        return {"object": "list", "data": [description]}

    served_name = Path(json_schema_extra={"enum": [service.name]})

    @app.get("/v1/models/{name:path}")
    async def model(name: Annotated[str, served_name]) -> dict[str, Any]:
        """The served model."""
        check_model(name, service.name)
        return description

    @app.get("/v1/steering", response_model=SteeringAnswer)
    async def steering() -> Response:
        """The steering methods that the model supports, with their parameters as JSON Schema."""
        return AsciiJsonResponse(_steering_answer(service).as_json())


def _add_status_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes that describe the state of the server."""

    @app.get("/version")
    async def version() -> dict[str, str]:
        """The versions of Holdfast, PyTorch and Transformers."""
        import torch
        import transformers

        return {
            "version": service.version,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the process responds."""
        return {"status": "ok"}

    @app.get("/ready", response_model=dict[str, bool])
    async def ready() -> Response:
        """Whether the server accepts new requests; 503 if not."""
        is_ready = service.engine.ready
        return AsciiJsonResponse({"ready": is_ready}, 200 if is_ready else 503)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(service.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


def _steering_answer(service: Service) -> SteeringAnswer:
    """The steering that this server offers."""
    model = service.model
    limits = service.limits
    shape = _shape(service)
    return SteeringAnswer(
        model=service.name,
        fingerprint=model.fingerprint,
        default=methods.spec_of(service.default),
        methods=_offered_methods(service),
        attention=model.steerable,
        layers=None if shape is None else shape.layers,
        heads=None if shape is None else shape.heads,
        prompts=service.prompts,
        fitted=service.fitted,
        limits=OfferedLimits(
            max_model_len=model.context,
            max_tokens=limits.tokens,
            seconds=limits.seconds,
            body_bytes=limits.body_bytes,
            messages=limits.messages,
            n=limits.choices,
            emphasis=limits.emphasis,
            queue=service.engine.queue,
        ),
    )


def _offered_methods(service: Service) -> list[OfferedMethod]:
    """The methods that the model can apply to a request; a request has no rules of a suite."""
    abilities = {ability.value for ability in service.model.capabilities}
    return [
        OfferedMethod.model_validate(description)
        for description in methods.schema()
        if abilities.issuperset(description["needs"]) and not description["needs_rules"]
    ]


def _shape(service: Service) -> methods.Shape | None:
    """The numbers of layers and of heads per layer; None if the layers differ, or are unknown."""
    try:
        return service.model.shape
    except HoldfastError:
        return None


def tokens_of(service: Service, request: Request) -> dict[str, Any]:
    """Answers `/tokenize`: the tokens of a chat or text, and which of them form the span."""
    rendered = render_one(request, service.model.tokenizer)
    ids = list(rendered.prompt_ids)
    return {
        "tokens": ids,
        "token_strs": service.model.tokenizer.convert_ids_to_tokens(ids),
        "count": len(ids),
        "max_model_len": service.model.context,
        "span": [list(span) for span in rendered.span_ranges],
    }
