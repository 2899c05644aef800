"""Assembles the one self-contained page from its sections, style, script and data."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from string import Template

from holdfast.records import RunData
from holdfast.report.about import about_section, setting
from holdfast.report.conversations import pack, script_chunks, script_json
from holdfast.report.findings import headline, second_line
from holdfast.report.prompts import prompts_section
from holdfast.report.scores import Series
from holdfast.report.sections import categories_section, drift_section, mass_section, methods_section, minus, section

_NAMES = (
    ("drift", "Round by round"), ("methods", "Methods"), ("categories", "Categories"), ("prompts", "Prompts"),
    ("attention", "Attention"), ("conversations", "Conversations"), ("about", "How it was measured"),
)


def render_page(runs: Sequence[RunData], labels: Sequence[str], series: Sequence[Series]) -> str:
    """The HTML of the report.

    It loads nothing and its content security policy allows nothing to be loaded; the only script it may run is
    its own, by hash. Texts of models reach the page as escaped text or as inert JSON that the script writes
    into text nodes.
    """
    parts = {
        "drift": drift_section(series), "methods": methods_section(series), "categories": categories_section(series),
        "prompts": prompts_section(series), "attention": mass_section(series), "conversations": _conversations(series),
        "about": about_section(runs, labels),
    }
    index, chunks = pack(series)
    for item, entry in zip(series, index["series"], strict=True):
        entry["probedAfter"] = setting(runs[list(labels).index(item.run)].manifest, "probe_at") == "after-round"
    script = _asset("page.js")
    second = second_line(series)
    return Template(_asset("page.html")).substitute(
        title=escape(f"Holdfast: {headline(series)}"),
        headline=_whole(escape(headline(series))),
        second=f'<p class="second">{_whole(minus(escape(second)))}</p>' if second else "",
        facts=escape(_facts(runs, series)),
        navigation="".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in _NAMES if parts[name]),
        sections="\n".join(part for part in parts.values() if part),
        index=script_json(index),
        chunks=script_chunks(chunks),
        style=_asset("page.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=escape(_version()),
    )


def _facts(runs: Sequence[RunData], series: Sequence[Series]) -> str:
    identity = runs[0].manifest.get("identity", {})
    facts = [f"{len(runs)} runs"] if len(runs) > 1 else []
    facts += [f"{len(series[0].records)} conversations of {series[0].rounds} rounds"]
    facts += [f"{name} {text}" for name in ("model", "suite") if (text := _name(identity.get(name)))]
    seed = setting(runs[0].manifest, "seed")
    facts += [f"seed {seed}"] if seed is not None else []
    facts += [str(runs[0].manifest["created"])[:10]] if runs[0].manifest.get("created") else []
    return " · ".join(facts)


def _whole(text: str) -> str:
    """Keeps a number with the word before it on one line."""
    return re.sub(r"\b(round|keeps|from|the same) (?=[0-9])", "\\1\N{NO-BREAK SPACE}", text)


def _name(value: object) -> str:
    """The name of a model or suite, given as a name or as an object with one."""
    return str(value.get("name", "")) if isinstance(value, dict) else str(value or "")


def _conversations(series: Sequence[Series]) -> str:
    """The frame of the list, which the script fills."""
    many = len(series) > 1
    options = "".join(f'<option value="{at}">{escape(item.label)}</option>' for at, item in enumerate(series))
    categories = sorted({record["agent"]["category"] for item in series for record in item.records if record["agent"]["category"]})
    choices = "".join(f'<option value="{escape(name)}">{escape(name.replace("_", " "))}</option>' for name in categories)
    body = (
        "<p>Every conversation, with what was said and every probe with its reply, its score and the reason for it.</p>"
        '<noscript><p>The list needs JavaScript; the same texts are in <code>records.jsonl</code> in the run’s folder.</p></noscript>'
        '<form class="controls needs-script" id="filters">'
        + (f'<label>Series<select name="series"><option value="">all</option>{options}</select></label>' if many else "")
        + f'<label>Agent’s category<select name="category"><option value="">all</option>{choices}</select></label>'
        '<label>Score<select name="score"><option value="">any</option><option value="lost">starts high, ends at 0.5 or below</option>'
        '<option value="never">at 0.5 or below from the start</option><option value="held">above 0.5 to the end</option>'
        '<option value="adopted">takes on the other’s, 0.5 or more</option></select></label>'
        '<label>Order<select name="order"><option value="number">by number</option><option value="fall">largest fall first</option>'
        '<option value="low">least stable first</option></select></label>'
        '<label class="grow">Find in prompts<input type="search" name="find" autocomplete="off"></label></form>'
        '<p class="count" id="count" role="status"></p><ul class="rows" id="rows"></ul>'
        '<button type="button" class="quiet more" id="more" hidden>Show more</button>'
    )
    return section("conversations", "Conversations", body)


def _asset(name: str) -> str:
    return files("holdfast.report").joinpath(name).read_text(encoding="utf-8")


def _version() -> str:
    try:
        return version("holdfast")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return ""
