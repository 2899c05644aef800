"""The verifiable instructions of IFBench (Pyatkin et al. 2025, arXiv:2507.02833) that need neither
a trained tagger, nor a dictionary of sounds, nor another download: 39 of 58.

Each is a measure of its own that scores 0 or 1. Its name is the published id in our spelling
(`count:numbers` is `ifbench_count_numbers`), and its arguments have their published names. What
each accepts follows the published checkers, whose text was read and not copied; where these let
pass what their instruction forbids, ours follow the instruction and say so.
"""

from holdfast.measures.ifbench import (  # noqa: F401  importing registers measures
    counts,
    formats,
    sentences,
    shapes,
    words,
)
