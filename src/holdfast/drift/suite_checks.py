"""Whether a rule can be probed, and whether its measure agrees with its examples."""

from holdfast.drift.cases import LabelledTurn, Rule
from holdfast.errors import UsageError
from holdfast.measures.judging import check_labels
from holdfast.measures.scores import FOLLOWED, Score, Undecided


def check_examples(rule: Rule, where: str) -> None:
    """Refuses a measure that scores an example on the wrong side, and a judge with too few."""
    if rule.measure.judged:
        labels = (rule.shown_to_judge(follows=True), rule.shown_to_judge(follows=False))
        check_labels(*labels, f"{where}: the judge")
        return
    for labelled in rule.labelled:
        field = "follows" if labelled.follows else "breaks"
        judged = score_labelled(rule, labelled)
        if isinstance(judged, Score) and (judged.value >= FOLLOWED) == labelled.follows:
            continue
        limit = "at least" if labelled.follows else "below"
        if isinstance(judged, Score):
            scores = f"scores {judged.value:.2f} ({judged.reason}), and needs {limit} {FOLLOWED}"
        elif judged is None:
            scores = "is not scored, as the rule does not apply to it"
        else:
            scores = f"is not scored, as {judged.reason}"
        raise UsageError(
            f"{where}: the reply {labelled.shown!r} under {field!r} {scores}; correct the measure"
            f" {rule.measure.name!r} or the example."
        )


def score_labelled(rule: Rule, labelled: LabelledTurn) -> Score | Undecided | None:
    """The score of a labelled turn; None if the rule does not apply to it. Its `when` counts where
    the user's message is given."""
    role = "tool" if labelled.turn.calls else "user"
    if labelled.user and not rule.when.applies(labelled.turn, labelled.user, role):
        return None
    judged: Score | Undecided | None = rule.measure.judge_turn(labelled.turn)
    return judged


def check_probed(rule: Rule, where: str) -> None:
    """Refuses a rule that has no probe, or whose measure cannot score the reply to one."""
    if not rule.probes:
        raise UsageError(
            f"{where} has neither 'probe' nor 'probes'; give one of the two, or let `holdfast try"
            " --prompt FILE` draft rules with their probes (`holdfast logs` and `holdfast proxy`"
            " need none)."
        )
    if rule.measure.of_turn:
        raise UsageError(
            f"{where}: the measure {rule.measure.name!r} reads tool calls, which no reply to a"
            " probe has; score it with `holdfast logs`."
        )
