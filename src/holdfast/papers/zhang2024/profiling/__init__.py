"""Ranks heads for steering: each is steered on its own and scored on samples of a task.

This is Algorithm 1 of Zhang et al. 2024.

A task is a list of samples, all `ContinuationSample` (continuations are compared by their
log-probability) or all `ReplySample` (a reply is decoded greedily and scored). A run folder has
one record per sample, so a run can be interrupted and repeated at any time, and
analysis/profile.py ranks the heads by the records.
"""

from holdfast.papers.zhang2024.profiling.plan import BY, ProfilingPlan
from holdfast.papers.zhang2024.profiling.profile_heads import check_folder, profile
from holdfast.papers.zhang2024.profiling.profiling_samples import (
    ContinuationSample,
    ReplySample,
    Samples,
    read_samples,
)
