"""The routes that describe the server itself: its model, its methods, its state."""

import time
from typing import Any

from fastapi import FastAPI
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response

from holdfast import methods
from holdfast.errors import HoldfastError
from holdfast.models.rendering import render_one
from holdfast.models.requests import Request
from holdfast.serve.service import Service
from holdfast.serve.wire import Json


def add_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes that take no request body."""
    since = int(time.time())

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The served model."""
        model = {
            "id": service.name,
            "object": "model",
            "created": since,
            "owned_by": "holdfast",
            "max_model_len": service.model.context,
        }
        return {"object": "list", "data": [model]}

    @app.get("/v1/steering")
    async def steering() -> dict[str, Any]:
        """The steering methods that the model supports, with their parameters as JSON Schema."""
        return _steering(service)

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


def _steering(service: Service) -> dict[str, Any]:
    offered, limits = service.model.capabilities, service.limits
    known = [
        method
        for method in methods.schema()
        if all(methods.Ability(need) in offered for need in method["needs"])
        and not method["needs_rules"]  # a request has no suite
    ]
    return {
        "model": service.name,
        "fingerprint": service.model.fingerprint,
        "default": methods.spec_of(service.default),
        "methods": known,
        "attention": service.model.steerable,
        **_shape(service),
        "prompts": list(service.prompts),
        "fitted": list(service.fitted),
        "limits": {
            "max_model_len": service.model.context,
            "max_tokens": limits.tokens,
            "seconds": limits.seconds,
            "body_bytes": limits.body_bytes,
            "messages": limits.messages,
            "n": limits.choices,
            "emphasis": limits.emphasis,
            "queue": service.engine.queue,
        },
    }


def _shape(service: Service) -> dict[str, int | None]:
    """The numbers of layers and of heads per layer; null if the layers differ."""
    try:
        shape = service.model.shape
    except HoldfastError:
        return {"layers": None, "heads": None}
    return {"layers": shape.layers, "heads": shape.heads}


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
