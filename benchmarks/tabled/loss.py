"""Tables of the rules that models lose, from the records in results/loss, one per model."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tabled.reading import RESULTS, markdown

from holdfast.analysis.collapse import BROKEN_SHARE_WARNING
from holdfast.analysis.loss_map_file import ModelLoss
from holdfast.analysis.loss_rows import Grouping, LossRow
from holdfast.analysis.statistics import Estimate
from holdfast.measures.rule_kinds import KINDS
from holdfast.records.drift_summary import Collapse
from holdfast.report.loss_map_tables import write_loss_figure

FOLDER = RESULTS / "loss"
_MIN_CONVERSATIONS = 10  # of a change that a table shows
_MIN_README_CONVERSATIONS = 48  # of a model that the README mentions
_ROWS = (  # of the table of kinds
    (Grouping.ALL, ("",)),
    (Grouping.KIND, tuple(KINDS)),
    (Grouping.POLARITY, ("requirement", "prohibition", "gate")),
    (Grouping.SIZE, ("2 or 3 rules", "4 or 5 rules", "6 and more")),
)
_POLARITIES = {
    "requirement": "what every reply must be or have",
    "prohibition": "what no reply may be or have",
    "gate": "what must come first, such as a tool call",
}
_ABOUT_THE_USER = (
    "The figure is from conversations in which a"
    " [scripted user](DOCS/conversations.md#scripted-user-messages) sets one task after another,"
    " and pastes texts, tables and the output of tools."
)
_WORDS_FOR_VERDICT = {
    "holds": "are kept about as often at the end as at the start",
    "falls": "are kept less often at the end than at the start",
    "rises": "are kept more often at the end than at the start",
}


def models() -> dict[str, ModelLoss]:
    """The maps by the model's name on the command line, which is that of its record."""
    return {
        name: ModelLoss.model_validate_json(json.dumps(record["loss"]))
        for name, record in _records().items()
    }


def _records() -> dict[str, dict]:
    return {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}


def _group(model: ModelLoss, grouping: Grouping, group: str) -> LossRow | None:
    """The row of a group of rules, without a fix; None if the model has none."""
    key = ("none", grouping, group)
    rows = (row for row in model.rows if (row.method, row.grouping, row.group) == key)
    return next(rows, None)


# Tables and a figure


def conversations_list() -> str:
    """The conversations that the maps were measured on, and how many replies are broken in those
    that break down.
    """
    counts = []
    records = _records()
    for name, model in models().items():
        sizes = " and ".join(f"{run.conversations}" for run in model.runs)
        line = (
            f"- `{name}`: {sizes} conversations ([commands and numbers](RESULTS/loss/{name}.json))"
        )
        broken = _broken_replies(records[name])
        counts.append(f"{line}; {broken}" if broken else line)
    return "\n".join(counts)


def _broken_replies(record: dict) -> str:
    """How many of a model's replies are broken; "" if few are, or if its record does not say."""
    runs = [Collapse.model_validate_json(json.dumps(run)) for run in record.get("collapse", ())]
    turns = sum(run.turns for run in runs)
    if not turns:
        return ""
    broken, cut = (sum(run.count(name) for run in runs) / turns for name in ("broken", "cut"))
    if broken < BROKEN_SHARE_WARNING:
        return ""
    return (
        f"{broken:.0%} of its replies repeat an earlier turn or loop, and {cut:.0%} are cut at the"
        " token limit"
    )


def kinds_table() -> str:
    """Kept in round 1 and at the end, and the change, by kind of rule and model."""
    by_name = models()
    rows = [["kind of rule", *(f"`{name}`" for name in by_name)]]
    for grouping, groups in _ROWS:
        for group in groups:
            cells = [change_cell(_group(model, grouping, group)) for model in by_name.values()]
            if any(cells):
                rows.append([f"**{group or 'all rules'}**", *cells])
    return "\n".join(markdown(rows))


