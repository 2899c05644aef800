"""Speed against other programs: the drift loop, a chat, and the loading of GGUF files, from the
records of drift_loop.py, loading.py, batching.py and the plug-ins' benchmarks.
"""

from __future__ import annotations

import statistics

from tabled.reading import markdown, processor_of, read

DRIFT_LOOPS = {  # the records of drift_loop.py, and their models
    "drift_loop_qwen": "Qwen2.5-Coder 0.5B",
    "drift_loop_qwen_few": "Qwen2.5-Coder 0.5B",
    "drift_loop_qwen15": "Qwen2.5-Coder 1.5B",
}


def speed_table() -> str:
    """The drift loop and a chat against other engines, the tokens forwarded, and the effect of the
    batch size.
    """
    (batches,) = read("batching")["runs"]
    differing = f"{batches['conversations_that_differ']} of {batches['replies_compared']:,}"
    excess = max(row["forwarded_over_least"] for row in read("drift_loop_qwen")["repetitions"])
    header = ["model", "compared with", "work", "times as fast per token", "processor"]
    return "\n".join(
        [
            *markdown([header, *_drift_loop_rows(), *_llama_server_rows(), _vllm_row()]),
            "",
            "In the largest of these runs, the tokens that went through the model were"
            f" {excess:.3f} times those of all dialogs counted once. With batches of 48 and of 5,"
            f" {differing} replies of the default model differ in float32; in bfloat16, a reply may"
            " depend on the size of the batch, by rounding.",
        ]
    )


def _drift_loop_rows() -> list[list[str]]:
    """The drift loop against transformers' `generate`."""
    rows = []
    for name, model in DRIFT_LOOPS.items():
        record = read(name)
        ratios = [row["lock_step"]["ratio_per_token"] for row in record["repetitions"]]
        work = work_of(record)
        cells = [model, "lock-step `generate`", work, _median_and_range(ratios)]
        rows.append([*cells, processor_of(record)])
    return rows


def _llama_server_rows() -> list[list[str]]:
    """The drift loop and a single chat against llama.cpp's own server."""
    loop = read("llama_server")
    chat = read("llama_chat")
    model = "Qwen2.5-Coder 0.5B"
    return [
        [
            model,
            "llama.cpp's own server with 16 slots, same file",
            work_of(loop),
            _median_and_range(_server_over(loop, "torch", "ms_per_token")),
            processor_of(loop),
        ],
        [
            model,
            "the same server",
            "one chat, in our own engine",
            _median_and_range(_server_over(chat, "torch", "chat_ms_per_token")),
            processor_of(chat),
        ],
        [
            model,
            "the same server",
            "one chat, with the plug-in for llama.cpp, which `holdfast chat` uses [if it is"
            " installed](llama.md#which-engine-runs-a-file)",
            _median_and_range(_server_over(chat, "llama", "chat_ms_per_token")),
            processor_of(chat),
        ],
    ]


def _server_over(record: dict, engine: str, field: str) -> list[float]:
    """The time of llama.cpp's server divided by that of an engine, in each repetition."""
    times = {(row["engine"], row["repetition"]): row[field] for row in record["rows"]}
    repetitions = sorted({repetition for _, repetition in times})
    return [times["llama-server", number] / times[engine, number] for number in repetitions]


def _vllm_row() -> list[str]:
    """The drift loop against vLLM's engine."""
    record = read("vllm_loop")
    return [
        "SmolLM2",
        f"vLLM {record['vllm']} in process, without start-up",
        work_of(record),
        _median_and_range(record["ratios"]),
        processor_of(record),
    ]


def work_of(record: dict) -> str:
    """The size of a drift run: "32 conversations of 8 rounds"."""
    return f"{record['conversations']} conversations of {record['rounds']} rounds"


def _median_and_range(ratios: list[float]) -> str:
    """Ratios over repetitions: "2.31 (2.20 to 2.40)", or "2.31 (one run)"."""
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else "one run"
    return f"{statistics.median(ratios):.2f} ({spread})"


def loading_table() -> str:
    """How long GGUF files take to load in a fresh process."""
    record = read("loading")
    rows = [["model, dtype", "the first time", "later", "transformers' own loader"]]
    for model in record["models"]:
        by_way = {row["way"]: row for row in model["rows"]}
        cells = []
        for way in ("first", "later", "transformers"):
            process, load = (by_way[way][name]["median"] for name in ("process_s", "load_s"))
            cells.append(f"{process:.1f} s, {load:.1f} s of it after the imports")
        rows.append([f"{model['model']}, {model['dtype']}", *cells])
    same = all(model["same_weights_and_tokenizer"] for model in record["models"])
    return "\n".join(
        [
            f"`python benchmarks/loading.py`: medians of {record['repetitions']} processes of each"
            " kind, in alternation ([record](RESULTS/loading.json)). Weights and tokenizers are"
            f" {'' if same else 'not '}the same, bit for bit.",
            "",
            *markdown(rows),
        ]
    )
