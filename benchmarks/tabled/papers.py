"""Tables of what the papers claim, and of what came of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tabled.reading import markdown, read


def reproduction_line(paper: str) -> str:
    """Where a paper's figures on the default model are, and how many of its claims this run bears
    out.
    """
    figures = findings(paper)
    opened = [
        f"[{figure['kind']} {figure['number']}{part}](RESULTS/{paper}/{image})"
        for figure in figures
        for part, image in named(figure)
    ]
    counts = Counter(claim["verdict"] for figure in figures for claim in figure["claims"])
    told = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in ("supported", "contradicted", "undecided")
    )
    return (
        f"`holdfast reproduce {paper}` on the default model, at the scale `small`:"
        f" {', '.join(opened)}. Claims of the paper: {told}; [each with its"
        f" numbers](RESULTS/{paper}/claims.md)."
    )


def claims_page(paper: str) -> str:
    """A paper's claims on the default model, each figure and table with them."""
    lines = [
        f"# The claims of {paper} on the default model",
        "",
        (
            "Written by `python benchmarks/tables.py` from the `findings.json` of `holdfast"
            f" reproduce {paper} --scale small`."
        ),
    ]
    for figure in findings(paper):
        lines += [
            "",
            f"## {figure['kind']} {figure['number']}: {figure['title']}",
            "",
            figure["how"],
            "",
        ]
        if figure["rows"]:
            lines += [*markdown(figure["rows"]), ""]
        lines += [f"![{figure['title']}{part}]({image})" for part, image in named(figure)]
        lines += ["", "| the paper's claim | this run |", "| --- | --- |"]
        lines += [
            f"| {claim['text']} | **{claim['verdict']}**: {claim['evidence']} |"
            for claim in figure["claims"]
        ]
    return "\n".join(lines) + "\n"


def findings(paper: str) -> list[dict]:
    return read(f"{paper}/findings")["figures"]


def named(figure: dict) -> list[tuple[str, str]]:
    """Each image of a figure, with what tells it from the others: its folder's name without the
    number.
    """
    several = len(figure["images"]) > 1
    return [
        (
            " " + Path(image).parent.name.partition("-")[2].replace("-", " ") if several else "",
            image,
        )
        for image in figure["images"]
    ]


def methods_table() -> str:
    """Table 1 of Zhang et al. 2024 on the default model, and how its methods compare."""
    (table,) = (
        figure
        for figure in findings("zhang2024")
        if (figure["kind"], figure["number"]) == ("Table", "1")
    )
    return "\n".join([*markdown(table["rows"]), "", table["how"]])
