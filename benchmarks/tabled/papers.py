"""Tables of the papers' claims and their verdicts."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from tabled.reading import RESULTS, markdown, read

MODELS = {  # by the ending of a record's name
    "": "the default model",
    "_smollm2": "SmolLM2 135M",
    "_gemma": "Gemma 3 270M",
    "_qwen05": "Qwen2.5-Coder 0.5B",
    "_qwen15": "Qwen2.5-Coder 1.5B",
}
VERDICTS = ("supported", "contradicted", "undecided", "not judged")
_REPLACED_WORDS = {  # words of older records, and today's
    "validated knob": "validated parameter",
    "than even attention": "than uniform attention",
    "that of even attention": "that of uniform attention",
}
# "+0.12 [+0.04, +0.20] (n = 48)", "-0.5 (all alike) (n = 20)"
_NUMBER = re.compile(r"[+-][\d.]+ (?:\[[^]]+\]|\(all (?:alike|equal)\)) \(n = \d+\)")
# the parts of a claim's text that depend on model and scale, and what they are for every run
_HEAD = re.compile(r"^head [\d.]+,")
_FEWER_SAMPLES = re.compile(r"\d+ samples instead of \d+")


def records() -> list[str]:
    """The names of existing reproduction records: a paper's name with a model's suffix."""
    names = [f"{paper}{ending}" for paper in ("li2024", "zhang2024") for ending in MODELS]
    return [name for name in names if (RESULTS / name / "findings.json").exists()]


def reproduction_line(name: str) -> str:
    """How many of a paper's claims a run confirms, with a link to them."""
    paper, model = _paper_and_model(name)
    figures = findings(name)
    counts = Counter(claim["verdict"] for figure in figures for claim in figure["claims"])
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}"
        for verdict in VERDICTS
        if verdict != "not judged" or counts[verdict]
    )
    return (
        f"`holdfast reproduce {paper}` on {model}, at the scale `{_scale(name)}`: {verdicts}"
        f" ([every claim, figure and number](RESULTS/{name}/claims.md))."
    )


def claims_page(name: str) -> str:
    """A paper's claims on a model, with each figure and table."""
    paper, model = _paper_and_model(name)
    lines = [
        f"# The claims of {paper} on {model}",
        "",
        (
            "Written by `python benchmarks/tables.py` from the `findings.json` of `holdfast"
            f" reproduce {paper} --scale {_scale(name)}`."
        ),
    ]
    for figure in findings(name):
        lines += [
            "",
            f"## {figure['kind']} {figure['number']}: {figure['title']}",
            "",
            figure["how"],
            "",
        ]
        if figure["rows"]:
            lines += [*markdown(figure["rows"]), ""]
        lines += [f"![{figure['title']}{part}]({image})" for part, image in named_images(figure)]
        lines += ["", "| the paper's claim | this run |", "| --- | --- |"]
        lines += [
            f"| {claim['text']} | **{claim['verdict']}**: {claim['evidence']} |"
            for claim in figure["claims"]
        ]
    lines += [*head_profiles(name), *other_tasks(name)]
    return "\n".join(lines) + "\n"


def verdicts_page() -> str:
    """A page with every claim of both papers, and its verdict on every model."""
    return "\n".join(
        [
            "# Every claim of both papers, by model",
            "",
            "The number is the difference that the claim is about, with its 95% interval, where"
            " the claim rests on one difference alone. “Not run” means that this model's run had"
            " no such claim. Table 13 of zhang2024, which asks a model trained further than the"
            " profiled one, is from version 0.2 and is no longer made.",
            "",
            *markdown(verdicts_rows()),
            "",
        ]
    )


def contradicted_list() -> str:
    """The claims that a run contradicts, each with the models concerned."""
    head, *rows = verdicts_rows()
    lines = []
    for figure, text, *verdicts in rows:
        models = [
            f"{model}{verdict.removeprefix('**contradicted**')}"
            for model, verdict in zip(head[2:], verdicts, strict=True)
            if verdict.startswith("**contradicted**")
        ]
        if models:
            lines.append(f"- {figure}: “{text}” Contradicted on {'; '.join(models)}.")
    return "\n".join(lines)


