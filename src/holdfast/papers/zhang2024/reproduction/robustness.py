"""Tables 4, 11, 13 and 14 of the paper: other words, other demonstrations, another model, fewer
samples.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from holdfast.analysis.profile import rank_first
from holdfast.analysis.statistics import Estimate, estimate, paired_difference
from holdfast.analysis.tasks import ZERO_SHOT, Result
from holdfast.analysis.verdicts import NOT_JUDGED, UNDECIDED
from holdfast.errors import UsageError
from holdfast.methods import spell
from holdfast.models.loading import load
from holdfast.models.local import LocalModel
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, judged
from holdfast.papers.zhang2024.dialogues import TASKS, training_dialogue
from holdfast.papers.zhang2024.reproduction.setup import pasta_on
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.papers.zhang2024.reproduction.tables import (
    HALVES,
    best_less_worst,
    beyond_reach,
    cell_of,
)
from holdfast.records import read_run

_WORDINGS = ("original", "shortened", "rephrased")
_WORDS = "the instruction in other words"
_IMPROVES = "with the {} instruction, PASTA improves on zero-shot."
_LESS_SENSITIVE = "PASTA makes a model less sensitive to how the instruction is worded."
_Row = tuple[str, ...]


def table_4(study: Study) -> Figure:
    """The instruction in other words."""
    free = study.setup.free
    if not free:
        return _left_out("4", _WORDS, [*map(_IMPROVES.format, _WORDINGS), _LESS_SENSITIVE], "json")
    rows: list[_Row] = [("instruction", "method", *map(_metrics_of, free))]
    claims: list[Claim] = []
    every: list[Result] = []
    means: dict[str, list[float]] = {"zero-shot": [], "PASTA": []}
    for wording in _WORDINGS:
        answers = _reworded(study, wording)
        for row, results in answers.items():
            rows.append((wording, row, *map(cell_of, results)))
            means[row].append(float(np.mean([values_of(result).mean() for result in results])))
            every += results
        gain = _mean_gain(answers["PASTA"], answers["zero-shot"])
        text = _IMPROVES.format(wording)
        claims.append(
            claim_that(text, gain, +1, f"Mean of {' and '.join(free)}: {in_words(gain)}.")
        )
    ranges = {row: max(values) - min(values) for row, values in means.items()}
    evidence = (
        f"Best less worst wording: zero-shot {ranges['zero-shot']:.3f}, PASTA {ranges['PASTA']:.3f}"
        " (two numbers have no interval)."
    )
    claims.append(Claim(_LESS_SENSITIVE, UNDECIDED, evidence))
    return Figure(
        number="4",
        title=_WORDS,
        how="The heads of Table 1, multi-task.",
        images=(),
        claims=judged(claims, beyond_reach(" and ".join(free), *map(values_of, every))),
        kind="Table",
        rows=tuple(rows),
    )


def _reworded(study: Study, wording: str) -> dict[str, list[Result]]:
    """By row, the answers of the free tasks to an instruction."""
    rows: dict[str, list[Result]] = {"zero-shot": [], "PASTA": []}
    for name in study.setup.free:
        method = pasta_on(study.heads["multi-task", name])
        answers = study.ask(f"table-4-{wording}", name, [method], instruction=wording)
        rows["zero-shot"].append(answers[ZERO_SHOT])
        rows["PASTA"].append(answers[spell([method])])
    return rows


def _metrics_of(name: str) -> str:
    """A task's name with its metrics, as the head of a column."""
    return f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}"


def _mean_gain(steered: Sequence[Result], plain: Sequence[Result]) -> Estimate:
    """The mean over tasks of what steering gives, sample by sample."""
    gains = [
        values_of(ours) - values_of(theirs) for ours, theirs in zip(steered, plain, strict=True)
    ]
    return estimate(np.mean(gains, axis=0))


_DRAWS = "few-shot prompting by draw of the demonstrations"
_VARIES = "few-shot prompting varies with its demonstrations."


