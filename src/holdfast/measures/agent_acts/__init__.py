"""Reads what a coding agent did from the calls of its tools.

    ToolCall("Bash", {"command": "cd app && sudo git push"})
    -> Action(`cd app`), Action(`sudo git push`, folder="app"), which is also read as `git push`

A call goes through these steps; nothing is run. What cannot be read from a call is left out, or
counted as unknown.

    call -> script -> commands -> ways to read each command -> files changed, commits, branches

Where to look, by question:

What did the agent do in this turn?                  actions, as a list of agent_action
Which tools run scripts, write files or ask?         agent_tools; user_questions reads the questions
What was typed into an open shell?                   typed_input
Which folder does a command run in?                  working_folders
Is this path absolute, a folder, a written file?     path_names
Which text has a file that the agent wrote?          written_texts; script_files, for its scripts

Which commands does this script run?                 scripts/shell
Which of its lines never run?                        scripts/unreachable_code
What is the value of "$f", and what did `cd` do?     scripts/shell_words, scripts/shell_state
What does `cat <<EOF | bash` read?                   scripts/command_input
Which script is within `bash -c` or `make deploy`?   scripts/nested_scripts

How else may this command be written?                commands/command_readings
Is `git push` behind `sudo` or `docker exec`?        commands/command_wrappers
Which values do its options have?                    commands/command_options

What does this Python or Perl program run, write?    programs/program_texts

Which files does this command change?                edits/command_edits
Which files does this tool change?                   edits/tool_edits
Does this path match the glob of a rule?             edits/path_globs
Is this text a comment, or within quotation marks?   edits/comments, edits/quoted_code

Which commits did it make, of which files?           git/agent_commits, git/staging_commands
Which branch was checked out?                        git/checked_out_branch
"""
