"""S-IFEval: IFEval's prompts with their instructions moved into the system prompt.

A file of JSON lines, gzipped or not. Each row has `key`, `instruction_id_list`, `kwargs` (the
arguments of each instruction) and `messages`: the system prompt, which gives the instructions, and
the user's request, which does not. The request is the probe. Source: SystemCheck (MIT), derived
from IFEval (Zhou et al. 2023, Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path

from holdfast.common.validation import shortened
from holdfast.drift.cases import Suite
from holdfast.drift.verifiable.instructions import FileRow, read_instructions, read_jsonl, text_in
from holdfast.drift.verifiable.prompts import InstructedPrompt, suite_of
from holdfast.errors import UsageError


def load_sys_ifeval(where: str, scoring: str = "strict") -> Suite:
    """Loads S-IFEval from the JSON lines at a path, scored `strict`, or `loose` as Zhou et al. 2023
    define it.
    """
    path = Path(where)
    prompts = [read_prompt(row) for row in read_jsonl(path)]
    about = (
        "System prompts and probes of S-IFEval (IFEval's instructions as system prompts); the"
        " conversation starters are Holdfast's own."
    )
    return suite_of("sys-ifeval", prompts, scoring, path, about)


def read_prompt(row: FileRow) -> InstructedPrompt:
    """One row: a system prompt, its request and its instructions."""
    system, user = read_messages(row)
    given = (row.fields.get("instruction_id_list"), row.fields.get("kwargs"))
    return InstructedPrompt(
        id=row.key(),
        where=row.where,
        system_prompt=system,
        probe=user,
        instructions=tuple(read_instructions(*given, row.where, "ifeval")),
    )


def read_messages(row: FileRow) -> tuple[str, str]:
    """The texts of the system prompt and of the request."""
    messages = row.fields.get("messages")
    items = messages if isinstance(messages, list) else []
    roles = [item.get("role") for item in items if isinstance(item, dict)]
    if roles != ["system", "user"] or len(items) != len(roles):
        raise UsageError(
            f"{row.where}: 'messages' is {shortened(messages)}, not a system prompt and a request;"
            " give the published file."
        )
    system, user = (text_in(message, "content", row.where) for message in items)
    return system, user
