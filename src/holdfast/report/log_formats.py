"""The formats of logs as a list for the terminal and as a table for docs/logs.md."""

import re

from holdfast.transcripts.format_guide import GUIDES, Guide

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


def formats_list() -> str:
    """Each format: its name, what it reads, where its files are on each system, how to export."""
    return "\n\n".join("\n".join(_entry(name, guide)) for name, guide in GUIDES.items())


def _entry(name: str, guide: Guide) -> list[str]:
    lines = [name, f"  {_plain(guide.reads)}"]
    for location in guide.places:
        path_on = {"Linux": location.linux, "macOS": location.macos, "Windows": location.windows}
        for path in dict.fromkeys(path_on.values()):
            systems = [system for system, other in path_on.items() if other == path]
            lines.append(f"  {', '.join(systems)}: {path}")
    if guide.export:
        lines.append(f"  export: {_plain(guide.export)}")
    return lines


def _plain(text: str) -> str:
    """Markdown without its links and code marks, for a terminal."""
    return _LINK.sub(r"\1", text).replace("`", "")


def formats_table() -> str:
    """The formats as a table in Markdown."""
    rows = [
        "| `--format` | what it reads | where its files are on Linux, or how to export them |",
        "| --- | --- | --- |",
    ]
    for name, guide in GUIDES.items():
        places = [
            location.linux if location.folder else f"`{location.linux}`"
            for location in guide.places
        ]
        if guide.export:
            places.append(f"or {guide.export}" if places else guide.export)
        rows.append(f"| `{name}` | {guide.reads} | {', '.join(places)} |")
    return "\n".join(rows)
