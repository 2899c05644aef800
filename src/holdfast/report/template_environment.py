"""The environment of the templates in `templates/`: the filters and globals that they may use.

Text from records, models or command lines is escaped everywhere. Only the style sheet, the scripts,
and the data that this package packs for them are passed as `Markup`.
"""

import base64
import functools
import hashlib
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from holdfast.analysis.collapse import COLLAPSED_TURNS
from holdfast.analysis.estimate_rows import MIN_UNITS
from holdfast.analysis.resampling import RESAMPLES
from holdfast.analysis.statistics import MIN_PROMPTS
from holdfast.analysis.verdicts import CANNOT_TELL, MIN_SAMPLES, verdict_on
from holdfast.drift.judges import MIN_KAPPA
from holdfast.report.baseline_sentences import default_prompt_sentence
from holdfast.report.charts import MAX_ROUND_COLUMNS, MAX_UNFOLDED, shrink, spark_path
from holdfast.report.compare_tables import row_name
from holdfast.report.score_phrases import broken_text, capitalise, fall_text
from holdfast.report.wording import other_prompts, plain, signed, signed_number, two_places
from holdfast.version import __version__

_HERE = Path(__file__).parent


@functools.cache
def template_environment() -> Environment:
    """The environment; the same one for all pages."""
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "capitalise": capitalise,
        "minus": _minus,
        "other_prompts": other_prompts,
        "plain": plain,
        "px": _px,
        "row_name": row_name,
        "short": _short,
        "shrink": shrink,
        "signed": signed,
        "signed_number": signed_number,
        "two_places": two_places,
        "spaced": _space_words,
        "spark_path": spark_path,
        "verdict_on": verdict_on,
        "whole": _whole,
    }
    environment.globals |= {
        "CANNOT_TELL": CANNOT_TELL,
        "COLLAPSED_TURNS": COLLAPSED_TURNS,
        "MAX_ROUND_COLUMNS": MAX_ROUND_COLUMNS,
        "MAX_UNFOLDED": MAX_UNFOLDED,
        "MIN_KAPPA": MIN_KAPPA,
        "MIN_PROMPTS": MIN_PROMPTS,
        "MIN_SAMPLES": MIN_SAMPLES,
        "MIN_UNITS": MIN_UNITS,
        "RESAMPLES": RESAMPLES,
        "broken_text": broken_text,
        "default_prompt_sentence": default_prompt_sentence,
        "fall_text": fall_text,
        "file": _file,
        "hash_of": _hash_of,
        "version": __version__,
    }
    return environment


def _minus(text: str) -> str:
    """Replaces the hyphen before numbers, as terminals show it, with a true minus sign."""
    return re.sub(r"(?<![\w.])-(?=[0-9])", "\N{MINUS SIGN}", text)


def _px(number: float) -> str:
    """A coordinate of a drawing: "12.3"."""
    return f"{number:.1f}"


def _short(number: float) -> str:
    """A number without trailing zeros: "0.5"."""
    return f"{number:g}"


def _space_words(name: str) -> str:
    """A name as words: "word count" for "word_count"."""
    return name.replace("_", " ")


def _whole(text: str) -> Markup:
    """Escapes text; a number stays on one line with the word before it and its percent sign."""
    words = r"(\b(?:round|turn|scores|from|the same)) (?=[0-9])|(?<=[0-9]) (?=%)"
    return Markup(re.sub(words, "\\1\N{NO-BREAK SPACE}", str(escape(text))))


def _file(*names: str) -> Markup:
    """The contents of files of this package, one after the other."""
    return Markup("".join((_HERE / name).read_text(encoding="utf-8") for name in names))


def _hash_of(script: str) -> str:
    """The hash with which a content security policy allows an inline script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
