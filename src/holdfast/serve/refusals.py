"""Refusals of requests, in OpenAI's error format.

An error, as the client reads it:

    {"error": {"message": SENTENCE, "type": KIND, "param": FIELD or null, "code": WORD or null}}
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import HoldfastError, NoSystemRole, PromptTooLong, UnknownName, word_options
from holdfast.serve.answer_formats import ErrorResponse
from holdfast.validation.pydantic_errors import Problem

_MAX_MESSAGE_CHARACTERS = 600  # of a message, which may quote long input of a client
_NUM_LAST_CHARACTERS = 200  # that are kept of a longer message, since its end names the cure

_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "unavailable_error",
    504: "timeout_error",
}
_INVALID = "invalid_value"
_CODES = {
    "missing": "missing_required_parameter",
    "extra_forbidden": "unknown_field",
    "unsupported": "unsupported",
}

# The fields of the APIs with other names than our options have, or than a chat has.
_CHAT_FIELDS = {"max_new_tokens": "max_tokens"}
_FIELDS = {  # by the path of the API
    "/v1/responses": {
        "max_new_tokens": "max_output_tokens",
        "messages": "input",
        "response_format": "text",
    }
}


@dataclass
class Refusal(Exception):
    """The refusal of a request.

    Some fields have another name in another API. The message has them as `errors.option` writes
    them, and `param` as in a chat; `sentence` and `body` use the names of the API at a path.

    Args:
        message: one sentence that names the value seen and the cure.
        param: the field that it concerns; None if it concerns none.
        code: the reason, for programs.
        status: the HTTP status of the answer.
        headers: headers of the answer, in addition to the usual ones.
    """

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400
    headers: Mapping[str, str] = field(default_factory=dict)

    def sentence(self, path: str = "") -> str:
        """The message, with the names of fields in the API at a path."""
        names = _FIELDS.get(path, _CHAT_FIELDS)

        def as_field(name: str, value: Any) -> str:
            field_name = names.get(name, name)
            return field_name if value is None else f'"{field_name}": {json.dumps(value)}'

        return word_options(self.message, as_field)

    def body(self, path: str = "") -> ErrorResponse:
        """The refusal as JSON, with the names of fields in the API at a path."""
        message = self.sentence(path)
        if len(message) > _MAX_MESSAGE_CHARACTERS:
            beginning = message[: _MAX_MESSAGE_CHARACTERS - _NUM_LAST_CHARACTERS]
            message = f"{beginning} … {message[-_NUM_LAST_CHARACTERS:]}"
        return {
            "error": {
                "message": message,
                "type": _TYPES.get(self.status, "invalid_request_error"),
                "param": self._param_at(path),
                "code": self.code,
            }
        }

    def _param_at(self, path: str) -> str | None:
        """The name of the field in the API at a path.

        If it has another name there, the path within it ("messages[0].content") would also differ,
        and is left out.
        """
        outermost = re.split(r"[.\[]", self.param or "")[0]
        return _FIELDS.get(path, {}).get(outermost, self.param)


def refused_field(param: str, message: str, code: str = _INVALID) -> Refusal:
    """The refusal of the value of a field."""
    return Refusal(message, param, code)


def refusal_of_problem(problem: Problem) -> Refusal:
    """The refusal of a body that does not match its model."""
    return Refusal(problem.sentence, problem.field or None, _CODES.get(problem.kind, _INVALID))


def refusal_of(error: HoldfastError, param: str | None = None) -> Refusal:
    """The refusal that reports an error of Holdfast."""
    if isinstance(error, PromptTooLong):
        return Refusal(error.message, param, "context_length_exceeded")
    if isinstance(error, NoSystemRole):
        return Refusal(error.message, "system_as", _INVALID)
    code = "unknown_name" if isinstance(error, UnknownName) else _INVALID
    return Refusal(error.message, param, code)


def timeout_refusal(seconds: float) -> Refusal:
    """The refusal of a request that has run out of time."""
    return Refusal(
        f"The reply was not complete after {seconds:g} s, this server's limit for one request;"
        " request fewer tokens, or try again when it is less busy.",
        code="timeout",
        status=504,
        headers={"X-Should-Retry": "false"},  # respected by OpenAI's clients
    )
