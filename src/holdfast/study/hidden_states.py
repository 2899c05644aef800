"""Effective dimension and opening angle of a model's hidden states, round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.chat.prompt import Prompt, render
from holdfast.errors import ModelError
from holdfast.study.cone import effective_dimension, opening_angle

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_SPEAKERS = ("user", "agent")
_ALIKE = ("system", *_SPEAKERS)  # compared by equally many tokens
_MEASURES = {"dimension": effective_dimension, "angle": opening_angle}
_ROLES = {"user": "user", "agent": "assistant"}
_DRAWS = 20  # subsamples of equally many tokens

_Record = dict[str, Any]


class Owner(NamedTuple):
    """Whose a token is: the system prompt's, a speaker's or the template's; round 0 for what nobody
    said.
    """

    round: int
    speaker: str


class _Value(NamedTuple):
    """A quantity of some tokens of one layer."""

    round: int
    quantity: str
    group: str
    value: float


def read_dialogs(
    model: LocalModel, records: Sequence[_Record], seed: int, done: Callable[[], None]
) -> list[dict[str, Any]]:
    """Per round, both quantities of every group of tokens, averaged over layers and dialogs.

    Args:
        model: whose dialogs they are.
        records: of the dialogs.
        seed: of the draws of equally many tokens.
        done: told of every dialog.

    Raises:
        ModelError: no dialog has a system prompt and turns of at least two tokens.
    """
    totals: dict[tuple[int, str, str], list[float]] = {}
    for record in sorted(records, key=lambda record: record["conversation"]):
        for value in _measure(model, record, seed):
            totals.setdefault((value.round, value.quantity, value.group), []).append(value.value)
        done()
    if not totals:
        raise ModelError(
            "No dialog has a system prompt and turns of at least two tokens each; use another"
            " suite."
        )
    return [
        {
            "round": number,
            **{
                quantity: {
                    group: float(np.mean(totals[number, quantity, group]))
                    for group in ("all", *_ALIKE)
                }
                for quantity in _MEASURES
            },
        }
        for number in sorted({number for number, _, _ in totals})
    ]


def _measure(model: LocalModel, record: _Record, seed: int) -> Iterator[_Value]:
    """The quantities of one dialog, by round, layer and group; none where a group of round 1 has
    fewer than two tokens.
    """
    hidden, owners = _read_dialog(model, record)
    rng = np.random.default_rng([seed, record["conversation"]])
    least = min(len(_tokens_of(owners, 1, group)) for group in _ALIKE)
    if least < 2:
        return
    for number in range(1, max(turn["round"] for turn in record["turns"]) + 1):
        groups = {group: _tokens_of(owners, number, group) for group in ("all", *_ALIKE)}
        for layer in hidden:
            for group, tokens in groups.items():
                draws = [tokens] if group == "all" else _draws(tokens, least, rng)
                for quantity, measure in _MEASURES.items():
                    value = float(np.mean([measure(layer[draw]) for draw in draws]))
                    yield _Value(number, quantity, group, value)


def _draws(tokens: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Subsamples of so many tokens; one where there are no more."""
    draws = _DRAWS if len(tokens) > count else 1
    return [rng.choice(tokens, count, replace=False) for _ in range(draws)]


def _tokens_of(owners: Sequence[Owner], last: int, group: str) -> np.ndarray:
    """The indices of the tokens of a group up to the end of round `last`; "all" leaves out the
    template's.
    """
    return np.array(
        [
            index
            for index, owner in enumerate(owners)
            if owner.round <= last
            and (owner.speaker == group or (group == "all" and owner.speaker != "template"))
        ],
        dtype=int,
    )


def _read_dialog(model: LocalModel, record: _Record) -> tuple[np.ndarray, list[Owner]]:
    """Hidden states [layer, token, size] behind every layer, and whose each token is."""
    import torch

    system = record["agent"]["system_prompt"]
    messages = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": _ROLES[turn["speaker"]], "content": turn["text"]} for turn in record["turns"]
    ]
    prompt = render(messages, model.tokenizer)
    with torch.inference_mode():
        ids = torch.tensor([prompt.token_ids[: model.context]], device=model.hf_model.device)
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        read = {"input_ids": ids}
        output = model.runner.call(read, places, None, None, 1, output_hidden_states=True)
        states = output.hidden_states[1:]
    hidden = torch.stack([state[0].float().cpu() for state in states]).numpy().astype(np.float64)
    return hidden, _owners(prompt, record["turns"])[: ids.shape[1]]


def _owners(prompt: Prompt, turns: Sequence[dict[str, Any]]) -> list[Owner]:
    """Whose each token of a rendered dialog is."""
    owners = [Owner(0, "system" if inside else "template") for inside in prompt.span_mask]
    end = 0  # of the text before
    for turn in turns:
        text = turn["text"].strip()
        start = prompt.text.find(text, end) if text else -1
        if start < 0:
            continue
        end = start + len(text)
        for index, begins in enumerate(prompt.starts):
            if start <= begins < end and owners[index].speaker == "template":
                owners[index] = Owner(turn["round"], turn["speaker"])
    return owners
