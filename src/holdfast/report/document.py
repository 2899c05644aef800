"""A page of sections with text, tables and pictures: what every command but `drift` writes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.files import write_whole
from holdfast.records import RunData
from holdfast.report.about import About, about_runs
from holdfast.report.downloads import Download
from holdfast.report.page import render

FOLDED = 12  # rows; a longer table is folded


@dataclass(frozen=True)
class Table:
    """Rows of text, the first the head and the first cell of each other its name."""

    caption: str
    rows: tuple[tuple[str, ...], ...]

    @property
    def is_long(self) -> bool:
        """Whether it is folded."""
        return len(self.rows) > FOLDED + 1


@dataclass(frozen=True)
class Picture:
    """A figure: what it shows, and a PNG file, which the page takes in."""

    title: str
    path: Path

    @property
    def address(self) -> str:
        """The picture as a data address."""
        return "data:image/png;base64," + base64.b64encode(self.path.read_bytes()).decode()


@dataclass(frozen=True)
class Part:
    """A section of a document, in this order: text, words and their meanings, pictures, tables."""

    anchor: str
    title: str
    text: tuple[str, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Document:
    """A page of one command.

    Args:
        command: which, such as "calibrate".
        headline: the first line.
        lines: what stands under it.
        facts: what was measured, in a few words each.
        parts: the sections.
        downloads: its data.
        runs: the run folders it was made from, each with a name; they are told of at the end.
    """

    command: str
    headline: str
    lines: tuple[str, ...]
    facts: tuple[str, ...]
    parts: tuple[Part, ...]
    downloads: tuple[Download, ...] = ()
    runs: tuple[tuple[str, RunData], ...] = ()

    @property
    def about(self) -> list[About]:
        """How each run was measured."""
        return about_runs([run for _, run in self.runs], [name for name, _ in self.runs])


def write_document(
    document: Document, out: Path, place: str = "another place with --report"
) -> Path:
    """Writes the page, whole or not at all.

    Raises:
        RecordsError: it cannot be written; the message tells to choose `place`.
    """
    return write_whole(out, render_document(document), place)


def render_document(document: Document) -> str:
    """The HTML of the page."""
    navigation = [(part.anchor, part.title) for part in document.parts]
    if document.downloads:
        navigation.append(("data", "Data"))
    if document.runs:
        navigation.append(("about", "How it was measured"))
    return render(
        "document.html.j2",
        document.command,
        document.headline,
        document.lines,
        document.facts,
        navigation,
        document=document,
    )


def head_facts(run: RunData, *facts: str) -> tuple[str, ...]:
    """What was measured: these facts, the model, and the day it began."""
    model = run.manifest.get("identity", {}).get("model")
    return (*facts, f"model {model}" if model else "", str(run.manifest.get("created") or "")[:10])


def pictures(folder: Path, titles: Sequence[tuple[str, str]]) -> tuple[Picture, ...]:
    """The PNG files of a folder by name, those that are there."""
    paths = [(title, folder / f"{name}.png") for name, title in titles]
    return tuple(Picture(title, path) for title, path in paths if path.is_file())
