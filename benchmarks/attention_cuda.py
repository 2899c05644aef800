"""What steered attention costs on a GPU: a Llama of 8 B parameters with random weights.

Run by `python benchmarks/attention.py --device cuda`. The variants, in alternation, each ratio
between neighbours in time:

    plain         SDPA, unsteered, by whatever backend PyTorch takes
    flash         SDPA by PyTorch's flash attention alone, unsteered
    eager         the attention matrix, unsteered: where other tools begin
    kernels       our Triton kernels, each row steered by a method of its own
    kernels+trace the same, and the mass on the span is kept
    holdfast      as the package ships it, one method for all rows

Times are of whole passes of the model, between CUDA events. A step of decoding is also captured in
a CUDA graph and replayed, "holdfast" excepted. What does not fit the memory is left out, and the
record says so.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from ratios import ratios
from stamp import measured_on
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.masking_utils import sdpa_mask

from holdfast import SplitSoftmax
from holdfast.attention import IMPLEMENTATION, Steering, steered
from holdfast.attention.cuda.arguments import Columns, LayerTable

KERNELS = "triton kernels"  # as transformers knows them here


@dataclass(frozen=True)
class Setting:
    """A shape of model, where it runs, and what is measured.

    Args:
        span: the tokens held on to, behind the first of a template.
        reserve: bytes that are left free for what is not counted.
    """

    config: dict[str, int]
    dtype: torch.dtype
    device: str
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    span: slice
    repetitions: int
    burst: int
    reserve: int


LLAMA_8B = Setting(
    {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 128256,
        "max_position_embeddings": 40960,
    },
    torch.bfloat16,
    "cuda",
    (1, 8, 32),
    (2048, 8192, 32768),
    slice(5, 155),
    repetitions=30,
    burst=8,
    reserve=2 * 2**30,
)
# Runs through all of this on the CPU, by Triton's interpreter; its times say nothing.
REHEARSAL = Setting(
    {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "vocab_size": 64,
        "max_position_embeddings": 512,
    },
    torch.float32,
    "cpu",
    (2,),
    (24,),
    slice(2, 9),
    repetitions=1,
    burst=1,
    reserve=0,
)


def build(setting: Setting) -> LlamaForCausalLM:
    """The model, its weights drawn on the device in their dtype."""
    before = torch.get_default_dtype()
    torch.manual_seed(0)
    torch.set_default_dtype(setting.dtype)
    try:
        with torch.device(setting.device):
            return LlamaForCausalLM(LlamaConfig(**setting.config)).eval()
    finally:
        torch.set_default_dtype(before)


class Kernels:
    """Our kernels as an attention function of transformers, with a steering table for each layer.

    Every third row has a power, the next a bias, the third nothing.
    """

    def __init__(self, setting: Setting, rows: int, keys: int, trace: bool):
        heads, layers = (
            setting.config[f"num_{name}"] for name in ("attention_heads", "hidden_layers")
        )
        kind = torch.arange(rows, device=setting.device).remainder(3)[:, None].expand(rows, heads)
        numbers = (
            torch.where(kind == 1, 2.0, 0.0),
            torch.where(kind == 0, 0.5, 1.0),
            torch.full(kind.shape, -math.inf, device=setting.device),
        )
        self.tables = [LayerTable(*(part.clone() for part in numbers)) for _ in range(layers)]
        span = torch.zeros(rows, keys, dtype=torch.bool, device=setting.device)
        span[:, setting.span] = True
        self.columns, self.trace = Columns(span), trace
        self.masses: list[torch.Tensor] = []
        self.tiles = None

    def begin(self, queries: int, size: int, dtype: torch.dtype) -> None:
        """What a pass needs once, for all layers."""
        from holdfast.attention.cuda.prefill import shape_for
        from holdfast.attention.cuda.tiles import Sight, cut

        self.masses = []
        if queries > 1:
            self.tiles = cut(self.columns, queries, Sight(), shape_for(size, dtype))

    def attend(self, module, query, key, value, mask, scaling=None, **kwargs):
        """transformers' attention interface; the passes here have no mask."""
        from holdfast.attention.cuda.decode import decode
        from holdfast.attention.cuda.prefill import prefill

        table = self.tables[module.layer_idx]
        if query.shape[2] > 1:
            output = prefill(query, key, value, self.tiles, table, scaling)
            if self.trace:
                last = query[:, :, -1:]
                self.masses.append(
                    decode(last, key, value, self.columns, table, scaling, trace=True)[1]
                )
        else:
            output, mass = decode(query, key, value, self.columns, table, scaling, self.trace)
            self.masses.append(mass)
        return output.transpose(1, 2).contiguous(), None


