"""Checks that a rule can be probed, and that its measure agrees with its examples."""

from holdfast.drift.cases import LabelledTurn, Rule
from holdfast.errors import UsageError
from holdfast.measures.judging import check_labels
from holdfast.measures.scores import MIN_KEPT_SCORE, Score, Undecided


def check_examples(rule: Rule, where: str) -> None:
    """Refuses a measure that scores an example wrong, and a judge with too few examples.

    Args:
        where: names the rule in messages.
    """
    if rule.measure.judged:
        labels = (rule.shown_to_judge(follows=True), rule.shown_to_judge(follows=False))
        check_labels(*labels, f"{where}: the judge")
        return
    for labelled in rule.labelled:
        score = score_labelled(rule, labelled)
        if isinstance(score, Score) and score.keeps_rule == labelled.follows:
            continue
        field = "follows" if labelled.follows else "breaks"
        limit = "at least" if labelled.follows else "below"
        if isinstance(score, Score):
            problem = (
                f"scores {score.value:.2f} ({score.reason}), and needs {limit} {MIN_KEPT_SCORE}"
            )
        elif score is None:
            problem = "is not scored, as the rule does not apply to it"
        else:
            problem = f"is not scored, as {score.reason}"
        raise UsageError(
            f"{where}: the reply {labelled.shown!r} under {field!r} {problem}; correct the measure"
            f" {rule.measure.name!r} or the example."
        )


def score_labelled(rule: Rule, labelled: LabelledTurn) -> Score | Undecided | None:
    """Scores a labelled turn; None if the rule does not apply to it.

    The rule's `when` is considered only if the turn's user message is known.
    """
    role = "tool" if labelled.turn.calls else "user"
    if labelled.user and not rule.when.applies(labelled.turn, labelled.user, role):
        return None
    score: Score | Undecided | None = rule.measure.judge_turn(labelled.turn)
    return score


def check_probed(rule: Rule, where: str) -> None:
    """Refuses a rule that has no probe, or whose measure cannot score the reply to one."""
    if not rule.probes:
        raise UsageError(
            f"{where} has neither 'probe' nor 'probes'; give one of the two, or let `holdfast try"
            " --prompt FILE` draft rules with their probes (`holdfast logs` and `holdfast proxy`"
            " need no probes)."
        )
    if rule.measure.of_turn:
        raise UsageError(
            f"{where}: the measure {rule.measure.name!r} reads tool calls, which no reply to a"
            " probe has; score it with `holdfast logs`."
        )
