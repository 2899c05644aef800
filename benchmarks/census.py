"""Examines which causal language models of the installed transformers can be steered: a tiny random
model of every type, against its own attention.

In a block: a model that uses transformers' attention interface is steered twice, by
`holdfast.steering` and by the paper's formula on the attention matrix that the model's own eager
function returns, in a full forward pass and when decoding. Equal logits are "exact"; anything else
is listed with its reason.

In the engine, which generates for drift runs and the server: it answers three prompts of different
length, unsteered and steered. Each reply has to be the one that transformers' `generate` makes of
that prompt alone, inside `holdfast.steering` if it is steered; or, where `generate` gives the model
other inputs, the one made by forwarding the whole text at every step.

    python benchmarks/census.py --out benchmarks/results/census.json
    python benchmarks/census.py llama gemma2          # only these
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
import transformers
from stamp import measured_on, write_json
from tiny_models import build
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

import holdfast
from holdfast.attention import install
from holdfast.errors import HoldfastError, ModelError
from holdfast.generation.scheduler import Scheduler
from holdfast.generation.token_requests import TokenPrompt, TokenRequest
from holdfast.generation.transformers_runner import TransformersRunner
from holdfast.methods import compile_methods
from holdfast.models.model_properties import reuses_cache

# for float32 logits of a few layers, relative to the largest; a wrong mask or a missing sink
# changes them by 1e-2 or more
TOLERANCE = 1e-4
EXPONENT = 0.3  # of split-softmax
NUM_TOKENS = 12  # of a sequence in a block
SPAN = slice(2, 6)
PROMPT_LENGTHS = (12, 7, 10)  # of the prompts to the engine
REPLY_LENGTH = 6


# The paper's formula on the attention matrix of the model


def split_softmax(weights: torch.Tensor, in_span: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
    """Li et al.'s formula: raises the mass pi on the span to pi ** EXPONENT.

    Args:
        weights: [..., key].
        in_span: whether each key is in the span, broadcastable to the weights.
        rest: the mass on the other keys, [..., 1].
    """
    pi = (weights * in_span).sum(-1, keepdim=True)
    moved = torch.where(
        in_span, weights * pi ** (EXPONENT - 1), weights * (1 - pi**EXPONENT) / rest
    )
    return torch.where((pi > 0) & (rest > 0), moved, weights)


@contextmanager
def steered_by_formula(model, span: torch.Tensor, lengths: list[int]):
    """Steers with the formula on the weights that the eager function of the model's own file
    returns.

    Args:
        lengths: its last entry is the number of tokens up to and including the current pass.
    """

    def wrap(eager):
        def steered(module, query, key, value, *args, **kwargs):
            output, weights = eager(module, query, key, value, *args, **kwargs)
            weights = weights[..., : value.shape[2]].double()
            first = max(0, lengths[-1] - weights.shape[-1])  # a sliding cache holds the last keys
            in_span = span[:, None, None, first : first + weights.shape[-1]]
            value = value.repeat_interleave(weights.shape[1] // value.shape[1], 1).double()
            if kwargs.get("s_aux") is not None or kwargs.get("sinks") is not None:
                # some files scale the output by the sink, but return weights that ignore it
                mixed = weights @ value
                weights = weights * (
                    (output.transpose(1, 2) * mixed).sum(-1, keepdim=True)
                    / (mixed * mixed).sum(-1, keepdim=True)
                )
                rest = 1 - (weights * in_span).sum(-1, keepdim=True)
            else:
                rest = (weights * ~in_span).sum(-1, keepdim=True)
            weights = split_softmax(weights, in_span, rest)
            return (weights @ value).to(output.dtype).transpose(1, 2).contiguous(), weights

        return steered

    with _wrapped_eager(model, wrap):
        yield


@contextmanager
def steered_by_formula_in_attn(model, span: torch.Tensor, lengths: list[int]):
    """Steers a model that does not use the attention interface (GPT-J) with the formula on the
    weights that its own method `_attn` returns.
    """
    owner = next(type(module) for module in model.modules() if hasattr(type(module), "_attn"))
    original = owner._attn

    def steered(self, query, key, value, *args, **kwargs):
        _, weights = original(self, query, key, value, *args, **kwargs)
        weights = weights.double()
        in_span = span[:, None, None, : weights.shape[-1]]
        weights = split_softmax(weights, in_span, (weights * ~in_span).sum(-1, keepdim=True))
        return (weights @ value.double()).to(value.dtype), weights

    owner._attn = steered
    try:
        yield
    finally:
        owner._attn = original


@contextmanager
def _wrapped_eager(model, wrap):
    """Wraps the eager function of each file that the model's modules come from."""
    files = {
        importlib.import_module(type(module).__module__)
        for module in model.modules()
        if "modeling" in type(module).__module__
    }
    plain = [
        (file, file.eager_attention_forward)
        for file in files
        if hasattr(file, "eager_attention_forward")
    ]
    for file, eager in plain:
        file.eager_attention_forward = wrap(eager)
    try:
        yield
    finally:
        for file, eager in plain:
            file.eager_attention_forward = eager


