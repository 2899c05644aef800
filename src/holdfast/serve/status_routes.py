"""The routes that describe the server: its model, its methods and its state."""

import time
from typing import Any

from fastapi import FastAPI
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response

from holdfast import methods
from holdfast.errors import HoldfastError
from holdfast.models.offered_steering import OfferedMethod, ServerLimits, SteeringAnswer
from holdfast.models.rendering import render_one
from holdfast.models.requests import Request
from holdfast.serve.service import Service
from holdfast.serve.wire import Json


def add_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes that take no request body."""
    started = int(time.time())

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The served model."""
        model = {
            "id": service.name,
            "object": "model",
            "created": started,
            "owned_by": "holdfast",
            "max_model_len": service.model.context,
        }
        return {"object": "list", "data": [model]}

    @app.get("/v1/steering", response_model=SteeringAnswer)
    async def steering() -> Response:
        """The steering methods that the model supports, with their parameters as JSON Schema."""
        return Json(_steering_answer(service).as_json())

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
        return Json({"ready": is_ready}, 200 if is_ready else 503)

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
        limits=ServerLimits(
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


def tokens(service: Service, request: Request) -> dict[str, Any]:
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
