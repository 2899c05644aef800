"""The texts that a reply may be, as a grammar: JSON, JSON that a schema describes, or tool calls.

A grammar is in the language of llguidance, which compiles it for a tokenizer when it is used
(`holdfast.models.grammar_masks`); nothing here imports it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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


def json_rule(schema: Mapping[str, Any] | bool) -> str:
    """A rule of a grammar: the JSON texts that a JSON Schema describes."""
    options = {"x-guidance": {"whitespace_pattern": _WHITESPACE}}
    described = dict(schema) if isinstance(schema, Mapping) else {"allOf": [schema]}
    return f"%json {json.dumps(described | options)}"


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


@dataclass(frozen=True)
class Function:
    """A function that may be called, and the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class CallForm:
    """How a chat template writes the call of a tool, whose arguments are a JSON object.

    `before` and `after` are the text around the arguments; `name` stands in one of them.

    Args:
        space: whitespace in front of the first call.
        opening: how every call begins, by which it is told from other text.
        special: of tokens in these texts that no other tokens spell, the ids.
    """

    space: str
    before: str
    after: str
    name: str
    opening: str
    special: Mapping[str, int]

    def call(self, function: Function) -> str:
        """The text of a call after its opening, as the body of a grammar's rule."""
        schema = {**function.parameters, "type": "object"}
        before = self._around(self.before.removeprefix(self.opening), function.name)
        after = self._around(self.after, function.name)
        return " ".join(filter(None, (before, json_rule(schema), after)))

    def _around(self, text: str, name: str) -> str:
        """A text around the arguments in a grammar, with the name of a function in its place."""
        parts = text.split(self.name)
        # a name is plain text, also one that has the letters of a special token
        named = f" {json.dumps(name, ensure_ascii=False)} "
        return named.join(self.literal(part) for part in parts).strip()

    def literal(self, text: str) -> str:
        """A text in a grammar, whose special tokens are tokens; "" for none."""
        if not self.special:
            return json.dumps(text, ensure_ascii=False) if text else ""
        longest_first = sorted(self.special, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
        return " ".join(
            f"<[{self.special[part]}]>"
            if part in self.special
            else json.dumps(part, ensure_ascii=False)
            for part in parts
            if part
        )


def forced_call(form: CallForm, functions: Sequence[Function]) -> Grammar:
    """The grammar of exactly one call, of one of these functions."""
    opening = form.literal(form.space + form.opening)
    rules = _call_rules(form, functions)
    calls = " | ".join(f"call_{number}" for number in range(len(functions)))
    source = "\n".join([f"start: {opening} ({calls})", *rules])
    return Grammar(source, f"a call of {_named(functions)}", "tool_choice")


def strict_calls(form: CallForm, functions: Sequence[Function]) -> Grammar:
    """The grammar of a text with any number of calls, each of one of these functions."""
    if any(token in form.opening for token in form.special):
        opening = [f"opening: TEXT {form.literal(form.opening)}"]
    else:
        opening = [f"opening[lazy]: TEXT {form.literal(form.opening)}"]
    calls = " | ".join(f"call_{number}" for number in range(len(functions)))
    source = "\n".join(
        [
            f"start: (opening ({calls}))* rest",
            *opening,
            "rest: TEXT",
            r"TEXT: /(.|\n)*/",
            *_call_rules(form, functions),
        ]
    )
    return Grammar(source, f"strict calls of {_named(functions)}", "tools")


def _call_rules(form: CallForm, functions: Sequence[Function]) -> list[str]:
    return [f"call_{number}: {form.call(function)}" for number, function in enumerate(functions)]


def _named(functions: Sequence[Function]) -> str:
    return " or ".join(repr(function.name[:60]) for function in functions[:3])
