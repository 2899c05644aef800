"""Dialogs longer than the model's context: what is left out, what stays and what is recorded."""

import asyncio
import json
import shutil
from dataclasses import replace

import pytest
from chat_server import KEY, Server, completion, refusal
from scripted_model import Scripted
from served import served
from short_drift import SUITE, texts
from synthetic_run import as_json
from tiny import model, outcomes

from holdfast import Sampling, drift
from holdfast.cli import main
from holdfast.drift.dialog import ShownRounds
from holdfast.drift.dialog_summaries import summary_messages, with_summary
from holdfast.drift.pairing import draw_pairing
from holdfast.drift.settings import SUMMARY_PROMPT
from holdfast.errors import ParameterOutOfRange, PromptTooLong, UsageError
from holdfast.models.checkpoint import DEFAULT_FOLDER
from holdfast.models.connecting import connect
from holdfast.models.requests import Reply, Request
from holdfast.records import Turn, read_run
from holdfast.serve.limits import RequestLimits

SEVEN_ROUNDS = drift.Settings(
    rounds=7, conversations=2, sampling=Sampling(max_new_tokens=24), seed=4
)


class Narrow(Scripted):
    """Sees at most `context` messages; says how many it saw, or a summary if asked for one."""

    async def generate(self, request):
        await asyncio.sleep(0)
        messages = request.messages
        if len(messages) > self.context:
            return Reply("", None, "context")
        self.requests.append(request)
        summary = messages[0]["content"].startswith(SUMMARY_PROMPT)
        text = f"summary {len(self.requests)}" if summary else f"r{len(messages)}"
        return Reply(text, None, "stop")


# What is left out


def chats_of(scripted, view):
    """The chats of one view, without their system prompts."""
    chats = [r.messages for r in scripted.requests if r.thread[0] == view and len(r.messages) > 1]
    return [[message["content"] for message in chat[1:]] for chat in chats]


def small_context(context, rounds=7, **fields):
    settings = replace(SEVEN_ROUNDS, rounds=rounds, conversations=1, context=context, **fields)
    return settings, Narrow(context=6)


def test_cut_leaves_out_as_few_of_the_oldest_rounds_as_possible(tmp_path):
    settings, scripted = small_context("cut")
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings))[0]
    assert "ended" not in record and len(record["turns"]) == 14 and len(record["probes"]) == 14
    prompts = {case.system_prompt for case in SUITE.cases}
    assert all(request.messages[0]["content"] in prompts for request in scripted.requests)
    counts = {t["round"]: t.get("left_out", 0) for t in record["turns"] if t["speaker"] == "agent"}
    # a system prompt and 5 messages: two rounds and the user's next turn
    assert counts == {1: 0, 2: 0, 3: 0, 4: 1, 5: 2, 6: 3, 7: 4}
    assert {p["round"]: p.get("left_out", 0) for p in record["probes"]} == counts
    lines = [turn["text"] for turn in record["turns"]]
    assert lines[-6:-1] in chats_of(scripted, "agent"), "the last turn saw what was said before it"
    recap = f"You asked: {lines[6]}\nI answered: {lines[7]}"
    assert [recap, *lines[8:12]] in chats_of(scripted, "user")


def test_slide_shows_the_last_rounds_from_the_start(tmp_path):
    settings, scripted = small_context("slide", window=2)
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings))[0]
    counts = {t["round"]: t.get("left_out", 0) for t in record["turns"] if t["speaker"] == "agent"}
    assert counts == {1: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 4, 7: 5}
    lines = [turn["text"] for turn in record["turns"]]
    assert chats_of(scripted, "agent")[-1] == lines[-4:-1]
    wide, scripted = small_context("slide", window=50)
    wider = as_json(drift.run(scripted, SUITE, tmp_path / "wide", wide))[0]
    cut = as_json(drift.run(Narrow(context=6), SUITE, tmp_path / "cut", small_context("cut")[0]))[0]
    assert wider["turns"] == cut["turns"], "a window that is wider than the context is cut too"


def test_summarise_replaces_what_is_left_out_with_a_summary(tmp_path):
    settings, scripted = small_context("summarise")
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings))[0]
    assert "ended" not in record and len(record["turns"]) == 14
    summaries = [summary for summary in record["summaries"] if summary["view"] == "agent"]
    assert [summary["rounds"] for summary in summaries][:2] == [[1, 2], [3, 4]]
    prompts = [r.messages[0]["content"] for r in scripted.requests if len(r.messages) == 1]
    assert len(prompts) == len(record["summaries"]), "all probes of a round wait for one"
    first = next(text for text in prompts if "Assistant: " in text)
    lines = [turn["text"] for turn in record["turns"]]
    speakers = ["User", "Assistant", "User", "Assistant"]
    parts = [f"{who}: {text}" for who, text in zip(speakers, lines, strict=False)]
    assert first.split("\n\n") == [SUMMARY_PROMPT, *parts]
    later = next(text for text in prompts if summaries[0]["text"] in text)
    assert f"Summary of our conversation so far: {summaries[0]['text']}" in later
    chats = chats_of(scripted, "agent")
    lead = f"Summary of our conversation so far: {summaries[-1]['text']}\n\n"
    assert any(chat[0].startswith(lead) for chat in chats)
    assert settings.summary_prompt == SUMMARY_PROMPT


