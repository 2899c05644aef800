"""The commands that describe Holdfast itself: methods, measures, docs, completion.

catalogue    the lists of methods and measures
docs         the pages of the documentation
docs_site    the pages as HTML, for `docs --open`
completion   a script for a shell
"""
