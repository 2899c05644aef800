"""A paper's figures on the default model, as a record: `holdfast reproduce PAPER --scale small`.

    python benchmarks/reproduction.py li2024 --runs runs/li2024 --out
    benchmarks/results/li2024/findings.json

The run stays in --runs and can be resumed; findings and the figures they name are copied beside
--out."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from stamp import measured_on

import holdfast
from holdfast.cli import main as command_line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=("li2024", "zhang2024"))
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scale", default="small")
    arguments = parser.parse_args()
    runs = arguments.runs or Path("runs") / f"record-{arguments.paper}"
    out = arguments.out or Path("benchmarks/results") / arguments.paper / "findings.json"
    stamp = measured_on(holdfast.load())
    status = command_line(
        ["reproduce", arguments.paper, "--scale", arguments.scale, "--out", str(runs)]
    )
    if status:
        raise SystemExit(status)
    figures = json.loads((runs / "findings.json").read_text())
    shutil.rmtree(out.parent / "figures", ignore_errors=True)
    for image in (image for figure in figures for image in figure["images"]):
        target = out.parent / image
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(runs / image, target)
    record = {
        "benchmark": arguments.paper,
        "scale": arguments.scale,
        "measured_on": stamp,
        "figures": figures,
    }
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
