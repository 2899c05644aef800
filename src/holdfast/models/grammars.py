"""The texts that a reply may be, as a grammar: any JSON object, or JSON that a schema describes.

A grammar is in the language of llguidance, which compiles it for a tokenizer when it is used
(`holdfast.models.grammar_masks`); nothing here imports it. Grammars of tool calls are in
`holdfast.models.call_grammars`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import UsageError, shortened

# between two parts of a JSON text: nothing, a space, or a line break with an indentation; with any
# whitespace, a small model would add it until its reply is cut
_WHITESPACE = r"( |\n[ \t]{0,24})"
_FORMATS = ("text", "json_object", "json_schema")


@dataclass(frozen=True)
class Grammar:
    """The texts that a reply may be.

    Args:
        source: the grammar in the Lark dialect of llguidance.
        about: what the reply is, for errors: "a JSON object".
        option: the argument or field that asks for it, for errors.
    """

    source: str
    about: str
    option: str = "response_format"


def json_rule(schema: Mapping[str, Any]) -> str:
    """The body of a rule: the JSON texts that a JSON Schema describes."""
    options = {"x-guidance": {"whitespace_pattern": _WHITESPACE}}
    return f"%json {json.dumps({**schema, **options})}"


def read_response_format(given: Mapping[str, Any] | None) -> Grammar | None:
    """The grammar of a `response_format` of OpenAI's API; None if the reply may be any text.

    Args:
        given: {"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema":
            {"name": NAME, "schema": SCHEMA}}.

    Raises:
        UsageError: it is none of these.
    """
    if given is None:
        return None
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Grammar(f"start: {json_rule({'type': 'object'})}", "a JSON object")
    if kind != "json_schema":
        raise UsageError(
            f"response_format has to be an object whose type is {', '.join(_FORMATS[:-1])} or"
            f" {_FORMATS[-1]}, not {shortened(given)}.",
            option="response_format",
            value=given,
            allowed=_FORMATS,
        )
    described = given.get("json_schema")
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(described, Mapping) or not isinstance(schema, Mapping):
        raise UsageError(
            f"response_format with the type json_schema needs a schema at json_schema.schema, not"
            f" {shortened(schema)}.",
            option="response_format",
            value=schema,
        )
    name = described.get("name") or "json_schema"
    return Grammar(f"start: {json_rule(schema)}", f"JSON by the schema {str(name)[:60]!r}")
