"""The tool calls that a reply may or has to make, as a grammar (see `holdfast.models.grammars`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.models.grammars import Grammar, json_rule


@dataclass(frozen=True)
class Function:
    """A function that may be called, and the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class CallForm:
    """How a chat template writes the call of a tool, whose arguments are a JSON object.

    Qwen's, for example, writes the call of a function PLACEHOLDER, whose arguments stand between
    `before` and `after`, as

        <tool_call>
        {"name": "PLACEHOLDER", "arguments": {...}}
        </tool_call>

    Args:
        space: whitespace in front of the first call.
        before: the text of a call up to its arguments.
        after: the text behind them.
        placeholder: stands for the function's name, in one of these texts.
        opening: the beginning of `before` that no other text has: `<tool_call>`.
        special: the ids of tokens in these texts that no other tokens spell, by their text.
    """

    space: str
    before: str
    after: str
    placeholder: str
    opening: str
    special: Mapping[str, int]

    def call(self, function: Function) -> str:
        """The body of a grammar's rule: a call of a function, without its opening."""
        schema = {**function.parameters, "type": "object"}
        before = self._around(self.before.removeprefix(self.opening), function.name)
        after = self._around(self.after, function.name)
        return " ".join(filter(None, (before, json_rule(schema), after)))

    def _around(self, text: str, name: str) -> str:
        """A text around the arguments in a grammar, with the name in the placeholder's place."""
        parts = [self.literal(part) for part in text.split(self.placeholder)]
        # a name is plain text, also one that has the letters of a special token
        return f" {_quoted(name)} ".join(parts).strip()

    def literal(self, text: str) -> str:
        """A text in a grammar: its special tokens by their ids, and the rest in quotes."""
        parts = [text]
        if self.special:
            longest_first = sorted(self.special, key=len, reverse=True)
            parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
        return " ".join(
            f"<[{self.special[part]}]>" if part in self.special else _quoted(part)
            for part in parts
            if part
        )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def forced_call(form: CallForm, functions: Sequence[Function]) -> Grammar:
    """The grammar of exactly one call, of one of these functions."""
    opening = form.literal(form.space + form.opening)
    rules = _call_rules(form, functions)
    calls = " | ".join(f"call_{number}" for number in range(len(functions)))
    source = "\n".join([f"start: {opening} ({calls})", *rules])
    return Grammar(source, f"a call of {_named(functions)}", "tool_choice")


def strict_calls(form: CallForm, functions: Sequence[Function]) -> Grammar:
    """The grammar of a text with any number of calls, each of one of these functions."""
    # TEXT takes in no special token, so it ends by itself in front of one
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
    return Grammar(source, f"strict calls of {_named(functions)}", "tools")


def _call_rules(form: CallForm, functions: Sequence[Function]) -> list[str]:
    """A rule for each function."""
    return [f"call_{number}: {form.call(function)}" for number, function in enumerate(functions)]


def _named(functions: Sequence[Function]) -> str:
    return " or ".join(repr(function.name[:60]) for function in functions[:3])
