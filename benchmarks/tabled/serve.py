"""The server, the proxy and the hook of coding agents under load, from the records of serve.py,
proxy.py and remind.py.
"""

from __future__ import annotations

from tabled.reading import markdown, read

from holdfast.plurals import count_of

ENGINES = {  # our servers in the record, in words
    "holdfast": "our own engine, in {dtype} (`--engine torch`)",
    "holdfast_llama": "llama.cpp's kernels (`--engine llama`)",
}
PEERS = {
    "transformers_continuous": "`transformers serve`, continuous batching",
    "llama_server": "llama.cpp's own server, the same file",
}


def serve_table() -> str:
    """The server of the default model: lost and mixed-up replies, memory, and speed."""
    record = read("serve")
    float64, float32 = record["soak"]
    medians = record["speed"]["medians"]
    speed_by_clients = medians.get("holdfast", medians)  # older records have only this server
    under_load = speed_by_clients["16"]
    staying = float64["requests"] - float64["left"]

    def times_as_fast(peer: str) -> str:
        ratios = [row[f"tokens_per_second_over_{peer}"] for row in speed_by_clients.values()]
        return f"{', '.join(f'{ratio:.1f}' for ratio in ratios)} times"

    rows = [
        ["`holdfast serve`, default model", "measured"],
        [
            f"{float64['requests']:,} requests with mixed steering from {float64['clients']}"
            f" clients, {float64['left']} of them abandoned mid-reply: how many others were"
            " answered",
            f"{float64['answered']:,} of {staying:,}",
        ],
        [
            "replies that differ from `generate_batch` with the same seed, float64; float32",
            f"{float64['other_than_twin']}; {float32['other_than_twin']}",
        ],
        [
            "the server's memory after a fifth of the requests, and at the end, float32",
            f"{float32['megabytes_after_a_fifth']:,} and {float32['megabytes_at_the_end']:,} MiB",
        ],
        [
            "tokens per second, divided by those of `transformers serve`, at"
            f" {', '.join(speed_by_clients)} clients",
            times_as_fast("transformers"),
        ],
        ["the same, with its continuous batching", times_as_fast("transformers_continuous")],
        [
            "at 16 clients: requests per second; time to the first piece of text, median and"
            " 99%; time from piece to piece",
            f"{under_load['requests_per_second']:.1f};"
            f" {_milliseconds(under_load['first_piece_seconds'])};"
            f" {_milliseconds(under_load['piece_seconds'])}",
        ],
    ]
    return "\n".join(markdown(rows))


def _milliseconds(seconds: dict[str, float]) -> str:
    """The median and the 99th percentile: "98 and 240 ms"."""
    return f"{seconds['p50'] * 1e3:.0f} and {seconds['p99'] * 1e3:.0f} ms"


def real_serve_line() -> str:
    """The server of a real model, with either engine, against its peers."""
    record = read("serve_qwen")
    speed = record["speed"]
    clients = list(speed["medians"]["holdfast"])
    rows = [
        [
            f"`holdfast serve --model {record['model']}` with",
            "tokens per second, compared with",
            *(count_of(int(count), "client") for count in clients),
        ]
    ]
    for engine, engine_words in ENGINES.items():
        for peer, peer_words in PEERS.items():
            by_clients = speed["medians"][engine]
            ratios = [by_clients[count][f"tokens_per_second_over_{peer}"] for count in clients]
            words = [engine_words.format(dtype=speed["dtype"]), peer_words]
            rows.append([*words, *(f"{ratio:.2f}" for ratio in ratios)])
    replies = "replies of 64 tokens" if speed["long_replies"] else "short replies"
    return "\n".join(
        [
            *markdown(rows),
            "",
            "In alternation, all four servers got the same requests for"
            f" {replies}; medians of {speed['repetitions']} repetitions. With one client, a"
            " server mostly reads weights, and quantised ones are smaller"
            " ([record](../benchmarks/results/serve_qwen.json)).",
        ]
    )


def proxy_line() -> str:
    """The time that the proxy adds to a stream, and the streams that it lost."""
    record = read("proxy")
    added = record["added_ms"]
    low, high = added["range"]
    faults = record["faults"]["proxied"]
    healthy = [row["proxied"]["healthy"] for row in record["rows"]] + [faults["healthy"]]
    failing = [counts for kind, counts in faults.items() if kind != "healthy"]
    return (
        f"With {record['streams']} streams open at once on {record['measured_on']['machine']},"
        " shared with their clients and a fake server, the first piece of text comes"
        f" {added['median']:.1f} ms later than over a direct connection (median;"
        f" {low:.1f} to {high:.1f} in {len(record['rows'])} alternations;"
        f" {record['added_p95_ms']['median']:.0f} ms at the 95th percentile)."
        f" {sum(counts['as_direct'] for counts in healthy):,} of"
        f" {sum(counts['streams'] for counts in healthy):,} streams arrived complete. Of"
        f" {sum(counts['streams'] for counts in failing)} whose server failed,"
        f" {sum(counts['as_direct'] for counts in failing)} ended"
        " as over a direct connection, or with an error that says why."
    )


def remind_line() -> str:
    """How long the hook of a coding agent takes."""
    record = read("remind")
    times = {
        row["call"]: f"{row['median_ms']:.0f} ms (at most {row['max_ms']:.0f})"
        for row in record["rows"]
    }
    return (
        f"On {record['measured_on']['machine']}, the hook takes {times['later']} after a message of"
        f" the user and {times['tool']} after a tool, in a session of {record['megabytes']:.0f} MB,"
        " of which it reads only the new part; its first call, which reads everything, takes"
        f" {times['first']}."
    )
