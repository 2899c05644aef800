"""The context at every place on a path: what is in it, what a clearing took out, and its size."""

import json
import time

from holdfast.logs.context import Contexts
from holdfast.measures.turns import ToolCall
from holdfast.transcripts import read_transcripts
from holdfast.transcripts.transcript import Event, EventKind


def calls_of(*names):
    """Calls with their results, each of ten bytes."""
    for name in names:
        yield Event(EventKind.TOOL_CALL, call=ToolCall("read", {}, name), id=f"call {name}")
        yield Event(EventKind.TOOL_RESULT, "0123456789", call_id=name, id=f"result {name}")


def clearing(*names):
    return Event(EventKind.CLEARING, clears=frozenset(names))


def test_the_first_clearing_of_an_event_counts_and_takes_its_size_off():
    path = [
        Event(EventKind.MESSAGE, "go", "user"),  # 0
        *calls_of("a", "b"),  # 1 to 4
        clearing("a", "unknown"),  # 5
        *calls_of("c"),  # 6, 7
        clearing("a", "b", "call c"),  # 8
        Event(EventKind.MESSAGE, "done", "assistant"),  # 9
    ]
    contexts = Contexts(path)
    assert contexts.cleared == {2: 5, 4: 8, 6: 8}
    calls = 2  # bytes of the arguments {}
    sizes = [contexts.before(n).size_since(0) for n in range(len(path) + 1)]
    assert sizes[5] == 2 + 2 * (calls + 10)
    assert sizes[6] == sizes[5] - 10
    assert sizes[9] == 2 + 2 * calls + 10
    # since the second call, of which a clearing has taken the result
    assert contexts.before(9).size_since(3) == calls + 10
    assert contexts.before(9).size_since(7) == 10
    assert [event.text for event in contexts.before(9).events if event.text] == ["go", "0123456789"]


def test_what_was_cleared_before_a_compaction_is_not_taken_off_again():
    path = [
        *calls_of("a", "b"),
        Event(EventKind.COMPACTION, "summary", keeps=frozenset(("result a", "result b"))),  # 4
        clearing("a"),  # 5: the result that was kept
        Event(EventKind.MESSAGE, "on", "user"),
    ]
    contexts = Contexts(path)
    assert contexts.before(5).size_since(0) == len("summary") + 20
    assert contexts.before(6).size_since(0) == len("summary") + 10
    assert contexts.before(6).size_since(2) == len("summary") + 10


def test_many_clearings_take_linear_time():
    """Quadratic time was 25 s."""
    count = 6000
    path = [Event(EventKind.MESSAGE, "go", "user")]
    for number in range(count):
        path += [*calls_of(f"{number}"), clearing(f"{number - 5}")]
    contexts = Contexts(path)
    started = time.process_time()
    assert len(contexts.cleared) == count - 5
    assert contexts.before(len(path)).size_since(0) == 2 + 2 * count + 10 * 5
    assert len([contexts.before(n).size_since(0) for n in range(len(path))]) == len(path)
    assert time.process_time() - started < 3


def test_a_reply_of_claude_code_clears_only_what_was_not_cleared_before(tmp_path):
    """The API says how many results are cleared in all."""
    lines = []

    def add(kind, content, **message):
        position = len(lines)
        parent = f"m{position - 1}" if lines else None
        fields = {"type": kind, "uuid": f"m{position}", "parentUuid": parent, "sessionId": "s"}
        lines.append({**fields, "message": {"role": kind, "content": content, **message}})

    add("user", "Go.")
    for number, cleared in enumerate([0, 0, 1, 3]):
        edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": cleared}]
        call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}
        add("assistant", [call], context_management={"applied_edits": edits})
        add("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "text"}])
    file = tmp_path / "s.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    ((transcript,),) = (log.transcripts for log in read_transcripts(file))
    clears = [event.clears for event in transcript.path if event.kind is EventKind.CLEARING]
    assert clears == [{"t0"}, {"t1", "t2"}]
    assert len(Contexts(transcript.path).cleared) == 3
