"""A callback of LiteLLM that edits chats, scores their replies and has bad ones drawn again.

    litellm.callbacks = [SuiteHook(suite="bot.yaml", method="reminder:every=4")]

LiteLLM calls it in `litellm.acompletion`, in its router and in its proxy:

    async_pre_call_deployment_hook           edits the chat, once a deployment is chosen
    async_post_call_success_deployment_hook  checks the reply, and draws it again
    async_log_success_event                  scores the reply that the caller gets

`litellm.completion` has no hook that can edit a request, so its chats are neither edited nor
scored. The hooks see only named arguments, so write `model=..., messages=...`. The reply to a call
that LiteLLM repeats outside of its router (`num_retries`) is neither checked nor scored, and a
stream is not checked, as the second of these hooks is called for neither.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes, ModelResponse

from holdfast.drift.cases import Suite
from holdfast.methods import Method, Methods, read_methods
from holdfast.proxy.chat_edits import Edit, EditOutcome
from holdfast.proxy.chat_requests import Api
from holdfast.proxy.checked_answers import CheckedAnswers
from holdfast.proxy.relay import OnReply, RelayedRequest, chat_relay
from holdfast.proxy.retry_attempts import EXTRA_SECONDS
from holdfast.proxy.tally import Tally
from holdfast.proxy.upstream_answer import UpstreamAnswer

_LOG = logging.getLogger("holdfast.proxy")
_MAX_OPEN_CALLS = 10_000  # calls whose end LiteLLM has not reported
# calls with a chat or a prompt that are not chat completions
_OTHER_APIS = frozenset(
    prefix + name
    for prefix in ("", "a")
    for name in ("text_completion", "responses", "anthropic_messages", "generate_content")
)
_JSON = httpx2.Headers({"content-type": "application/json"})
# what a retry does not take from the first call: LiteLLM's records of that call, by which its proxy
# would settle the caller's budget and limits twice
_NOT_REPEATED = frozenset(
    "litellm_logging_obj litellm_trace_id metadata litellm_metadata original_function".split()
)


@dataclass
class _OpenCall:
    """A call whose end LiteLLM has not reported.

    Attributes:
        relayed: the request that the reply will be scored with.
        started: the time by `time.monotonic`.
    """

    relayed: RelayedRequest
    started: float


class SuiteHook(CustomLogger):
    """Edits chat completions with a method, and checks and scores the replies by a suite.

    Args:
        suite: the suite whose rules score the replies, as `holdfast.drift.load_suite` takes it.
        method: edits the messages, such as "reminder:every=4", or has replies drawn again that
            broke a rule ("check-and-retry:n=2"), unless they are streamed.
        tally: counts the requests, and the rules that the replies keep.
        on_reply: called with the `ScoredReply` of each reply, once it is over.
        log: a file to which each scored chat is appended, with its texts.

    Raises:
        UsageError: the method acts inside the model, or no rule of the suite can be scored in a
            conversation.
    """

    def __init__(
        self,
        suite: Suite | Path | str,
        method: str | Method | Methods = "none",
        *,
        tally: Tally | None = None,
        on_reply: OnReply | None = None,
        log: Path | str | None = None,
    ):
        super().__init__()
        # LiteLLM treats two callbacks of one class as the same unless an attribute differs
        self.name = f"holdfast-{uuid.uuid4()}"
        self._relay = chat_relay(
            suite, read_methods(method), tally=tally, on_reply=on_reply, log=log
        )
        self._open = OrderedDict[str, _OpenCall]()  # by the ids of the calls
        self._retry_ids = set[str]()  # the ids of calls of our own
        self._has_warned = False

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Returns the arguments of a call with edited messages; None to leave them unchanged."""
        if call_type not in (CallTypes.completion, CallTypes.acompletion):
            if call_type is not None and call_type.value in _OTHER_APIS:
                self._relay.tally.note_edit(Edit(EditOutcome.OTHER_API))
            return None
        if kwargs.get("fallbacks") or litellm.model_fallbacks:
            return None  # every fallback is called with these messages, and comes here itself
        if _call_id(kwargs) in self._retry_ids:
            return None
        try:
            body = _request_body(kwargs)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            self._relay.tally.note_edit(Edit(EditOutcome.UNREADABLE))
            return None
        relayed = await self._begin(kwargs, body)
        return None if relayed.content == body else {**kwargs, "messages": _messages(relayed)}

    async def _begin(self, kwargs: dict[str, Any], body: bytes) -> RelayedRequest:
        """Edits the body of a call, and keeps the request for the call's end."""
        started = time.monotonic()
        relayed = await asyncio.to_thread(self._relay.begin, Api.CHAT, body)
        if relayed.retries and (kwargs.get("stream") or "model" not in kwargs):
            relayed = self._without_retries(relayed)
        call_id = _call_id(kwargs)
        if relayed.chat is not None and call_id is not None:
            self._open[call_id] = _OpenCall(relayed, started)
            if len(self._open) > _MAX_OPEN_CALLS:
                self._open.popitem(last=False)
        return relayed

    def _without_retries(self, relayed: RelayedRequest) -> RelayedRequest:
        """Returns a request whose reply passes unchecked; the log says so for the first one."""
        self._relay.tally.note_unchecked()
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "holdfast: LiteLLM has no hook by which check-and-retry could check a stream, or a"
                " call without model=..., so their replies pass unchecked; `holdfast proxy` and"
                " holdfast.wrap check them."
            )
        return replace(relayed, retries=0)

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> ModelResponse | None:
        """Returns the best of several replies to a call, which is repeated while a rule is broken.

        None to leave the reply as it is.
        """
        call_id = _call_id(request_data)
        call = None if call_id is None else self._open.get(call_id)
        if call is None or not call.relayed.retries or not isinstance(response, ModelResponse):
            return None
        seconds = time.monotonic() - call.started + EXTRA_SECONDS
        checked = CheckedAnswers(self._relay, call.relayed)
        best, answer = response, _answer_of(response)
        again = await asyncio.to_thread(checked.add, answer)
        while again is not None:
            retried = await self._retry(request_data, again, seconds)
            answer = UpstreamAnswer() if retried is None else _answer_of(retried)
            again = await asyncio.to_thread(checked.add, answer)
            if retried is not None and checked.best is answer:
                best = retried
        call.relayed = checked.request
        return best

    async def _retry(
        self, request_data: dict[str, Any], again: RelayedRequest, seconds: float
    ) -> ModelResponse | None:
        """Calls the same deployment with the messages of a retry; returns None if that fails."""
        retry_id = str(uuid.uuid4())
        arguments = {
            **{k: v for k, v in request_data.items() if k not in _NOT_REPEATED},
            "messages": _messages(again),
            "litellm_call_id": retry_id,
            "num_retries": 0,
            "cache": {"no-cache": True, "no-store": True},  # LiteLLM stores the best reply
        }
        self._retry_ids.add(retry_id)
        try:
            async with asyncio.timeout(seconds):
                reply = await litellm.acompletion(**arguments)
        except Exception as error:  # including that the time is over
            _LOG.warning("A retry failed (%s); an earlier reply is returned", type(error).__name__)
            return None
        finally:
            self._retry_ids.discard(retry_id)
        return reply if isinstance(reply, ModelResponse) else None

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """Scores the reply to a call; for a stream, LiteLLM calls this once it is over."""
        await self._end(kwargs, _answer_of(response_obj))

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """Counts a call that had no reply."""
        await self._end(kwargs, UpstreamAnswer())

    async def _end(self, kwargs: dict[str, Any], answer: UpstreamAnswer) -> None:
        """Has a call's reply scored; does nothing for calls that were not edited."""
        call_id = _call_id(kwargs)
        call = None if call_id is None else self._open.pop(call_id, None)
        if call is not None:
            await asyncio.to_thread(self._relay.end, call.relayed, answer)


def _call_id(kwargs: dict[str, Any]) -> str | None:
    """Returns the id under which LiteLLM reports the end of a call; None if it has none."""
    call_id = getattr(kwargs.get("litellm_logging_obj"), "litellm_call_id", None)
    return call_id or kwargs.get("litellm_call_id")


def _request_body(kwargs: dict[str, Any]) -> bytes:
    """Returns the arguments of a call that the relay needs, as the body of a chat completion."""
    fields = {name: kwargs[name] for name in ("messages", "n") if kwargs.get(name) is not None}
    if "messages" not in fields:
        raise KeyError("messages")
    return json.dumps(fields, default=lambda value: value.model_dump()).encode()


def _messages(relayed: RelayedRequest) -> Any:
    """Returns the messages of a request, as an argument of a call."""
    return json.loads(relayed.content)["messages"]


def _answer_of(response: Any) -> UpstreamAnswer:
    """Returns LiteLLM's response as the answer of a server."""
    answer = UpstreamAnswer(200, _JSON)
    answer.add(response.model_dump_json().encode())
    return answer