CURRENT: list[Kernels] = []  # the one under way: transformers knows attention functions by name


def attend(module, query, key, value, mask, **kwargs):
    return CURRENT[-1].attend(module, query, key, value, mask, **kwargs)


@dataclass(frozen=True)
class Variant:
    """A way to run a pass: transformers' name of its attention, and what is open around it."""

    implementation: str
    around: Callable[[], AbstractContextManager] = nullcontext
    kernels: Kernels | None = None


def variants(setting: Setting, rows: int, keys: int) -> dict[str, Variant]:
    span = torch.zeros(rows, keys, dtype=torch.bool, device=setting.device)
    span[:, setting.span] = True
    everywhere = [[SplitSoftmax(0.5)]] * rows
    ways = {
        "plain": Variant("sdpa"),
        "flash": Variant("sdpa", lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION)),
        "eager": Variant("eager"),
        "kernels": Variant(KERNELS, kernels=Kernels(setting, rows, keys, trace=False)),
        "kernels+trace": Variant(KERNELS, kernels=Kernels(setting, rows, keys, trace=True)),
        "holdfast": Variant(IMPLEMENTATION, lambda: steered(Steering(span, everywhere))),
    }
    return ways


class Slots(DynamicCache):
    """Keys and values in room that is there; each step writes into the last column."""

    def __init__(self, setting: Setting, rows: int, context: int):
        super().__init__()
        config = setting.config
        shape = rows, config["num_key_value_heads"], context + 1, config["head_dim"]
        place = {"dtype": setting.dtype, "device": setting.device}
        self.context = context
        self.stored = [
            (torch.randn(shape, **place), torch.randn(shape, **place))
            for _ in range(config["num_hidden_layers"])
        ]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.context

    def get_query_offset(self, layer_idx: int = 0) -> int:
        return self.context

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.context + 1, 0

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        for stored, new in zip(self.stored[layer_idx], (key_states, value_states), strict=True):
            stored[:, :, self.context :] = new
        return self.stored[layer_idx]


def runner(model, setting: Setting, variant: Variant, ids, cache) -> Callable[[], None]:
    """A function that runs one pass of `ids`; transformers must have been told the attention."""

    def run() -> None:
        if variant.kernels is not None:
            CURRENT[:] = [variant.kernels]
            variant.kernels.begin(ids.shape[1], setting.config["head_dim"], setting.dtype)
        with variant.around():
            model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)

    return run


