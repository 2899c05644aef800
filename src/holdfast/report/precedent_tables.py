"""The tables and the figure of `holdfast precedent`."""

from collections.abc import Sequence
from pathlib import Path

from holdfast.analysis.precedent_results import CLEAR, Cell, Precedent
from holdfast.analysis.verdicts import verdict_on
from holdfast.report import figures
from holdfast.report.wording import aligned, plain, signed

_HEADS = ("", "kept history", "kept, no prompt", "broken history", "broken, no prompt")
_LINES = (
    ("kept", True, "kept replies, system prompt in view"),
    ("kept", False, "kept replies, without it"),
    ("broken", True, "broken replies, system prompt in view"),
    ("broken", False, "broken replies, without it"),
)


def precedent_lines(results: Sequence[Precedent]) -> list[str]:
    """A table of scores per method and group of rules, and what prompt and precedent are worth."""
    lines: list[str] = []
    for result in results:
        lines += [
            f"{result.method}, {result.rules} rules: {result.used} of {result.of} have a history"
            f" that keeps them (mean score of {CLEAR:g} or more) and one that breaks them",
            *aligned(_rows(result), "  "),
        ]
        deepest = result.depths[-1]
        if deepest.prompt_after_broken is not None and deepest.prompt_after_kept is not None:
            lines += [
                f"  The system prompt is worth {signed(deepest.prompt_after_broken)} after"
                f" {deepest.seen} broken replies, and {signed(deepest.prompt_after_kept)} after"
                f" {deepest.seen} kept ones."
            ]
        verdict = verdict_on(deepest.precedent).word("higher", "lower")
        lines += [
            f"  With it in view, a kept history is worth {signed(deepest.precedent)} against a"
            f" broken one: {verdict}.",
            "",
        ]
    return lines[:-1]


def _rows(result: Precedent) -> list[tuple[str, ...]]:
    shown = [(h, p) for h, p, _ in _LINES if any(_is(cell, h, p) for cell in result.cells)]
    heads = [name for name, (h, p, _) in zip(_HEADS[1:], _LINES, strict=True) if (h, p) in shown]
    rows = [("replies seen", *heads)]
    for depth in result.depths:
        scores = [
            plain(cell.score)
            for history, prompted in shown
            for cell in result.cells
            if _is(cell, history, prompted) and cell.seen == depth.seen
        ]
        rows.append((str(depth.seen), *scores))
    return rows


def _is(cell: Cell, history: str, prompted: bool) -> bool:
    return cell.history == history and cell.prompted == prompted


def write_precedent_figures(results: Sequence[Precedent], folder: Path) -> list[Path]:
    """Writes `precedent`, the score of the next reply by replies seen, as SVG and PNG."""
    shown = [result for result in results if result.rules == "all"]
    with figures.styled():
        figure, axes = figures.panels(len(shown), min(len(shown), 3), 4.6, 3.2)
        for axis, result in zip(axes, shown, strict=True):
            for colour, (history, prompted, label) in zip(figures.COLOURS, _LINES, strict=False):
                cells = [
                    cell
                    for cell in result.cells
                    if _is(cell, history, prompted) and cell.score.mean is not None
                ]
                seen = [cell.seen for cell in cells]
                means = [float(cell.score.mean or 0) for cell in cells]
                low, high = ([getattr(c.score, end) for c in cells] for end in ("low", "high"))
                style = "-" if prompted else "--"
                axis.plot(seen, means, style, marker="o", markersize=3, color=colour, label=label)
                if None not in low:
                    axis.fill_between(seen, low, high, color=colour, alpha=0.12)
            axis.set(title=f"next reply, {result.method}", xlabel="earlier replies in view")
            axis.set(ylabel="score", ylim=(-0.02, 1.02), xticks=[d.seen for d in result.depths])
        figures.legend_below(figure, *axes[0].get_legend_handles_labels())
        return figures.save({"precedent": figure}, folder)
