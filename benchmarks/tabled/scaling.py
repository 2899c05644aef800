"""The cost of ten thousand conversations on GPUs, and the speed of a run on a Ray cluster, from the
records of scaling.py and on_ray.py.
"""

from __future__ import annotations

import statistics

from tabled.reading import markdown, read

from holdfast.plurals import count_of

# the row shown in the documentation; the page beside the record has all
SHOWN_GPU = "H100 80 GB SXM"
SHOWN_REPLY_TOKENS = 150
ASSUMPTIONS = """\
- **Tokens** counted conversation by conversation. The default model's small vocabulary \
overestimates prompts somewhat.
- **Operations**: two per weight and token (Kaplan et al. 2020, section 2.1), and four per layer, \
width and visible token for attention; models have the shape of Llama 3.1 in bfloat16.
- **A step** takes as long as its operations, or as reading the weights once and the keys and \
values of every sequence, whichever is longer (the roofline model of Williams et al. 2009). The \
batch is as large as fits into the 90% of memory that vLLM takes by default.
- **Bounds**: 60% of the operations and 80% of the bandwidth at best, 30% and 40% at worst; \
several GPUs give 90% or 70% of their sum. They are chosen from published numbers: Llama 3 was \
trained at 38 to 43% of the operations (Grattafiori et al. 2024, Table 4), and a single stream of \
the 8 B model under vLLM on an A100 read at 77% of the bandwidth (J. Musgrave, “vLLM \
throughput-latency sweep on NVIDIA A100”)."""


def scaling_table() -> str:
    """The cost of many conversations on one kind of GPU, with replies of one length."""
    record = read("scaling")
    estimates = [
        row
        for row in record["estimates"]
        if (row["gpu"], row["reply_tokens"]) == (SHOWN_GPU, SHOWN_REPLY_TOKENS)
    ]
    return _tokens_and_gpu_hours(record, estimates)


def scaling_page() -> str:
    """A page with all estimates, and what they assume."""
    record = read("scaling")
    tables = _tokens_and_gpu_hours(record, record["estimates"])
    assumptions = f"## What the estimate assumes\n\n{ASSUMPTIONS}"
    return f"# What ten thousand conversations cost\n\n{tables}\n\n{assumptions}\n"


def _tokens_and_gpu_hours(record: dict, estimates: list[dict]) -> str:
    """The tokens of the conversations, and these estimates of GPU hours, between two bounds."""
    count = record["conversations"]
    by_length = record["tokens"]
    tokens = [["replies of", *(f"{length} tokens" for length in by_length)]]
    for field, label in (
        ("generated", "tokens drawn"),
        ("read", "tokens of prompts, if nothing is reused"),
        ("least", "tokens forwarded in all, if every prefix is reused"),
    ):
        millions = [f"{row[field] * count / 1e6:,.0f} M" for row in by_length.values()]
        tokens.append([label, *millions])
    hours = [["model, GPUs", "replies of", "GPU hours", "without reuse of prefixes"]]
    for row in estimates:
        hours.append(
            [
                f"{row['model']} on {row['gpus']} x {row['gpu']}",
                f"{row['reply_tokens']} tokens",
                _bounds(row["gpu_hours"]),
                _bounds(row["gpu_hours_without_reuse"]),
            ]
        )
    return "\n".join(
        [
            f"{count:,} conversations of {record['rounds']} rounds, with a stability and an"
            f" adoption probe a round: {by_length['50']['replies']:.0f} replies each, on the suite"
            f" `{record['suite']}`.",
            "",
            *markdown(tokens),
            "",
            *markdown(hours),
        ]
    )


def _bounds(hours: dict[str, float]) -> str:
    return f"{hours['best']:,.1f} to {hours['worst']:,.1f}"


def ray_table() -> str:
    """The time of a run on the nodes of a Ray cluster."""
    record = read("ray_qwen")
    ratios = {name: f"{row['median']:.2f}" for name, row in record["ratios"].items()}
    alone = statistics.median(row["here"] for row in record["repetitions"])
    on_nodes = ", ".join(
        f"{ratio} on {name}" for name, ratio in ratios.items() if not name.startswith("here")
    )
    repetitions = count_of(len(record["repetitions"]), "repetition")
    return (
        f"`python benchmarks/on_ray.py`: {record['conversations']} conversations of"
        f" {count_of(record['rounds'], 'round')} on {record['model']} in bfloat16, nodes with one"
        " processor each, on one machine with two processors. The time of a run, divided by that of"
        f" one process with one thread ({alone:.0f} s), median of {repetitions}: {on_nodes}"
        " ([record](RESULTS/ray_qwen.json)). Half of the conversations in one process take"
        f" {ratios['here, half']} of the time, and two processes without Ray that do half each at"
        f" once {ratios['here, half, twice at once']}. Four nodes share the two processors."
    )
