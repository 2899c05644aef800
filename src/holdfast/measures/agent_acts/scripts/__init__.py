"""Finds the commands that a shell script runs.

    f=a.txt; bash -c "rm $f" > log  ->  ShellCommand(`rm a.txt`, writes=("log",))

In the order in which a script goes through them:

shell              reads a script: its statements one after the other, and the scripts within them
grammar_gaps       makes up for what the parser does not read
bash_syntax        the statements of a parsed script, and their redirections
unreachable_code   which statements never run; constant_tests, whether `[ 1 = 2 ]` holds
shell_definitions  takes note of variables, lists, functions and aliases
shell_state        all that is known at a point of a script: those, the folder, and written files
command_parts      the words of a command, its assignments and redirections
shell_words        words with quotes, variables, braces and here-documents
command_input      the text that a command reads
command_output     the text that a command prints, and the files that it goes to
nested_scripts     the scripts that a command runs; fish_scripts and powershell_scripts translate
                   them to Bash
"""
