"""Studies of a model: calibration and checks of methods, decay of attention, fitted directions.

calibrating          `holdfast calibrate`: stability and capability under each method and strength
calibration_plan     its sizes, prompts and conversations
questions            asks questions in the middle of dialogs; capability has these questions
checking             `holdfast check`: conversations of each prompt until its verdict is certain
precedent            `holdfast precedent`: does a model follow its prompt, or its earlier replies?
precedent_subjects   the questions of each conversation; precedent_chats, both histories of one
attention_decay      `holdfast trace`: the mass on the prompt at every token
fitting/             `holdfast fit`: directions that methods learn
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
