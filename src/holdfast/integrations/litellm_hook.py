"""A callback of LiteLLM that edits chats and scores their replies.

    litellm.callbacks = [SuiteHook(suite="bot.yaml", method="reminder:every=4")]

Chats are edited in LiteLLM's `async_pre_call_deployment_hook`, once a deployment is chosen: in
`litellm.acompletion`, in its router and in its proxy. `litellm.completion` has no hook that can
edit a request, so its chats are neither edited nor scored. The hook sees only named arguments, so
write `messages=...`. It scores no reply to a call that LiteLLM repeats outside of its router
(`num_retries`).
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Any

import httpx2
import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes

from holdfast.drift.cases import Suite
from holdfast.errors import UsageError
from holdfast.methods import Method, Methods, compile_methods, read_methods, spec_of
from holdfast.proxy.chat_requests import Api
from holdfast.proxy.relay import OnReply, RelayedRequest, UpstreamAnswer, chat_relay
from holdfast.proxy.suite_middleware import Edit, EditOutcome
from holdfast.proxy.tally import Tally

_MAX_OPEN_CALLS = 10_000  # calls whose end LiteLLM has not reported
# calls with a chat or a prompt that are not chat completions
_OTHER_APIS = frozenset(
    prefix + name
    for prefix in ("", "a")
    for name in ("text_completion", "responses", "anthropic_messages", "generate_content")
)
_JSON = httpx2.Headers({"content-type": "application/json"})


class SuiteHook(CustomLogger):
    """Edits the messages of chat completions with a method, and scores the replies by a suite.

    Args:
        suite: the suite whose rules score the replies, as `holdfast.drift.load_suite` takes it.
        method: edits the messages, such as "reminder:every=4".
        tally: counts the requests, and the rules that the replies keep.
        on_reply: called with the `ScoredReply` of each reply, once it is over.
        log: a file to which each scored chat is appended, with its texts.

    Raises:
        UsageError: the method does more than edit messages, or no rule of the suite can be scored
            in a conversation.
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
        methods = read_methods(method)
        if retries := compile_methods(methods).retries:
            raise UsageError(
                f"{spec_of(retries)} draws replies again, which a callback of LiteLLM cannot do;"
                " use holdfast.wrap or holdfast proxy.",
                option="method",
                value=spec_of(retries),
            )
        self._relay = chat_relay(suite, methods, tally=tally, on_reply=on_reply, log=log)
        self._open = OrderedDict[str, RelayedRequest]()  # calls without an end yet, by their ids

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
        try:
            messages = json.dumps(kwargs["messages"], default=lambda value: value.model_dump())
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            self._relay.tally.note_edit(Edit(EditOutcome.UNREADABLE))
            return None
        body = f'{{"messages": {messages}}}'.encode()
        relayed = await asyncio.to_thread(self._relay.begin, Api.CHAT, body)
        call_id = _call_id(kwargs)
        if relayed.chat is not None and call_id is not None:
            self._open[call_id] = relayed
            if len(self._open) > _MAX_OPEN_CALLS:
                self._open.popitem(last=False)
        if relayed.content == body:
            return None
        return {**kwargs, "messages": json.loads(relayed.content)["messages"]}

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """Scores the reply to a call; for a stream, LiteLLM calls this once it is over."""
        answer = UpstreamAnswer(200, _JSON)
        answer.add(response_obj.model_dump_json().encode())
        await self._end(kwargs, answer)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """Counts a call that had no reply."""
        await self._end(kwargs, UpstreamAnswer())

    async def _end(self, kwargs: dict[str, Any], answer: UpstreamAnswer) -> None:
        """Has a call's reply scored; does nothing for calls that were not edited."""
        call_id = _call_id(kwargs)
        relayed = None if call_id is None else self._open.pop(call_id, None)
        if relayed is not None:
            await asyncio.to_thread(self._relay.end, relayed, answer)


def _call_id(kwargs: dict[str, Any]) -> str | None:
    """Returns the id under which LiteLLM reports the end of a call; None if it has none."""
    call_id = getattr(kwargs.get("litellm_logging_obj"), "litellm_call_id", None)
    return call_id or kwargs.get("litellm_call_id")
