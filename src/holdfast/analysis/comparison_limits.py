"""Sentences on what a comparison of runs leaves out, and on what to be careful about.

Each function returns its sentences, or [] if there is nothing to say. For example:

    rules_left_out     "Only run 2 has a score of baker, brief; baker, polite."
    samples_left_out   "Rounds after 4 are only in run 2, and are not compared."
"""

from collections.abc import Sequence

from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.series import Series
from holdfast.analysis.shared_series import RuleKey, rules_of
from holdfast.analysis.truncation import has_lost_prompt
from holdfast.plurals import count_of, listing
from holdfast.records.identity import ConversationsIdentity

_MAX_RULES_NAMED = 8  # in one sentence


def state_caveats(results: DriftResults) -> list[str]:
    """Warns that a run is a check, or is not finished."""
    run = results.run
    if results.check is not None:
        return [
            f"{results.label} is a check, which stops a prompt as soon as its verdict is certain;"
            " that moves its means a little towards the verdict, so take runs of `holdfast drift`"
            " where a small difference matters."
        ]
    methods = run.identity_as(ConversationsIdentity).methods
    planned = (results.settings.conversations or 0) * max(1, len(methods))
    if len(run.conversations) >= planned:
        return []
    return [
        f"{results.label} is not finished: it has {len(run.conversations):,} of {planned:,}"
        " conversations. Verdicts hold for a run that is read when it is finished; repeat its"
        " command first."
    ]


def lost_prompt(results: DriftResults) -> list[str]:
    """Warns that a server cut off the system prompt."""
    if not has_lost_prompt(results.series):
        return []
    return [
        f"The server of {results.label} cut the system prompt off in some rounds, so a fall there"
        " says nothing about the model; its own report says where."
    ]


def methods_alone(first: DriftResults, run: DriftResults) -> list[str]:
    """Names the methods that only one of the two runs has, if they have others in common."""
    if not set(first.methods) & set(run.methods):
        return []
    sentences = []
    for results, other_results in ((first, run), (run, first)):
        if alone := [method for method in results.methods if method not in other_results.methods]:
            verb = "is" if len(alone) == 1 else "are"
            sentences.append(
                f"Only {results.label} has {listing(alone)}, which {verb} not compared."
            )
    return sentences


def other_method(before: Series, now: Series) -> list[str]:
    """Warns that two runs are compared under different methods."""
    if before.method == now.method:
        return []
    return [
        f"{before.run} was made with {before.method} and {now.run} with {now.method}, so"
        " the difference is also that of the methods."
    ]


def rules_left_out(before: Series, now: Series) -> list[str]:
    """Names the rules that only one run has, those that differ in kind, polarity or judge, and
    those that were asked with other questions.
    """
    questions_before = rules_of(before)
    questions_now = rules_of(now)
    shared_rules = [rule for rule in questions_before if rule in questions_now]
    ids_before = {rule.id for rule in questions_before}
    ids_now = {rule.id for rule in questions_now}
    sentences = []
    if changed := (ids_before & ids_now) - {rule.id for rule in shared_rules}:
        names = [RuleKey(*rule_id).name for rule_id in sorted(changed)]
        sentences.append(
            f"Not compared, as their kind, polarity or judge differs: {'; '.join(names)}."
        )
    only_before = [rule.name for rule in questions_before if rule.id not in ids_now]
    only_now = [rule.name for rule in questions_now if rule.id not in ids_before]
    for run, names in ((before.run, only_before), (now.run, only_now)):
        if names:
            sentences.append(f"Only {run} has a score of {_first_rules(names)}.")
    other_questions = [
        rule.name for rule in shared_rules if not questions_before[rule] & questions_now[rule]
    ]
    if other_questions:
        sentences.append(
            f"Asked with different questions in each run, which may be harder or easier:"
            f" {'; '.join(other_questions)}."
        )
    return sentences


def _first_rules(names: Sequence[str]) -> str:
    """Lists rules as 'a; b and 3 more rules'; with semicolons, as their names have commas."""
    num_unnamed = len(names) - _MAX_RULES_NAMED
    text = "; ".join(names[:_MAX_RULES_NAMED])
    return f"{text} and {num_unnamed} more rules" if num_unnamed > 0 else text


def samples_left_out(before: Series, now: Series, pairs: int) -> list[str]:
    """Warns that the runs are two independent samples (0 pairs), or counts the conversations
    without a partner; and says which rounds only one run has.
    """
    sentences = []
    if not pairs:
        sentences.append(
            f"The conversations of {before.run} and {now.run} did not begin alike, so they are not"
            " compared in pairs but as two samples, which shows less."
        )
    elif left_out := [
        f"{count_of(len(series.records) - pairs, 'conversation')} of {series.run}"
        for series in (before, now)
        if len(series.records) > pairs
    ]:
        sentences.append(
            f"{' and '.join(left_out)} have no partner that began alike, and so are left out."
        )
    if before.rounds != now.rounds:
        longer, shorter = sorted((before, now), key=lambda series: -series.rounds)
        sentences.append(
            f"Rounds after {shorter.rounds} are only in {longer.run}, and are not compared."
        )
    return sentences
