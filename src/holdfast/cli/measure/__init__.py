"""The commands that hold conversations and measure how the model drifts: try, drift, check.

first_run     `try`: chooses the options of a drift run that fits into a given time
prompt_suite  drafts its suite from the bot's prompt
pilot         times a few replies, to choose how long its conversations are
timed_run     holds as many of them as there is time for; time_box divides the time
drift         conversations under one or several methods
check         conversations until each prompt passes or fails; check_arguments has its options,
              check_next_step says what to do after its verdicts
"""
