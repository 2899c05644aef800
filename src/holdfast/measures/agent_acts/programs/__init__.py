"""Reads what programs in the words or the input of a command run and write.

    python3 -c "import os; os.system('git push')"  ->  ProgramEffects(scripts=["git push"])

program_effects      the commands that a program runs, and its edits: the type
program_texts        finds the program in a command, and its language
python_programs      Python; python_values, the values of names; python_writes, the files written
javascript_programs  JavaScript
literal_commands     Perl, Ruby, PHP, Lua, AWK and Expect
"""
