"""Renders pages from `templates/`: single files that load nothing and run only their own scripts.

`template_environment` has what the templates may use.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.records import Run
from holdfast.report.how_measured import About, about_runs
from holdfast.report.template_environment import template_environment

_REM_PER_POINT = 96 / 72 / 16  # CSS has 96 pixels to an inch of 72 points, browsers 16 to a rem
_LEGIBLE = 0.8  # the smallest scale of an SVG: its letters of 9 points are then 10 pixels high
_DEFAULT_WIDTH = 460.0  # points, for a picture that does not say its own
_PAGE_WIDTH = 50.0  # rem


@dataclass(frozen=True)
class Table:
    """Rows of text: the first is the header, and the others start with their names."""

    caption: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A figure: its title, and an SVG or PNG file, which the page embeds."""

    title: str
    path: Path

    @property
    def min_width(self) -> str:
        """The width, in rem, below which the letters are too small to read."""
        width = re.search(rb'<svg[^>]* width="([0-9.]+)pt"', self.path.read_bytes()[:4000])
        points = float(width[1]) if width else _DEFAULT_WIDTH
        return f"{min(points * _LEGIBLE * _REM_PER_POINT, _PAGE_WIDTH):.0f}"

    @property
    def address(self) -> str:
        """The picture as a data URL."""
        kind = "svg+xml" if self.path.suffix == ".svg" else "png"
        return f"data:image/{kind};base64,{base64.b64encode(self.path.read_bytes()).decode()}"


def render(
    template: str,
    command: str,
    headline: str,
    content: Mapping[str, Any],
    *,
    lines: Sequence[str] = (),
    facts: Sequence[str] = (),
    runs: Sequence[About] = (),
) -> str:
    """Renders a template that extends `skeleton.html.j2`.

    Args:
        content: the template's own variables.
        lines: sentences below the headline; empty ones are left out.
        facts: what was measured, in a few words each; empty ones are left out.
        runs: how each run was measured, for the last section.
    """
    page = template_environment().get_template(template)
    return page.render(
        command="report" if command in ("drift", "check") else command,
        kind=f"{command} report",
        headline=headline,
        lines=[line for line in lines if line],
        facts=[fact for fact in facts if fact],
        runs=runs,
        navigation=[],  # filled by the sections
        **content,
    )


def render_study(
    command: str,
    headline: str,
    content: Mapping[str, Any],
    runs: Mapping[str, Run],
    facts: Sequence[str],
    lines: Sequence[str] = (),
) -> str:
    """Renders `{command}.html.j2`, which ends with how its runs were measured.

    Args:
        content: the template's own variables.
        runs: by the name that the page gives them; the first one names the model.
        facts: what was measured, in a few words each; empty ones are left out.
        lines: sentences below the headline; empty ones are left out.
    """
    manifest = next(iter(runs.values())).manifest
    model = manifest.identity.model
    date = (manifest.created or "")[:10]
    return render(
        f"{command}.html.j2",
        command,
        headline,
        content,
        lines=lines,
        facts=(*facts, f"model {model}" if model else "", date),
        runs=about_runs(list(runs.values()), list(runs)),
    )


def pictures(folder: Path, titles: Mapping[str, str]) -> list[Picture]:
    """The figures that exist in a folder; `titles` are by the name of a figure's file."""
    paths = [(title, folder / f"{name}.svg") for name, title in titles.items()]
    return [Picture(title, path) for title, path in paths if path.is_file()]
