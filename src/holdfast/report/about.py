"""The section of the page that says how the numbers were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from holdfast.records import RunData
from holdfast.report.sections import section
from holdfast.report.statistics import RESAMPLES

_PROBED = {
    "in-place": "Round 1 is probed before anything has been said: it is the model with its prompt and no load.",
    "after-round": "Here the probe follows the agent’s turn of its round (as in the paper’s released code), so round 1 already carries one exchange.",
}
TERMS = (
    ("The conversation", "Two copies of the model talk. The user copy has one system prompt, the agent copy another, and the user opens with a drawn starter. "
     "A round is one turn of each (Li et al. 2024, section 3). In a control the user copy has no system prompt."),
    ("Probe", "In each round the dialog is forked and a probe question is asked; the reply is scored and thrown away, so probes never enter the dialog."),
    ("Stability", "The score, from 0 to 1, of the agent’s reply to the probe of its own prompt, by that prompt’s measure: a deterministic function of the text."),
    ("Adoption", "The same with the user’s probe and the user’s measure: whether the agent has taken on a prompt that it was never given. "
     "A reply can pass a measure by chance; the value at round 1 shows how often."),
    ("Band", f"95 % percentile bootstrap interval of the mean, {RESAMPLES:,} resamples with a fixed seed. The unit is the conversation, as rounds of one conversation depend on each other. "
     "Where every conversation scored the same, the interval has no width, which is a limit of the bootstrap and not certainty."),
    ("Whisker", "One standard deviation between conversations, as in the paper’s figures. It describes how unlike conversations are, not how well the mean is known; ends beyond 0 or 1 are cut."),
    ("Difference", "Methods are compared conversation by conversation on the same pairs of prompts; the interval is that of the mean difference. "
     "No correction is made for looking at several methods, rounds or categories."),
    ("Attention mass", "Attention weights summed over the words of the system prompt, averaged over heads, layers and tokens of a reply."),
)


def about_section(runs: Sequence[RunData], labels: Sequence[str]) -> str:
    """What was measured and how, and per run its command, versions, identity and cost."""
    probed = {str(setting(run.manifest, "probe_at", "in-place")) for run in runs}
    terms = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(' '.join([meaning, *(_PROBED.get(at, at) for at in sorted(probed) if name == 'Probe')]))}</dd>"
        for name, meaning in TERMS
    )
    parts = "".join(_run(run, label) for run, label in zip(runs, labels, strict=True))
    return section("about", "How it was measured", f'<dl class="terms">{terms}</dl><div class="runs">{parts}</div>')


def setting(manifest: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """A setting of the run, wherever its manifest keeps it."""
    identity = manifest.get("identity", {})
    places = (identity.get("settings", {}), identity, manifest)
    return next((place[name] for place in places if isinstance(place, Mapping) and name in place), default)


def identity_lines(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names with their values."""
    for name, item in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(item, Mapping):
            yield from identity_lines(item, here)
        elif isinstance(item, list):
            yield here, ", ".join(map(str, item)) or "none"
        else:
            yield here, "–" if item is None else str(item)


def _run(run: RunData, label: str) -> str:
    manifest = run.manifest
    command = f"<pre>{escape(str(manifest['argv']))}</pre>" if manifest.get("argv") else ""
    rows = [("started", str(manifest.get("created", "–")).replace("T", " ").replace("+00:00", " UTC"))]
    if manifest.get("resumed"):
        rows.append(("resumed", _times(manifest["resumed"])))
    rows += [(name, str(value)) for name, value in manifest.get("versions", {}).items()]
    rows += list(identity_lines(manifest.get("identity", {})))
    listing = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in [*rows, *_cost(run)])
    return f'<div><h3>{escape(label or str(run.folder.name))}</h3>{command}<dl>{listing}</dl></div>'


def _times(resumed: Sequence[Mapping[str, Any]]) -> str:
    last = str(resumed[-1].get("created", "–")).replace("T", " ").replace("+00:00", " UTC")
    return f"{'once' if len(resumed) == 1 else f'{len(resumed)} times'}, last {last}"


def _cost(run: RunData) -> list[tuple[str, str]]:
    """What the records say about completeness and cost."""
    records = run.records
    rows = [("conversations recorded", f"{len(records):,}")]
    turns = [turn for record in records for turn in record["turns"] if turn.get("stop_reason")]
    if turns:
        cut = sum(turn["stop_reason"] == "length" for turn in turns)
        rows.append(("turns cut at the length limit", f"{cut:,} of {len(turns):,}"))
    ended = sum("ended" in record for record in records)
    if ended:
        rows.append(("dialogs that filled the model's context", f"{ended:,} of {len(records):,}; later rounds are means over the others"))
    tokens = [record["tokens"] for record in records if record.get("tokens")]
    forwarded, least = (sum(token.get(name) or 0 for token in tokens) for name in ("forwarded", "least"))
    if forwarded and least:
        rows.append(("tokens forwarded", f"{forwarded:,}, {forwarded / least:.2f} times the least possible"))
    seconds = sum(record.get("seconds") or 0.0 for record in records)
    if seconds:
        rows.append(("time", f"{seconds:,.0f} s summed over conversations"))
    return rows
