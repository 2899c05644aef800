"""The worth of prompt and precedent, from the records of precedent.py, one per model."""

from __future__ import annotations

from typing import NamedTuple

from tabled.reading import difference, markdown, score


class Column(NamedTuple):
    """A column of the table of scores.

    Attributes:
        history: the earlier replies, "kept" or "broken".
        prompted: whether the prompt is in view.
    """

    history: str
    prompted: bool
    title: str


_COLUMNS = (
    Column("kept", True, "after kept replies, with the prompt"),
    Column("kept", False, "after kept replies, without it"),
    Column("broken", True, "after broken replies, with the prompt"),
    Column("broken", False, "after broken replies, without it"),
)
_SHOWN_DEPTHS = (0, 1, 6)  # numbers of earlier replies; the records have more


def precedent_table(records: list[dict]) -> str:
    """The score of the next reply after some earlier replies, which kept or broke the rules, with
    the prompt and without it; one table for all models.
    """
    rows = [["model", "earlier replies in view", *(column.title for column in _COLUMNS)]]
    for record in records:
        scores = {
            (cell["history"], cell["seen"], cell["prompted"]): score(cell["score"])
            for cell in record["results"][0]["cells"]
        }
        for depth in _SHOWN_DEPTHS:
            cells = [scores[column.history, depth, column.prompted] for column in _COLUMNS]
            rows.append([f"`{record['model']}`", str(depth), *cells])
    return "\n".join(markdown(rows))


def precedent_line(records: list[dict]) -> str:
    """For each model, how many pairs of histories it has, and what prompt and precedent are worth
    after the most replies.
    """
    return "\n".join(map(_worth, records))


def _worth(record: dict) -> str:
    result = record["results"][0]
    deepest = result["depths"][-1]
    return (
        f"- `{record['model']}`: {record['conversations']} pairs of histories; {result['used']} of"
        f" their {result['of']} rules are clear. After {deepest['seen']} replies that broke them,"
        f" the prompt is worth {difference(deepest['prompt_after_broken'])}; with the prompt in"
        f" view, {deepest['seen']} kept replies are worth {difference(deepest['precedent'])} more"
        " than broken ones."
    )


def precedent_fixes_table(records: list[dict]) -> str:
    """The score of the next reply under each fix, after replies that broke the rules, and after as
    many as possible that kept them.
    """
    results = [
        (record["model"], result)
        for record in records
        for result in record["results"]
        if result["rules"] == "all"
    ]
    depths = [depth["seen"] for depth in results[0][1]["depths"]]
    header = ["model", "fix", "clear rules", *map(_broken_replies, depths)]
    rows = [[*header, f"{depths[-1]} kept replies"]]
    for model, result in results:
        scores = {
            (cell["history"], cell["seen"]): score(cell["score"])
            for cell in result["cells"]
            if cell["prompted"]
        }
        # without any earlier reply, the history counts as kept
        cells = [scores["broken" if depth else "kept", depth] for depth in depths]
        cells.append(scores["kept", depths[-1]])
        rows.append([f"`{model}`", f"`{result['method']}`", str(result["used"]), *cells])
    return "\n".join(markdown(rows))


def _broken_replies(depth: int) -> str:
    """The title of a column: "no reply", "1 broken reply", "6 broken replies"."""
    return f"{depth} broken {'reply' if depth == 1 else 'replies'}" if depth else "no reply"
