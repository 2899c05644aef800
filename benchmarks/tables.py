"""Writes tables between their markers in README.md, docs/, the model card and the pages beside the
records.

Tables come from the records in benchmarks/results/, and tables of methods from their classes.

    python benchmarks/tables.py

A test checks that the documents agree with the records. docs/figures/loss_map.svg is drawn too, and
no test compares it, as fonts differ between machines.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from tabled.catalogue import api_sections, catalogue_table
from tabled.causes import causes_table
from tabled.census import census_line, census_page
from tabled.context_modes import context_table
from tabled.costs import chosen_page, stage_page
from tabled.decodable import decodable_page, decodable_summary
from tabled.default_model import ablation_table, drift_table, following_line, lengths_table
from tabled.demo import demo_caption, demo_real_caption, demo_real_table, quoted_dialog
from tabled.edits import (
    conversations_line,
    edit_costs_line,
    edit_costs_table,
    fixes_table,
    helping_sentence,
)
from tabled.front_door import logs_example, measurement_example, serving_example
from tabled.large_logs import large_logs_table
from tabled.loss import conversations_list, kinds_table, lost_sentences, recall_table
from tabled.loss import write_figure as write_loss_figure
from tabled.packages import package_drawing
from tabled.papers import (
    claims_page,
    contradicted_list,
    methods_table,
    records,
    reproduction_line,
    verdicts_page,
)
from tabled.precedent import precedent_fixes_table, precedent_line, precedent_table
from tabled.reading import RESULTS, ROOT, read_all
from tabled.reliability import checking_table, coverage_table, ifeval_table, verdicts_table
from tabled.repeating import repeating_table
from tabled.scaling import ray_table, scaling_page, scaling_table
from tabled.serve import proxy_line, real_serve_line, remind_line, serve_table
from tabled.smollm2 import (
    confirmed_page,
    drift_page,
    drift_summary,
    explored_page,
    start_line,
    truncation_table,
)
from tabled.speed import loading_table, speed_table
from tabled.steering_time import (
    attention_table,
    decode_step_tables,
    gpu_table,
    llama_table,
    vllm_table,
)
from tabled.suite_init import suite_init_table

from holdfast.report.log_formats import formats_table

RECORD_OF_TABLE = {  # the record of each table of `optional_tables`, if it has another name
    "ray": "ray_qwen",
    "decode_step": "decode_step_qwen",
    "quoted": "demo_real",
    "demo_real_rules": "demo_real",
    "start-with": "smollm2_confirmed",
    "gpu": "gpu/decode_step",
    **dict.fromkeys(("front-measure", "front-logs", "front-serve"), "front_door"),
}
# the records of equal_cost.py, each of which has a page
STAGES = ("equal_cost_explored", "equal_cost", "equal_cost_explored_many", "equal_cost_many")


def fill(text: str, tables: dict[str, str]) -> str:
    """Returns the text with each table between its markers."""
    for name, table in tables.items():
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- /{name} -->",
            lambda _, t=table, n=name: f"<!-- {n} -->\n{t}\n<!-- /{n} -->",
            text,
            flags=re.DOTALL,
        )
    return text


def with_relative_links(tables: dict[str, str], page: Path) -> dict[str, str]:
    """Returns the tables with their links to ROOT/, RESULTS/ and DOCS/ relative to a page."""
    up = "../" * (len(page.relative_to(ROOT).parts) - 1)
    docs = "" if page.parent == ROOT / "docs" else f"{up}docs/"
    return {
        name: table.replace("(RESULTS/", f"({up}benchmarks/results/")
        .replace("(DOCS/", f"({docs}")
        .replace("(ROOT/", f"({up}")
        for name, table in tables.items()
    }


def documents() -> dict[Path, str]:
    """The text that each document should have."""
    tables = required_tables() | optional_tables()
    pages = (
        ROOT / "README.md",
        ROOT / "benchmarks" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "src/holdfast/assets/model/MODEL_CARD.md",
    )
    return (
        {
            **{path: fill(path.read_text(), with_relative_links(tables, path)) for path in pages},
            ROOT / "docs" / "figures" / "house.svg": package_drawing(),
            RESULTS / "census.md": census_page(),
            RESULTS / "claims.md": verdicts_page(),
            RESULTS / "decodable.md": decodable_page(),
            RESULTS / "scaling.md": scaling_page(),
            RESULTS / "smollm2_confirmed.md": confirmed_page(),
            RESULTS / "smollm2_drift.md": drift_page(),
            RESULTS / "smollm2_explored.md": explored_page(),
            RESULTS / "chosen_heads" / "settings.md": chosen_page(),
        }
        | {
            RESULTS / f"{name}.md": stage_page(name)
            for name in STAGES
            if (RESULTS / f"{name}.json").exists()
        }
        | {RESULTS / name / "claims.md": claims_page(name) for name in records()}
    )


def required_tables() -> dict[str, str]:
    """The tables whose records must be there, by the name of their markers."""
    edits = read_all("message_edits")
    steering = read_all("steering_fixes")
    costs = read_all("edit_costs")
    precedents = read_all("precedent")
    return {
        "numbers": drift_table(),
        "lengths": lengths_table(),
        "following": following_line(),
        "speed": speed_table(),
        "attention": attention_table(),
        "ablation": ablation_table(),
        "methods": catalogue_table(),
        "api": api_sections(),
        "ifeval": ifeval_table(),
        "scaling": scaling_table(),
        "checking": checking_table(),
        "coverage": coverage_table(),
        "verdicts": verdicts_table(),
        "census": census_line(),
        "llama": llama_table(),
        "vllm": vllm_table(),
        **{name: reproduction_line(name) for name in records()},
        "contradicted": contradicted_list(),
        "loss_conversations": conversations_list(),
        "loss_kinds": kinds_table(),
        "lost": lost_sentences(),
        "context_modes": context_table(read_all("context_modes")),
        "loss_recall": recall_table(),
        "causes": causes_table(),
        "message_edits": fixes_table(edits),
        "message_edits_conversations": conversations_line(edits),
        "steering_fixes": fixes_table(steering),
        "steering_fixes_conversations": conversations_line(steering),
        "edit_costs": edit_costs_table([*costs, *read_all("steering_costs")]),
        "edit_costs_conversations": edit_costs_line(costs),
        "precedent": precedent_table(precedents),
        "precedent_models": precedent_line(precedents),
        "precedent_methods": precedent_fixes_table(read_all("precedent_methods")),
        "serve_real": real_serve_line(),
        "helps": helping_sentence(),
        "repeating": repeating_table(),
        "log_formats": formats_table(),
    }


def optional_tables() -> dict[str, str]:
    """The tables whose records may be missing, by the name of their markers."""
    tables = {}
    for name, table in (
        ("serve", serve_table),
        ("proxy", proxy_line),
        ("remind", remind_line),
        ("large_logs", large_logs_table),
        ("loading", loading_table),
        ("ray", ray_table),
        ("decode_step", decode_step_tables),
        ("gpu", gpu_table),
        ("demo", demo_caption),
        ("demo_real", demo_real_caption),
        ("demo_real_rules", demo_real_table),
        ("quoted", quoted_dialog),
        ("suite_init", suite_init_table),
        ("smollm2_drift", drift_summary),
        ("start-with", start_line),
        ("front-measure", measurement_example),
        ("front-logs", logs_example),
        ("front-serve", serving_example),
        ("truncation_smollm2", truncation_table),
        ("decodable", decodable_summary),
    ):
        if (RESULTS / f"{RECORD_OF_TABLE.get(name, name)}.json").exists():
            tables[name] = table()
    if "zhang2024" in records():
        tables["pasta"] = methods_table()
    return tables


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
        print(path.relative_to(ROOT))
    write_loss_figure(ROOT / "docs" / "figures" / "loss_map.svg")