def verdicts_rows() -> list[list[str]]:
    """A header, and a row for each claim."""
    present = [ending for ending in MODELS if any(name.endswith(ending) for name in records())]
    rows = [["", "claim", *(MODELS[ending] for ending in present)]]
    for paper in ("li2024", "zhang2024"):
        cells = {ending: _verdicts(f"{paper}{ending}") for ending in present}
        for key in dict.fromkeys(key for column in cells.values() for key in column):
            figure, text = key
            verdicts = [column.get(key, "not run") for column in cells.values()]
            rows.append([f"{paper}, {figure}", text, *verdicts])
    return rows


def head_profiles(name: str) -> list[str]:
    """A real model's head profiles, with the time they took."""
    rows = [["task", "heads", "samples", "seconds"]]
    for task, cost in read(f"{name}/findings").get("profiles", {}).items():
        numbers = [f"{cost[column]:,}" for column in ("heads", "samples", "seconds")]
        rows.append([task, *numbers])
    return ["", "## Head profiles", "", *markdown(rows)] if rows[1:] else []


def other_tasks(name: str) -> list[str]:
    """How heads profiled on one task do on tasks that they were not profiled on."""
    rows = [["task", "run", "samples", "scores"]]
    for task, results in read(f"{name}/findings").get("others", {}).items():
        for row, scores in results.items():
            metrics = [f"{key} {value:.0%}" for key, value in scores.items() if key != "samples"]
            rows.append([task, row, str(scores["samples"]), ", ".join(metrics)])
    return ["", "## Tasks that were not profiled", "", *markdown(rows)] if rows[1:] else []


def _paper_and_model(name: str) -> tuple[str, str]:
    """The paper and the model of a record: "li2024_qwen05" is of li2024 on Qwen2.5-Coder 0.5B."""
    paper, underscore, ending = name.partition("_")
    return paper, MODELS[f"{underscore}{ending}"]


def _scale(name: str) -> str:
    return str(read(f"{name}/findings")["scale"])


def _verdicts(name: str) -> dict[tuple[str, str], str]:
    """Verdicts by figure and claim, with the number if there is only one; {} without a record."""
    if name not in records():
        return {}
    verdicts = {}
    for figure in findings(name):
        for claim in figure["claims"]:
            text = _FEWER_SAMPLES.sub("fewer samples", _HEAD.sub("the head", claim["text"]))
            numbers = _NUMBER.findall(claim["evidence"])  # if several, it is unclear which counts
            shown = f" {numbers[0]}" if len(numbers) == 1 else ""
            verdicts[f"{figure['kind']} {figure['number']}", text] = (
                f"**{claim['verdict']}**{shown}"
            )
    return verdicts


def findings(paper: str) -> list[dict]:
    """The figures and tables of a paper's record, in today's words where it has older ones."""
    text = json.dumps(read(f"{paper}/findings")["figures"], ensure_ascii=False)
    for old, new in _REPLACED_WORDS.items():
        text = text.replace(old, new)
    return json.loads(re.sub(r"(?<=\d) %", "%", text))


def named_images(figure: dict) -> list[tuple[str, str]]:
    """Each image of a figure, with the part that distinguishes it from the others: its folder's
    name without the number.
    """
    if len(figure["images"]) == 1:
        return [("", figure["images"][0])]
    folders = [Path(image).parent.name for image in figure["images"]]  # "2-after-round-4"
    parts = [" " + folder.partition("-")[2].replace("-", " ") for folder in folders]
    return list(zip(parts, figure["images"], strict=True))


def methods_table() -> str:
    """The averages of Table 1 of Zhang et al. 2024 on the default model."""
    (table,) = (
        figure
        for figure in findings("zhang2024")
        if (figure["kind"], figure["number"]) == ("Table", "1")
    )
    rows = [[row[0], *row[-2:]] for row in table["rows"]]
    rows[0] = ["", "average of four tasks, percent", rows[0][2]]
    compared = table["how"].partition("Average of the tasks")[2]
    return "\n".join(
        [
            *markdown(rows),
            "",
            f"Average of the tasks{compared} [Every task](RESULTS/zhang2024/claims.md).",
        ]
    )
