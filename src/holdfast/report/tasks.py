"""The tables and pages of `holdfast tasks` and `holdfast profile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.profile import (
    Gains,
    Profile,
    count_distinct,
    dropped_by_halving,
    read_gains,
    read_profile,
    write_ranking,
)
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import NAME, json_text, spread, summarise
from holdfast.analysis.tasks import (
    LEAST_FLUENCY,
    ZERO_SHOT,
    Average,
    Result,
    averages,
    compared,
    read_results,
)
from holdfast.analysis.verdicts import MIN_SAMPLES, tell
from holdfast.records import RunData, read_run
from holdfast.report.about import failure_lines
from holdfast.report.page import Download, Table, json_file, pictures, render_study, table_files
from holdfast.report.study_figures import write_heat_map
from holdfast.report.wording import aligned, plain, signed, with_interval


def table(run: RunData) -> str:
    """Every metric with its 95 % interval, the paired differences from zero-shot, fluency and
    consistency, and what is excluded.

    Raises:
        RecordsError: as `analysis.tasks.read_results`.
    """
    results = read_results(run)
    settings = run.manifest["identity"]["settings"]
    lines: list[str] = []
    for task in dict.fromkeys(result.task for result in results):
        lines += [*_block([result for result in results if result.task == task], settings), ""]
    if rows := average_lines(results):
        lines += ["Average of the tasks:", *(f"  {row}" for row in rows)]
    lines += [f"{what.capitalize()}: {line}." for what, line in failure_lines(run.failures)]
    if any(len(result.numbers) < 2 for result in results):
        lines.append(
            "No intervals with fewer than two samples: one cannot show how much they vary."
        )
    return "\n".join(lines).rstrip() + "\n"


def _block(results: Sequence[Result], settings: dict[str, Any]) -> list[str]:
    """One task: a row per variant."""
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    judged = any(result.replies for result in results)
    rows = [("", *names, *(("fluency", "consistency") if judged else ()))]
    rows += [(_label(result), *cells(result, names, judged)) for result in results]
    count = max(len(result.numbers) for result in results)
    title = (
        f"{results[0].task}: {count} {settings['split']} samples, {settings['instruction']}"
        " instruction"
    )
    return [title, *aligned(rows, "  "), *(f"  {note}" for note in notes(results))]


def cells(result: Result, metrics: Sequence[str], judged: bool = True) -> tuple[str, ...]:
    """A result's metrics with their intervals; where judged, its fluency and consistency too."""
    scores = result.estimates()
    shown = [plain(scores[metric]) if metric in scores else "–" for metric in metrics]
    if judged:
        shown += [_number(result.fluency), _number(result.consistency)]
    return tuple(shown)


def notes(results: Sequence[Result]) -> list[str]:
    """Notes on one task's results, a line each."""
    lines = [note for result in results for note in _quality(result)]
    for result, differences in compared(results):
        parts = ", ".join(f"{name} {signed(value)}" for name, value in differences.items())
        lines.append(f"{result.variant} minus {ZERO_SHOT}: {parts}")
    return lines


def _quality(result: Result) -> list[str]:
    lines = []
    if len(result.draws) > 1:
        ranges = ", ".join(_range(result, metric) for metric in result.scores)
        lines.append(f"{result.variant}: by draw of the demonstrations, {ranges}")
    if result.excluded:
        lines.append(
            f"{result.variant}: excluded from comparisons, for its mean fluency of"
            f" {result.fluency:.2f} is under {LEAST_FLUENCY}"
        )
    if result.low or result.short:
        lines.append(
            f"{result.variant}: of {result.replies} replies, {result.low} have a fluency under"
            f" {LEAST_FLUENCY}, and {result.short} are too short to have one"
        )
    return lines


def _range(result: Result, metric: str) -> str:
    means = [draw[metric] for draw in result.draws]
    return f"{metric} {min(means):.2f} to {max(means):.2f}"


def average_lines(results: Sequence[Result]) -> list[str]:
    """Each variant's average over the tasks; none for a single task."""
    return [_average_line(average) for average in averages(results)]


def _average_line(average: Average) -> str:
    if average.score is None:
        why = "excluded" if average.finished else "not finished"
        return f"{average.variant}: none, for a task of it is {why}"
    line = f"{average.variant}: {plain(average.score)}"
    if average.less_zero_shot is not None:
        line += f", minus {ZERO_SHOT} {signed(average.less_zero_shot)}"
    return line


def _label(result: Result) -> str:
    return f"{result.variant} ({len(result.draws)} draws)" if result.draws else result.variant


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def tasks_page(run: RunData) -> str:
    """The HTML of the page of a run of tasks."""
    results = read_results(run)
    settings = run.manifest["identity"]["settings"]
    by_task: dict[str, list[Result]] = {}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    counts = sorted({len(result.numbers) for result in results})
    samples = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    variants = ", ".join(dict.fromkeys(result.variant for result in results))
    numbers: list[tuple[Any, ...]] = [
        ("task", "variant", "metric", "n", "mean", "low", "high", "sd")
    ]
    for result in results:
        numbers += [
            (result.task, result.variant, metric, *spread(item).values())
            for metric, item in result.estimates().items()
        ]
    return render_study(
        "tasks",
        f"{', '.join(by_task)} under {variants}, on {samples} samples each.",
        {run.folder.name: run},
        (
            f"{samples} {settings['split']} samples per task",
            f"{settings['instruction']} instruction",
        ),
        tasks=[
            {"name": name, "notes": notes(there), "table": _page_table(name, there)}
            for name, there in by_task.items()
        ],
        average=average_lines(results),
        downloads=[
            *table_files("scores", "every metric of every task", numbers),
            json_file(NAME, "what the run found, as in its folder", json_text(summarise(run))),
        ],
    )


