"""The document at `/openapi.json`, made from the tables of fields that the parser uses."""

from __future__ import annotations

from typing import Any

from holdfast.serve.body_fields import chat_fields, completion_fields, tokenize_fields
from holdfast.serve.fields import Schema, as_schema
from holdfast.serve.selfchat import selfchat_fields
from holdfast.serve.service import Service

_ERRORS = {
    400: "A field is missing, unknown, not implemented, or has a value not taken.",
    401: "The API key is missing or wrong.",
    404: "There is no such model here.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not said to be JSON.",
    421: "A server without an API key was asked under another name than its own.",
    429: "Too many requests wait; `Retry-After` says when to come back.",
    500: "The server failed on this request.",
    503: "The server is shutting down.",
    504: "The reply was not complete within the server's limit.",
}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
_SPANS: Schema = {
    "type": "array",
    "items": {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2},
    "description": "first and last (exclusive) token of each part held on to",
}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": _TEXT,
                "type": _TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}
_USAGE: Schema = {
    "type": "object",
    "properties": {
        "prompt_tokens": _COUNT,
        "completion_tokens": _COUNT,
        "total_tokens": _COUNT,
        "prompt_tokens_details": {"type": "object", "properties": {"cached_tokens": _COUNT}},
    },
    "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
}
_APPLIED: Schema = {
    "type": "object",
    "description": "what the reply was held to",
    "properties": {
        "steering": _TEXT,
        "applied": {"type": "boolean"},
        "why": {"type": "string", "description": "only where nothing was applied"},
        "edited": {
            "type": "array",
            "description": "per choice the messages, from 0, that methods edited; only where a"
            " method edits messages",
            "items": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        },
        "span": _SPANS,
        "round": {"type": "integer", "minimum": 0, "description": "user messages of the chat"},
    },
    "required": ["steering", "applied", "span"],
}
_MASSES: Schema = {
    "type": "object",
    "description": "with `trace`",
    "properties": {
        "tokens": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": _TEXT,
                    "mass": {"type": ["number", "null"]},
                    "uniform": {"type": ["number", "null"]},
                    "heads": {
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "number"}},
                    },
                },
                "required": ["text", "mass", "uniform"],
            },
        },
        "end": {
            "type": "object",
            "description": "of the token that ended the reply, which has no text",
            "properties": {
                "mass": {"type": "number"},
                "uniform": {"type": ["number", "null"]},
            },
            "required": ["mass", "uniform"],
        },
    },
    "required": ["tokens"],
}


def document(service: Service) -> dict[str, Any]:
    """The server as OpenAPI 3.1.

    Args:
        service: the server, whose limits bound its fields.
    """
    limits = service.limits
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": service.version,
            "description": "OpenAI's chat completions, held to their system prompt.",
        },
        "paths": {
            "/v1/chat/completions": _post(
                "Answers a chat.", as_schema(chat_fields(limits)), _answer(_CHAT_CHOICE), True
            ),
            "/v1/selfchat": _post(
                "A conversation of the drift benchmark, told while it is held.",
                as_schema(selfchat_fields(service)),
                None,
                True,
            ),
            "/v1/completions": _post(
                "Continues a text, without a chat template.",
                as_schema(completion_fields(limits)),
                _answer(_TEXT_CHOICE),
                True,
            ),
            "/tokenize": _post(
                "A chat's tokens, and which of them are held on to.",
                as_schema(tokenize_fields(limits)),
                _TOKENS,
            ),
            "/v1/models": _get("The model that is served.", _object("object", "data")),
            "/v1/steering": _get(
                "The methods that the model can be steered by, with their knobs as JSON Schema.",
                _object(
                    "model", "default", "methods", "layers", "heads", "suites", "prompts", "limits"
                ),
            ),
            "/version": _get("Versions.", _object("version", "torch", "transformers")),
            "/health": _get("Whether the process answers.", _object("status")),
            "/ready": _get("Whether new requests are taken; 503 where not.", _object("ready")),
            "/metrics": {"get": _operation("Metrics for Prometheus.", {"text/plain": {}})},
        },
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


_CHAT_CHOICE: Schema = {
    "type": "object",
    "properties": {
        "index": _COUNT,
        "message": {
            "type": "object",
            "properties": {"role": {"const": "assistant"}, "content": _TEXT},
            "required": ["role", "content"],
        },
        "logprobs": {"type": ["object", "null"]},
        "finish_reason": {"enum": ["stop", "length"]},
        "holdfast": _MASSES,
    },
    "required": ["index", "message", "logprobs", "finish_reason"],
}
_TEXT_CHOICE: Schema = {
    "type": "object",
    "properties": {
        "index": _COUNT,
        "text": _TEXT,
        "logprobs": {"type": ["object", "null"]},
        "finish_reason": {"enum": ["stop", "length"]},
        "holdfast": _MASSES,
    },
    "required": ["index", "text", "logprobs", "finish_reason"],
}
_TOKENS: Schema = {
    "type": "object",
    "properties": {
        "tokens": {"type": "array", "items": _COUNT},
        "token_strs": {"type": "array", "items": _TEXT},
        "count": _COUNT,
        "max_model_len": _COUNT_OR_NULL,
        "span": _SPANS,
    },
    "required": ["tokens", "token_strs", "count", "max_model_len", "span"],
}


def _answer(choice: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {
            "id": _TEXT,
            "object": _TEXT,
            "created": _COUNT,
            "model": _TEXT,
            "system_fingerprint": _TEXT,
            "choices": {"type": "array", "items": choice, "minItems": 1},
            "usage": _USAGE,
            "holdfast": _APPLIED,
        },
        "required": ["id", "object", "created", "model", "choices", "usage", "holdfast"],
    }


def _object(*required: str) -> Schema:
    return {"type": "object", "required": list(required)}


def _get(summary: str, schema: Schema) -> dict[str, Any]:
    return {"get": _operation(summary, {"application/json": {"schema": schema}})}


def _post(
    summary: str, body: Schema, answer: Schema | None, streams: bool = False
) -> dict[str, Any]:
    told: dict[str, Any] = {} if answer is None else {"application/json": {"schema": answer}}
    if streams:
        told["text/event-stream"] = {"schema": _TEXT}
    operation = _operation(summary, told)
    operation["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": body}},
    }
    return {"post": operation}


def _operation(summary: str, told: dict[str, Any]) -> dict[str, Any]:
    failed = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "summary": summary,
        "responses": {"200": {"description": "The answer.", "content": told}}
        | {
            str(status): {"description": told_of, "content": failed}
            for status, told_of in _ERRORS.items()
        },
    }
