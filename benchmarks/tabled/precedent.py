"""The worth of prompt and precedent, from the records of precedent.py, one per model."""

from __future__ import annotations

from tabled.reading import difference, markdown

_COLUMNS = (  # history, whether the prompt is in view
    ("kept", True, "after kept replies, with the prompt"),
    ("kept", False, "after kept replies, without it"),
    ("broken", True, "after broken replies, with the prompt"),
    ("broken", False, "after broken replies, without it"),
)

_SEEN = (0, 1, 6)  # how many earlier replies; the records have more


def precedent_table(records: list[dict]) -> str:
    """The score of the next reply after some earlier replies, which kept or broke the rules, with
    the prompt and without it; one table for all models.
    """
    rows = [["model", "earlier replies in view", *(head for *_, head in _COLUMNS)]]
    for record in records:
        cells = {
            (cell["history"], cell["seen"], cell["prompted"]): cell["score"]
            for cell in record["results"][0]["cells"]
        }
        for seen in _SEEN:
            scores = (cells[history, seen, prompted] for history, prompted, _ in _COLUMNS)
            rows.append([f"`{record['model']}`", str(seen), *map(_score, scores)])
    return "\n".join(markdown(rows))


def precedent_line(records: list[dict]) -> str:
    """How many pairs of histories each model has, and what prompt and precedent are worth after
    the most replies.
    """
    return "\n".join(map(_line, records))


def precedent_fixes_table(records: list[dict]) -> str:
    """The score of the next reply under each fix, after replies that broke the rules, and after as
    many as possible that kept them.
    """
    rows: list[list[str]] = []
    for record in records:
        for result in record["results"]:
            if result["rules"] != "all":
                continue
            cells = {
                (cell["history"], cell["seen"]): cell["score"]
                for cell in result["cells"]
                if cell["prompted"]
            }
            depths = [depth["seen"] for depth in result["depths"]]
            rows = rows or [
                ["model", "fix", "clear rules", *map(_after, depths), f"{depths[-1]} kept replies"]
            ]
            scores = [_score(cells["broken" if seen else "kept", seen]) for seen in depths]
            scores.append(_score(cells["kept", depths[-1]]))
            rows.append(
                [f"`{record['model']}`", f"`{result['method']}`", str(result["used"]), *scores]
            )
    return "\n".join(markdown(rows))


def _after(seen: int) -> str:
    return f"{seen} broken {'reply' if seen == 1 else 'replies'}" if seen else "no reply"


def _line(record: dict) -> str:
    result = record["results"][0]
    deepest = result["depths"][-1]
    return (
        f"- `{record['model']}`: {record['conversations']} pairs of histories; {result['used']} of"
        f" their {result['of']} rules are clear. After {deepest['seen']} replies that broke them,"
        f" the prompt is worth {difference(deepest['prompt_after_broken'])}; with the prompt in"
        f" view, {deepest['seen']} kept replies are worth {difference(deepest['precedent'])} more"
        " than broken ones."
    )


def _score(estimate: dict) -> str:
    return f"{estimate['mean']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"
