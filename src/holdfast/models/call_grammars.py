"""Grammars of replies that may or must call tools (see `holdfast.models.grammars`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.models.grammars import Grammar, json_rule


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
