"""Reads what a coding agent did from the calls of its tools.

    a call of a tool -> the script in it -> commands -> files changed, commits, branches

Nothing is run. What cannot be read from a call is left out, or counted as unknown.

actions            the acts of a turn in order; agent_tools and user_questions know the tools

Commands:

shell              the commands that a script runs; shell_words splits it as Bash does, fish_scripts
                   and powershell_scripts translate to Bash, unreachable_code finds what never runs
inner_scripts      scripts within commands; find_commands, those of find; run_targets, those of
                   Makefiles and package.json; git_aliases, the aliases of Git
program_texts      programs within commands; python_programs and javascript_programs read what they
                   do, as program_effects
command_readings   the ways to read a command, without its wrappers (command_wrappers) and by its
                   options (command_options)

Files and commits:

file_edits         changes of files: by commands (command_edits) and by tools (tool_edits)
written_texts      the texts written; comments, which parts are comments; quoted_code, which code a
                   text only names
agent_commits      the commits of a turn; staged_files, the files in them; git_branches, their
                   branch
path_globs         paths as rules name them; pathspecs, as Git does
"""
