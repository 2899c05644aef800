"""What methods learn from a model before they steer it: `holdfast fit`.

recipe.py     contrastive data of our own, which ship with the package
examples.py   what an example is, and files of one's own
keys.py       covariances of keys, and their singular vectors: SEKA, AdaSEKA, PRISM-Delta
replies.py    hidden states and attention outputs of replies: capping, vectors, GCAD
run.py        one method fitted on one model, and its file
"""

from __future__ import annotations

from holdfast.study.fitting.examples import Contrast, Triplet, read_contrasts, read_triplets
from holdfast.study.fitting.run import fit, fitted_methods

__all__ = [
    "Contrast",
    "Triplet",
    "fit",
    "fitted_methods",
    "read_contrasts",
    "read_triplets",
]