def _page_table(task: str, results: Sequence[Result]) -> Table:
    metrics = list(dict.fromkeys(metric for result in results for metric in result.scores))
    rows = [("prompt or method", *metrics, "fluency", "consistency")]
    rows += [(result.variant, *cells(result, metrics)) for result in results]
    return Table(f"{task}: means with 95 % intervals", rows)


_SHOWN = 5


def write_profile(folder: Path) -> list[str]:
    """Writes `profile.json` and the heat map (SVG and PNG) into a folder of
    `study.profiling.profile`; returns lines for people.
    """
    profile = read_profile(folder)
    ranking = write_ranking(folder)
    files = write_heat_map(profile, folder)
    return [
        *profile_lines(profile, read_gains(folder)),
        f"Ranking: {ranking.resolve()}",
        *(f"Figure: {path.resolve()}" for path in files if path.suffix == ".png"),
    ]


def profile_lines(profile: Profile, gains: Gains) -> list[str]:
    """The best heads, how many have a gain, and what halving may have missed."""
    best = [
        f"  layer {head[0]:2} head {head[1]:2}  {profile.scores[head]:.4f}  {_gain(gains[head])}"
        for head in profile.ranking.heads[:_SHOWN]
    ]
    return [
        f"Unsteered {profile.unsteered:.4f}. The best heads, with what they add and its 95 %"
        " interval over samples:",
        *best,
        _distinct_heads(gains),
        *_given_up(profile, gains),
    ]


def _gain(gain: Estimate) -> str:
    text = with_interval(gain, lambda value: f"{value:+.4f}")
    return f"{text}, {tell(gain).word('higher', 'lower')}"


def _distinct_heads(gains: Gains) -> str:
    """How many heads have a gain, beside how many would have one by chance."""
    counted = count_distinct(gains)
    if counted is None:
        most = max(gain.n for gain in gains.values())
        return f"No gain can be told from chance: {most} samples, fewer than {MIN_SAMPLES}."
    count, by_chance = counted
    return (
        f"{count} of {len(gains)} heads have a gain that can be told from chance; of as many that"
        f" gain nothing, about {by_chance:.1f} would."
    )


def _given_up(profile: Profile, gains: Gains) -> list[str]:
    """A sentence on how much dropping heads early may have cost."""
    lost = dropped_by_halving(profile, gains)
    if lost is None:
        return []
    return [
        f"Halving scored {lost.share:.0%} of all heads and samples. It gave up the order of"
        f" {lost.dropped} dropped heads, of which {lost.near} have intervals that reach the worst"
        f" head kept, so any of these may belong among the best {lost.kept}; the best few are safer"
        " than the rest."
    ]


def profile_page(folder: Path, lines: Mapping[str, Sequence[str]]) -> str:
    """The HTML of the page of the profiles in `folder`, one folder per task.

    Args:
        folder: of the command.
        lines: by task, the text under its title.
    """
    runs = {name: read_run(folder / name) for name in lines}
    files: list[Download] = []
    tasks = []
    for name, run in runs.items():
        profile, gains = read_profile(folder / name), read_gains(folder / name)
        head = ("head", "score", "gain", "95 % interval", "samples")
        rows: list[tuple[str, ...]] = [head]
        numbers: list[tuple[Any, ...]] = [
            ("layer", "head", "score", "n", "gain", "low", "high", "sd")
        ]
        for layer, number in profile.ranking.heads:
            score, gain = profile.scores[layer, number], gains[layer, number]
            interval = "" if gain.low is None else f"[{gain.low:+.4f}, {gain.high:+.4f}]"
            rows.append(
                (f"{layer}.{number}", f"{score:.4f}", f"{gain.mean:+.4f}", interval, str(gain.n))
            )
            numbers.append((layer, number, round(score, 6), *spread(gain).values()))
        files += table_files(f"heads-{name}", f"every head on {name}, best first", numbers)
        summary = json_text(summarise(run))
        files.append(json_file(f"summary-{name}.json", "what was found, as in its folder", summary))
        tasks.append(
            {
                "name": name,
                "lines": lines[name],
                "pictures": pictures(
                    folder / name, heads=f"{name}: what steering each head alone changes"
                ),
                "table": Table(f"{name}: every head, best first", rows),
            }
        )
    samples = (
        f"{len({record['conversation'] for record in run.records})} samples of {name}"
        for name, run in runs.items()
    )
    model = next(iter(runs.values())).manifest["identity"]["model"]
    return render_study(
        "profile",
        f"The heads of {model}, ranked by what steering each alone changes on {', '.join(runs)}.",
        runs,
        (", ".join(samples),),
        tasks=tasks,
        downloads=files,
    )
