"""The skeleton that every page shares: one file that loads nothing, and runs no script but its
own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from holdfast.report.environment import environment
from holdfast.version import __version__

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
        template: a file of `templates` that extends `skeleton.html.j2`.
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
        environment()
        .get_template(template)
        .render(
            command="report" if command in ("drift", "check") else command,
            kind=f"{command} report",
            headline=headline,
            lines=lines,
            facts=[fact for fact in facts if fact],
            navigation=navigation,
            style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=f"sha256-{digest}",
            version=__version__,
            **values,
        )
    )
