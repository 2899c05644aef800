"""Studies of a model: calibration and checks of methods, decay of attention, fitted directions."""

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
