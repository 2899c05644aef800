"""Which files an agent changed, and with which text.

    echo "x = 2" > a.py  ->  FileEdit("a.py", added=("x = 2",), is_whole=True)

file_edits           a change of a file: the type
command_edits        the changes by a command; output_files, those by its arguments
side_effects         the changes by formatters, and by what Git brings in
tool_edits           the changes by a tool; patches, those that a patch describes

What rules ask about them:

path_globs           whether the glob of a rule matches a path
comments             which parts of a text are comments
quoted_code          which code a text in quotation marks only names
"""