def table_11(study: Study) -> Figure:
    """Few-shot prompting by draw of the demonstrations."""
    if "pronouns" not in study.setup.tasks:
        return _left_out("11", _DRAWS, [_VARIES], "pronouns")
    result = study.tested["pronouns"]["few-shot"]
    names = list(result.scores)
    rows: list[_Row] = [("demonstrations", *names)]
    for number, draw in enumerate(result.draws, 1):
        rows.append((str(number), *(f"{100 * draw[name]:.1f}" for name in names)))
    values = np.full((study.setup.scale.tested, len(result.draws)), np.nan)
    for record in read_run(study.setup.out / "test" / "pronouns").records:
        if record["variant"] == "few-shot":
            score = np.mean(list(record["scores"].values()))
            values[record["conversation"], record["draw"] - 1] = score
    spread = best_less_worst(values)
    return Figure(
        number="11",
        title=_DRAWS,
        how="Pronouns changing.",
        images=(),
        claims=judged(
            [claim_that(_VARIES, spread, +1, f"{HALVES}: {in_words(spread)}.")],
            beyond_reach("pronouns", values_of(result)),
        ),
        kind="Table",
        rows=tuple(rows),
    )


def _left_out(number: str, title: str, texts: Sequence[str], task: str) -> Figure:
    """A table of a task that is not among those to run."""
    claims = tuple(Claim(text, NOT_JUDGED, f"The task {task} was not run.") for text in texts)
    return Figure(number, title, "Not run.", (), claims, "Table")


_CHILD = "heads of the model on a child of it, without profiling it"
_TRANSFERS = {
    "multi-task": "the parent's multi-task heads improve on the child's zero-shot.",
    "task-specific": "the parent's task-specific heads improve on it too.",
}


def table_13(study: Study) -> Figure:
    """The heads of a model on a child of it."""
    setup = study.setup
    try:
        child = setup.child or make_child(
            setup.model, setup.out / "child", setup.scale.steps, setup.seed
        )
    except UsageError as error:
        claims = tuple(Claim(text, NOT_JUDGED, str(error)) for text in _TRANSFERS.values())
        return Figure("13", _CHILD, "Not run.", (), claims, "Table")
    answers = _on_child(study, child)
    rows: list[_Row] = [("", *map(_metrics_of, setup.tasks))]
    rows += [(f"child, {row}", *map(cell_of, results)) for row, results in answers.items()]
    how = f"The model fine-tuned for {setup.scale.steps} steps on the tasks' training samples."
    return Figure(
        number="13",
        title=_CHILD,
        how=f"{child.name}." if setup.child else how,
        images=(),
        claims=tuple(_transfers(answers, strategy) for strategy in _TRANSFERS),
        kind="Table",
        rows=tuple(rows),
    )


def _on_child(study: Study, child: LocalModel) -> dict[str, list[Result]]:
    """By row, a child's answers to every task: without steering, and with the parent's heads."""
    rows: dict[str, list[Result]] = {"zero-shot": [], **{row: [] for row in _TRANSFERS}}
    for name in study.setup.tasks:
        steered = {strategy: pasta_on(study.heads[strategy, name]) for strategy in _TRANSFERS}
        answers = study.ask("table-13", name, steered.values(), model=child)
        rows["zero-shot"].append(answers[ZERO_SHOT])
        for strategy, method in steered.items():
            rows[strategy].append(answers[spell([method])])
    return rows


def _transfers(answers: dict[str, list[Result]], strategy: str) -> Claim:
    gain = _mean_gain(answers[strategy], answers["zero-shot"])
    evidence = f"Average of the tasks: {in_words(gain)}."
    return claim_that(_TRANSFERS[strategy], gain, +1, evidence)


_FEWER = "fewer samples to profile on"


