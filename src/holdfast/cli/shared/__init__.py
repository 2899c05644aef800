"""The parts that commands share.

A command:

command             its options are a Pydantic model
command_parser      its parser is built from the model
argument_parser     errors of one sentence, and the layout of the help
options             the options that several commands share
exit_codes          the exit codes

Its models:

model_loading       those of --model and --user-model
local_loading       those that run in this process; endpoint_options, those behind a URL
judge_loading       judges, and the model of `logs` and `suite`
model_checks        refusals before anything is loaded, and warnings

Its run:

run_names           the folder
user_messages       the user's side of the conversations
drift_run           the conversations; dry_run times a few of them, estimates says what all cost

What it prints:

output              results, pages and the command as it was typed; json_output, for --json
notes               lines on standard error
progress_bar        the progress; interrupts ends a command on SIGTERM
browser             opens a page
"""
