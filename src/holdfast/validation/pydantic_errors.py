"""Validates outside input with Pydantic models, and words their errors as sentences.

For example, of {"messages": [], "temprature": 1} as the body of a chat, only the misspelt name is
reported: "The body has no field 'temprature'; did you mean 'temperature'?"
"""

import difflib
import functools
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from holdfast.errors import shortened
from holdfast.validation.schema_words import Schema, describe_schema, list_values, resolve_ref

FieldPath = tuple[str | int, ...]
ErrorDetails = Mapping[str, Any]  # an error, as Pydantic lists it

_MAX_NAMES_LISTED = 12  # field names that one sentence lists


class StrictModel(BaseModel):
    """A model that converts nothing and forbids unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Problem:
    """The first error in a value: its path, Pydantic's name for the error, and a sentence."""

    path: FieldPath
    kind: str
    sentence: str

    @property
    def field(self) -> str:
        """The path as text, such as `messages[0].content`."""
        return format_path(self.path)


def format_path(path: FieldPath) -> str:
    """Returns a path as text, such as `messages[0].content`; "" for the whole value."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{str(part)[:60]}" for part in path)
    return "".join(parts).removeprefix(".")


def as_json(value: Any) -> str:
    """Formats a value for an error message, with null and booleans as in JSON and YAML."""
    return json.dumps(value) if value is None or isinstance(value, bool) else shortened(value)


def problem_of(
    error: ValidationError | Sequence[ErrorDetails],
    model: Any,
    value: Any,
    name: Callable[[FieldPath], str] = lambda path: format_path(path) or "The body",
    show_value: Callable[[Any], str] = as_json,
) -> Problem:
    """Returns the first error that Pydantic found when it validated a value against a model.

    Args:
        error: Pydantic's exception, or its list of errors.
        model: the type that the value was validated against.
        value: the value that was validated.
        name: returns what the sentence calls the part of the value at a path; () is all of it.
        show_value: formats a part that is not a list.
    """
    errors = error.errors(include_url=False) if isinstance(error, ValidationError) else error
    # a misspelt name explains why a field is missing
    first = next((details for details in errors if details["type"] == "extra_forbidden"), errors[0])
    # every branch of a union reports errors; the deepest belong to the branch the user meant
    related = _without_errors_inside_wrong_lists(
        [details for details in errors if details["loc"][:1] == first["loc"][:1]]
    )

    def rank(details: ErrorDetails) -> tuple[int, bool]:
        # a value of the right type identifies its branch
        is_of_wrong_type = details["type"].endswith(("missing", "_type"))
        return len(_path_of(details, value)), not is_of_wrong_type

    details = max(related, key=rank)
    path = _path_of(details, value)
    return Problem(path, details["type"], _sentence(details, path, model, value, name, show_value))


def _without_errors_inside_wrong_lists(
    errors: Sequence[ErrorDetails],
) -> list[ErrorDetails]:
    """Drops the errors inside a list of the wrong length, because its length is the error."""
    wrong_lists = {
        details["loc"][:-1] if details["type"] == "missing" else details["loc"]
        for details in errors
        if details["type"] == "too_long" or _lacks_item(details)
    }
    return [
        details
        for details in errors
        if _lacks_item(details)
        or not any(
            len(details["loc"]) > len(path) and details["loc"][: len(path)] == path
            for path in wrong_lists
        )
    ]


def _lacks_item(details: ErrorDetails) -> bool:
    """Whether the error is a list too short for its tuple: Pydantic calls the item missing."""
    return details["type"] == "missing" and isinstance(details["loc"][-1], int)


def _path_of(details: ErrorDetails, value: Any) -> FieldPath:
    """Returns where an error is in the value: Pydantic's location without the names of union
    branches, so ("messages", 0, "content") for ("messages", 0, "UserMessage", "content"). For a
    list that is too short, this is the list itself.
    """
    path: list[str | int] = []
    for part in details["loc"]:
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        ):
            value = value[part]
            path.append(part)
    if details["type"] == "missing" and not _lacks_item(details):
        path.append(details["loc"][-1])
    return tuple(path)


@functools.cache
def _schema_of(model: Any) -> Schema:
    return TypeAdapter(model).json_schema()


def _sentence(
    details: ErrorDetails,
    path: FieldPath,
    model: Any,
    value: Any,
    name: Callable[[FieldPath], str],
    show_value: Callable[[Any], str],
) -> str:
    """Words one of Pydantic's errors as a sentence, with the cure."""
    schema = _schema_of(model)
    match details["type"]:
        case "extra_forbidden":
            fields = _schema_at(schema, path[:-1], value).get("properties", ())
            cure = _cure_for_unknown_field(str(path[-1]), fields)
            return f"{name(path[:-1])} has no field {shortened(path[-1])}; {cure}"
        case "missing" if not _lacks_item(details):
            allowed = describe_schema(_schema_at(schema, path, value), schema)
            return f"{name(path)} is missing; give {allowed}."
        case "value_error":
            return str(details["ctx"]["error"])
        case "unsupported" | "half_character":
            return str(details["msg"])
    part = functools.reduce(operator.getitem, path, value)
    part_schema = resolve_ref(_schema_at(schema, path, value), schema)
    choices = () if "expected" in part_schema else part_schema.get("enum", ())
    if len(choices) > 2:
        return f"{name(path)} must be one of {list_values(choices)}; got {show_value(part)}."
    allowed = describe_schema(part_schema, schema)
    if part == []:
        actual = "an empty list"
    else:
        actual = f"a list of {len(part)}" if isinstance(part, list) else show_value(part)
    return f"{name(path)} has to be {allowed}, not {actual}."


