"""A transcript is a tree of events, of which one path is active."""

import pytest
from agent_sessions import (
    FIRST,
    bash,
    boundary,
    codex,
    codex_says,
    reply,
    result,
    summary,
    user,
    write,
)

from holdfast.transcripts import Event, EventKind, read_transcripts
from holdfast.transcripts.injected import enclosing_element
from holdfast.transcripts.transcript import branched_transcript


def texts(events):
    return [event.text for event in events]


def test_a_transcript_is_a_tree_of_which_one_path_is_active(tmp_path):
    (file,) = read_transcripts(
        write(
            tmp_path,
            *FIRST,
            user("u2", "a1", "Undo it."),
            reply("a2", "u2", "Undone."),
            user("u3", "a1", "Bye."),
            reply("a3", "u3", "Bye!"),
        )
    )
    (tree,) = file.transcripts
    assert texts(tree.path) == ["Rename it.", "Done.", "Bye.", "Bye!"]
    assert texts(tree.events) == ["Rename it.", "Done.", "Bye.", "Bye!", "Undo it.", "Undone."]
    fork = tree.events.index(tree.path[1])
    assert [n for n, parent in enumerate(tree.parents) if parent == fork] == [2, 4]
    assert len(file.unread) == 1 and "abandoned" in file.unread[0]


def test_what_a_program_wrote_is_an_event_of_its_own_kind(tmp_path):
    error = reply("e1", "u2", "API Error: 529", isApiErrorMessage=True)
    (file,) = read_transcripts(
        write(
            tmp_path,
            *FIRST,
            user("u2", "a1", "<system-reminder>Be brief.</system-reminder>"),
            error,
            user("u3", "e1", "[Request interrupted by user]"),
            reply("a3", "u3", "I go on.", bash("c1")),
            result("r1", "a3", "c1"),
            boundary("b1", "r1"),
            summary("s1", "b1", "Summary."),
        )
    )
    (transcript,) = file.transcripts
    kinds = [
        EventKind.MESSAGE,
        EventKind.MESSAGE,
        EventKind.REMINDER,
        EventKind.ERROR,
        EventKind.INTERRUPTION,
    ]
    kinds += [
        EventKind.MESSAGE,
        EventKind.TOOL_CALL,
        EventKind.TOOL_RESULT,
        EventKind.COMPACTION,
        EventKind.COMPACTION,
    ]
    assert [event.kind for event in transcript.path] == kinds and not file.unread


def test_turns_that_were_taken_back_stay_in_the_tree(tmp_path):
    rollout = [
        codex("session_meta", id="s"),
        codex_says("user", "One."),
        codex_says("assistant", "1"),
        codex_says("user", "Two."),
        codex_says("assistant", "2"),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
        codex_says("user", "Three."),
        codex_says("assistant", "3"),
    ]
    (file,) = read_transcripts(write(tmp_path, *rollout))
    (transcript,) = file.transcripts
    assert texts(transcript.path) == ["One.", "1", "Three.", "3"]
    assert texts(transcript.events) == ["One.", "1", "Two.", "2", "Three.", "3"]

    session = [
        {"sessionId": "s", "projectHash": "p"},
        {"id": "1", "timestamp": "t", "type": "user", "content": "One."},
        {"id": "2", "timestamp": "t", "type": "gemini", "content": "1"},
        {"id": "3", "timestamp": "t", "type": "user", "content": "Two."},
        {"id": "4", "timestamp": "t", "type": "gemini", "content": "2"},
        {"$rewindTo": "3"},
        {"id": "3", "timestamp": "t", "type": "user", "content": "Three."},
        {"id": "4", "timestamp": "t", "type": "gemini", "content": "3"},
    ]
    (file,) = read_transcripts(write(tmp_path, *session, name="session.jsonl"))
    (transcript,) = file.transcripts
    assert texts(transcript.path) == ["One.", "1", "Three.", "3"]
    assert sorted(texts(transcript.events)) == ["1", "2", "3", "One.", "Three.", "Two."]


def test_branches_hang_from_the_nearest_entry_that_has_events():
    nodes = {
        name: [Event(EventKind.MESSAGE, name, "user")] if name else []
        for name in ("root", "", "left", "right", "lost")
    }
    parents = {"root": None, "": "root", "left": "", "right": "", "lost": "nobody"}
    tree = branched_transcript("here", nodes, parents, ["root", "", "right"])
    assert texts(tree.path) == ["root", "right"]
    by_text = {event.text: parent for event, parent in zip(tree.events, tree.parents, strict=True)}
    assert tree.events[by_text["left"]].text == "root" and by_text["lost"] is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<environment_context>\n<cwd>/a</cwd>\n</environment_context>\n", "environment_context"),
        ("<b>Rome</b> is not <b>Paris</b>", ""),
        ("<b>Rome</b>, then", ""),
    ],
)
def test_a_text_is_in_one_element_only_if_that_element_ends_with_it(text, name):
    assert enclosing_element(text) == name
