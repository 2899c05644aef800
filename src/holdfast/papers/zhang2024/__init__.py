"""Zhang et al. 2024 (PASTA): JSON formatting, pronouns changing, Bias in Bios and CounterFact.

data.py           biographies, changed facts and samples; synthetic.py makes them,
                  published_data.py reads them
catalogue.py      the four tasks, in the paper's words, and how replies are scored
task_settings.py  the settings of a run, the rows of its table; task_samples.py: its samples
evaluate.py       the run
profiling/        ranks heads by steering each one on its own
reproduction/     the paper's tables and figures on your model
"""

from typing import Any

from holdfast.drift.settings import Running
from holdfast.lazy_imports import import_name
from holdfast.papers.zhang2024.catalogue import CATALOGUE
from holdfast.papers.zhang2024.data import Data, Sample, Task, spans_of
from holdfast.papers.zhang2024.evaluate import run
from holdfast.papers.zhang2024.task_samples import SYNTHETIC, draw_samples, load_data, request_of
from holdfast.papers.zhang2024.task_settings import BASELINES, variants_of
from holdfast.papers.zhang2024.task_settings import TaskSettings as Settings

_PROFILING = "holdfast.papers.zhang2024.profiling"
_LATER = dict.fromkeys(("ProfilingPlan", "profile", "read_samples"), _PROFILING)


def __getattr__(name: str) -> Any:
    return import_name(__name__, _LATER, name)
