"""The commands that describe Holdfast itself: methods, measures, docs, completion.

methods      the steering methods
measures     the measures; catalogue_lines has what both commands share
docs         the pages of the documentation
docs_site    the pages as HTML, for `docs --open`
completion   a script for a shell
"""
