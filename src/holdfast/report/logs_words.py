"""The words of `holdfast logs` for rules and for causes of breaches.

For example:

    the rule shop/greet -> rule_name   -> “Greet the customer.” (shop/greet)
    the cause "removed" -> CAUSE_WORDS -> "the rule had left the context"
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.errors import cut
from holdfast.logs.unrecorded_prompts import WITHOUT_PROMPTS
from holdfast.records import Run

# the length in characters to which a rule's words are cut: in sentences, in a column on the
# terminal, and in a table of the page
_IN_A_SENTENCE = 120
IN_A_COLUMN = 44
IN_A_TABLE = 80


class CauseWords(NamedTuple):
    """The words for a cause of breaches."""

    name: str
    clause: str  # for the end of a sentence on a breach
    meaning: str


CAUSE_WORDS = {
    "never_sent": CauseWords(
        name="never sent",
        clause="the rule was never sent",
        meaning="nothing before the breach says the rule, and the log shows everything sent",
    ),
    "removed": CauseWords(
        name="removed",
        clause="the rule had left the context",
        meaning="it was in the context, and left it",
    ),
    "outweighed": CauseWords(
        name="outweighed",
        clause="something else had been ordered",
        meaning="the user, or a file that was read later, ordered otherwise",
    ),
    "present": CauseWords(
        name="present",
        clause="the rule was in the context",
        meaning="it was in the context",
    ),
    "unknown": CauseWords(
        name="not shown",
        clause="the log does not show why",
        meaning="the transcript does not show it",
    ),
    "present_recalled": CauseWords(
        name="present, recalled",
        clause="the model could state the rule",
        meaning="it was in the context, and the model states it there when asked",
    ),
    "present_not_recalled": CauseWords(
        name="present, not recalled",
        clause="the model could not state the rule",
        meaning="it was in the context, and the model does not state it when asked",
    ),
}


def said_to_be_loaded(run: Run) -> tuple[str, ...]:
    """The files of --loaded, if the formats of the logs do not show which files were loaded."""
    unseen = any(name in WITHOUT_PROMPTS for name in run.manifest.formats)
    return tuple(run.manifest.loaded) if unseen else ()


def rule_words(run: Run, rule: str, max_characters: int = _IN_A_SENTENCE) -> str:
    """The words of a rule, cut to `max_characters`; its id if the suite has no words for it.

    Args:
        rule: its name, such as "shop/greet".
    """
    text = " ".join(run.manifest.rule_texts.get(rule, "").split())
    return cut(text, max_characters) if text else rule


def rule_name(run: Run, rule: str) -> str:
    """'“Never force-push.” (agents/force-push)'; only the id if there are no words."""
    words = rule_words(run, rule)
    return rule if words == rule else f"“{words}” ({rule})"


def rule_title(run: Run, rule: str) -> str:
    """'“Never force-push.”', cut short for a title; the id if there are no words."""
    words = rule_words(run, rule, IN_A_TABLE)
    return rule if words == rule else f"“{words}”"


def rule_id(run: Run, rule: str) -> str:
    """The id to print beside `rule_words`; "" if these are the id already."""
    return "" if rule_words(run, rule) == rule else rule
