"""The four tasks of Zhang et al. 2024, sections 4 and A.1, in the paper's words, and their scores.

Where the released code differs from the paper, the docstrings say what is done here.

- json: name a person's occupation as a JSON object. Emphasised: the instruction.
- pronouns: rewrite a biography with "they". Emphasised: the instruction.
- bios (Bias in Bios): which of 28 occupations is likeliest for a biography. Emphasised: its
  first sentence. A candidate's probability is that of all its tokens as the beginning of the reply
  (the released code uses only the first token, which cannot distinguish candidates that begin
  alike).
- counterfact (CounterFact): does a new fact outweigh the old one. Emphasised: the sentence with the
  new fact. Efficacy: the new target is likelier than the old one after the question; paraphrase:
  the share of rephrased questions for which it is. Probabilities are of all tokens of a target, as
  in Meng et al. 2022.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.papers.zhang2024.data import (
    BIOGRAPHIES,
    FACTS,
    INSTRUCTIONS,
    Biography,
    ChangedFact,
    Sample,
    Task,
)

SUBJECTS = frozenset(("she", "he"))
SINGULAR = SUBJECTS | {"her", "him", "hers", "his", "herself", "himself"}
_MIN_FLUENCY_TOKENS = 10  # no shorter text reaches 3.0, so its fluency would mean nothing
_N_GRAM_WEIGHTS = {2: 2 / 3, 3: 4 / 3}  # by n, as in ROME's code


def first_object(reply: str) -> dict[str, Any] | None:
    """The first JSON object anywhere in the reply; None if there is none.

    It must be strict JSON: double quotes, no trailing comma, no NaN. An object that is nested too
    deeply for Python does not count.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    for match in re.finditer(r"\{", reply):
        try:
            return decoder.raw_decode(reply, match.start())[0]
        except ValueError:
            continue
        except RecursionError:
            break
    return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def holds_target(item: Mapping[str, Any], target: str) -> bool:
    """Whether a JSON object's occupation (or any value but the name) has `target` as whole words.

    Case is ignored. The released code searches every value for the substring, so it finds "dj" in
    "adjunct", and an occupation in a name.
    """
    value_by_key = {key.lower(): value for key, value in item.items()}
    all_but_name = [value for key, value in item.items() if key.lower() != "name"]
    values = value_by_key.get("occupation", all_but_name)
    target_words = words_of(target)
    for words in map(words_of, _strings(values)):
        for start in range(len(words)):
            if words[start : start + len(target_words)] == target_words:
                return True
    return False


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(entry)


def words_of(text: str) -> list[str]:
    """The words in lower case; apostrophes and "_" end a word, so "they're" is "they" and "re"."""
    return re.findall(r"[^\W_]+", text.lower())


def pronouns_changed(reply: str) -> bool:
    """Whether the reply contains "they" and no "she" or "he".

    The released code only checks that "she" and "he" are gone, so an empty reply passes.
    """
    words = set(words_of(reply))
    return not words & SUBJECTS and "they" in words


def all_pronouns_changed(reply: str) -> bool:
    """Whether "they" is in the reply, and no she, he, her, him, hers, his, herself or himself."""
    return pronouns_changed(reply) and not set(words_of(reply)) & SINGULAR


def likeliest(log_probabilities: Sequence[float]) -> int:
    """The index of the highest log-probability; the first one in a tie."""
    return max(range(len(log_probabilities)), key=lambda index: log_probabilities[index])


def fluency(text: str) -> float | None:
    """The entropy of a text's bigrams and trigrams in bits, which is low for repetitive text.

    It is (2/3 H2 + 4/3 H3) / 2 over words and punctuation marks (Meng et al. 2022); None for fewer
    than 10 of these.
    """
    tokens = re.findall(r"\w+(?:'\w+)*|[^\w\s]", text)
    if len(tokens) < _MIN_FLUENCY_TOKENS:
        return None
    entropies = [weight * _entropy(tokens, n) for n, weight in _N_GRAM_WEIGHTS.items()]
    return sum(entropies) / len(entropies)


def _entropy(tokens: Sequence[str], n: int) -> float:
    counts = Counter(zip(*(tokens[start:] for start in range(n)), strict=False))
    total = counts.total()
    return -sum(count / total * math.log2(count / total) for count in counts.values())


class _JsonWording(NamedTuple):
    """The texts before and after the biography."""

    before: str
    after: str


# the strings that define the task, from appendix A.1
_ANSWER = "Answer the occupation of {person} and generate the answer as json format."
_EXAMPLE = _ANSWER + ' Here is an example: {"name": , "occupation": , }.'
_JSON_WORDINGS = {
    "original": _JsonWording("", _EXAMPLE + " Now generate the answer."),
    "shortened": _JsonWording("", _ANSWER),
    "rephrased": _JsonWording(_EXAMPLE, "Now generate the answer."),
}


