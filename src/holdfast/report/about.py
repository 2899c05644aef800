"""The section of the page that says how the numbers were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.analysis.collapse import collapsed_from, model_turns
from holdfast.analysis.endings import count_endings
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import MIN_PROMPTS, RESAMPLES
from holdfast.analysis.verdicts import LEAST, LEAST_MOVED
from holdfast.records import RunData, command_of
from holdfast.report.endings import ending_lines, failure_lines
from holdfast.report.sentences import default_prompt_sentence

_PROBED = {
    "in-place": (
        "Round 1 is probed before anything has been said: it is the model with its prompt and no"
        " load."
    ),
    "after-round": (
        "Here the probe follows the agent’s turn of its round (as in the paper’s released code), so"
        " round 1 already carries one exchange."
    ),
}
_TURNS = (
    " The user opens with a drawn starter. A round is one turn of each (Li et al. 2024, section 3)."
    " The user model may also have the prompt of a persona, which nothing measures, or none."
)
_CONVERSATIONS = {
    "one model": (
        "Two copies of the model talk: the user copy has one system prompt, the agent copy another."
        + _TURNS
    ),
    "two models": (
        "Two models talk: the user model has one system prompt, the agent another, and the probes"
        " are the agent’s." + _TURNS
    ),
    "scripted": (
        "The user’s messages come from a script, whatever the agent answers: no model plays the"
        " user, and there is no prompt of its own to adopt. A round is a message of the script and"
        " the agent’s answer."
    ),
    "replayed": (
        "Dialogs that people had are replayed turn by turn: what was said and answered stays as it"
        " was recorded, under the system prompt of the agent, and the model answers the probes"
        " alone. A round is what the user said and what was answered."
    ),
}
DEFINITIONS = (
    ("Round", "One turn of the user and one of the agent."),
    (
        "Probe",
        (
            "A question asked in a copy of the dialog at a round, whose reply is scored and thrown"
            " away."
        ),
    ),
    (
        "Stability",
        "The score, from 0 to 1, of the agent’s reply to the probe of its own system prompt.",
    ),
    ("Adoption", "The same for the probe of the user’s system prompt, which the agent never saw."),
    (
        "Mass",
        "The share of the agent’s attention that falls on its system prompt while it replies.",
    ),
    (
        "Divergence",
        "How far its replies are from those of a fresh dialog, in nats per token.",
    ),
)
TERMS = (
    (
        "Probe",
        (
            "In each round the dialog is forked and a probe question is asked; the reply is scored"
            " and thrown away, so probes never enter the dialog."
        ),
    ),
    (
        "Stability",
        (
            "The score, from 0 to 1, of the agent’s reply to the probe of its own prompt, by that"
            " prompt’s measure: a deterministic function of the text, unless it says that a model"
            " judged."
        ),
    ),
    (
        "Adoption",
        (
            "The same with the user’s probe and the user’s measure: whether the agent has taken on"
            " a prompt that it was never given. A reply can pass a measure by chance; the value at"
            " round 1 shows how often."
        ),
    ),
    (
        "Band",
        (
            f"95 % percentile bootstrap interval of the mean, {RESAMPLES:,} resamples with a fixed"
            " seed. The unit is the conversation, as rounds of one conversation depend on each"
            " other. Where every conversation scored the same, the interval has no width, which is"
            " a limit of the bootstrap and not certainty: “all alike” stands there."
        ),
    ),
    (
        "Cannot tell",
        (
            f"A difference counts only if there are at least {LEAST} conversations, its interval"
            f" lies on one side of 0, and at least {LEAST_MOVED} conversations differ at all. Below"
            f" {LEAST} the interval is too narrow: with no difference at all, it finds one in up to"
            " 1 of 4 runs of 3 conversations and 1 of 10 runs of 10."
        ),
    ),
    (
        "Other prompts",
        (
            "The interval of the mean for prompts like those of the run: prompts are resampled,"
            f" each with all of its conversations. It takes {MIN_PROMPTS} prompts; a run with fewer"
            " speaks for its own prompts only."
        ),
    ),
    (
        "Whisker",
        (
            "One standard deviation between conversations, as in the paper’s figures. It describes"
            " how unlike conversations are, not how well the mean is known; ends beyond 0 or 1 are"
            " cut."
        ),
    ),
    (
        "Difference",
        (
            "Methods are compared conversation by conversation on the same pairs of prompts; the"
            " interval is that of the mean difference. No correction is made for looking at several"
            " methods, rounds or categories."
        ),
    ),
    (
        "Attention mass",
        (
            "Attention weights summed over the words of the system prompt, averaged over heads,"
            " layers and tokens of a reply."
        ),
    ),
    (
        "Divergence",
        (
            "KL(q || p), in nats, mean over the tokens of the agent’s reply as it was written and"
            " the one that ended it: q is the distribution of the next token under the dialog so"
            " far, p that under a fresh dialog, which has the system prompt and the last message"
            " alone; both at temperature 1, over the whole vocabulary, and under the method of the"
            " reply. In round 1 the two are one. After Dongre et al. 2025 (arXiv 2510.07777), whose"
            " p is another model."
        ),
    ),
)
# left out where nothing of the kind was measured
_ONLY_MEASURED = {"Adoption": "adoption", "Mass": "mass", "Divergence": "divergence"}


def definitions(series: Sequence[Series]) -> list[tuple[str, str]]:
    """The words of the figures, a sentence each; those alone of which something was recorded."""
    return [
        term
        for term in DEFINITIONS
        if (kind := _ONLY_MEASURED.get(term[0])) is None
        or any(item.measured(kind) for item in series)
    ]


def drift_terms(runs: Sequence[RunData]) -> list[tuple[str, str]]:
    """The terms of a drift run: who talked in these runs comes first, and the probe has the place
    that it had in them.
    """
    kinds = sorted({_conversation_of(run.manifest) for run in runs})
    talks = " ".join(_CONVERSATIONS[kind] for kind in kinds)
    diverged = any(setting(run.manifest, "divergence") for run in runs)
    terms = [term for term in TERMS if term[0] != "Divergence" or diverged]
    return [("The conversation", talks), *probed_terms(terms, runs)]


def _conversation_of(manifest: Mapping[str, Any]) -> str:
    """Which of the conversations a run held."""
    identity = manifest.get("identity", {})
    return (
        "replayed"
        if "dialogs" in identity
        else "scripted"
        if "user_turns" in identity
        else "two models"
        if "user_model" in identity
        else "one model"
    )


def probed_terms(
    terms: Sequence[tuple[str, str]], runs: Sequence[RunData]
) -> list[tuple[str, str]]:
    """The terms, that of the probe with the place it had in these runs."""
    places = sorted({str(setting(run.manifest, "probe_at", "in-place")) for run in runs})
    told = " ".join(_PROBED.get(place, place) for place in places)
    return [(name, f"{meaning} {told}" if name == "Probe" else meaning) for name, meaning in terms]


@dataclass(frozen=True)
class About:
    """A run as its page tells of it: its command, what its suite has to say of itself, and its
    settings, versions and cost by name.
    """

    label: str
    command: str
    notes: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]


def about_runs(runs: Sequence[RunData], labels: Sequence[str]) -> list[About]:
    """How each run was measured."""
    return [
        About(
            label or run.folder.name,
            command_of(run.manifest),
            (*run.manifest.get("notes", ()), *_default_prompt(run.manifest)),
            tuple(_rows(run)),
        )
        for run, label in zip(runs, labels, strict=True)
    ]


def _default_prompt(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    default = manifest.get("default_system_prompt")
    return (default_prompt_sentence(default),) if default else ()


def setting(manifest: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """A setting of the run, wherever its manifest keeps it."""
    identity = manifest.get("identity", {})
    places = (identity.get("settings", {}), identity, manifest)
    return next(
        (place[name] for place in places if isinstance(place, Mapping) and name in place), default
    )


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


def _rows(run: RunData) -> list[tuple[str, str]]:
    manifest = run.manifest
    rows = [("started", _time(manifest.get("created")))]
    if manifest.get("resumed"):
        rows.append(("resumed", _times(manifest["resumed"])))
    rows += [(name, str(value)) for name, value in manifest.get("versions", {}).items()]
    held = len({record.get("conversation") for record in run.records})
    for name, value in identity_lines(manifest.get("identity", {})):
        if name == "settings.conversations" and str(held) != value:
            value = f"{held} of the {value} that the command allows"
        rows.append((name, value))
    return [*rows, *_cost(run), *_memory(run)]


def _time(stamp: object) -> str:
    return str(stamp or "–").replace("T", " ").replace("+00:00", " UTC")


def _times(resumed: Sequence[Mapping[str, Any]]) -> str:
    often = "once" if len(resumed) == 1 else f"{len(resumed)} times"
    return f"{often}, last {_time(resumed[-1].get('created'))}"


def _memory(run: RunData) -> list[tuple[str, str]]:
    """Whether memory ran out on the way; no row where it did not."""
    rows = [record["rows_at_most"] for record in run.records if "rows_at_most" in record]
    if not rows:
        return []
    held = f"{len(rows)} conversations ended after it had, with at most {min(rows)} rows at a time"
    return [("memory ran out", held)]


def _turns(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """How many turns are cut or repeated, and how many conversations have collapsed."""
    dialogs = [model_turns(record) for record in records if record.get("turns")]
    turns = [turn for dialog in dialogs for turn in dialog]
    if not turns:
        return []
    collapsed = sum(collapsed_from(dialog) is not None for dialog in dialogs)
    return [
        (name, f"{count:,} of {total:,}")
        for name, count, total in (
            ("turns cut at the length limit", sum(turn.cut for turn in turns), len(turns)),
            ("turns that repeat or loop", sum(t.repetition.broken for t in turns), len(turns)),
            ("conversations collapsed", collapsed, len(dialogs)),
        )
    ]


def _cost(run: RunData) -> list[tuple[str, str]]:
    """What the records say about completeness and cost."""
    records = run.records
    methods = {record["method"] for record in records}
    count = len({record["conversation"] for record in records})
    under = f", under {len(methods)} methods: {len(records):,} dialogs" if len(methods) > 1 else ""
    drift = run.manifest.get("command", "drift") == "drift"
    rows = [
        (
            ("conversations recorded", f"{count:,}{under}")
            if drift
            else ("records", f"{len(records):,}")
        )
    ]
    rows += _turns(records)
    # samples have no turns
    rows += ending_lines(count_endings([record for record in records if "turns" in record]))
    rows += failure_lines(run.failures)
    tokens = [record["tokens"] for record in records if record.get("tokens")]
    forwarded, least = (
        sum(token.get(name) or 0 for token in tokens) for name in ("forwarded", "least")
    )
    if forwarded and least:
        rows.append(
            ("tokens forwarded", f"{forwarded:,}, {forwarded / least:.2f} times the least possible")
        )
    if more := sum(token.get("divergence") or 0 for token in tokens):
        rows.append(("tokens forwarded for divergences", f"{more:,}"))
    seconds = sum(record.get("seconds") or 0.0 for record in records)
    if seconds:
        rows.append(("time", f"{seconds:,.0f} s for all conversations"))
    return rows