@contextmanager
def _eager_calls(model):
    """Records which modules call the eager function."""
    calls = []

    def wrap(eager):
        def counted(module, *args, **kwargs):
            calls.append(type(module).__name__)
            return eager(module, *args, **kwargs)

        return counted

    with _wrapped_eager(model, wrap):
        yield calls


# Steers a model with the formula inside the block, given the span and the lengths of the passes.
SteerByFormula = Callable[[torch.nn.Module, torch.Tensor, list[int]], AbstractContextManager]


# A row of the census


@torch.inference_mode()
def examine(kind: str) -> dict:
    """Makes a row of the census: the outcomes of a type in a block and in the engine."""
    started = time.perf_counter()
    row = {"type": kind, "class": MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind]}
    row |= examine_block(kind)
    if row["outcome"] != "not built":
        row |= examine_engine(build(kind))
    return {**row, "seconds": round(time.perf_counter() - started, 2)}


def _in_short(error: Exception) -> str:
    """The type of an error and the beginning of its message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


# In a block


@torch.inference_mode()
def examine_block(kind: str) -> dict:
    """Tests `holdfast.steering` on a type.

    `outcome` is "exact", "refused", "wrong" or "not built"; `reaches` is whether the model uses
    transformers' attention interface. Errors are relative to the largest logit.
    """
    try:
        model = build(kind)
        ids = torch.randint(3, 99, (2, NUM_TOKENS))
        _logits(model, ids)
    except Exception as error:
        return {"outcome": "not built", "because": _in_short(error)}
    span = torch.zeros(2, NUM_TOKENS, dtype=torch.bool)
    span[:, SPAN] = True
    with _eager_calls(model) as calls:
        plain = _logits(model, ids)
    row = {"reaches": bool(calls)}
    by_formula = steered_by_formula if calls else steered_by_formula_in_attn
    try:
        row |= _compare_passes(model, ids, span, plain, by_formula)
    except HoldfastError as error:
        row |= {"outcome": "refused", "because": str(error)}
    except Exception as error:
        row |= {"outcome": "wrong", "because": _in_short(error)}
    return row


def _logits(model, ids: torch.Tensor) -> torch.Tensor:
    """The logits of a full pass."""
    return model(input_ids=ids, use_cache=False).logits


def _compare_passes(
    model, ids: torch.Tensor, span: torch.Tensor, plain: torch.Tensor, by_formula: SteerByFormula
) -> dict:
    """Compares a steered pass, and then steered decoding, with the paper's formula.

    Args:
        plain: the logits of an unsteered pass.
        by_formula: steers by the formula.
    """
    size = plain.abs().max()

    def error_of(logits: torch.Tensor, expected: torch.Tensor) -> float:
        return float((logits - expected).abs().max() / size)

    with holdfast.steering(model, span, [holdfast.SplitSoftmax(EXPONENT)]):
        steered = _logits(model, ids)
        unsteered = _unsteered_logits(model, ids)
    with by_formula(model, span, [NUM_TOKENS]):
        expected_by_formula = _logits(model, ids)
    row = {
        "error": error_of(steered, expected_by_formula),
        "moved": error_of(expected_by_formula, plain),
        "unsteered_error": error_of(unsteered, plain),
    }
    if not torch.equal(_logits(model, ids), plain):
        return row | {"outcome": "wrong", "because": "it is not restored"}
    error = max(row["error"], row["unsteered_error"])
    if error >= TOLERANCE:
        return row | {"outcome": "wrong", "because": f"differs by {error:.1e}"}
    row |= {"outcome": "exact", "because": ""}
    if by_formula is steered_by_formula_in_attn:
        row["because"] = "by its own method, not the attention interface"
    return row | _compare_decoding(model, ids, span, steered, by_formula, error_of)


def _unsteered_logits(model, ids: torch.Tensor) -> torch.Tensor:
    """The logits of an unsteered pass in another thread, while this one steers."""

    def forward():
        with torch.inference_mode(), holdfast.unsteered(model):
            return _logits(model, ids)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(forward).result()


def _compare_decoding(
    model,
    ids: torch.Tensor,
    span: torch.Tensor,
    expected: torch.Tensor,
    by_formula: SteerByFormula,
    error_of: Callable[[torch.Tensor, torch.Tensor], float],
) -> dict:
    """Compares decoding the last two tokens one by one with the full pass, or at least with the
    model's own decoding, steered by the formula.

    Args:
        expected: the logits of the full steered pass.
        error_of: the difference of logits from the expected ones.
    """
    lengths = []  # of the passes so far

    def decode() -> torch.Tensor | None:
        lengths.append(NUM_TOKENS - 2)
        output = model(input_ids=ids[:, :-2], use_cache=True)
        logits = []
        for position in (NUM_TOKENS - 2, NUM_TOKENS - 1):
            cache = getattr(output, "past_key_values", None)
            if cache is None:
                return None
            lengths.append(position + 1)
            token = ids[:, position : position + 1]
            output = model(input_ids=token, past_key_values=cache, use_cache=True)
            logits.append(output.logits[:, -1])
        return torch.stack(logits, 1)

    with holdfast.steering(model, span[:, :-2], [holdfast.SplitSoftmax(EXPONENT)]):
        decoded = decode()
    if decoded is None:
        return {"decoded": "without a cache"}
    row = {"decoded_error": error_of(decoded, expected[:, -2:])}
    if row["decoded_error"] >= TOLERANCE:
        with by_formula(model, span, lengths):
            row["decoded_error"] = error_of(decoded, decode())
        row["decoded"] = "against the model's own decoding, which differs from its full pass"
    if row["decoded_error"] >= TOLERANCE:
        because = f"decoded tokens differ by {row['decoded_error']:.1e}"
        row |= {"outcome": "wrong", "because": because}
    return row


# In the engine


def examine_engine(model) -> dict:
    """Tests the engine on a model.

    `engine` is "exact", "unsteered" (exact, but refuses to steer), "refused", "wrong", or "not run"
    if transformers itself cannot generate; `engine_alone` is whether rows run one by one.
    """
    try:
        steers = install(model)
        batched = reuses_cache(model)
    except HoldfastError as error:
        return {"engine": "refused", "engine_because": str(error)}
    row = {"engine_alone": not batched} | _examine_replies(model, batched, ())
    if steers and row["engine"] == "exact":
        steered = _examine_replies(model, batched, (holdfast.SplitSoftmax(EXPONENT),))
        if steered["engine"] == "refused":
            return row | {"engine": "unsteered", "engine_because": steered["engine_because"]}
        return row | steered
    return row | ({"engine": "unsteered"} if row["engine"] == "exact" else {})


def _examine_replies(model, batched: bool, methods) -> dict:
    """Compares the engine's replies to three prompts at once with transformers' to each alone."""
    torch.manual_seed(1)
    prompts = [torch.randint(3, 60, (1, count)) for count in PROMPT_LENGTHS]
    spans = [torch.zeros_like(ids, dtype=torch.bool) for ids in prompts]
    expected = []  # for each prompt, the replies of `generate` and of `_generate_without_cache`
    try:
        for ids, span in zip(prompts, spans, strict=True):
            span[:, SPAN] = True
            with holdfast.steering(model, span, methods) if methods else nullcontext():
                expected.append((_generate(model, ids), _generate_without_cache(model, ids)))
    except HoldfastError as error:
        return {"engine": "refused", "engine_because": str(error)}
    except Exception as error:
        return {"engine": "not run", "engine_because": _in_short(error)}
    try:
        replies = _engine_replies(
            TransformersRunner(model, batched=batched), prompts, spans, methods
        )
    except HoldfastError as error:
        return {"engine": "refused", "engine_because": str(error)}
    except Exception as error:
        return {"engine": "wrong", "engine_because": _in_short(error)}
    because = ""
    for reply, (generated, without_cache) in zip(replies, expected, strict=True):
        if reply not in (generated, without_cache):
            because = f"a reply is {reply}, and transformers' is {generated}"
            return {"engine": "wrong", "engine_because": because}
        if reply != generated:
            because = "as the whole text at every step, from which `generate` differs"
    return {"engine": "exact", "engine_because": because}


def _engine_replies(runner: TransformersRunner, prompts, spans, methods) -> list[list[int]]:
    """The engine's greedy replies to prompts that share their passes."""
    scheduler = Scheduler(runner, frozenset(), batch_size=8)
    sampling = holdfast.Sampling(temperature=0, max_new_tokens=REPLY_LENGTH)
    handles = []
    for ids, span in zip(prompts, spans, strict=True):
        compiled = compile_methods(methods)
        prompt = TokenPrompt(tuple(ids[0].tolist()), tuple(span[0].tolist()), compiled)
        handles.append(scheduler.submit(TokenRequest((prompt,), sampling=sampling)))
    while len(scheduler):
        scheduler.step()
    for handle in handles:
        handle.require_reply()
        if handle.stop_reason == "context":
            raise ModelError(f"a context of {runner.context} tokens leaves no room for a reply")
    return [handle.token_ids for handle in handles]


