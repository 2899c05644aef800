"""Grammars of replies that must be JSON, or that may or must call tools.

Grammars are written in the language of llguidance, which compiles them for a tokenizer when they
are used (`holdfast.models.grammar_masks`); this module does not import it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
        description: the reply in words, for errors: "a JSON object".
        option: the argument or field that requests the grammar, for errors.
    """

    source: str
    description: str
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


@dataclass(frozen=True)
class Function:
    """A function that the model may call, and the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class CallForm:
    """How a chat template writes the call of a tool, whose arguments are a JSON object.

    Qwen's template, for example, writes the call of a function PLACEHOLDER as

        <tool_call>
        {"name": "PLACEHOLDER", "arguments": {...}}
        </tool_call>

    Args:
        space: white space before the first call.
        before: the text of a call up to its arguments.
        after: the text after the arguments.
        placeholder: the function's name in one of these texts, to be replaced.
        opening: the beginning of `before` by which a call is recognised, such as `<tool_call>`.
        special: the ids of the special tokens in these texts, by their text; no sequence of other
            tokens has that text.
    """

    space: str
    before: str
    after: str
    placeholder: str
    opening: str
    special: Mapping[str, int]

    def call_rule(self, function: Function) -> str:
        """The body of a grammar's rule for a call of the function, without its opening."""
        schema = {**function.parameters, "type": "object"}
        before = self._with_name(self.before.removeprefix(self.opening), function.name)
        after = self._with_name(self.after, function.name)
        return " ".join(filter(None, (before, json_rule(schema), after)))

    def _with_name(self, text: str, name: str) -> str:
        """Writes a text for a grammar, with a function's name in place of the placeholder."""
        parts = [self.literal(part) for part in text.split(self.placeholder)]
        # a name is plain text, even if it has the letters of a special token
        return f" {_quote(name)} ".join(parts).strip()

    def literal(self, text: str) -> str:
        """Writes a text for a grammar: special tokens by their ids, and the rest in quotes."""
        parts = [text]
        if self.special:
            longest_first = sorted(self.special, key=len, reverse=True)
            parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
        return " ".join(
            f"<[{self.special[part]}]>" if part in self.special else _quote(part)
            for part in parts
            if part
        )


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def forced_call(form: CallForm, functions: Sequence[Function]) -> Grammar:
    """The grammar of a reply that is exactly one call of one of these functions."""
    opening = form.literal(form.space + form.opening)
    rules = _call_rules(form, functions)
    calls = " | ".join(f"call_{number}" for number in range(len(functions)))
    source = "\n".join([f"start: {opening} ({calls})", *rules])
    return Grammar(source, f"a call of {_list_names(functions)}", "tool_choice")


def strict_calls(form: CallForm, functions: Sequence[Function]) -> Grammar:
    """The grammar of a text with any number of calls, each of one of these functions."""
    # TEXT matches no special token, so it ends before one; before any other opening it must be lazy
    has_special = any(token in form.opening for token in form.special)
    opening = "opening" if has_special else "opening[lazy]"
    calls = " | ".join(f"call_{number}" for number in range(len(functions)))
    source = "\n".join(
        [
            f"start: (opening ({calls}))* rest",
            f"{opening}: TEXT {form.literal(form.opening)}",
            "rest: TEXT",
            r"TEXT: /(.|\n)*/",
            *_call_rules(form, functions),
        ]
    )
    return Grammar(source, f"strict calls of {_list_names(functions)}", "tools")


def _call_rules(form: CallForm, functions: Sequence[Function]) -> list[str]:
    """One rule per function: `call_0`, `call_1` and so on."""
    numbered = enumerate(functions)
    return [f"call_{number}: {form.call_rule(function)}" for number, function in numbered]


def _list_names(functions: Sequence[Function]) -> str:
    """The names of the first three functions, for error messages."""
    return " or ".join(repr(function.name[:60]) for function in functions[:3])
