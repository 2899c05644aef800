"""The tasks of Zhang et al. 2024: JSON formatting, pronouns changing, Bias in Bios and
CounterFact.
"""

from holdfast.tasks.data import Data
from holdfast.tasks.evaluate import (
    BASELINES,
    CATALOGUE,
    SYNTHETIC,
    Settings,
    draw_samples,
    load_data,
    request_of,
    run,
    variants_of,
)
from holdfast.tasks.sample import Sample, Task, spans_of

__all__ = [
    "BASELINES",
    "CATALOGUE",
    "SYNTHETIC",
    "Data",
    "Sample",
    "Settings",
    "Task",
    "draw_samples",
    "load_data",
    "request_of",
    "run",
    "spans_of",
    "variants_of",
]