def ask_json(biography: Biography, instruction: str, candidates: Sequence[str] = ()) -> Sample:
    """The biography with the instruction in that wording."""
    wording = _JSON_WORDINGS[instruction]
    before = wording.before.replace("{person}", biography.name)
    after = wording.after.replace("{person}", biography.name)
    parts = tuple(part for part in (before, after) if part)
    prompt = " ".join(part for part in (before, biography.text, after) if part)
    answer = {"name": biography.name, "occupation": biography.occupation}
    reply = json.dumps(answer, ensure_ascii=False)
    return Sample((prompt,), parts, biography.occupation, reply)


def score_json(sample: Sample, reply: str) -> dict[str, float]:
    """Whether the reply has a JSON object, and whether the first one has the occupation."""
    answer = first_object(reply)
    return {
        "format": float(answer is not None),
        "prediction": float(answer is not None and holds_target(answer, sample.target)),
    }


_JSON_METRICS = ("format", "prediction")
JSON = Task("json", BIOGRAPHIES, _JSON_METRICS, ask_json, score_json, INSTRUCTIONS, fluent=False)


# the strings that define the task, from appendix A.1, with its spelling
_PRONOUN_WORDINGS = {
    "original": (
        "For the aforementioned text, substitute 'she' and 'he' with 'they' and generate the"
        " occupation of {person} after changing pronouns."
    ),
    "shortened": (
        "Change 'she' and 'he' with 'they' and answer the occupation of {person} after replacing"
        " the pronouns"
    ),
    "rephrased": (
        "For the aforementioned descriptions, replace 'she' and 'he' with 'they' in the"
        " aformentioned text and generate the new text after replacing the pronouns."
    ),
}


def ask_pronouns(biography: Biography, instruction: str, candidates: Sequence[str] = ()) -> Sample:
    """The biography followed by the instruction in that wording."""
    request = _PRONOUN_WORDINGS[instruction].replace("{person}", biography.name)
    prompt = f"{biography.text} {request}"
    return Sample((prompt,), (request,), biography.occupation, biography.changed)


def score_pronouns(sample: Sample, reply: str) -> dict[str, float]:
    """Whether every she and he was changed, and whether every pronoun was."""
    return {
        "accuracy": float(pronouns_changed(reply)),
        "all changed": float(all_pronouns_changed(reply)),
    }


PRONOUNS = Task(
    "pronouns",
    BIOGRAPHIES,
    ("accuracy", "all changed"),
    ask_pronouns,
    score_pronouns,
    INSTRUCTIONS,
    fits=lambda person: not SUBJECTS.isdisjoint(words_of(person.text)),  # has one to change
    max_new_tokens=256,
)


def ask_bios(biography: Biography, instruction: str, candidates: Sequence[str]) -> Sample:
    """The biography followed by the question, and the occupations to choose from."""
    prompt = f"{biography.text} {biography.name} has the occupation of"
    answer = biography.occupation
    return Sample((prompt,), (biography.first,), answer, answer, tuple(candidates))


def score_bios(sample: Sample, log_probabilities: Sequence[Sequence[float]]) -> dict[str, float]:
    """Whether the right occupation is the likeliest."""
    return {"accuracy": float(sample.options[likeliest(log_probabilities[0])] == sample.target)}


BIOS = Task(
    "bios",
    BIOGRAPHIES,
    ("accuracy",),
    ask_bios,
    score_bios,
    fits=lambda person: person.text.count(person.first) == 1,  # otherwise it cannot be emphasised
    chooses=True,
)


def ask_counterfact(fact: ChangedFact, instruction: str, candidates: Sequence[str] = ()) -> Sample:
    """Both facts, the text between them and the question, and each phrasing of the question."""
    previous = f"Previously, {_inside(fact, fact.old)}."
    current = f"Currently, {_inside(fact, fact.new)}."
    facts = " ".join(part for part in (previous, current, fact.aside) if part)
    prompts = tuple(f"{facts} {question}" for question in (fact.question, *fact.paraphrases))
    return Sample(prompts, (current,), fact.new, fact.new, (fact.new, fact.old))


def _inside(fact: ChangedFact, target: str) -> str:
    """A statement as it continues after a comma; a name keeps its capital."""
    statement = fact.statement(target)
    return "the " + statement[4:] if fact.relation.startswith("The ") else statement


def score_counterfact(
    sample: Sample, log_probabilities: Sequence[Sequence[float]]
) -> dict[str, float]:
    """Whether the new target is likelier than the old one, and for which share of paraphrases."""
    wins = [float(new > old) for new, old in log_probabilities]
    scores = {"efficacy": wins[0]}
    if paraphrases := wins[1:]:
        scores["paraphrase"] = sum(paraphrases) / len(paraphrases)
    return scores


_FACT_METRICS = ("efficacy", "paraphrase")
COUNTERFACT = Task(
    "counterfact", FACTS, _FACT_METRICS, ask_counterfact, score_counterfact, chooses=True
)

CATALOGUE: dict[str, Task] = {task.name: task for task in (JSON, PRONOUNS, BIOS, COUNTERFACT)}
