"""Rules of logs as a reader knows them: by their words, with the id as an addition."""

from __future__ import annotations

from holdfast.errors import cut
from holdfast.records import Run

_MOST_CHARACTERS = 120


def rule_words(run: Run, rule: str, most: int = _MOST_CHARACTERS) -> str:
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
