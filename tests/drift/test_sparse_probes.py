"""`--probe-every`: probes in some rounds only, which the results and the page leave room for."""

import json

import pytest
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.cli import main
from holdfast.drift.cases import Case
from holdfast.errors import ParameterOutOfRange

SIGNED = {"name": "ends_with", "word": "Tony"}
SUITE = drift.Suite("bot", (Case("tony", "rules", "Sign.", ("Hi?",), SIGNED),), ("Hi!",))


class Forgetful(ScriptedModel):
    """Signs its first two replies."""

    def text(self, request):
        replies = sum(message["role"] == "assistant" for message in request.messages)
        return "Hello. Tony" if replies < 2 else "Hello."


def rounds(run):
    return [
        sorted(probe.round for probe in record.probes)
        for record in sorted(run.conversations, key=lambda record: record.conversation)
    ]


@pytest.mark.parametrize("probe_at", ["in-place", "after-round"])
def test_the_first_round_the_last_and_every_third_are_probed(tmp_path, probe_at):
    settings = drift.Settings(
        rounds=8, conversations=2, user_prompt="empty", probe_every=3, probe_at=probe_at
    )
    run = drift.run(Forgetful(), SUITE, tmp_path / "run", settings)
    assert rounds(run) == [[1, 3, 6, 8]] * 2


def test_a_replay_probes_the_last_round_that_it_has(tmp_path):
    dialog = [
        {"role": role, "content": "Well."} for _ in range(5) for role in ("user", "assistant")
    ]
    (tmp_path / "dialogs.jsonl").write_text(json.dumps({"messages": dialog}) + "\n")
    settings = drift.Settings(rounds=8, conversations=1, probe_every=4)
    cast = drift.Cast(dialogs=tmp_path / "dialogs.jsonl")
    run = drift.run(Forgetful(), SUITE, tmp_path / "run", settings, cast=cast)
    assert rounds(run) == [[1, 4, 6]]  # the sixth is in place of the message after the last answer


def test_rounds_that_were_not_probed_are_left_out_of_tables(tmp_path, capsys):
    settings = drift.Settings(rounds=8, conversations=30, user_prompt="empty", probe_every=3)
    run = drift.run(Forgetful(), SUITE, tmp_path / "run", settings)
    page = tmp_path / "report.html"
    assert main(["report", str(run.folder), "--out", str(page)]) == 0
    output = capsys.readouterr().out
    rows = [line.split() for line in output.splitlines() if line[:5].strip().isdigit()]
    assert [row[0] for row in rows] == ["1", "3", "6", "8"]
    assert [row[1] for row in rows] == ["1.00", "0.00", "0.00", "0.00"]
    assert "0% on probes in round 8" in output and page.stat().st_size > 10_000


def test_probe_every_is_at_least_one():
    with pytest.raises(ParameterOutOfRange):
        drift.Settings(probe_every=0)
