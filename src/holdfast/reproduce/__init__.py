"""The papers' figures on your model, each with the paper's claim beside it and whether this run
bears it out.

findings.py    what a reproduced figure or table is: images, rows, claims, verdicts
page.py        findings -> one self-contained page
li2024/        Li et al. 2024
zhang2024/     Zhang et al. 2024 (PASTA)
"""
