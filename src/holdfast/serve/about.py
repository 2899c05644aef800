"""The routes that tell of the server itself: its model, its methods, its state."""

from __future__ import annotations

from typing import Any

from holdfast import methods
from holdfast.errors import HoldfastError
from holdfast.models.rendering import all_rendered, render
from holdfast.models.requests import Request
from holdfast.serve.service import Service

_PROMPTS = 12  # of the operator's suite, that the playground offers


def models(service: Service, since: int) -> dict[str, Any]:
    """`/v1/models`.

    Args:
        service: the server.
        since: when it started, in seconds since 1970.
    """
    model = {
        "id": service.name,
        "object": "model",
        "created": since,
        "owned_by": "holdfast",
        "max_model_len": service.model.context,
    }
    return {"object": "list", "data": [model]}


def steering(service: Service) -> dict[str, Any]:
    """`/v1/steering`: the methods that this model can be steered by, and within which limits."""
    offered = service.model.offers
    known = [
        method
        for method in methods.schema()
        if all(methods.Ability(need) in offered for need in method["needs"])
    ]
    return {
        "model": service.name,
        "fingerprint": service.model.fingerprint,
        "default": methods.spell(service.default),
        "methods": known,
        "attention": service.model.steerable,
        **_shape(service),
        "suites": list(service.suites),
        "prompts": [
            {
                "name": case.id,
                "system": case.system_prompt,
                "message": case.all_rules[0].probes[0],
            }
            for case in (service.suite.cases[:_PROMPTS] if service.suite else ())
        ],
        "limits": {
            "max_model_len": service.model.context,
            "max_tokens": service.limits.tokens,
            "seconds": service.limits.seconds,
            "body_bytes": service.limits.body_bytes,
            "messages": service.limits.messages,
            "n": service.limits.choices,
            "emphasis": service.limits.emphasis,
            "queue": service.engine.queue,
        },
    }


def _shape(service: Service) -> dict[str, int | None]:
    """Layers, and heads of each; null where layers differ."""
    try:
        shape = service.model.shape
    except HoldfastError:
        return {"layers": None, "heads": None}
    return {"layers": shape.layers, "heads": shape.heads}


def tokens(service: Service, request: Request) -> dict[str, Any]:
    """`/tokenize`: a chat's or a text's tokens, and which of them are held on to.

    Raises:
        HoldfastError: it cannot be rendered.
    """
    (rendered,) = all_rendered(render([request], [""], [()], service.model.tokenizer, traces=False))
    ids = list(rendered.prompt_ids)
    return {
        "tokens": ids,
        "token_strs": service.model.tokenizer.convert_ids_to_tokens(ids),
        "count": len(ids),
        "max_model_len": service.model.context,
        "span": [list(span) for span in rendered.span_ranges],
    }


def version(service: Service) -> dict[str, str]:
    """`/version`."""
    import torch
    import transformers

    return {
        "version": service.version,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