def test_more_probes_do_not_change_what_a_dialog_leaves_out(tmp_path):
    for context in ("cut", "summarise"):
        settings, scripted = small_context(context)
        plain = as_json(drift.run(scripted, SUITE, tmp_path / context, settings))[0]
        wide = replace(settings, probes_per_round=2)
        probed = as_json(drift.run(Narrow(context=6), SUITE, tmp_path / f"{context} 2", wide))[0]
        views = [
            [(turn["round"], turn["speaker"], turn.get("left_out", 0)) for turn in r["turns"]]
            for r in (plain, probed)
        ]
        assert views[0] == views[1] and len(probed["probes"]) == 2 * len(plain["probes"])


def test_a_context_of_two_messages_is_enough_for_a_whole_dialog(tmp_path):
    for context in ("cut", "summarise"):
        settings = replace(SEVEN_ROUNDS, conversations=1, context=context)
        record = as_json(drift.run(Narrow(context=2), SUITE, tmp_path / context, settings))[0]
        assert len(record["turns"]) == 14, "a system prompt and one message are enough"


@pytest.mark.parametrize("probe_at", ("in-place", "after-round"))
def test_a_prompt_that_leaves_no_room_for_the_first_turn_is_too_long(tmp_path, probe_at):
    settings = replace(SEVEN_ROUNDS, conversations=1, probe_at=probe_at)
    with pytest.raises(PromptTooLong) as excinfo:
        drift.run(Narrow(context=1), SUITE, tmp_path / "run", settings)
    assert excinfo.value.value in {case.id for case in SUITE.cases}


# Models and servers


@pytest.mark.slow
@pytest.mark.parametrize("context", ("cut", "slide", "summarise"))
def test_a_local_model_completes_dialogs_longer_than_its_context(tmp_path, context):
    tiny = model(max_position_embeddings=192)
    stop = drift.run(tiny, SUITE, tmp_path / "stop", SEVEN_ROUNDS)
    assert all(record["ended"]["why"] == "context" for record in as_json(stop))
    settings = replace(SEVEN_ROUNDS, context=context, window=3 if context == "slide" else None)
    run = drift.run(tiny, SUITE, tmp_path / "run", settings)
    for record in as_json(run):
        assert "ended" not in record and len(record["turns"]) == 14
        assert any(turn.get("left_out") for turn in record["turns"])
        assert all(turn["stop_reason"] for turn in record["turns"])
        assert ("summaries" in record) == (context == "summarise")
    batched = drift.run(tiny, SUITE, tmp_path / "again", replace(settings, batch=2))
    assert texts(batched) == texts(run), "what is left out does not depend on what runs beside it"


@pytest.mark.slow
@pytest.mark.parametrize("context", ("cut", "slide", "summarise"))
def test_our_own_server_completes_dialogs_longer_than_its_context(tmp_path, context):
    settings = replace(SEVEN_ROUNDS, context=context, window=3 if context == "slide" else None)
    with served(
        model(max_position_embeddings=192), RequestLimits(tokens=64, seconds=60.0)
    ) as server:
        run = drift.run(connect(f"{server.url}/v1"), SUITE, tmp_path / "run", settings)
    assert len(run.records) == settings.conversations
    for record in as_json(run):
        assert "ended" not in record and "unanswered" not in record
        assert len(record["turns"]) == 14 and any(t.get("left_out") for t in record["turns"])
        assert ("summaries" in record) == (context == "summarise")


