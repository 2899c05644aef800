"""The rules of a drafted suite that a conversation tests, and the questions that it asks."""

from dataclasses import replace

from holdfast.drafting.drafted_files import DraftedFile, DraftedRule, UndraftedLine
from holdfast.drafting.drafts import Draft, Undrafted
from holdfast.measures import build

# Everyday questions that any bot can be asked. A rule about the language, the length or the words
# of replies holds whatever the question is, so that one reply tests all of them.
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
    """The file with questions, and with only those rules that a reply to a question shows; the
    other rules become lines with a reason.
    """
    return replace(file, lines=tuple(map(_if_shown, file.lines)), probes=PROBES)


def with_probes(file: DraftedFile) -> DraftedFile:
    """A bot's prompt with questions for its rules; another file as it is."""
    return replace(file, probes=PROBES) if file.of_bot else file


def is_shown_by_replies(draft: Draft) -> bool:
    """Whether a reply to a question shows if a rule is kept: to a question of the rule, or to any
    question if the rule is for all turns.
    """
    return (not draft.when or bool(draft.probes)) and not build(draft.measure.entry).of_turn


def _if_shown(line: DraftedRule | UndraftedLine) -> DraftedRule | UndraftedLine:
    if isinstance(line, UndraftedLine) or is_shown_by_replies(line.draft):
        return line
    return UndraftedLine(line.statement, ONLY_IN_LOGS)
