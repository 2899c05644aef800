"""Which heads to steer: every head steered alone, scored on samples of a task, and ranked (Zhang et
al. 2024, Algorithm 1).

A task is a list of samples, all `Choice` (continuations compared by their log-probability) or all
`Question` (a reply is written greedily and scored). A run folder has one record per sample, so it
can be killed and repeated at any moment; analysis/profile.py ranks the heads by them.
"""

from holdfast.papers.zhang2024.profiling.run import check_folder, profile
from holdfast.papers.zhang2024.profiling.samples import (
    BY,
    Choice,
    ProfilingPlan,
    Question,
    Samples,
    read_samples,
)
