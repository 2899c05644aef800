"""The commands that go on from a first run."""

from holdfast.analysis.summary import DriftResults
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.cli.drift import DriftArguments
from holdfast.cli.output import command_of
from holdfast.drift import Suite


def next_step(planned: DriftArguments, suite: Suite, results: DriftResults) -> str:
    """The commands that go on from here: more conversations, and a fix to compare."""
    recorded = len(results.series[0].records)
    total = planned.conversations if recorded < planned.conversations else 2 * recorded
    more = planned.model_copy(update={"conversations": total})
    compared = planned.model_copy(
        update={
            "conversations": max(recorded, MIN_SAMPLES),
            "method": ["none", _fix(planned, suite)],
        }
    )
    return "\n".join(
        [
            "Next:",
            f"  more conversations, {total} in all; those so far are kept:",
            f"    {command_of('drift', more)}",
            "  the same conversations with a fix, compared:",
            f"    {command_of('drift', compared)}",
        ]
    )


def _fix(planned: DriftArguments, suite: Suite) -> str:
    """The fix to begin with, by docs/choosing.md: any model and server takes those for rules."""
    if planned.model == "default":
        return "split-softmax:exponent=0.5"
    rules = [rule for case in suite.cases for rule in case.all_rules]
    if not all(rule.text for rule in rules):
        return "reminder:every=1"
    # a reply is checked by the rules that it shows
    checked = all(rule.is_shown_by_turns and not rule.measure.of_turn for rule in rules)
    return "check-and-retry:n=2" if checked else "reminder:every=1,text=rules"
