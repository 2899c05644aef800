"""Renders pages from `templates/`: single files that load nothing and run only their own scripts.

Text from records, models or command lines is escaped everywhere. Only the style sheet, the scripts,
and the data that this package packs for them are passed as `Markup`.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from holdfast.analysis.collapse import COLLAPSED_TURNS
from holdfast.analysis.statistics import MIN_PROMPTS, RESAMPLES
from holdfast.analysis.verdicts import CANNOT_TELL, MIN_SAMPLES, verdict_on
from holdfast.drift.judges import LEAST_KAPPA
from holdfast.records import Run
from holdfast.report.charts import MOST_ACROSS, small, spark_path
from holdfast.report.how_measured import about_runs
from holdfast.report.judge_agreement import counts_text
from holdfast.report.sentences import broken_text, default_prompt_sentence, fall
from holdfast.report.wording import other_prompts, plain, signed, signed_number
from holdfast.version import __version__

_HERE = Path(__file__).parent
_MIN_SCALE = 0.8  # of a picture: its letters of 9 points are then as high as 10 pixels
_USUAL_WIDTH = 460.0  # of a picture, in points
_PAGE_WIDTH = 50.0  # in rem


@dataclass(frozen=True)
class Table:
    """Rows of text: the first is the header, and the others start with their names."""

    caption: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A figure: its title, and an SVG or PNG file, which the page embeds."""

    title: str
    path: Path

    @property
    def min_width(self) -> str:
        """The width, in rem, below which the letters of an SVG are too small to read."""
        drawn = re.search(rb'<svg[^>]* width="([0-9.]+)pt"', self.path.read_bytes()[:4000])
        points = float(drawn[1]) if drawn else _USUAL_WIDTH
        return f"{min(points * 96 / 72 * _MIN_SCALE / 16, _PAGE_WIDTH):.0f}"

    @property
    def address(self) -> str:
        """The picture as a data URL."""
        kind = "svg+xml" if self.path.suffix == ".svg" else "png"
        return f"data:image/{kind};base64,{base64.b64encode(self.path.read_bytes()).decode()}"


def render(
    template: str,
    command: str,
    headline: str,
    *,
    lines: Sequence[str] = (),
    facts: Sequence[str] = (),
    **values: Any,
) -> str:
    """Renders a template that extends `skeleton.html.j2`: a headline, the `lines` below it, short
    `facts` about what was measured (empty lines and facts are left out), and the values that the
    template itself reads.
    """
    return (
        environment()
        .get_template(template)
        .render(
            command="report" if command in ("drift", "check") else command,
            kind=f"{command} report",
            headline=headline,
            lines=[line for line in lines if line],
            facts=[fact for fact in facts if fact],
            navigation=[],  # filled by the sections
            **values,
        )
    )


def render_study(
    command: str,
    headline: str,
    runs: Mapping[str, Run],
    facts: Sequence[str],
    lines: Sequence[str] = (),
    **values: Any,
) -> str:
    """Renders `{command}.html.j2`, which ends with how its runs, by name, were measured."""
    manifest = next(iter(runs.values())).manifest
    model = manifest.identity.model
    more = (f"model {model}" if model else "", (manifest.created or "")[:10])
    about = about_runs(list(runs.values()), list(runs))
    template = f"{command}.html.j2"
    return render(
        template, command, headline, lines=lines, facts=(*facts, *more), runs=about, **values
    )


def pictures(folder: Path, **titles: str) -> list[Picture]:
    """The figures that exist in a folder; `titles` are by figure name."""
    paths = [(title, folder / f"{name}.svg") for name, title in titles.items()]
    return [Picture(title, path) for title, path in paths if path.is_file()]


@functools.cache
def environment() -> Environment:
    """The template environment, with the filters and globals that templates may use."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = (plain, signed, signed_number, verdict_on, other_prompts, minus, small, spark_path)
    made.filters |= {function.__name__: function for function in named}
    made.filters |= {
        "whole": _whole,
        "sentence": lambda text: text[:1].upper() + text[1:],
        "counts": counts_text,
        "spaced": lambda name: name.replace("_", " "),
        "px": lambda number: f"{number:.1f}",
        "short": lambda number: f"{number:g}",
    }
    sentences = (broken_text, default_prompt_sentence, fall)
    made.globals |= {function.__name__: function for function in sentences}
    made.globals |= {
        "CANNOT_TELL": CANNOT_TELL,
        "COLLAPSED_TURNS": COLLAPSED_TURNS,
        "MIN_SAMPLES": MIN_SAMPLES,
        "LEAST_KAPPA": LEAST_KAPPA,
        "MIN_PROMPTS": MIN_PROMPTS,
        "MOST_ACROSS": MOST_ACROSS,
        "RESAMPLES": RESAMPLES,
        "file": _file,
        "hash_of": _hash_of,
        "version": __version__,
    }
    return made


def minus(text: str) -> str:
    """Replaces the hyphen before numbers, as terminals show it, with a true minus sign."""
    return re.sub(r"(?<![\w.])-(?=[0-9])", "\N{MINUS SIGN}", text)


def _whole(text: str) -> Markup:
    """Escapes text; a number stays on one line with the word before it and its percent sign."""
    words = r"(\b(?:round|turn|scores|from|the same)) (?=[0-9])|(?<=[0-9]) (?=%)"
    return Markup(re.sub(words, "\\1\N{NO-BREAK SPACE}", str(escape(text))))


def _file(*names: str) -> Markup:
    return Markup("".join((_HERE / name).read_text(encoding="utf-8") for name in names))


def _hash_of(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
