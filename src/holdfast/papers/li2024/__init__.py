"""Figures 3 to 9 of Li et al. 2024, on any model, with the paper's claims judged."""

from holdfast.papers.li2024.figures_3_to_9 import reproduce
from holdfast.papers.li2024.li2024_setup import SCALES, Li2024Setup
