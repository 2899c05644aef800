"""Turns records into statistics and verdicts: numbers, their intervals, and supported claims.

Nothing here draws or loads a model; `holdfast.report` makes the figures and pages.

All of it
  statistics.py        means, their intervals, paired differences
  verdicts.py          the single rule for what may be said of a number
  sequential.py        verdicts that may be read after every conversation
  unscored.py          probes whose replies are no evidence

A drift run
  series.py            its scores as matrices [conversation, round]
  estimates.py         its table: a row per method, measure, and category or rule
  prompt_rows.py       how stable and how adopted each system prompt is
  accuracy.py          the shares of replies and of instructions that are followed
  prompt_effect.py     the same probes with and without a system prompt
  collapse.py          conversations and replies that broke down
  truncation.py        servers that read less than they were sent
  summarised_rounds.py rules before and after a summary of older rounds
  outcome.py           the outcome that its title states
  loss_map.py          which kinds of rules are lost (`holdfast map`); loss_results.py: its file
  recalled_rules.py    rules that the model can state, and breaks
  summary.py           all of its results, and summary.json

`holdfast check`
  cell_scores.py       a prompt's scores by rule and round
  prompt_comparison.py a prompt against an earlier run
  check_verdicts.py    the verdicts on prompts and rules
  check_file.py        check.json

`holdfast compare`
  run_contrasts.py     in what runs differ
  compared_scores.py   the conversations and rules that two runs share, and how scores differ
  comparison_limits.py what is not compared
  run_comparison.py    the comparison

`holdfast logs`
  adherence.py         how well each rule is kept
  rule_context.py      why rules were broken, and adherence by what was in the context
  logs_summary.py      summary.json

Other studies
  candidates.py        the gain and cost of each setting of a calibration
  choosing.py          which of them to take
  decay.py             attention mass by token; mass_and_score.py: its correlation with the score
  hidden_geometry.py   the spread of hidden states
  precedent_results.py system prompt or earlier replies
  task_results.py      the results of a `tasks` run
  profile.py           a profile of attention heads
  measure_tests.py     how well measures agree with labelled turns
  study_summary.py     summary.json of a calibration, trace or geometry
"""
