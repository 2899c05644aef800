"""Directions that methods learn from a model before they steer it: `holdfast fit`.

recipe.py     contrastive data that ship with the package
examples.py   triplets, contrasts, and files of one's own
keys.py       covariances of keys, and their singular vectors: SEKA, AdaSEKA, PRISM-Delta
replies.py    hidden states and attention outputs of replies: capping, vectors, GCAD
run.py        fits one method on one model, and writes the file
"""
