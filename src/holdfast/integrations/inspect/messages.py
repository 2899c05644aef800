"""A conversation as Inspect's messages and scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Score

from holdfast.analysis.series import KINDS, probe_means
from holdfast.errors import cut

_LONGEST = 300  # characters of a reply in the list of probes


def messages_of(record: Mapping[str, Any], model: str = "") -> list[ChatMessage]:
    """The dialog of a record as the agent saw it, with the mass of each of the agent's turns."""
    prompt = record["agent"]["system_prompt"]
    shown: list[ChatMessage] = [ChatMessageSystem(content=prompt)] if prompt else []
    for turn in record["turns"]:
        if turn["speaker"] == "user":
            shown.append(ChatMessageUser(content=turn["text"], metadata={"round": turn["round"]}))
        else:
            details = {name: turn.get(name) for name in ("round", "stop_reason", "mass")}
            shown.append(
                ChatMessageAssistant(content=turn["text"], model=model or None, metadata=details)
            )
    return shown


def score_of(record: Mapping[str, Any], rounds: int) -> Score:
    """Stability and adoption of a conversation, in every round of the run and over all of them.

    The values are named `stability`, `stability_round_1` and so on, NaN where nothing was asked;
    the explanation has every probe with its reply, the measure's reason and the mass.
    """
    values: dict[str, float] = {}
    for kind in KINDS:
        probes = [probe for probe in record["probes"] if probe["kind"] == kind]
        row = probe_means([{**record, "probes": probes}], rounds, lambda probe: True)[0]
        values[kind] = math.nan if np.isnan(row).all() else float(np.nanmean(row))
        for number, value in enumerate(row, 1):
            values[f"{kind}_round_{number}"] = float(value)
    kept = {name: record[name] for name in ("probes", "ended", "unanswered") if name in record}
    return Score(value=values, explanation=_listed(record), metadata=kept)


def _listed(record: Mapping[str, Any]) -> str:
    entries = []
    for probe in record["probes"]:
        mass = "" if probe.get("mass") is None else f", mass {probe['mass']:.3f}"
        entries.append(
            f"- **Round {probe['round']}, {probe['kind']} {probe['score']:.2f}**"
            f" ({_line(probe['reason'])}{mass})\n"
            f"    - {_line(probe['question'])}\n"
            f"    - {_line(probe['reply'])}"
        )
    return "\n".join(entries)


def _line(text: str) -> str:
    return " ".join(cut(text, _LONGEST).split())
