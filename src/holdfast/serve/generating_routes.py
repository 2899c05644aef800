"""The routes that take a chat or a text: three generate replies, and one returns its tokens."""

import asyncio
import functools
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from holdfast.errors import HoldfastError, PromptError
from holdfast.models.grammar_masks import compile_grammar
from holdfast.serve import status_routes
from holdfast.serve.answer_formats import (
    ChatAnswer,
    ChatShapes,
    CompletionAnswer,
    CompletionShapes,
    TokensAnswer,
)
from holdfast.serve.answering import answer, write_choices
from holdfast.serve.bodies import ChatBody, CompletionBody, TokenizeBody
from holdfast.serve.body_model import within_limits
from holdfast.serve.json_routes import add_post
from holdfast.serve.refusals import refusal_of
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
from holdfast.serve.wire import CancellableResponse, Json


def add_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes to an application whose route class is `JsonRoute`."""
    limits = service.limits
    default = service.default
    tokenizer = service.model.tokenizer
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
        documented: dict[str, Any] = {"summary": summary, "response_model": model}
        if body is not TokenizeBody:
            documented["responses"] = stream
        add_post(app, path, within_limits(body, limits), route, **documented)
