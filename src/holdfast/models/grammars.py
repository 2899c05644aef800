"""Grammars of replies that must be JSON: any object, or JSON that follows a schema.

Grammars are written in the language of llguidance, which compiles them for a tokenizer when they
are used (`holdfast.models.grammar_masks`); this module does not import it. Grammars of tool calls
are in `holdfast.models.call_grammars`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import UsageError, shortened
from holdfast.validation.json_values import fields_of

# Between two parts of a JSON text: nothing, a space, or a line break with an indentation. If any
# white space were allowed, a small model would write it until its reply is cut off.
_WHITESPACE = r"( |\n[ \t]{0,24})"
_FORMATS = ("text", "json_object", "json_schema")


@dataclass(frozen=True)
class Grammar:
    """The set of texts that a reply may be.

    Args:
        source: the grammar in the Lark dialect of llguidance.
        about: the reply in words, for errors: "a JSON object".
        option: the argument or field that requests the grammar, for errors.
    """

    source: str
    about: str
    option: str = "response_format"


def json_rule(schema: Mapping[str, Any]) -> str:
    """The body of a rule for the JSON texts that follow a JSON Schema."""
    options = {"x-guidance": {"whitespace_pattern": _WHITESPACE}}
    return f"%json {json.dumps({**schema, **options})}"


def read_response_format(response_format: Mapping[str, Any] | None) -> Grammar | None:
    """Reads a `response_format` of OpenAI's API; None if the reply may be any text.

    Args:
        response_format: {"type": "text"}, {"type": "json_object"} or {"type": "json_schema",
            "json_schema": {"name": NAME, "schema": SCHEMA}}.

    Raises:
        UsageError: it has another form.
    """
    if response_format is None:
        return None
    is_object = isinstance(response_format, Mapping)
    kind = response_format.get("type") if is_object else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Grammar(f"start: {json_rule({'type': 'object'})}", "a JSON object")
    if kind != "json_schema":
        raise UsageError(
            f"response_format has to be an object whose type is {', '.join(_FORMATS[:-1])} or"
            f" {_FORMATS[-1]}, not {shortened(response_format)}.",
            option="response_format",
            value=response_format,
            allowed=_FORMATS,
        )
    json_schema = fields_of(response_format.get("json_schema"))
    schema = json_schema.get("schema")
    if not isinstance(schema, Mapping):
        raise UsageError(
            f"response_format with the type json_schema needs a schema at json_schema.schema, not"
            f" {shortened(schema)}.",
            option="response_format",
            value=schema,
        )
    name = json_schema.get("name") or "json_schema"
    return Grammar(f"start: {json_rule(schema)}", f"JSON by the schema {str(name)[:60]!r}")
