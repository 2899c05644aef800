"""The values that a JSON Schema takes, in words."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.plurals import count_of, plural_of

Schema = Mapping[str, Any]

_WORDS = {"boolean": "true or false", "object": "an object", "null": "empty"}


def resolved(schema: Schema, root: Schema) -> Schema:
    """A schema, or if it is a `$ref`, the definition in `root` that it names."""
    reference = schema.get("$ref")
    return root["$defs"][reference.rpartition("/")[2]] if reference else schema


def expected(schema: Schema, root: Schema) -> str:
    """The values that a schema takes, in words: "a whole number from 1 to 16"."""
    schema = resolved(schema, root)
    if "expected" in schema:  # a type may bring its own words
        return str(schema["expected"])
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
        return " or ".join(expected(branch, root) for branch in branches)
    if "enum" in schema or "const" in schema:
        return listed(schema.get("enum", [schema.get("const")]), " or ")
    kind = schema.get("type", "")
    if kind in ("number", "integer"):
        return ("a whole number" if kind == "integer" else "a number") + _range(schema)
    if kind == "string":
        return "a text" + _length(schema, "minLength", "maxLength", "character")
    if kind == "array":
        return _list_in_words(schema, root)
    return _WORDS.get(kind, "another value")


def listed(values: Sequence[Any], separator: str = ", ") -> str:
    """Values as JSON, but texts without quotation marks."""
    return separator.join(v if isinstance(v, str) else json.dumps(v) for v in values)


def _list_in_words(schema: Schema, root: Schema) -> str:
    if parts := schema.get("prefixItems"):
        if "description" in schema:
            return f"[{schema['description']}]"
        return f"[{', '.join(expected(part, root) for part in parts)}]"
    item = resolved(schema.get("items", {}), root)
    nouns = {"string": "text", "integer": "whole number", "array": "list"}
    noun = nouns.get(str(item.get("type")), "entry")
    return "a list" + _length(schema, "minItems", "maxItems", noun, f" of {plural_of(noun)}")


def _range(schema: Schema) -> str:
    low = schema.get("minimum")
    high = schema.get("maximum", math.inf)
    above = schema.get("exclusiveMinimum")
    below = schema.get("exclusiveMaximum")
    if low is None and above is None:
        return ""
    first = f" above {above}" if low is None else f" from {low}"
    if below is not None:
        return f"{first} to below {below}"
    return f"{first} to {high}" if high < math.inf else f"{first} upwards"


def _length(schema: Schema, least: str, most: str, noun: str, otherwise: str = "") -> str:
    """How long a value may be, with a space in front: " of 2 to 8 texts".

    Args:
        least, most: the schema's keywords for the limits.
        noun: for the parts that are counted, in the singular.
        otherwise: the words if there are no limits, or just that it is not empty.
    """
    low = schema.get(least, 0)
    high = schema.get(most)
    if low == high:
        return f" of {count_of(low, noun)}"
    if high is not None:
        most_words = count_of(high, noun)
        return f" of {low:,} to {most_words}" if low else f" of at most {most_words}"
    if low == 1:
        return f"{otherwise} that is not empty"
    return f" of {low:,} or more {plural_of(noun)}" if low else otherwise
