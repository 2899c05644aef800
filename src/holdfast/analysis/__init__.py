"""Records -> statistics and verdicts: numbers with their intervals, and what may be said of them.

Nothing here draws, words a sentence for people, or loads a model; `holdfast.report` draws.

statistics.py    means, their intervals, paired differences
verdicts.py      the one rule for what may be said of a number
series.py        a drift run as matrices [conversation, round]
estimates.py     the table of a drift run: a row per method, measure, and category or rule
baseline.py      the same probes without a system prompt
collapse.py      conversations and replies that broke down
checks.py        verdicts of `check` on prompts, by sequential.py; falls.py against an earlier run
tasks.py         a run of tasks
profile.py       a profile of heads
calibration.py   what each setting of a sweep gives and costs; choice.py which to take
decay.py         attention mass by token, and beside the score
summary.py       summary.json of a run; study_summary.py that of a calibration, trace or geometry
"""