def captured(run: Callable[[], None]) -> Callable[[], None]:
    """The same pass as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()  # compiles what is compiled on the first run
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def timed(run: Callable[[], None], burst: int, on_gpu: bool) -> float:
    """Seconds per pass of `burst` passes in a row."""
    if not on_gpu:
        started = time.perf_counter()
        for _ in range(burst):
            run()
        return (time.perf_counter() - started) / burst
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(burst):
        run()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / burst


def alternate(
    model, ways: dict[str, tuple[str, Callable[[], None]]], repetitions: int, burst: int
) -> dict[str, list[float]]:
    """Seconds per pass of each way, in an order drawn anew for each repetition.

    The first repetition, in which kernels are compiled, does not count.
    """
    on_gpu = next(model.parameters()).is_cuda
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for repetition in range(-1, repetitions):
        for name in random.sample(list(ways), len(ways)):
            implementation, run = ways[name]
            model.set_attn_implementation(implementation)
            taken = timed(run, burst, on_gpu)
            if repetition >= 0:
                seconds[name].append(taken)
    return seconds


def bytes_of(setting: Setting, work: str, rows: int, context: int, eager: bool = False) -> int:
    """About what a pass needs beside the weights."""
    config, size = setting.config, setting.dtype.itemsize
    stored = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
    repeated = 2 * config["num_attention_heads"] * config["head_dim"]
    queries = context if work == "prefill" else 1
    inner = 8 * config["hidden_size"] + 3 * config["intermediate_size"]
    needed = rows * size * (context * stored + queries * inner)
    if eager:  # scores, and their softmax in float32, and its copy; keys and values repeated
        scores = config["num_attention_heads"] * queries * context * (2 * size + 8)
        needed += rows * (scores + context * repeated * size)
    return needed


@torch.inference_mode()
def decode_rows(model, setting: Setting, rows: int, context: int, free: int) -> Iterator[dict]:
    """A step behind `context` tokens: passes as they are, and replayed as CUDA graphs."""
    cache = Slots(setting, rows, context)
    ids = torch.ones(rows, 1, dtype=torch.long, device=setting.device)
    every = variants(setting, rows, context + 1)
    if bytes_of(setting, "decode", rows, context, eager=True) > free:
        del every["eager"]
    runs = {name: runner(model, setting, way, ids, cache) for name, way in every.items()}
    ways = {name: (every[name].implementation, run) for name, run in runs.items()}
    seconds = alternate(model, ways, setting.repetitions, setting.burst)
    yield ratios(f"decode, batch {rows}, context {context}", seconds) | left_out(every)
    if setting.device != "cuda":
        return
    graphs, refused = {}, {}
    for name, way in every.items():
        model.set_attn_implementation(way.implementation)
        try:
            graphs[name] = way.implementation, captured(runs[name])
        except RuntimeError as error:
            refused[name] = f"cannot be captured: {str(error).splitlines()[0]}"
    seconds = alternate(model, graphs, setting.repetitions, setting.burst)
    row = ratios(f"decode, CUDA graph, batch {rows}, context {context}", seconds)
    row |= left_out(every, refused)
    yield row


@torch.inference_mode()
def prefill_rows(model, setting: Setting, rows: int, context: int, free: int) -> Iterator[dict]:
    """A pass over a whole prompt."""
    draw = torch.Generator(setting.device).manual_seed(2)
    ids = torch.randint(
        3, setting.config["vocab_size"], (rows, context), generator=draw, device=setting.device
    )
    every = variants(setting, rows, context)
    if bytes_of(setting, "prefill", rows, context, eager=True) > free:
        del every["eager"]
    ways = {
        name: (way.implementation, runner(model, setting, way, ids, None))
        for name, way in every.items()
    }
    most = setting.repetitions
    repetitions = max(min(most, 5), min(most, most * 16384 // (rows * context)))
    seconds = alternate(model, ways, repetitions, 1)
    yield ratios(f"prefill, batch {rows}, context {context}", seconds) | left_out(every)


def left_out(every: dict[str, Variant], refused: dict[str, str] | None = None) -> dict:
    """Says what is missing in a row, and why."""
    missing = {} if "eager" in every else {"eager": "does not fit the memory"}
    missing |= refused or {}
    return {"left_out": missing} if missing else {}


def measure(model, setting: Setting, only: str | None) -> Iterator[dict]:
    """A row of the record for each piece of work; where it does not fit, one that says so."""
    on_gpu = setting.device == "cuda"
    for work, rows_of in (("decode", decode_rows), ("prefill", prefill_rows)):
        for rows, context in [(b, c) for b in setting.batches for c in setting.contexts]:
            if only not in (None, work):
                continue
            free = torch.cuda.mem_get_info()[0] - setting.reserve if on_gpu else 2**34
            name, needed = f"{work}, batch {rows}, context {context}", 0
            needed = bytes_of(setting, work, rows, context)
            if needed > free:
                sizes = f"{needed / 2**30:.0f} GiB needed, {free / 2**30:.0f} free"
                yield {"work": name, "left_out": {"all": f"does not fit the memory: {sizes}"}}
            else:
                try:
                    yield from rows_of(model, setting, rows, context, free)
                except torch.OutOfMemoryError:
                    yield {"work": name, "left_out": {"all": "ran out of memory"}}
            if on_gpu:
                torch.cuda.empty_cache()


def run(rehearse: bool, only: str | None, repetitions: int | None, out: Path | None) -> None:
    """Makes the record, row by row."""
    setting = REHEARSAL if rehearse else LLAMA_8B
    if setting.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("There is no GPU here; --rehearse runs a tiny shape on the CPU.")
    AttentionInterface.register(KERNELS, attend)
    AttentionMaskInterface.register(KERNELS, sdpa_mask)
    if repetitions is not None:
        setting = Setting(**(vars(setting) | {"repetitions": repetitions}))
    model = build(setting)
    result = {
        "benchmark": "attention_cuda",
        "measured_on": measured_on(),
        "shape": setting.config,
        "dtype": str(setting.dtype).removeprefix("torch."),
        "span": setting.span.stop - setting.span.start,
        "cuda": torch.version.cuda,
        "rows": [],
    }
    for row in measure(model, setting, only):
        if "left_out" in row:
            print(row["work"], "left out:", row["left_out"], flush=True)
        result["rows"].append(row)
        if out:
            out.write_text(json.dumps(result, indent=1) + "\n")
    for kind in ("decode", "decode, CUDA graph", "prefill"):
        medians = [
            row["kernels"]["median"]
            for row in result["rows"]
            if row["work"].split(", batch")[0] == kind and "kernels" in row
        ]
        if medians:
            print(f"{kind}: kernels at {statistics.median(medians):.3f} of plain", flush=True)
