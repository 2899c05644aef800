"""The drawing of the packages and what they import, from the source: docs/figures/house.svg."""

import ast
import graphlib
from collections.abc import Mapping
from pathlib import Path

from tabled.reading import ROOT

PACKAGE = ROOT / "src" / "holdfast"
SIZE = (118, 34)  # of a box, in pixels
GAP = (14, 34)  # between boxes
MARGIN = 12


def house_drawing() -> str:
    """An SVG of the packages, each above those that it imports; an arrow that follows from others
    is left out.
    """
    imports = package_imports()
    rows = rows_of(imports)
    width = max(len(row) for row in rows) * (SIZE[0] + GAP[0]) - GAP[0] + 2 * MARGIN
    height = len(rows) * (SIZE[1] + GAP[1]) - GAP[1] + 2 * MARGIN
    places = {}
    for number, row in enumerate(rows):
        start = (width - len(row) * (SIZE[0] + GAP[0]) + GAP[0]) / 2
        for position, name in enumerate(row):
            x = start + position * (SIZE[0] + GAP[0])
            places[name] = (round(x, 1), MARGIN + number * (SIZE[1] + GAP[1]))
    arrows = [
        arrow(places[name], places[other])
        for name, others in sorted(without_implied(imports).items())
        for other in sorted(others)
    ]
    boxes = [box(name, *position) for name, position in places.items()]
    style = (
        "text{font:13px sans-serif;text-anchor:middle;fill:#1b1b1b}"
        "rect{fill:#eef2fb;stroke:#5b74b5}path{fill:none;stroke:#8795b5;marker-end:url(#tip)}"
    )
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6"'
        ' orient="auto"><path d="M0 0L8 4L0 8" style="marker-end:none"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            ' aria-label="Packages of Holdfast; arrows point to what a package imports">',
            f"<style>{style}</style>",
            f"<defs>{tip}</defs>",
            *arrows,
            *boxes,
            "</svg>\n",
        ]
    )


def package_imports() -> dict[str, set[str]]:
    """The packages that each package imports; the modules beside them, which all may import, are
    left out.
    """
    names = {path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    imports: dict[str, set[str]] = {name: set() for name in names}
    for path in PACKAGE.rglob("*.py"):
        name = Path(path.relative_to(PACKAGE).parts[0]).stem
        if name in names:
            imports[name] |= {other for other in imported(path) if other in names} - {name}
    return imports


def imported(path: Path) -> set[str]:
    """The packages of ours that a file imports, inside functions and for types too."""
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
    """The packages in rows, each at the lowest row that is above all it imports."""
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


def box(name: str, x: float, y: float) -> str:
    middle = (round(x + SIZE[0] / 2, 1), y + SIZE[1] / 2 + 5)
    return (
        f'<rect x="{x}" y="{y}" width="{SIZE[0]}" height="{SIZE[1]}" rx="6"/>'
        f'<text x="{middle[0]}" y="{middle[1]}">{name}</text>'
    )


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """From the bottom of one box to the top of another."""
    x1 = round(start[0] + SIZE[0] / 2, 1)
    y1 = start[1] + SIZE[1]
    x2 = round(end[0] + SIZE[0] / 2, 1)
    y2 = end[1] - 2
    bend = round((y2 - y1) / 2, 1)
    return f'<path d="M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"/>'
