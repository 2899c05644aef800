"""Files of rules that an agent put into every context without recording it in its transcripts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.errors import UsageError, option
from holdfast.files import read_text
from holdfast.logs.unrecorded_prompts import WITHOUT_PROMPTS
from holdfast.transcripts.transcript import Event, EventKind, Transcript

# how the names of files end that agents read, and from which `suite init` drafts a suite
_RULES_FILES = (".md", ".mdc", ".txt", "rules")
_CASES = re.compile(r"^\s*[\"']?cases[\"']?\s*:", re.MULTILINE)  # which every suite has


@dataclass(frozen=True)
class LoadedFile:
    """A file of rules, such as CLAUDE.md."""

    name: str
    text: str


def refuse_rules_file(suite: str) -> None:
    """Refuses a file such as AGENTS.md in the place of a suite.

    Raises:
        UsageError: the name of the file is that of a file for agents, and it has no cases; or the
            file cannot be read.
    """
    path = Path(suite)
    is_named_so = path.name.lower().endswith(_RULES_FILES) and path.is_file()
    if is_named_so and not _CASES.search(read_text(path)):
        raise UsageError(
            f"{suite} is a file for the agent, not a suite; `holdfast suite init {suite} --out"
            " rules.yaml` drafts a suite from it.",
            option="suite",
            value=suite,
        )


def read_loaded(paths: Sequence[Path]) -> tuple[LoadedFile, ...]:
    """Reads files of rules.

    Raises:
        UsageError: a file cannot be read, or says nothing.
    """
    files = []
    for path in paths:
        text = read_text(path)
        if not text.strip():
            raise UsageError(
                f"{option('loaded', str(path))} is empty; name the file of rules that the agent"
                " loads.",
                option="loaded",
                value=path,
            )
        files.append(LoadedFile(str(path), text))
    return tuple(files)


def with_loaded(transcript: Transcript, files: Sequence[LoadedFile]) -> Transcript:
    """The transcript with these files at its beginning, as system prompts. They stay after a
    compaction, as agents load such files again. A transcript whose format records what comes before
    a dialog is returned as it is.
    """
    if not files or transcript.format not in WITHOUT_PROMPTS or transcript.last is None:
        return transcript
    count = len(files)
    events = [Event(EventKind.MESSAGE, file.text, "system", source=file.name) for file in files]
    chain = [number - 1 if number else None for number in range(count)]
    parents = [count - 1 if parent is None else parent + count for parent in transcript.parents]
    return replace(
        transcript,
        events=(*events, *transcript.events),
        parents=(*chain, *parents),
        last=transcript.last + count,
    )
