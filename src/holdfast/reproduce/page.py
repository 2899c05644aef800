"""Findings as one self-contained page, which loads nothing and runs nothing, and as JSON."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from holdfast.files import write_whole
from holdfast.report.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED
from holdfast.reproduce.findings import Claim, Figure

_WORDS = {SUPPORTED: "supported by this run", CONTRADICTED: "contradicted by this run", UNDECIDED: "this run cannot tell"}


def write_page(figures: Sequence[Figure], title: str, facts: Sequence[str], out: Path) -> Path:
    """Writes the page: each figure, under it the paper's claims in our words, and whether this run supports them."""
    counts = Counter(claim.verdict for figure in figures for claim in figure.claims)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _WORDS if counts[verdict])
    template = Template(files("holdfast.reproduce").joinpath("page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=escape(title),
        summary=escape(f"Claims: {summary}."),
        facts=escape(" · ".join(facts)),
        navigation="".join(f'<li><a href="#{_anchor(figure)}">{figure.name}</a></li>' for figure in figures),
        sections="\n".join(_section(figure) for figure in figures),
        style=files("holdfast.report").joinpath("page.css").read_text(encoding="utf-8"),
    )
    return write_whole(out, page)


def write_findings(figures: Sequence[Figure], folder: Path) -> Path:
    """Writes the same as JSON, with the paths of the images in `folder`."""
    rows = [{**asdict(figure), "images": [path.relative_to(folder).as_posix() for path in figure.images]} for figure in figures]
    return write_whole(folder / "findings.json", json.dumps(rows, indent=1) + "\n")


def _section(figure: Figure) -> str:
    name = _anchor(figure)
    images = "".join(
        f'<img alt="{escape(figure.title)}" src="data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}">' for path in figure.images
    )
    claims = "".join(map(_claim, figure.claims))
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{figure.name}: {escape(figure.title)}</h2>'
        f"<p>{escape(figure.how)}</p>{_table(figure.rows)}{images}<dl>{claims}</dl></section>"
    )


def _anchor(figure: Figure) -> str:
    return f"{figure.kind.lower()}-{figure.number}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """The rows as a table that scrolls by itself; the first cell of each names it."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join(f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>' for row in rows[1:])
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _claim(claim: Claim) -> str:
    return (
        f'<dt>The paper: {escape(claim.text)}</dt><dd><strong class="{claim.verdict}">{_WORDS[claim.verdict]}</strong> '
        f"{escape(claim.evidence)}</dd>"
    )
