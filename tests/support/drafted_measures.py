"""The measures that a text is drafted into."""

from holdfast.drafting.drafts import Undrafted
from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import read_statements


def measures_of(text: str, of_bot: bool = False) -> list[dict]:
    """The measures of all rules that a text drafts."""
    results = [draft(statement, of_bot) for statement in read_statements(text)]
    return [
        rule.measure.entry
        for rules in results
        if not isinstance(rules, Undrafted)
        for rule in rules
    ]
