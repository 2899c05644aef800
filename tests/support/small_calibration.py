"""A calibration of the tiny model that is short enough for tests."""

import dataclasses

from calibrations import ITEMS
from short_drift import SUITE
from tiny import model

from holdfast import Sampling
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan

GREEDY = Sampling(temperature=0, max_new_tokens=6)
SHORT = Sampling(max_new_tokens=5)
SMALL = CalibrationPlan(draws=2, rounds=2, ask_at=2, sampling=SHORT, answering=GREEDY, batch=4)
SWEEPS = ("split-softmax:exponent=0.7,0.3", "repetition:probability=0.5,1")


def calibrate_tiny(out, capability=ITEMS, sweeps=SWEEPS, plan=SMALL, suite=SUITE):
    """The runs of conversations and of questions."""
    return calibrate(model(), suite, capability, out, dataclasses.replace(plan, sweeps=sweeps))


def history_of(record, turns):
    """The messages of a recorded dialog with these turns."""
    roles = {"user": "user", "agent": "assistant"}
    history = [{"role": "system", "content": record["agent"]["system_prompt"]}]
    return history + [{"role": roles[t["speaker"]], "content": t["text"]} for t in turns]
