"""The skeleton that every page shares: one file that loads nothing, and runs no script but its own.

Templates are Jinja2 with autoescape: what comes from records, models or command lines is text
everywhere. Only what this package draws or packs itself is handed over as `Markup`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from holdfast.analysis.verdicts import CANNOT_TELL, LEAST, tell
from holdfast.report.wording import plain, signed, signed_number

_HERE = Path(__file__).parent


def render(
    template: str,
    command: str,
    headline: str,
    lines: Sequence[str],
    facts: Sequence[str],
    navigation: Sequence[tuple[str, str]],
    scripts: Sequence[str] = ("page.js",),
    **values: Any,
) -> str:
    """The HTML of a page.

    Args:
        template: a file of `templates` that extends `skeleton.html`.
        command: whose page it is, such as "drift".
        headline: the first line.
        lines: what stands under it.
        facts: what was measured, in a few words each.
        navigation: the id and the title of every section.
        scripts: the files that are its script.
        values: what the template itself reads.
    """
    script = "".join((_HERE / name).read_text(encoding="utf-8") for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            command="report" if command == "drift" else command,
            kind=f"{command} report",
            headline=headline,
            lines=lines,
            facts=[fact for fact in facts if fact],
            navigation=navigation,
            style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=f"sha256-{digest}",
            version=_version(),
            **values,
        )
    )


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
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
        "minus": minus,
        "whole": _whole,
        "spaced": lambda name: name.replace("_", " "),
    }
    made.globals |= {"CANNOT_TELL": CANNOT_TELL, "LEAST": LEAST}
    return made


def minus(text: str) -> str:
    """Numbers with a true minus sign in place of the hyphen that terminals get."""
    return re.sub(r"(?<![\w.])-(?=[0-9])", "\N{MINUS SIGN}", text)


def _whole(text: str) -> Markup:
    """The text escaped; a number stays on one line with the word before it and its percent sign."""
    words = r"(\b(?:round|passes|from|the same)) (?=[0-9])|(?<=[0-9]) (?=%)"
    return Markup(re.sub(words, "\\1\N{NO-BREAK SPACE}", str(escape(text))))


def _version() -> str:
    try:
        return version("holdfast")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return ""
