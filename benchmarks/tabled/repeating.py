"""The table of benchmarks/README.md: how to measure the tables about real models on another one."""

from __future__ import annotations

from dataclasses import dataclass

from record_list import RECORDS
from tabled.reading import markdown

MODEL = "qwen-0.5b"  # on which the times were taken


@dataclass(frozen=True)
class Repeatable:
    """A table of the documents that one command measures on any model.

    Args:
        page: where the table is, below docs/.
        command: the script and its options, without the model and the record.
        folder: of its records, one per model.
    """

    title: str
    page: str
    command: str
    folder: str

    @property
    def minutes(self) -> int:
        """About how long it takes on two cores with a model of 0.5 billion parameters."""
        name = f"{self.folder}/{MODEL}"
        record = next(record for record in RECORDS if record.name == name)
        script = self.command.split()[0]
        assert f"benchmarks/{script} " in record.command, f"{record.name} is not of {script}"
        return record.minutes


REPEATABLE = (
    Repeatable(
        "Which rules are kept, and which it can still state",
        "what_is_lost.md#what-holds-what-falls-what-rises",
        "loss.py",
        "loss",
    ),
    Repeatable(
        "What leaves the model’s view",
        "what_is_lost.md#when-older-rounds-leave-the-view",
        "context_modes.py",
        "context_modes",
    ),
    Repeatable("Prompt or precedent", "why.md#prompt-or-precedent", "precedent.py", "precedent"),
    Repeatable(
        "Precedent under fixes",
        "why.md#prompt-or-precedent",
        "precedent.py --every 6"
        " --method repetition:probability=1 boost:factor=4 attenuate:factor=0.03",
        "precedent_methods",
    ),
    Repeatable(
        "Fixes behind an endpoint",
        "choosing.md#behind-an-endpoint",
        "fixes.py edits",
        "message_edits",
    ),
    Repeatable(
        "What they cost in other abilities",
        "choosing.md#what-they-cost-in-other-abilities",
        "edit_costs.py",
        "edit_costs",
    ),
    Repeatable(
        "Fixes that steer the model",
        "choosing.md#a-model-that-you-run-yourself",
        "fixes.py steering",
        "steering_fixes",
    ),
    Repeatable(
        "What those cost",
        "choosing.md#what-they-cost-in-other-abilities",
        "edit_costs.py --runs runs/steering_costs"
        " --method split-softmax:exponent=0.5 boost:factor=4",
        "steering_costs",
    ),
)


def repeating_table() -> str:
    """A command for each table, and about how long it takes."""
    rows = [["table", "command", "minutes"]]
    for table in REPEATABLE:
        script, *options = table.command.split(" ", 1)
        words = [f"python benchmarks/{script}", *options, "--model MODEL"]
        out = f"--out benchmarks/results/{table.folder}/NAME.json"
        command = f"`{' '.join([*words, out])}`"
        rows.append([f"[{table.title}](DOCS/{table.page})", command, str(table.minutes)])
    minutes = sum(table.minutes for table in REPEATABLE)
    return "\n".join([*markdown(rows), "", f"Together: {minutes / 60:.0f} hours."])
