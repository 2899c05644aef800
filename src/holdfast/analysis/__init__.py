"""Turns records into statistics and verdicts: numbers, their intervals, and supported claims.

Nothing here draws or loads a model; `holdfast.report` makes the figures and pages.

Used by all commands
  statistics.py        means, their intervals, paired differences; resampling.py: the bootstrap
  verdicts.py          the single rule for what may be said of a number
  sequential.py        verdicts that may be read after every conversation
  unscored.py          probes whose replies are no evidence
  summary.py           summary.json of every command

`holdfast drift`
  drift_results.py     all results of a run, from which the title, the page and summary.json follow
  series.py            its scores as matrices [conversation, round], one series per method
  estimate_rows.py     its tables: rows by method, measure, category or rule; prompt_rows.py: by
                       prompt
  row_differences.py   their differences from the method without steering
  outcome.py           the outcome that its title states
  accuracy.py          the shares of replies and of instructions that are followed
  prompt_effect.py     the same probes with and without a system prompt
  context_summary_effect.py rules before and after a summary of older rounds
  collapse.py          conversations that collapse; broken_replies.py: replies that are gibberish
  truncation.py        servers that read less than they were sent

`holdfast check`
  cell_scores.py       a prompt's scores by rule and round
  check_comparison.py  which of its rules fell since an earlier run
  check_verdicts.py    the bar, the verdicts on prompts and rules, and what would settle them
  check_file.py        check.json

`holdfast compare`
  run_comparison.py    reads runs, finds in what they differ, and pairs their methods
  shared_series.py     one method in two runs: the conversations and rules that they share
  comparison_rows.py   how the scores of these differ
  comparison_limits.py what is not compared

`holdfast map`
  loss_map.py          which kinds of rules are lost; loss_rows.py: its rows; loss_map_file.py:
                       loss_map.json
  recalled_rules.py    rules that the model can state, and breaks
  context_losses.py    how well rules are kept once older rounds leave the model's view

`holdfast logs`
  adherence.py         how well each rule is kept; rule_scores.py: its scores; first_breaks.py:
                       until when
  rule_context.py      why rules were broken, and adherence by what was in the context

`holdfast calibrate`
  calibration_results.py the scores of each setting: stability, capability, broken replies;
                       calibration_reading.py reads them
  choosing.py          their gains and costs, and which of them to take
  calibration_size.py  how large a calibration has to be to decide

Other studies
  decay.py             `trace`: attention mass by token
  mass_and_score.py    the correlation of this mass with the score
  hidden_geometry.py   `geometry`: the spread of hidden states
  precedent_results.py `precedent`: system prompt or earlier replies
  task_results.py      `tasks`: the scores of tasks, by prompt and method
  profile.py           `profile`: the effect of each attention head, and which heads gain something
  measure_tests.py     `suite test`: how well measures agree with labelled turns
"""