def test_an_endpoint_summarises_what_it_has_no_room_for(tmp_path, monkeypatch):
    """Its summaries are separate requests, and appear in the chats that follow."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    chats = []

    def answer(body, number):
        messages = body["messages"]
        if len(messages) > 6:
            return refusal(400, "This model's maximum context length is 64 tokens.")
        chats.append(messages)
        summary = messages[0]["content"].startswith(SUMMARY_PROMPT)
        return completion(f"summary {number}" if summary else f"r{len(messages)}")

    settings = replace(SEVEN_ROUNDS, context="summarise", conversations=1)
    with Server(answer) as server:
        endpoint = connect(server.url, "tiny", max_retries=0)
        (record,) = as_json(drift.run(endpoint, SUITE, tmp_path / "run", settings))
    assert len(record["turns"]) == 14 and not {"ended", "unanswered"} & record.keys()
    summaries = [summary["text"] for summary in record["summaries"]]
    assert summaries and all(text.startswith("summary ") for text in summaries)
    prompts = "\n".join(chat[1]["content"] for chat in chats if len(chat) > 1)
    assert all(f"conversation so far: {text}\n\n" in prompts for text in summaries)


@pytest.mark.slow
def test_the_default_model_slides_over_a_small_context(tmp_path, capsys):
    """The model as shipped, except for the context length in its configuration."""
    folder = tmp_path / "small"
    shutil.copytree(DEFAULT_FOLDER, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 160}))
    words = ["drift", "--model", str(folder), "--rounds", "8", "--conversations", "2"]
    words += ["--context", "slide", "--window", "3", "--max-new-tokens", "24"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    assert "Rounds left out: in 2 of 2 dialogs" in capsys.readouterr().out
    for record in as_json(read_run(tmp_path / "run")):
        assert len(record["turns"]) == 16 and not {"ended", "unanswered"} & record.keys()
        left_out = [t.get("left_out", 0) for t in record["turns"] if t["speaker"] == "agent"]
        assert left_out[:3] == [0, 0, 0] and left_out[-1] >= 5


# Room for a reply


def end_of(tiny, request):
    """The stop reason of a request in a session."""
    (reply,) = outcomes(tiny.session(), [request])
    return reply.stop_reason


def tiny_chat(tokens):
    """A chat of this many tokens; each x is one."""
    return [{"role": "user", "content": "x" * (tokens - 4)}]


@pytest.mark.parametrize("room", (1, 8, 16, 17, 64))
def test_room_for_a_reply_is_kept_free_up_to_a_quarter_of_the_context(room):
    tiny, values = model(max_position_embeddings=64), set()
    for length in range(38, 64, 2):
        request = Request(tiny_chat(length), sampling=Sampling(max_new_tokens=1), room=room)
        tokens = len(tiny.session().render(request).prompt_ids)
        full = end_of(tiny, request) == "context"
        assert full == (64 - tokens < min(room, 16)), tokens
        values.add(full)
    assert values == ({False} if room == 1 else {True, False})


def test_a_request_with_no_room_is_refused():
    with pytest.raises(ParameterOutOfRange, match="room"):
        Request(tiny_chat(9), room=0)


# The messages of a summary


def test_a_summary_precedes_the_first_message_or_if_compacted_replaces_the_system_prompt():
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert with_summary(chat, ShownRounds()) == chat
    system, user = with_summary(chat, ShownRounds(2, "They met."))
    assert system == chat[0] and user["content"].endswith(" They met.\n\nu")
    system, user = with_summary(chat, ShownRounds(2, "They met.", replaces_prompt=True))
    assert system["content"].endswith(" They met.") and user == chat[1]
    turns = [Turn(round=1, speaker="user", text="a", stop_reason="stop")]
    turns.append(Turn(round=2, speaker="agent", text="b", stop_reason="stop"))
    (request,) = summary_messages("Sum up.", turns, ShownRounds(2, "Before."), 3)
    assert request["content"].split("\n\n")[0] == "Sum up." and "User: a" not in request["content"]
    assert "Before." in request["content"] and request["content"].endswith("Assistant: b")


# Settings


def test_settings_that_make_no_sense_are_refused(tmp_path, capsys):
    for wrong in ({"window": 2}, {"context": "slide"}, {"context": "cut", "summary_prompt": "x"}):
        with pytest.raises(UsageError):
            replace(SEVEN_ROUNDS, **wrong)
    with pytest.raises(UsageError, match="not 'forget'"):
        replace(SEVEN_ROUNDS, context="forget")
    with pytest.raises(ParameterOutOfRange, match="window"):
        replace(SEVEN_ROUNDS, context="slide", window=0)
    with pytest.raises(UsageError, match=r"^window=3 is for context='slide', summarise or compact"):
        replace(SEVEN_ROUNDS, context="cut", window=3)
    with pytest.raises(UsageError, match="is for context='summarise' or compact, not for 'cut'"):
        replace(SEVEN_ROUNDS, context="cut", summary_prompt="x")
    assert main(["drift", "--window", "3", "--out", str(tmp_path / "run")]) == 2
    stderr = capsys.readouterr().err
    assert "--window 3 is for --context slide, summarise or compact, not for 'stop'" in stderr
    assert main(["drift", "--context", "slide", "--out", str(tmp_path / "run")]) == 2
    assert "--context slide needs the number of rounds" in capsys.readouterr().err


def test_a_runs_identity_includes_what_happens_at_the_contexts_end(tmp_path):
    settings = replace(
        SEVEN_ROUNDS, context="summarise", summary_prompt="In ten words:", conversations=1
    )
    run = drift.run(Narrow(context=6), SUITE, tmp_path / "run", settings)
    info = run.manifest.identity.to_json()["settings"]
    assert (info["context"], info["summary_prompt"]) == ("summarise", "In ten words:")
    assert as_json(read_run(tmp_path / "run")) == as_json(run)
    assert draw_pairing(SUITE, settings, 0) == draw_pairing(SUITE, SEVEN_ROUNDS, 0)
