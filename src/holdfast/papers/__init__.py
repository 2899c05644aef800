"""The papers behind Holdfast: their tasks and analyses, and their figures on your model.

findings.py    reproduced figures and tables, claims and verdicts, the page
li2024/        Li et al. 2024: Figures 3 to 9, the geometry of hidden states
zhang2024/     Zhang et al. 2024 (PASTA): its tasks, head profiling, its tables and figures
"""
