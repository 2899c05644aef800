"""Drafted rules that a conversation can test: those about replies, each with the same questions."""

from dataclasses import replace

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule, UndraftedLine
from holdfast.drafting.drafts import Undrafted
from holdfast.measures import build

# Everyday questions, which any bot can be asked. Rules about the language, the length and the words
# of replies hold whatever the question is, so that one reply tests them all.
PROBES = (
    "What is a good breakfast?",
    "How do I get rid of a cold?",
    "Why is the sky blue?",
    "How can I fall asleep faster?",
    "What should I pack for a weekend by the sea?",
    "Is it better to read in the morning or in the evening?",
)
ONLY_IN_LOGS = Undrafted("a conversation does not show it; `holdfast logs` scores it in recordings")


def probed(file: DraftedFile) -> DraftedFile:
    """The file with those rules alone that a reply shows; the others become lines with a reason."""
    return replace(file, lines=tuple(map(_if_shown, file.lines)))


def _if_shown(line: DraftedRule | UndraftedLine) -> DraftedRule | UndraftedLine:
    if isinstance(line, UndraftedLine):
        return line
    is_asked_for = not line.draft.when or line.draft.probes
    if is_asked_for and not build(line.draft.measure).of_turn:
        return line
    return UndraftedLine(line.statement, ONLY_IN_LOGS)