def table_14(study: Study) -> Figure:
    """Fewer samples to profile on."""
    scale = study.setup.scale
    text = (
        f"profiled on {scale.fewer} samples instead of {scale.profiled}, PASTA still improves on"
        " zero-shot."
    )
    if "json" not in study.setup.tasks:
        return _left_out("14", _FEWER, [text], "json")
    ranked = {
        scale.profiled: study.rankings["json"],
        scale.fewer: rank_first(study.profile_folder("json"), scale.fewer),
    }
    k = len(study.heads["task-specific", "json"])
    steered = {count: pasta_on(ranking.top(k)) for count, ranking in ranked.items()}
    answers = study.ask("table-14", "json", steered.values())
    zero = answers[ZERO_SHOT]
    results = {count: answers[spell([method])] for count, method in steered.items()}
    few, many = values_of(results[scale.fewer]), values_of(results[scale.profiled])
    gain, loss = paired_difference(few, values_of(zero)), paired_difference(few, many)
    claim = claim_that(
        text,
        gain,
        +1,
        f"Less zero-shot {in_words(gain)}; less the heads of {scale.profiled} samples"
        f" {in_words(loss)}.",
    )
    rows: list[_Row] = [
        ("profiled on", "json: " + " / ".join(zero.scores)),
        ("zero-shot", cell_of(zero)),
        *((f"{count} samples", cell_of(result)) for count, result in results.items()),
    ]
    return Figure(
        number="14",
        title=_FEWER,
        how=f"JSON formatting, the best {k} heads.",
        images=(),
        claims=judged([claim], beyond_reach("json", values_of(zero), few, many)),
        kind="Table",
        rows=tuple(rows),
    )


_LARGEST = 50_000_000  # parameters: beyond, a child is trained elsewhere and named
_BATCH = 16
_UNLABELLED = -100


def make_child(
    model: LocalModel, folder: Path, steps: int, seed: int = 0, learning_rate: float = 2e-4
) -> LocalModel:
    """Fine-tunes a copy of the model on replies to the tasks' training samples, and loads it; the
    folder of an earlier call is loaded as it is.

    Args:
        model: the parent, which stays as it is.
        folder: where the child is saved.
        steps: of AdamW, with 16 dialogues each.
        seed: of the dialogues.
        learning_rate: falls to 0 along a line.

    Raises:
        UsageError: the model is too large to be trained here.
    """
    size = sum(parameter.numel() for parameter in model.hf_model.parameters())
    if size > _LARGEST:
        raise UsageError(
            f"{model.name} has {size:,} parameters, and at most {_LARGEST:,} are fine-tuned here;"
            " train a child elsewhere and name it with --child."
        )
    if not (folder / "config.json").exists():
        _train(model, steps, random.Random(seed), learning_rate).save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
    return load(str(folder))


def _train(model: LocalModel, steps: int, rng: random.Random, learning_rate: float):
    with torch.inference_mode(False):
        child = copy.deepcopy(model.hf_model).float()
        child.set_attn_implementation("sdpa")
        optimizer = torch.optim.AdamW(child.parameters(), lr=learning_rate)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * (1 - step / steps)
            ids, mask, labels = _batch(model, rng)
            child(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return child


def _batch(
    model: LocalModel, rng: random.Random
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, attention mask and labels [row, token], padded on the right; only the tokens of
    replies have labels.
    """
    rows = []
    for _ in range(_BATCH):
        question, reply = training_dialogue(rng.choice(TASKS), rng)
        before = model.tokenizer.apply_chat_template(
            [question], add_generation_prompt=True, tokenize=False
        )
        whole = model.tokenizer.apply_chat_template([question, reply], tokenize=False)
        first = len(model.tokenizer(before, add_special_tokens=False).input_ids)
        rows.append((model.tokenizer(whole, add_special_tokens=False).input_ids, first))
    width = max(len(ids) for ids, _ in rows)
    ids, mask = torch.zeros(2, len(rows), width, dtype=torch.long)
    labels = torch.full_like(ids, _UNLABELLED)
    for row, (tokens, first) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
        labels[row, first : len(tokens)] = ids[row, first : len(tokens)]
    return ids, mask, labels
