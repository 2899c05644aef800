"""Checks the measure of a rule on its examples, which are labelled as following or breaking it."""

from holdfast.drift.cases import LabelledTurn, Rule
from holdfast.errors import UsageError
from holdfast.measures.judging import check_labels
from holdfast.measures.scores import MIN_KEPT_SCORE, Score, Undecided


def check_examples(rule: Rule, location: str) -> None:
    """Refuses a measure that scores an example wrong, and a judge with too few examples.

    Args:
        location: names the rule in messages.
    """
    if rule.measure.judged:
        labels = (rule.shown_to_judge(follows=True), rule.shown_to_judge(follows=False))
        check_labels(*labels, f"{location}: the judge")
        return
    for labelled in rule.labelled:
        score = score_labelled(rule, labelled)
        if not (isinstance(score, Score) and score.keeps_rule == labelled.follows):
            field = "follows" if labelled.follows else "breaks"
            raise UsageError(
                f"{location}: the reply {labelled.excerpt!r} under {field!r}"
                f" {_problem_of(score, labelled)}; correct the measure {rule.measure.name!r} or the"
                " example."
            )


def _problem_of(score: Score | Undecided | None, labelled: LabelledTurn) -> str:
    """Says how the score of an example disagrees with its label."""
    if score is None:
        return "is not scored, as the rule does not apply to it"
    if isinstance(score, Score):
        limit = "at least" if labelled.follows else "below"
        return f"scores {score.value:.2f} ({score.reason}), and needs {limit} {MIN_KEPT_SCORE}"
    return f"is not scored, as {score.reason}"


def score_labelled(rule: Rule, labelled: LabelledTurn) -> Score | Undecided | None:
    """Scores a labelled turn; None if the rule does not apply to it.

    The rule's `when` is considered only if the turn's user message is known.
    """
    role = "tool" if labelled.turn.calls else "user"
    if labelled.user and not rule.when.applies(labelled.turn, labelled.user, role):
        return None
    score: Score | Undecided | None = rule.measure.judge_turn(labelled.turn)
    return score
