"""The records under benchmarks/results/, and the command that measures each."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Record:
    """One record, and how it is measured.

    Args:
        name: of its file in benchmarks/results/, without ".json".
        command: for Python, from the repository's root; {out} is the file, {runs} a folder for its
            runs, {corpus} the Self-dialogue Corpus (training/README.md), {facts} CounterFact,
            {prompts} the published system prompts of Li et al. 2024, {rules} the rules files of
            `suite_init_labels.json`, {llama_server} llama.cpp's binary.
        minutes: about how long it takes on 2 cores.
        default_model: whether its numbers are the default model's, so that new weights invalidate
            it.
        beside: files and folders that it writes beside the record.
        python: the interpreter that runs it, relative to the root; None: the current one.
        gpu: whether it needs a GPU.
    """

    name: str
    command: str
    minutes: int
    _: KW_ONLY
    default_model: bool = False
    beside: tuple[str, ...] = ()
    python: str | None = None
    gpu: bool = False


RECORDS = (
    Record(
        "demo",
        "benchmarks/demo.py --runs {runs} --out {out}",
        3,
        default_model=True,
        beside=("demo",),
    ),
    Record(
        "demo_real",
        "benchmarks/demo.py --target demo-real --runs {runs} --out {out}",
        7,
        beside=("demo_real",),
    ),
    Record("bot", "benchmarks/bot.py --runs {runs} --out {out}", 4, default_model=True),
    Record(
        "default_model",
        "benchmarks/default_model.py --runs {runs} --out {out}",
        20,
        default_model=True,
    ),
    Record(
        "screen_smollm2",
        "benchmarks/screen.py --model smollm2 --runs {runs} --out {out}",
        10,
    ),
    Record(
        "smollm2_drift",
        "benchmarks/on_smollm2.py drift --runs {runs} --out {out}",
        110,
    ),
    Record(
        "smollm2_explored",
        "benchmarks/on_smollm2.py explore --facts {facts} --runs {runs} --out {out}",
        120,
    ),
    Record(
        "smollm2_confirmed",
        "benchmarks/on_smollm2.py confirm --facts {facts} --runs {runs} --out {out}",
        150,
    ),
    Record("window", "benchmarks/window.py --runs {runs} --out {out}", 25),
    Record("front_door", "benchmarks/front_door.py --out {out}", 8, beside=("front_door",)),
    Record("logs_smollm2", "benchmarks/logs_smollm2.py --runs {runs} --out {out}", 40),
    Record("truncation_smollm2", "benchmarks/truncation.py --runs {runs} --out {out}", 10),
    Record(
        "decodable", "benchmarks/decodable.py --runs {runs} --out {out}", 45, default_model=True
    ),
    Record(
        "loss/qwen-0.5b",
        "benchmarks/loss.py --model qwen-0.5b --seeds 0 1 --runs {runs} --out {out}",
        80,
    ),
    Record(
        "loss/qwen-1.5b",
        "benchmarks/loss.py --model qwen-1.5b --dtype bfloat16 --seeds 0 1 2 --conversations 24"
        " --rounds 8 --batch 8 --runs {runs} --out {out}",
        100,
    ),
    Record(
        "loss/smollm2",
        "benchmarks/loss.py --model smollm2 --dtype bfloat16 --seeds 0 1 --conversations 48"
        " --rounds 8 --runs {runs} --out {out}",
        45,
    ),
    Record(
        "context_modes/qwen-0.5b",
        "benchmarks/context_modes.py --model qwen-0.5b --runs {runs} --out {out}",
        45,
    ),
    Record(
        "precedent/qwen-0.5b",
        "benchmarks/precedent.py --model qwen-0.5b --dtype float32 --runs {runs} --out {out}",
        75,
    ),
    Record(
        "precedent/qwen-1.5b",
        "benchmarks/precedent.py --model qwen-1.5b --dtype float32 --every 10 --runs {runs}"
        " --out {out}",
        30,
    ),
    Record(
        "precedent_methods/qwen-0.5b",
        "benchmarks/precedent.py --model qwen-0.5b --every 6 --method repetition:probability=1"
        " boost:factor=4 attenuate:factor=0.03 --runs {runs} --out {out}",
        20,
    ),
    Record(
        "edit_costs/smollm2",
        "benchmarks/edit_costs.py --model smollm2 --runs {runs} --out {out}",
        30,
    ),
    Record(
        "edit_costs/qwen-0.5b",
        "benchmarks/edit_costs.py --model qwen-0.5b --runs {runs} --out {out}",
        35,
    ),
    Record(
        "edit_costs/qwen-1.5b",
        "benchmarks/edit_costs.py --model qwen-1.5b --runs {runs} --out {out}",
        75,
    ),
    Record(
        "steering_costs/qwen-0.5b",
        "benchmarks/edit_costs.py --model qwen-0.5b --method split-softmax:exponent=0.5"
        " boost:factor=4 --runs {runs} --out {out}",
        25,
    ),
    Record(
        "message_edits/smollm2",
        "benchmarks/fixes.py edits --model smollm2 --seeds 2 --runs {runs} --out {out}",
        45,
    ),
    Record(
        "message_edits/qwen-0.5b",
        "benchmarks/fixes.py edits --model qwen-0.5b --method repetition:probability=1"
        " reminder:every=4,text=rules reminder:every=1,text=rules,when=broken repair"
        # the kinds that fall on qwen-0.5b, from the round after which they do (results/loss)
        " reminder:every=1,text=rules,kinds=conditional/identity/tool-first,after=2"
        " check-and-retry:n=2 --runs {runs} --out {out}",
        45,
    ),
    Record(
        "message_edits/qwen-1.5b",
        "benchmarks/fixes.py edits --model qwen-1.5b --seeds 2 --runs {runs} --out {out}",
        45,
    ),
    Record(
        "steering_explored/qwen-0.5b",
        "benchmarks/fixes.py explore --model qwen-0.5b --runs {runs} --out {out}",
        15,
    ),
    Record(
        "steering_fixes/qwen-0.5b",
        "benchmarks/fixes.py steering --model qwen-0.5b --runs {runs} --out {out}",
        45,
    ),
    Record(
        "steering_fixes/qwen-1.5b",
        "benchmarks/fixes.py steering --model qwen-1.5b --seeds 3 --batch 24 --method"
        " repetition:probability=1 check-and-retry:n=2 split-softmax:exponent=0.5 boost:factor=4"
        " --runs {runs} --out {out}",
        70,
    ),
    Record(
        "drift_loop_qwen",
        "benchmarks/drift_loop.py --repetitions 1 --out {out}",
        28,
    ),
    Record(
        "drift_loop_qwen_few",
        "benchmarks/drift_loop.py --conversations 16 --rounds 4 --out {out}",
        12,
    ),
    Record(
        "drift_loop_qwen15",
        "benchmarks/drift_loop.py --model qwen-1.5b --repetitions 1 --out {out}",
        85,
    ),
    Record("faster_layers", "benchmarks/faster_layers.py --repetitions 9 --out {out}", 5),
    Record(
        "decode_step_qwen",
        "benchmarks/decode_step.py --rows 1 16 --repetitions 3 --only time --out {out}",
        6,
    ),
    Record("run_memory_qwen", "benchmarks/decode_step.py --only memory --out {out}", 7),
    Record("loading", "benchmarks/loading.py --repetitions 3 --out {out}", 10),
    Record("checking", "benchmarks/checking.py --out {out}", 2),
    Record("verdicts", "benchmarks/verdicts.py --out {out}", 6),
    Record("other_prompts", "benchmarks/other_prompts.py --out {out}", 6),
    Record("growth_qwen", "benchmarks/growth.py --out {out}", 14),
    Record(
        "vllm_loop",
        "plugins/holdfast-vllm/benchmarks/drift_loop.py --repetitions 1 --out {out}",
        8,
        python=".venv-vllm/bin/python",
    ),
    Record(
        "vllm_steering",
        "plugins/holdfast-vllm/benchmarks/speed.py --repetitions 1 --out {out}",
        30,
        python=".venv-vllm/bin/python",
    ),
    Record(
        "llama_steering_qwen",
        "plugins/holdfast-llama/benchmarks/speed.py --model qwen-0.5b --rows 1 --rows 16"
        " --threads 2 --out {out}",
        4,
        python=".venv-llama/bin/python",
    ),
    Record(
        "llama_server",
        "plugins/holdfast-llama/benchmarks/engines.py --without-plugin --repetitions 3"
        " --server {llama_server} --out {out}",
        30,
        python=".venv-llama/bin/python",
    ),
    Record(
        "llama_chat",
        "plugins/holdfast-llama/benchmarks/engines.py --conversations 1 --rounds 1"
        " --repetitions 5 --server {llama_server} --out {out}",
        6,
        python=".venv-llama/bin/python",
    ),
    Record("cluster", "benchmarks/cluster.py --out {out}", 1),
    Record("modern", "benchmarks/modern.py --out {out}", 6),
    Record("serve", "benchmarks/serve.py --out {out}", 4, default_model=True),
    Record(
        "serve_qwen",
        "benchmarks/serve.py --model qwen-0.5b --dtype bfloat16 --requests 0 --per-phase 32"
        " --long --repetitions 3 --engines torch llama --peers transformers_continuous"
        " --llama-server {llama_server} --out {out}",
        25,
        python=".venv-llama/bin/python",
    ),
    Record("proxy", "benchmarks/proxy.py --out {out}", 3),
    Record("remind", "benchmarks/remind.py --out {out}", 1),
    Record("causes", "benchmarks/causes.py --out {out}", 1),
    Record("large_logs", "benchmarks/large_logs.py --size 200 --out {out}", 5),
    Record(
        "ray_qwen",
        "benchmarks/on_ray.py --model qwen-0.5b --conversations 96 --rounds 1 --nodes 1 2 4"
        " --repetitions 1 --out {out}",
        12,
        python=".venv-integrations/bin/python",
    ),
    Record("scaling", "benchmarks/scaling.py --out {out}", 1, default_model=True),
    Record("batching", "benchmarks/batching.py --out {out}", 1, default_model=True),
    Record(
        "li2024/findings",
        "benchmarks/reproduction.py li2024 --runs {runs} --out {out}",
        8,
        default_model=True,
        beside=("li2024/figures",),
    ),
    Record(
        "li2024_smollm2/findings",
        "benchmarks/reproduction.py li2024 --model smollm2 --dtype bfloat16 --scale brief --suite"
        " examples/small-model.yaml --runs {runs} --out {out}",
        25,
        beside=("li2024_smollm2/figures",),
    ),
    Record(
        "li2024_qwen05/findings",
        "benchmarks/reproduction.py li2024 --model qwen-0.5b --dtype bfloat16 --scale brief --suite"
        " li2024:{prompts} --runs {runs} --out {out}",
        30,
        beside=("li2024_qwen05/figures",),
    ),
    Record(
        "zhang2024/findings",
        "benchmarks/reproduction.py zhang2024 --runs {runs} --out {out}",
        36,
        default_model=True,
        beside=("zhang2024/figures",),
    ),
    Record(
        "zhang2024_smollm2/findings",
        "benchmarks/reproduction.py zhang2024 --model smollm2 --dtype bfloat16 --scale brief"
        " --task counterfact --facts {facts} --others --runs {runs} --out {out}",
        25,
        beside=("zhang2024_smollm2/figures",),
    ),
    Record(
        "zhang2024_gemma/findings",
        "benchmarks/reproduction.py zhang2024 --model gemma-3-270m --chat-template plain --dtype"
        " bfloat16 --scale brief --task counterfact --facts {facts} --others --runs {runs} --out"
        " {out}",
        20,
        beside=("zhang2024_gemma/figures",),
    ),
    Record(
        "zhang2024_qwen05/findings",
        "benchmarks/reproduction.py zhang2024 --model qwen-0.5b --dtype bfloat16 --scale brief"
        " --task counterfact --facts {facts} --runs {runs} --out {out}",
        60,
        beside=("zhang2024_qwen05/figures",),
    ),
    Record(
        "chosen_heads",
        "benchmarks/chosen_heads.py --draws 5 --runs {runs} --out {out}",
        60,
        default_model=True,
        beside=("chosen_heads",),
    ),
    Record(
        "equal_cost_explored",
        "benchmarks/equal_cost.py explore --runs {runs} --out {out}",
        60,
        default_model=True,
    ),
    Record(
        "equal_cost",
        "benchmarks/equal_cost.py confirm --runs {runs} --out {out}",
        45,
        default_model=True,
    ),
    Record(
        "equal_cost_explored_many",
        "benchmarks/equal_cost.py explore-many --runs {runs} --out {out}",
        40,
        default_model=True,
    ),
    Record(
        "equal_cost_many",
        "benchmarks/equal_cost.py confirm-many --runs {runs} --out {out}",
        45,
        default_model=True,
    ),
    Record(
        "ablation",
        "benchmarks/ablation.py --self-dialogue {corpus} --runs {runs} --out {out}",
        30,
    ),
    Record("attention", "benchmarks/attention.py --out {out}", 30),
    Record(
        "gpu/attention_8b",
        "benchmarks/attention.py --shape 8b --repetitions 8 --dtypes bfloat16 --out {out}",
        1,
        gpu=True,
    ),
    Record(
        "gpu/decode_step",
        "benchmarks/decode_step.py --model smollm2 --repetitions 2 --out {out}",
        1,
        gpu=True,
    ),
    Record("profiling", "benchmarks/profiling.py --out {out}", 4),
    Record("census", "benchmarks/census.py --out {out}", 2),
    Record("cold_start", "benchmarks/cold_start.py --out {out}", 4, default_model=True),
    Record(
        "cold_start_smollm2",
        "benchmarks/cold_start.py --model smollm2 --prompts 5 --out {out}",
        15,
    ),
    Record(
        "suite_init",
        "benchmarks/suite_init.py {rules} --out {out}",
        1,
    ),
    Record(
        "ifeval",
        "benchmarks/ifeval.py --out {out}",
        4,
        default_model=True,
        python=".venv-integrations/bin/python",
    ),
)