def _generate(model, ids: torch.Tensor) -> list[int]:
    """Generates a greedy reply by transformers' `generate`, or by plain passes if that fails."""
    try:
        made = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=REPLY_LENGTH,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    except Exception:  # some classes can be called, but do not generate
        return _generate_without_cache(model, ids)
    return made[0, ids.shape[1] :].tolist()


def _generate_without_cache(model, ids: torch.Tensor) -> list[int]:
    """Generates a greedy reply by forwarding the whole text at every step."""
    made = ids
    for _ in range(REPLY_LENGTH):
        logits = model(input_ids=made, use_cache=False).logits
        made = torch.cat([made, logits[:, -1:].argmax(-1)], 1)
    return made[0, ids.shape[1] :].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity(50)
    started = time.perf_counter()
    rows = []
    for kind in arguments.kinds or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        rows.append(examine(kind))
        engine = rows[-1].get("engine", ""), rows[-1].get("engine_because", "")
        print(f"{kind:28} {rows[-1]['outcome']:10} {rows[-1]['because'][:60]}", *engine, flush=True)
    reaching = [row for row in rows if row.get("reaches")]
    exact = sum(row["outcome"] == "exact" for row in reaching)
    counts = dict(Counter(row["outcome"] for row in rows))
    in_engine = dict(Counter(row["engine"] for row in rows if "engine" in row))
    print(
        f"{counts}; of {len(reaching)} that reach the interface {exact} are exact; in the engine"
        f" {in_engine};"
        f" {time.perf_counter() - started:.0f} s"
    )
    if arguments.out:
        result = {
            "benchmark": "census",
            "measured_on": measured_on(),
            "counts": counts,
            "engine_counts": in_engine,
            "reaching": len(reaching),
            "exact": exact,
            "rows": rows,
        }
        write_json(result, arguments.out)


if __name__ == "__main__":
    main()
