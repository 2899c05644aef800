"""The one Jinja environment: every page is a template of `templates/`, and everything is escaped.

What comes from records, models or command lines is text everywhere. Only the style sheet, the
scripts and the data that this package packs for them are handed over as `Markup`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from holdfast.analysis.collapse import LASTING
from holdfast.analysis.statistics import MIN_PROMPTS
from holdfast.analysis.verdicts import CANNOT_TELL, LEAST, tell
from holdfast.drift.judges import LEAST_KAPPA
from holdfast.report.rounds import MOST_ACROSS
from holdfast.report.sentences import default_prompt_sentence
from holdfast.report.wording import other_prompts, plain, signed, signed_number

_TEMPLATES = Path(__file__).parent / "templates"


@functools.cache
def environment() -> Environment:
    """Where templates come from, and what they may call."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "plain": plain,
        "signed": signed,
        "signed_number": signed_number,
        "tell": tell,
        "other_prompts": other_prompts,
        "minus": minus,
        "whole": _whole,
        "spaced": lambda name: name.replace("_", " "),
        "px": lambda number: f"{number:.1f}",
        "short": lambda number: f"{number:g}",
    }
    made.globals |= {
        "CANNOT_TELL": CANNOT_TELL,
        "LASTING": LASTING,
        "default_prompt_sentence": default_prompt_sentence,
        "LEAST": LEAST,
        "LEAST_KAPPA": LEAST_KAPPA,
        "MIN_PROMPTS": MIN_PROMPTS,
        "MOST_ACROSS": MOST_ACROSS,
    }
    return made


def minus(text: str) -> str:
    """Numbers with a true minus sign in place of the hyphen that terminals get."""
    return re.sub(r"(?<![\w.])-(?=[0-9])", "\N{MINUS SIGN}", text)


def _whole(text: str) -> Markup:
    """The text escaped; a number stays on one line with the word before it and its percent sign."""
    words = r"(\b(?:round|passes|from|the same)) (?=[0-9])|(?<=[0-9]) (?=%)"
    return Markup(re.sub(words, "\\1\N{NO-BREAK SPACE}", str(escape(text))))
