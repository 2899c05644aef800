"""The formats of logs as a list for the terminal and as a table for docs/logs.md."""

import re

from holdfast.transcripts.format_guide import GUIDES, Guide

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


def formats_list() -> str:
    """Each format: its name, what it reads, where it lies on each system, how to export it."""
    return "\n\n".join("\n".join(_entry(name, guide)) for name, guide in GUIDES.items())


def _entry(name: str, guide: Guide) -> list[str]:
    lines = [name, f"  {_plain(guide.reads)}"]
    for place in guide.places:
        on = {"Linux": place.linux, "macOS": place.macos, "Windows": place.windows}
        for path in dict.fromkeys(on.values()):
            systems = ", ".join(system for system, other in on.items() if other == path)
            lines.append(f"  {systems}: {path}")
    if guide.export:
        lines.append(f"  export: {_plain(guide.export).removeprefix('or ')}")
    return lines


def _plain(text: str) -> str:
    """Markdown as a terminal shows it."""
    return _LINK.sub(r"\1", text).replace("`", "")


def formats_table() -> str:
    """The formats as a table in Markdown."""
    rows = [
        "| `--format` | what it reads | where it lies on Linux, or how to export it |",
        "| --- | --- | --- |",
    ]
    for name, guide in GUIDES.items():
        places = [place.linux if place.folder else f"`{place.linux}`" for place in guide.places]
        where = ", ".join([*places, *filter(None, [guide.export])])
        rows.append(f"| `{name}` | {guide.reads} | {where} |")
    return "\n".join(rows)
