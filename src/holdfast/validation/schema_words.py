"""Describes in words the values that a JSON Schema allows.

For example, {"type": "integer", "minimum": 1, "maximum": 16} is "a whole number from 1 to 16".
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.plurals import count_of, plural_of

Schema = Mapping[str, Any]

_WORDS = {"boolean": "true or false", "object": "an object", "null": "empty"}


def resolve_ref(schema: Schema, root: Schema) -> Schema:
    """Returns the definition in `root` that a `$ref` names, or a schema without `$ref` itself."""
    reference = schema.get("$ref")
    return root["$defs"][reference.rpartition("/")[2]] if reference else schema


def describe_schema(schema: Schema, root: Schema) -> str:
    """Describes the values that a schema allows, such as "a whole number from 1 to 16".

    Args:
        root: the whole schema, which has the definitions that a `$ref` names.
    """
    schema = resolve_ref(schema, root)
    if "expected" in schema:  # a type may bring its own words
        return str(schema["expected"])
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
        return " or ".join(describe_schema(branch, root) for branch in branches)
    if "enum" in schema or "const" in schema:
        return list_values(schema.get("enum", [schema.get("const")]), " or ")
    kind = schema.get("type", "")
    if kind in ("number", "integer"):
        noun = "a whole number" if kind == "integer" else "a number"
        limits = _describe_range(schema)
        return f"{noun} {limits}" if limits else noun
    if kind == "string":
        return _describe_text(schema)
    if kind == "array":
        return _describe_list(schema, root)
    return _WORDS.get(kind, "another value")


def list_values(values: Sequence[Any], separator: str = ", ") -> str:
    """Lists values as JSON, but texts without quotation marks."""
    return separator.join(v if isinstance(v, str) else json.dumps(v) for v in values)


def _describe_range(schema: Schema) -> str:
    """Describes the limits of a number, such as "from 1 to 16"; "" if there are none."""
    low = schema.get("minimum")
    high = schema.get("maximum", math.inf)
    above = schema.get("exclusiveMinimum")
    below = schema.get("exclusiveMaximum")
    if low is None and above is None:
        return ""
    first = f"above {above}" if low is None else f"from {low}"
    if below is not None:
        return f"{first} to below {below}"
    return f"{first} to {high}" if high < math.inf else f"{first} upwards"


def _describe_text(schema: Schema) -> str:
    """Describes a string by its length, such as "a text of at most 16 characters"."""
    low = schema.get("minLength", 0)
    high = schema.get("maxLength")
    if high is None and low <= 1:
        return "a text that is not empty" if low else "a text"
    return f"a text of {_count_in_words(low, high, 'character')}"


def _describe_list(schema: Schema, root: Schema) -> str:
    """Describes a list by its entries and their number, such as "a list of 2 to 8 texts"."""
    if parts := schema.get("prefixItems"):
        if "description" in schema:
            return f"[{schema['description']}]"
        return f"[{', '.join(describe_schema(part, root) for part in parts)}]"
    item = resolve_ref(schema.get("items", {}), root)
    nouns = {"string": "text", "integer": "whole number", "array": "list"}
    noun = nouns.get(str(item.get("type")), "entry")
    low = schema.get("minItems", 0)
    high = schema.get("maxItems")
    if high is None and low <= 1:
        of_entries = f"a list of {plural_of(noun)}"
        return f"{of_entries} that is not empty" if low else of_entries
    return f"a list of {_count_in_words(low, high, noun)}"


def _count_in_words(low: int, high: int | None, noun: str) -> str:
    """Says how many things there may be, such as "2 to 8 texts" or "2 or more texts".

    Args:
        high: None for no upper limit.
        noun: of the things, in the singular.
    """
    if high is None:
        return f"{low:,} or more {plural_of(noun)}"
    highest = count_of(high, noun)
    if low == high:
        return highest
    return f"{low:,} to {highest}" if low else f"at most {highest}"
