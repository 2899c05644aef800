"""Experiments with a model: calibrating and checking fixes, precedent, decay of attention, fitting.

calibrating          `holdfast calibrate`: the stability and capability of a model under each fix
calibration_plan     the sizes, prompts and conversations of a calibration
capability           the questions that measure capability
capability_items     reads the questions and texts of each kind of capability
questioner           asks them in the middle of dialogs
checking             `holdfast check`: conversations of each prompt until its verdict is certain
precedent            `holdfast precedent`: does a model follow its prompt, or its earlier replies?
precedent_scenarios  the prompt and the questions of each conversation
precedent_chats      makes both histories of a conversation, and the replies after them
attention_decay      `holdfast trace`: the attention mass on the prompt at every token
fitting/             `holdfast fit`: directions that methods learn from a model
"""

from typing import TYPE_CHECKING, Any

from holdfast.lazy_imports import import_name
from holdfast.records.check_records import Terms
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import load_capability
from holdfast.study.checking import CheckOptions, check

if TYPE_CHECKING:
    from holdfast.study.fitting.fit import fit


def __getattr__(name: str) -> Any:
    return import_name(__name__, {"fit": "holdfast.study.fitting.fit"}, name)
