"""Questions for calibrations, and calibrations with given scores."""

import dataclasses

import numpy as np

from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.choosing import pick
from holdfast.records.identity import CalibrationIdentity, PlanIdentity
from holdfast.report.calibration_sentences import answer, chance_line, next_step
from holdfast.report.calibration_table import table
from holdfast.study.capability import Capability
from holdfast.study.capability_items import Item

CHOICES = "A) rain, B) bread, C) town, D) river"
REPLIES = ("rain (A)", "bread (B)", "town (C)", "river (D)")
ITEMS = Capability(
    "towns", tuple(Item(f"which one, number {n}? {CHOICES}", REPLIES, n % 4) for n in range(14))
)
ABOUT = CalibrationIdentity(capability="towns", plan=PlanIdentity(draws=1))


def synthetic(rows: dict[str, tuple[list[float], list[float]]], conversations=8) -> Calibration:
    """Settings: name -> (stability, capability), each on the half to choose on and to report on."""
    halves = np.arange(conversations) % 2 == 1
    jitter = np.tile([0.01, 0.01, -0.01, -0.01], conversations // 4)  # the same in all settings
    no_rounds = np.zeros((conversations, 1))

    def candidate(name, stability, capability):
        scores = np.where(halves, *stability[::-1]) + jitter, np.where(halves, *capability[::-1])
        return Candidate(name, None if name == "none" else 0, name, no_rounds, *scores, 0)

    candidates = tuple(candidate(name, *scores) for name, scores in rows.items())
    return Calibration(candidates, (("m", "k"),), halves, ABOUT, conversations)


def sampled(gain: float, cost: float, spread: float, conversations: int = 200) -> Calibration:
    """One setting against none, with this mean gain and cost, and this spread of the cost."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2, conversations // 2))
    noise = np.repeat(noise, 2, axis=1)  # the same in both halves
    noise -= noise.mean(1, keepdims=True)
    count, no_rounds = conversations, np.zeros((conversations, 1))
    none = Candidate("none", None, "", no_rounds, np.full(count, 0.5), np.full(count, 60.0), 0)
    scores = 0.5 + gain + 0.1 * noise[0], 60.0 - cost + spread * noise[1]
    fix = Candidate("fix", 0, "1", no_rounds, *scores, 0)
    return Calibration((none, fix), (("m", "k"),), np.arange(count) % 2 == 1, ABOUT, count)


def against_none(stability: list[float], capability: list[float]) -> Calibration:
    """One setting against none, with scores on the half to choose on and the half to report on."""
    return synthetic({"none": ([0.5, 0.5], [60, 60]), "fix": (stability, capability)}, 80)


def at_chance(score: float, gain: float = 0.2) -> Calibration:
    """A model that scores this many points on questions with four choices."""
    calibration = sampled(gain, 0, 5)
    noise = np.random.default_rng(1).standard_normal(200) * 40
    shift = score - 60 + noise - noise.mean()
    none, fix = (
        dataclasses.replace(candidate, capability=candidate.capability + shift)
        for candidate in calibration.candidates
    )
    return dataclasses.replace(calibration, candidates=(none, fix), chance=25.0)


def sentences() -> str:
    """The sentences on calibrations with every kind of result, for the approved texts."""
    calibrations = {
        "a setting within the budget": (sampled(0.2, 1, 5), 5),
        "a cost that is too uncertain": (sampled(0.2, 1, 150), 5),
        "a gain that is too uncertain": (sampled(0.0005, 0, 5), 5),
        "too few conversations to report on": (sampled(0.2, 1, 5, 36), 5),
        "a gain that the other half contradicts": (against_none([0.8, 0.4], [60, 60]), 10),
        "no setting within the budget": (against_none([0.9, 0.9], [40, 42]), 3),
        "no setting more stable": (against_none([0.4, 0.4], [60, 60]), 3),
        "a single point": (against_none([0.9, 0.9], [40, 42]), 1),
        "a model that guesses": (at_chance(27.0), 5),
    }
    texts = []
    for name, (calibration, budget) in calibrations.items():
        choice = pick(calibration, budget)
        lines = table(calibration), answer(calibration, choice), chance_line(calibration)
        texts.append("\n".join([f"# {name}", *filter(None, lines), next_step(calibration, choice)]))
    return "\n\n".join([*texts, ""])
