"""The output of `holdfast check`: a verdict per prompt, the details and the totals."""

from collections.abc import Sequence

from holdfast.analysis.check_verdicts import PromptCheck, Terms
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.plurals import count_of
from holdfast.report.check_details import details
from holdfast.report.check_reasons import sentence
from holdfast.report.wording import wrapped

NO_CLEAR_FAILURE = "no clear failure"
UNAVAILABLE = "unavailable"


def verdict_word(checked: PromptCheck, terms: Terms) -> str:
    """The verdict on a prompt in a word.

    An undecided verdict has a word of its own after an outage or a smoke test.
    """
    if checked.verdict == PASS and terms.smoke and terms.min_stability is None:
        return NO_CLEAR_FAILURE  # the few pairs of a smoke test cannot show that nothing fell
    if checked.verdict != UNDECIDED:
        return checked.verdict
    if checked.unavailable:
        return UNAVAILABLE
    return NO_CLEAR_FAILURE if terms.smoke and checked.lowest is not None else UNDECIDED


def lines_of(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The verdicts, one per line, then details of prompts that do not pass, and the totals."""
    words = {checked.id: verdict_word(checked, terms) for checked in checks}
    word_width = max(map(len, words.values()))
    id_width = max(map(len, words))
    lines = [
        f"{words[checked.id].upper().ljust(word_width)}  {checked.id.ljust(id_width)}"
        f"  {sentence(checked, terms)}"
        for checked in checks
    ]
    for checked in checks:
        if checked.verdict != PASS and words[checked.id] != NO_CLEAR_FAILURE:
            title = f"{words[checked.id].upper()} {checked.id}"
            lines += ["", title, "-" * len(title), *details(checked)]
    return [*lines, "", totals(checks, terms), *caveats(checks, terms)]


def caveats(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """Says what undecided verdicts do not show after an outage or a smoke test; [] otherwise."""
    sentences = []
    if unavailable := [checked for checked in checks if checked.unavailable]:
        lost = sum(checked.lost for checked in unavailable)
        asked = sum(len(checked.records) * len(checked.cells) for checked in unavailable)
        sentences.append(
            f"Unavailable: {lost:,} of {asked:,} replies were lost, as the server failed or a"
            " filter withheld them. This says nothing about the prompts; repeat the check with"
            " another --out."
        )
    if terms.smoke and any(verdict_word(item, terms) == NO_CLEAR_FAILURE for item in checks):
        sentences.append(
            "A smoke test finds only clear failures, so this does not show that the prompts hold;"
            " the check without --smoke can."
        )
    return wrapped(sentences)


def count_verdicts(checks: Sequence[PromptCheck], terms: Terms | None = None) -> str:
    """'1 of 3 prompts failed, 2 passed'.

    Args:
        terms: tells undecided verdicts of an outage or a smoke test apart; None counts them all as
            undecided.
    """
    verdicts: list[str] = [checked.verdict for checked in checks]
    words = {FAIL: "failed", UNDECIDED: "undecided", PASS: "passed"}
    if terms is not None:
        verdicts = [verdict_word(checked, terms) for checked in checks]
        words |= {NO_CLEAR_FAILURE: "without a clear failure", UNAVAILABLE: "unavailable"}
    counts = [
        (verdicts.count(verdict), word) for verdict, word in words.items() if verdict in verdicts
    ]
    (count, word), *others = counts
    first = f"{count} of {count_of(len(checks), 'prompt')} {word}"
    return ", ".join([first, *(f"{count} {word}" for count, word in others)])


def totals(checks: Sequence[PromptCheck], terms: Terms) -> str:
    """How many prompts fail, are undecided and pass, and by which criterion."""
    counts = count_verdicts(checks, terms)
    error = percentage(terms.error)
    if terms.min_stability is None:
        return (
            f"{counts} (each rule compared with an earlier run; chance of any false alarm at most"
            f" {error})."
        )
    if all(checked.verdict == UNDECIDED for checked in checks):
        return f"{counts} (bar: {terms.min_stability:g} for every rule in every round)."
    return (
        f"{counts} (bar: {terms.min_stability:g} for every rule in every round; chance of any wrong"
        f" verdict at most {error})."
    )


def percentage(share: float) -> str:
    """'5%', '0.5%'."""
    return f"{100 * share:g}%"
