"""Rules are compared with every round in view, and once older rounds leave it."""

import json

import pytest
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.analysis.context_losses import context_loss
from holdfast.drift.pairing import RECALL_QUESTION
from holdfast.errors import UsageError
from holdfast.records import read_run, to_line

ROUNDS = ("One.", "Two.", "Three.", "Four.", "Five.", "Six.")
NOT_CHEAP = {"regex": "^(?!.*cheap)"}


def rule(id, kind, polarity, measure, recalled):
    probes = ("Hi?",)
    return drift.cases.Rule(id, probes, measure, kind=kind, polarity=polarity, recalled=recalled)


SUITE = drift.Suite(
    "bots",
    tuple(
        drift.Case(
            f"bot-{number}",
            "rules",
            "Sign with Tony. Never say cheap.",
            rules=(
                rule("sign", "closing", "requirement", {"regex": "Tony"}, {"regex": "Sign"}),
                rule(
                    "cheap",
                    "forbidden",
                    "prohibition",
                    NOT_CHEAP,
                    {"regex": "Never"},
                ),
                rule("hello", "opening", "requirement", {"regex": "Hello"}, None),
                rule("once", "conditional", "gate", {"regex": "first"}, None),
            ),
        )
        for number in (1, 2)
    ),
    ("Hi!",),
)


class Bot(ScriptedModel):
    """Follows the rules in its system prompt; its summaries state one rule of two.

    It says Hello once the third message is in view, and "first" as long as the first one is.
    """

    def text(self, request):
        contents = [message["content"] for message in request.messages]
        if contents[0].startswith("Summarise"):
            return "Sign with Tony."
        if contents[-1] == RECALL_QUESTION:
            return contents[0]
        words = ["Tony" if "Sign" in contents[0] else "", "" if "Never" in contents[0] else "cheap"]
        words += ["Hello" if "Three." in contents else "", "first" if "One." in contents else ""]
        return " ".join(words)


@pytest.fixture
def measure(tmp_path):
    script = tmp_path / "turns.jsonl"
    script.write_text(json.dumps(ROUNDS) + "\n")

    def run(context, window=None, seed=0, conversations=40):
        settings = drift.Settings(
            rounds=len(ROUNDS),
            conversations=conversations,
            seed=seed,
            context=context,
            window=window,
            recall=True,
        )
        folder = tmp_path / f"{context}-{seed}-{conversations}"
        return drift.run(Bot(), SUITE, folder, settings, cast=drift.Cast(user_turns=script))

    return run


def means_by_group(loss):
    return {row.group: (row.first.mean, row.last.mean, row.verdict) for row in loss.rows}


def test_each_mode_loses_what_leaves_the_view(measure):
    every_round = measure("stop")
    slide, compact = (
        context_loss([measure(mode, 4)], [every_round], SUITE) for mode in ("slide", "compact")
    )
    # Only the rounds in which the mode leaves some out count: in these, Hello is always said.
    assert means_by_group(slide) == {
        "": (1, 0.75, "falls"),
        "closing": (1, 1, "holds"),
        "conditional": (1, 0, "falls"),
        "forbidden": (1, 1, "holds"),
        "opening": (1, 1, "holds"),
        "requirement": (1, 1, "holds"),
        "prohibition": (1, 1, "holds"),
        "gate": (1, 0, "falls"),
    }
    assert means_by_group(compact)["forbidden"] == (1, 0, "falls")
    assert means_by_group(compact)["closing"] == (1, 1, "holds")
    assert {row.change.n for row in slide.rows} == {40}
    assert [slide.context, compact.context] == ["slide", "compact"]


def test_a_compacted_prompt_is_recalled_as_far_as_its_summary_states_it(measure):
    every_round = measure("stop")
    compact = context_loss([measure("compact", 4)], [every_round], SUITE)
    assert (compact.recall.first.mean, compact.recall.last.mean) == (1, 0.5)
    assert (compact.stated_first.mean, compact.stated_last.mean) == (0.5, 0.5)
    summarise = context_loss([measure("summarise", 4)], [every_round], SUITE)
    assert (summarise.recall.first.mean, summarise.recall.last.mean) == (1, 1)
    assert summarise.stated_first is None


def test_a_reply_that_was_judged_in_one_mode_only_does_not_count(measure):
    every_round, slide = measure("stop"), measure("slide", 4)
    lines = []
    for record in slide.conversations:
        probes = tuple(
            probe
            for probe in record.probes
            if not (probe.rule == "once" and probe.round == 6 and record.conversation < 10)
        )
        lines.append(to_line(record.model_copy(update={"probes": probes})))
    (slide.folder / "records.jsonl").write_bytes(b"".join(lines))
    loss = context_loss([read_run(slide.folder)], [every_round], SUITE)
    assert means_by_group(loss)["gate"] == (1, 0, "falls")


def test_runs_of_several_seeds_are_pooled(measure):
    runs = [measure("slide", 4, seed) for seed in (0, 1)]
    every_round = [measure("stop", None, seed) for seed in (0, 1)]
    loss = context_loss(runs, every_round, SUITE)
    assert {row.change.n for row in loss.rows} == {80} and loss.recall.change.n == 80


def test_only_conversations_of_both_modes_are_compared(measure):
    loss = context_loss([measure("slide", 4, conversations=30)], [measure("stop")], SUITE)
    assert {row.change.n for row in loss.rows} == {30}


def test_other_conversations_are_no_reference(measure):
    with pytest.raises(UsageError, match="same conversations"):
        context_loss([measure("slide", 4, seed=0)], [measure("stop", seed=1)], SUITE)
