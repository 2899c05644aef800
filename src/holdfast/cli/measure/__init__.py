"""The commands that hold conversations and measure how the model drifts: try, drift, check.

first_run   `try`: drafts the rules of a prompt, and chooses the options of a drift run
pilot       times a few replies, to choose how long its conversations are
time_box    fits its conversations into its time
drift       conversations under one or several methods
check       conversations until each prompt passes or fails
"""
