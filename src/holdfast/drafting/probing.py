"""Drafted rules that a conversation can test: those about replies, each with the same questions."""

from dataclasses import replace

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule, UndraftedLine
from holdfast.drafting.drafts import Draft, Undrafted
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
    """The file with questions, and with those rules alone that a reply shows; the others become
    lines with a reason.
    """
    return replace(file, lines=tuple(map(_if_shown, file.lines)), probes=PROBES)


def with_probes(file: DraftedFile) -> DraftedFile:
    """A bot's prompt with questions for the rules that a reply shows; another file as it is."""
    return replace(file, probes=PROBES) if file.of_bot else file


def is_shown_by_replies(draft: Draft) -> bool:
    """Whether the reply to a question shows if a rule is kept: to its own, or to any."""
    return (not draft.when or bool(draft.probes)) and not build(draft.measure).of_turn


def _if_shown(line: DraftedRule | UndraftedLine) -> DraftedRule | UndraftedLine:
    if isinstance(line, UndraftedLine) or is_shown_by_replies(line.draft):
        return line
    return UndraftedLine(line.statement, ONLY_IN_LOGS)
