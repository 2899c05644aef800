"""S-IFEval: IFEval's prompts with their instructions moved into the system prompt.

A file of JSON lines, gzipped or not. Each row has `key`, `instruction_id_list`, `kwargs` (the
arguments of each instruction) and `messages`: the system prompt, which gives the instructions, and
the user's request, which does not. The request is the probe. The file is the user's own, and
nothing in it is executed. Source: SystemCheck (MIT), derived from IFEval (Zhou et al. 2023,
Apache-2.0).
"""

import difflib
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.drift.cases import Case, Rule, Suite, generic_starters
from holdfast.errors import UsageError, reason_of, shortened
from holdfast.files import read_text
from holdfast.measures import Measure, build
from holdfast.measures.registry import REGISTRY

SCORINGS = ("strict", "loose")
SEVERAL = "several"  # the category of a prompt with instructions of more than one group


def load_sys_ifeval(where: str, scoring: str = "strict") -> Suite:
    """Loads S-IFEval, one case per row; `strict`, or `loose` as Zhou et al. 2023 define it."""
    path = Path(where)
    lines_by_key: dict[str, str] = {}  # a conversation is identified by its case
    cases: list[Case] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        at = f"{path}, line {number}"
        row = _read_row(line, at)
        key = _read_key(row, at)
        if key in lines_by_key:
            raise UsageError(
                f"{at}: the key is {key!r}, taken by {lines_by_key[key]}; give every row its own."
            )
        lines_by_key[key] = at
        system_prompt, probe = _read_messages(row, at)
        if rules := _rules_of(_read_instructions(row, at), probe, scoring):
            groups = {str(rule.id).split(":")[0] for rule in rules}
            category = groups.pop() if len(groups) == 1 else SEVERAL
            cases.append(Case(key, category, system_prompt, rules=rules))
    if not cases:
        raise UsageError(
            f"{path} holds {len(lines_by_key)} prompts, and none with an instruction; give the"
            " published file."
        )
    how = "strictly" if scoring == "strict" else "loosely: the best of eight readings"
    notes = (
        "System prompts and probes of S-IFEval (IFEval's instructions as system prompts); the"
        " conversation starters are Holdfast's own.",
        f"Each instruction scores 0 or 1, {how}.",
    )
    name = "sys-ifeval" if scoring == "strict" else f"sys-ifeval-{scoring}"
    return Suite(name, tuple(cases), generic_starters(), notes)


class _Instruction(NamedTuple):
    id: str  # as IFEval names it
    measure: Measure


def _rules_of(instructions: list[_Instruction], probe: str, scoring: str) -> tuple[Rule, ...]:
    """The instructions of a prompt as rules, without duplicates."""
    times: Counter[str] = Counter()
    rules: list[Rule] = []
    for number, (id, measure) in enumerate(instructions):
        if (id, measure) in instructions[:number]:
            continue
        times[id] += 1
        again = f" ({times[id]})" if times[id] > 1 else ""
        if scoring == "loose":
            measure = build({"name": "loosely", "measure": measure.spec})
        rules.append(Rule(id + again, (probe,), measure))
    return tuple(rules)


def _read_row(line: str, where: str) -> dict[str, Any]:
    """One line as data; a `UsageError` names a malformed one."""
    try:
        row = _normalised(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where} is not JSON ({reason_of(error)}): {shortened(line.strip())}; give the"
            " published file."
        ) from error
    if not isinstance(row, dict):
        raise UsageError(
            f"{where} is {shortened(row)}, not a JSON object; give the published file."
        )
    return row


def _normalised(value: Any) -> Any:
    """JSON data with all strings in Unicode form NFC, as measures read replies."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_normalised(item) for item in value]
    if isinstance(value, dict):
        return {key: _normalised(item) for key, item in value.items()}
    return value


def _read_key(row: dict[str, Any], where: str) -> str:
    """The row's `key`, a number or a text."""
    key = row.get("key")
    if isinstance(key, bool) or not isinstance(key, int | str) or not str(key).strip():
        raise UsageError(
            f"{where}: the key is {shortened(key)}, neither a number nor a text; give the"
            " published file."
        )
    return str(key).strip()


def _read_messages(row: dict[str, Any], where: str) -> tuple[str, str]:
    """The texts of the system prompt and of the request."""
    messages = row.get("messages")
    items = messages if isinstance(messages, list) else []
    roles = [item.get("role") for item in items if isinstance(item, dict)]
    if roles != ["system", "user"] or len(items) != len(roles):
        raise UsageError(
            f"{where}: 'messages' is {shortened(messages)}, not a system prompt and a request;"
            " give the published file."
        )
    for item in items:
        text = item.get("content")
        if not isinstance(text, str) or not text.strip():
            raise UsageError(
                f"{where}: the field 'content' is {shortened(text)}, not a text; give the"
                " published file."
            )
    system, user = (item["content"].strip() for item in items)
    return system, user


def measure_name(id: str) -> str:
    """The measure of an instruction: "punctuation:no_comma" is `ifeval_punctuation_no_comma`."""
    return f"ifeval_{id.replace(':', '_').replace('-', '_')}"


def _read_instructions(row: dict[str, Any], where: str) -> list[_Instruction]:
    """The ids and measures of a row's instructions."""
    ids, arguments = row.get("instruction_id_list"), row.get("kwargs")
    if not isinstance(ids, list) or not isinstance(arguments, list) or len(ids) != len(arguments):
        raise UsageError(
            f"{where}: 'instruction_id_list' is {shortened(ids)} and 'kwargs'"
            f" {shortened(arguments)}, not two lists of one length; give the published file."
        )
    return [_read_instruction(id, given, where) for id, given in zip(ids, arguments, strict=True)]


def _read_instruction(id: Any, given: Any, where: str) -> _Instruction:
    """One instruction; a `UsageError` if its id or arguments are wrong."""
    known = [name for name in REGISTRY if name.startswith("ifeval_")]
    name = measure_name(id) if isinstance(id, str) else ""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        cure = f"did you mean {near[0]!r}?" if near else "give the published file."
        raise UsageError(f"{where}: no measure scores the instruction {shortened(id)}; {cure}")
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{where}: the arguments of {id!r} are {shortened(given)}, not a mapping; give the"
            " published file."
        )
    if "name" in given:  # names the measure in a spec, and is never an argument
        raise UsageError(f"{where}: {id!r} has no argument 'name'; give the published file.")
    arguments = {  # a whole number may be written as 5.0
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in given.items()
        if value is not None
    }
    try:
        return _Instruction(id, build({"name": name, **arguments}))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
