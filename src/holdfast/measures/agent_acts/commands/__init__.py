"""Reads a single command: what else it may be called, and which command or script is within it.

    uv run --frozen make lint test  ->  `uv run make lint test`, `make lint test`, `make test`, ...

shell_commands       a command of a script, and a way to read it: the types
command_readings     all ways to read a command
command_wrappers     the command within another, such as `sudo`; wrapper_table lists these, and
                     wrapper_options finds where their options end
equivalent_commands  other ways to write the same command; option_forms, those of its options
command_options      the options of a command and their values

Scripts within a command:

inner_scripts        those in its arguments, options or input; find_commands, those of `find`
run_targets          those that `make` or `npm` run by name; target_files reads the files for this
git_aliases          the aliases of Git
"""
