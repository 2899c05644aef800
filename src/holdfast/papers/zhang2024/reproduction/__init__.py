"""Tables and figures of Zhang et al. 2024 (PASTA), on any model, with the paper's claims judged."""

from holdfast.papers.zhang2024.reproduction.reproduce_pasta import reproduce
from holdfast.papers.zhang2024.reproduction.reproduction_setup import (
    SCALES,
    TASKS,
    Scale,
    Setup,
    check_samples,
)
