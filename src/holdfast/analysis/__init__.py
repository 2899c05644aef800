"""Turns records into statistics and verdicts: numbers, their intervals, and supported claims.

Nothing here draws or loads a model; `holdfast.report` makes the figures and pages.

statistics.py    means, their intervals, paired differences
verdicts.py      the single rule for what may be said of a number
series.py        a drift run as matrices [conversation, round]
estimates.py     the table of a drift run: a row per method, measure, and category or rule
prompt_rows.py   how stable and how adopted each system prompt is; accuracy.py: shares followed
prompt_effect.py the same probes with and without a system prompt
collapse.py      conversations and replies that broke down
check_verdicts.py verdicts of `check`, using sequential.py
cell_scores.py   a prompt's scores by rule and round; prompt_comparison.py: against an earlier run
task_results.py  the results of a `tasks` run
profile.py       a profile of attention heads
candidates.py    the gain and cost of each setting of a sweep; choosing.py chooses among them
decay.py         attention mass by token, and its correlation with the score: a `Trace`
hidden_geometry.py the spread of hidden states: a `Geometry`
summary.py       the results of a run, and its summary.json
study_summary.py summary.json of a calibration, trace or geometry
"""
