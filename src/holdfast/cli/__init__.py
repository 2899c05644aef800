"""The command line.

entry_point        `main` runs one command, and returns its exit code
command_list       the commands, by the groups of `holdfast --help`; each group is a folder here
main_parser        finds the command of a command line, and builds its options
command_failures   the sentence and the exit code of a command that failed
shared             the parts that commands share
"""

from holdfast.cli.entry_point import main as main
