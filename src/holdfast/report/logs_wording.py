"""Rules of logs, and causes of their breaches, in words."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import cut
from holdfast.records import Run

_MAX_CHARACTERS = 120
# most characters of a rule's words in a column on the terminal, and in a table of the page
IN_A_COLUMN = 44
IN_A_TABLE = 80


class CauseWords(NamedTuple):
    """The words for a cause of breaches."""

    name: str
    clause: str  # of a sentence on a breach
    meaning: str


CAUSE_WORDS = {
    "never_sent": CauseWords(
        "never sent",
        "the rule was never sent",
        "nothing before the breach says the rule, and the log shows everything sent",
    ),
    "removed": CauseWords(
        "removed", "the rule had left the context", "it was in the context, and left it"
    ),
    "outweighed": CauseWords(
        "outweighed",
        "something else had been ordered",
        "the user, or a file that was read later, ordered otherwise",
    ),
    "present": CauseWords("present", "the rule was in the context", "it was in the context"),
    "unknown": CauseWords(
        "not shown", "the log does not show why", "the transcript does not show it"
    ),
    "present_recalled": CauseWords(
        "present, recalled",
        "the model could state the rule",
        "it was in the context, and the model states it there when asked",
    ),
    "present_not_recalled": CauseWords(
        "present, not recalled",
        "the model could not state the rule",
        "it was in the context, and the model does not state it when asked",
    ),
}


def rule_words(run: Run, rule: str, most: int = _MAX_CHARACTERS) -> str:
    """The words of a rule, cut short; its id if the suite has no words for it.

    Args:
        rule: as `Adherence.rule`.
    """
    text = " ".join(run.manifest.rule_texts.get(rule, "").split())
    return cut(text, most) if text else rule


def rule_name(run: Run, rule: str) -> str:
    """'“Never force-push.” (agents/force-push)', or only the id."""
    words = rule_words(run, rule)
    return rule if words == rule else f"“{words}” ({rule})"


def rule_id(run: Run, rule: str) -> str:
    """The id of a rule that is shown by its words; "" if it is shown by its id."""
    return "" if rule_words(run, rule) == rule else rule