def _cure_for_unknown_field(name: str, fields: Sequence[str] | Mapping[str, Any]) -> str:
    """Returns a clause that names the most similar field, or all fields if there are few."""
    if near := difflib.get_close_matches(name[:60], fields, n=1, cutoff=0.6):
        return f"did you mean {near[0]!r}?"
    if len(fields) == 1:
        return f"its only field is {next(iter(fields))!r}."
    if 0 < len(fields) <= _MAX_NAMES_LISTED:
        return f"its fields are {', '.join(fields)}."
    return "leave it out."


def _schema_at(root: Schema, path: FieldPath, value: Any) -> Schema:
    """Returns the schema of the part of a value at a path; a union if several branches have it."""
    branches = _matching_branches(root, value, root)
    children: list[Schema] = []
    for part in path:
        schemas = [_schema_of_part(branch, part) for branch in branches]
        children = [schema for schema in schemas if schema] or [{}]
        value = value.get(part) if isinstance(value, dict) else value[part]
        branches = [
            branch for child in children for branch in _matching_branches(child, value, root)
        ]
    for child in children:
        if "expected" in child:
            return child
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _schema_of_part(schema: Schema, part: str | int) -> Schema:
    """Returns the schema of one field or list item; {} if the schema says nothing about it."""
    if isinstance(part, int):
        items = schema.get("prefixItems", ())
        return items[part] if part < len(items) else schema.get("items", {})
    other: Schema = schema.get("additionalProperties") or {}
    return schema.get("properties", {}).get(part, other)


def _matching_branches(schema: Schema, value: Any, root: Schema) -> list[Schema]:
    """Returns the branches of a union that have the value's type, or all if none has."""
    schema = resolve_ref(schema, root)
    if "anyOf" not in schema:
        return [schema]
    branches = [resolve_ref(branch, root) for branch in schema["anyOf"]]
    branches = [branch for branch in branches if branch.get("type") != "null"]
    if len(branches) == 1:
        return _matching_branches(branches[0], value, root)
    if isinstance(value, list):
        lists = [branch for branch in branches if branch.get("type") == "array"]
        of_this_length = [b for b in lists if len(b.get("prefixItems", value)) == len(value)]
        return of_this_length or lists or branches
    if isinstance(value, dict):
        return [branch for branch in branches if branch.get("type") == "object"] or branches
    return branches
