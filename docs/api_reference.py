"""An MkDocs hook that adds signatures and docstrings below each list of the Python API."""

from __future__ import annotations

import inspect
import pkgutil
import re
from typing import Any

_LIST = re.compile(r"(?:^- `holdfast[\w.]+`: .*\n)+", re.MULTILINE)
_NAME = re.compile(r"^- `(holdfast[\w.]+)`", re.MULTILINE)
OPTIONS = {
    "holdfast.models.protocol.ChatModel": "inherited_members: true",
    "holdfast.models.local.LocalModel": "inherited_members: true,"
    " members: [generate, generate_batch, score]",
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adds the directives of mkdocstrings below each list."""
    if page.file.src_uri != "python.md":
        return markdown

    def described(names: re.Match[str]) -> str:
        return "\n\n".join([names[0], *map(directive, _NAME.findall(names[0])), ""])

    return _LIST.sub(described, markdown)


def directive(name: str) -> str:
    """The directive for a public name, with the place where it is defined."""
    found = pkgutil.resolve_name(name)
    place = found.__name__ if inspect.ismodule(found) else f"{found.__module__}.{found.__name__}"
    options = f'heading: "{name}", toc_label: "{name.removeprefix("holdfast.")}"'
    more = f", {OPTIONS[name]}" if name in OPTIONS else ""
    return f"::: {place}\n    options: {{{options}{more}}}"
