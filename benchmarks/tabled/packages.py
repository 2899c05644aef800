"""The drawing of the packages and what they import, from the source: docs/figures/house.svg.

Packages are drawn in rows, each above those that it imports:

    cli
    report  serve
    analysis
"""

import ast
import graphlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tabled.reading import ROOT

PACKAGE = ROOT / "src" / "holdfast"
# in pixels
BOX_WIDTH = 118
BOX_HEIGHT = 34
GAP_BESIDE = 14  # between boxes of a row
GAP_BELOW = 34  # between rows
MARGIN = 12
TIP = 2  # between the tip of an arrow and its box
BASELINE = 5  # of a box's text, below the middle of the box

STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#1b1b1b}"
    "rect{fill:#eef2fb;stroke:#5b74b5}path{fill:none;stroke:#8795b5;marker-end:url(#tip)}"
)
ARROW_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6"'
    ' orient="auto"><path d="M0 0L8 4L0 8" style="marker-end:none"/></marker>'
)


class Corner(NamedTuple):
    """The upper left corner of a box."""

    x: float
    y: int


def package_drawing() -> str:
    """An SVG of the packages; an arrow that follows from others is left out."""
    imports = package_imports()
    rows = rows_of(imports)
    width = max(map(row_width, rows)) + 2 * MARGIN
    height = len(rows) * (BOX_HEIGHT + GAP_BELOW) - GAP_BELOW + 2 * MARGIN
    corners: dict[str, Corner] = {}
    for number, row in enumerate(rows):
        start = (width - row_width(row)) / 2
        for column, name in enumerate(row):
            x = start + column * (BOX_WIDTH + GAP_BESIDE)
            corners[name] = Corner(round(x, 1), MARGIN + number * (BOX_HEIGHT + GAP_BELOW))
    arrows = [
        arrow(corners[name], corners[other])
        for name, others in sorted(without_implied(imports).items())
        for other in sorted(others)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            ' aria-label="Packages of Holdfast; arrows point to what a package imports">',
            f"<style>{STYLE}</style>",
            f"<defs>{ARROW_TIP}</defs>",
            *arrows,
            *(box(name, corner) for name, corner in corners.items()),
            "</svg>\n",
        ]
    )


def row_width(row: list[str]) -> int:
    """The width of a row of boxes."""
    return len(row) * (BOX_WIDTH + GAP_BESIDE) - GAP_BESIDE


def box(name: str, corner: Corner) -> str:
    """A package as a box with its name."""
    text_x = round(corner.x + BOX_WIDTH / 2, 1)
    text_y = corner.y + BOX_HEIGHT / 2 + BASELINE
    return (
        f'<rect x="{corner.x}" y="{corner.y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{text_x}" y="{text_y}">{name}</text>'
    )


def arrow(importing: Corner, imported: Corner) -> str:
    """A curve from the bottom of one box to the top of another."""
    x1 = round(importing.x + BOX_WIDTH / 2, 1)
    y1 = importing.y + BOX_HEIGHT
    x2 = round(imported.x + BOX_WIDTH / 2, 1)
    y2 = imported.y - TIP
    bend = round((y2 - y1) / 2, 1)
    return f'<path d="M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"/>'


def package_imports() -> dict[str, set[str]]:
    """The packages that each package imports; the modules beside them, which all may import, are
    left out.
    """
    names = {path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    imports: dict[str, set[str]] = {name: set() for name in names}
    for path in PACKAGE.rglob("*.py"):
        name = Path(path.relative_to(PACKAGE).parts[0]).stem
        if name in names:
            imports[name] |= names & imported_by(path) - {name}
    return imports


def imported_by(path: Path) -> set[str]:
    """The packages and modules of ours that a file imports, inside functions and for types too."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            dotted = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        else:
            continue
        parts = [name.split(".") for name in dotted]
        imported |= {part[1] for part in parts if part[0] == "holdfast" and len(part) > 1}
    return imported


def rows_of(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The packages in rows, each in the lowest row that is above all it imports."""
    height: dict[str, int] = {}
    for name in graphlib.TopologicalSorter(imports).static_order():
        height[name] = 1 + max((height[other] for other in imports[name]), default=0)
    top = max(height.values())
    return [sorted(name for name in height if height[name] == n) for n in range(top, 0, -1)]


def without_implied(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The imports that do not follow from others through a package in between."""
    reached: dict[str, set[str]] = {}
    for name in graphlib.TopologicalSorter(imports).static_order():
        reached[name] = imports[name].union(*(reached[other] for other in imports[name]))
    return {
        name: {
            other
            for other in others
            if not any(other in reached[between] for between in others - {other})
        }
        for name, others in imports.items()
    }
