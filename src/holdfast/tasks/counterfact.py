"""CounterFact: does a new fact outweigh the old one (Zhang et al. 2024, sections 4 and A.1).
Emphasised: the sentence with the new fact.

Efficacy: the new target is likelier than the old one behind the question; paraphrase: the share of
rephrased questions for which it is. Probabilities are of all tokens of a target, as in Meng et al.
2022."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.tasks.data import ChangedFact
from holdfast.tasks.sample import FACTS, Sample, Task


def ask(fact: ChangedFact, instruction: str, candidates: Sequence[str] = ()) -> Sample:
    """Both facts, what stands between them and the question, and each way to ask."""
    previous, current = (
        f"Previously, {_inside(fact, fact.old)}.",
        f"Currently, {_inside(fact, fact.new)}.",
    )
    told = " ".join(part for part in (previous, current, fact.aside) if part)
    prompts = tuple(f"{told} {question}" for question in (fact.question, *fact.paraphrases))
    return Sample(
        prompts,
        (current,),
        fact.new,
        fact.new,
        f"{fact.statement(fact.new)}.",
        (fact.new, fact.old),
    )


def _inside(fact: ChangedFact, target: str) -> str:
    """A statement as it goes on behind a comma; a name keeps its capital."""
    told = fact.statement(target)
    return "the " + told[4:] if fact.relation.startswith("The ") else told


def score(sample: Sample, log_probabilities: Sequence[Sequence[float]]) -> dict[str, float]:
    """Whether the new target is likelier than the old one, and for which share of the paraphrases,
    if there are any.
    """
    wins = [float(new > old) for new, old in log_probabilities]
    return {
        "efficacy": wins[0],
        **({"paraphrase": sum(wins[1:]) / len(wins[1:])} if wins[1:] else {}),
    }


TASK = Task(
    "counterfact",
    FACTS,
    ("efficacy", "paraphrase"),
    ("original",),
    ask,
    score,
    lambda fact: True,
    fluent=True,
    max_new_tokens=64,
    chooses=True,
)
