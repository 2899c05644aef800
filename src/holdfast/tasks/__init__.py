"""The tasks of Zhang et al. 2024: JSON formatting, pronouns changing, Bias in Bios and
CounterFact.
"""

from holdfast.tasks.data import Data
from holdfast.tasks.drawing import SYNTHETIC, draw_samples, load_data
from holdfast.tasks.evaluate import run
from holdfast.tasks.sample import Sample, Task, spans_of
from holdfast.tasks.settings import BASELINES, CATALOGUE, Settings, request_of, variants_of

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
