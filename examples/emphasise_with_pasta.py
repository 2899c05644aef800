"""Finds the heads to steer for a task, as PASTA does, and compares it with the unsteered model.

The task is CounterFact: a text states an old fact and then a new one, which is emphasised, and the
model should complete a sentence with the new one.

    python examples/emphasise_with_pasta.py
    python examples/emphasise_with_pasta.py --task bios --top 16
"""

import argparse
from pathlib import Path

import holdfast
from holdfast import methods, tasks
from holdfast.papers.zhang2024.profiling import ProfilingPlan, profile
from holdfast.papers.zhang2024.profiling.profiling_samples import task_samples
from holdfast.report.task_tables import table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default", help="a folder, or a name on the hub")
    parser.add_argument("--task", default="counterfact", choices=("bios", "counterfact"))
    parser.add_argument("--top", type=int, default=8, help="heads to steer")
    parser.add_argument("--samples", type=int, default=48, help="for profiling, and for testing")
    parser.add_argument("--out", type=Path, default=Path("runs/pasta"))
    arguments = parser.parse_args()
    model = holdfast.load(arguments.model)

    # 1. Steer each head separately on training samples, and take the best.
    training = tasks.Settings((arguments.task,), arguments.samples, "train")
    data = tasks.load_data([tasks.SYNTHETIC], training)
    samples = task_samples(data, tasks.CATALOGUE[arguments.task], training)
    profiled = profile(model, samples, arguments.out / "heads", ProfilingPlan(by="accuracy"))
    heads = profiled.ranking.top(arguments.top)
    methods.write_heads(arguments.out / "heads.json", heads)
    print("Heads:", ", ".join(f"{layer}.{head}" for layer, head in sorted(heads)))

    # 2. Run held-out samples, with and without steering.
    testing = tasks.Settings((arguments.task,), arguments.samples, "test", generate=False)
    data = tasks.load_data([tasks.SYNTHETIC], testing)
    pasta = holdfast.Pasta(alpha=0.01, heads=heads)
    run = tasks.run(model, data, arguments.out / "test", testing, [pasta])
    print(table(run))


if __name__ == "__main__":
    main()
