"""The classes of transformers that can be steered, from the record of census.py."""

from __future__ import annotations

from tabled.reading import markdown, read, versions

# the outcomes of the record, in words
IN_A_BLOCK = {
    "exact": "steered exactly",
    "refused": "refused by name",
    "not built": "not built small, so not examined",
}
IN_THE_ENGINE = {
    "exact": "steered exactly",
    "unsteered": "unsteered only",
    "refused": "refused by name",
    "not run": "not run",
}


def census_line() -> str:
    """How many classes of transformers can be steered."""
    record = read("census")
    counts = record["counts"]
    return (
        f"Of the {counts['exact'] + counts['refused']} causal classes in transformers that can be"
        f" built small, {counts['exact']} can be steered in a block, each checked against the"
        f" paper's formula on its own attention matrix, and {record['engine_counts']['exact']} in"
        " the engine behind `generate`, drift runs and the server; the others are refused by name"
        " ([the list](RESULTS/census.md))."
    )


def census_page() -> str:
    """A page with all classes, and which of them can be steered."""
    record = read("census")
    rows = record["rows"]
    counts = record["counts"]
    engine_counts = record["engine_counts"]
    one_by_one = sum(row["engine"] != "not run" for row in rows if row.get("engine_alone"))
    table = [["type", "class", "in a block", "in the engine", "because"], *map(_cells, rows)]
    return "\n".join(
        [
            "# Which classes of transformers are steered",
            "",
            "Written by `python benchmarks/tables.py` from the record of `python"
            f" benchmarks/census.py`, transformers {versions(record)['transformers']}, torch"
            f" {versions(record)['torch']}: {len(rows)} causal model types, of which"
            f" {counts['not built']} could not be built small.",
            "",
            f"In blocks of `holdfast.steering`, {counts['exact']} are steered exactly and"
            f" {counts['refused']} refused by name. {record['reaching']} reach transformers'"
            f" attention interface; {record['exact']} of these are exact. Exact means: logits"
            " of a steered pass and of a steered decoding step equal those of the paper's"
            " formula on the attention matrix that the class's own eager function returns.",
            "",
            "In the engine, which runs `generate`, drift runs and the server,"
            f" {engine_counts['exact']} are steered exactly, and {engine_counts['unsteered']}"
            " generate exactly but refuse to be steered. Exact means: three prompts of different"
            " length get the replies that transformers makes of each alone, inside a block if"
            f" steered. For {one_by_one} types, the engine cannot separate by sequence what it has"
            " computed (keys and values, or recurrent states), so it runs one sequence at a time"
            " and encodes the history again at every turn.",
            "",
            *markdown(table),
            "",
        ]
    )


def _cells(row: dict) -> list[str]:
    """A class as a row of the table."""
    in_engine = IN_THE_ENGINE[row["engine"]] if "engine" in row else "not examined"
    if row.get("engine_alone") and row["engine"] in ("exact", "unsteered"):
        in_engine += ", one sequence at a time"
    reasons = dict.fromkeys(filter(None, (row["because"], row.get("engine_because"))))
    because = "; ".join(reasons).replace("|", "/")
    return [row["type"], row.get("class", ""), IN_A_BLOCK[row["outcome"]], in_engine, because]
