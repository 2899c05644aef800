"""Which heads to steer: every head steered alone, scored on samples of a task, and ranked (Zhang et
al. 2024, Algorithm 1).

A task is a list of samples, all `Choice` (continuations compared by their log-probability) or all
`Question` (a reply is written greedily and scored). A run folder has one record per sample, so it
can be killed and repeated at any moment.

samples.py    choices and questions: from Python, a file, or PASTA's tasks
plan.py       parameters; the samples as a model reads them
layout.py     prompts and continuations in columns, and the scores read from logits
scoring.py    choices and questions scored under every head, by the passes of head_passes.py
run.py        records, resuming; analysis/profile.py ranks the heads by them
"""

from holdfast.papers.zhang2024.profiling.plan import BY, ProfilingPlan
from holdfast.papers.zhang2024.profiling.run import check_folder, profile
from holdfast.papers.zhang2024.profiling.samples import Choice, Question, Samples, read_samples

__all__ = [
    "BY",
    "Choice",
    "ProfilingPlan",
    "Question",
    "Samples",
    "check_folder",
    "profile",
    "read_samples",
]
