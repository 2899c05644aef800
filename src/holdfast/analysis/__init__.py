"""Turns records into statistics and verdicts: numbers, their intervals, and supported claims.

Nothing here draws or loads a model; `holdfast.report` makes the figures and pages.

Used by all commands
  statistics.py        means, their intervals, paired differences; resampling.py: the bootstrap
  verdicts.py          the single rule for what may be said of a number
  sequential.py        verdicts that may be read after every conversation
  unscored.py          probes whose replies are no evidence

A drift run
  series.py            its scores as matrices [conversation, round]
  estimates.py         its tables: a row per method, measure, category, rule or system prompt
  method_differences.py methods against the one without steering
  accuracy.py          the shares of replies and of instructions that are followed
  prompt_effect.py     the same probes with and without a system prompt
  collapse.py          conversations that broke down; broken_replies.py: replies that are gibberish
  truncation.py        servers that read less than they were sent
  summarised_rounds.py rules before and after a summary of older rounds
  outcome.py           the outcome that its title states
  loss_map.py          which kinds of rules are lost (`holdfast map`); loss_results.py: its file
  recalled_rules.py    rules that the model can state, and breaks
  drift_results.py     all of its results
  summary.py           summary.json of all commands; method_summaries.py: its results by method

`holdfast check`
  cell_scores.py       a prompt's scores by rule and round, and a comparison with an earlier run
  check_verdicts.py    the bar, the verdicts on prompts and rules, and what would settle them
  check_file.py        check.json

`holdfast compare`
  run_contrasts.py     in what runs differ
  shared_series.py     the conversations and rules that two runs share, and how their scores differ
  comparison_limits.py what is not compared
  run_comparison.py    the comparison

`holdfast logs`
  adherence.py         how well each rule is kept, and until when
  rule_context.py      why rules were broken, and adherence by what was in the context

Other studies
  candidates.py        the gain and cost of each setting of a calibration
  choosing.py          which of them to take, and how large a calibration has to be to decide
  decay.py             attention mass by token, and its correlation with the score
  hidden_geometry.py   the spread of hidden states
  precedent_results.py system prompt or earlier replies
  task_results.py      the results of a `tasks` run
  profile.py           a profile of attention heads, and which of them gain something
  measure_tests.py     how well measures agree with labelled turns
"""