def change_cell(row: LossRow | None) -> str:
    """A group's change: "0.50 → 0.39, -0.11 [-0.18, -0.04], falls"."""
    if row is None or row.change.mean is None or row.first.mean is None or row.last.mean is None:
        return ""
    if row.change.n < _MIN_CONVERSATIONS:
        return "too few"
    change = f"{row.change.mean:+.2f} [{row.change.low:+.2f}, {row.change.high:+.2f}]"
    return f"{row.first.mean:.2f} → {row.last.mean:.2f}, {change}, {row.verdict}"


def recall_table() -> str:
    """Of the rules broken in the last round, the share that the model states when asked."""
    by_name = {name: model for name, model in models().items() if model.recall}
    every_rule = [next(row for row in model.recall if not row.kind) for model in by_name.values()]
    rows = [["", *(f"`{name}`" for name in by_name)]]
    for words, field in (
        ("rules stated in round 1", "stated_first"),
        ("rules stated in the last round", "stated_last"),
        ("of those broken there", "stated_of_broken"),
        ("of those kept there", "stated_of_kept"),
    ):
        rows.append([words, *(share_cell(getattr(row, field)) for row in every_rule)])
    return "\n".join(markdown(rows))


def share_cell(estimate: Estimate) -> str:
    """A share with its interval: "0.44 [0.37, 0.51]"."""
    if estimate.mean is None or estimate.low is None or estimate.high is None:
        return ""
    return f"{estimate.mean:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def write_figure(path: Path) -> None:
    """Draws the changes of the table of kinds as an SVG; a change of too few conversations is left
    out.
    """
    records = _records()
    maps = {}
    for name, model in models().items():
        title = f"{name}, {sum(run.conversations for run in model.runs)} conversations"
        if _broken_replies(records[name]):
            title += "\n(which break down)"
        maps[title] = [
            row for row in model.rows if row.method == "none" and row.change.n >= _MIN_CONVERSATIONS
        ]
    with tempfile.TemporaryDirectory() as folder:
        write_loss_figure(maps, Path(folder))
        shutil.copy(Path(folder) / "loss_map.svg", path)


# The sentences of the README


def lost_sentences() -> str:
    """The rules that each model keeps and loses, in a few sentences.

    Leaves out a model whose conversations break down, as its losses may be no drift.
    Mentions the share of its rules that a model can state only if that clearly falls.
    """
    paragraphs = [_ABOUT_THE_USER]
    records = _records()
    for name, model in models().items():
        conversations = sum(run.conversations for run in model.runs)
        if conversations < _MIN_README_CONVERSATIONS or _broken_replies(records[name]):
            continue
        sentences = [f"In {conversations} of them with `{name}`, {_lost_rules(model)}."]
        recall = next((row for row in model.recall if not row.kind), None)
        if recall is not None and _lies_below(recall.stated_last, recall.stated_first):
            sentences.append("Asked for its rules, it states clearly fewer of them at the end.")
        paragraphs.append(" ".join(sentences))
    return "\n\n".join(paragraphs)


def _lost_rules(model: ModelLoss) -> str:
    """The change of a model's rules as a whole, and the rules that fall."""
    every_rule = _group(model, Grouping.ALL, "")
    assert every_rule is not None
    if every_rule.verdict == "falls":
        kinds = [_group(model, Grouping.KIND, kind) for kind in KINDS]
        falling = [f"*{row.group}*" for row in kinds if row and row.verdict == "falls"]
        clearly = f", most clearly rules of the kinds {' and '.join(falling)}" if falling else ""
        return (
            f"its rules are kept less often at the end ({every_rule.last.mean:.2f}) than at the"
            f" start ({every_rule.first.mean:.2f}){clearly}"
        )
    falling = [
        f"{polarity}s ({meaning}) fall from {row.first.mean:.2f} to {row.last.mean:.2f}"
        for polarity, meaning in _POLARITIES.items()
        if (row := _group(model, Grouping.POLARITY, polarity)) and row.verdict == "falls"
    ]
    verb = _WORDS_FOR_VERDICT.get(every_rule.verdict, "show no clear change")
    return f"the rules as a whole {verb}{', but ' if falling else ''}{' and '.join(falling)}"


def _lies_below(value: Estimate, other: Estimate) -> bool:
    """Whether the whole interval of a value lies below that of another."""
    return value.high is not None and other.low is not None and value.high < other.low
