"""The user's answers to questions that an agent asks with a tool, as they are read."""

import time

import pytest
from asked_questions import CLOSING, answered, ask

from holdfast.measures.turns import ToolCall, UserAnswer
from holdfast.transcripts.transcript import Event, EventKind
from holdfast.transcripts.user_answers import answers_in, calls_with_answers, words_of_user

# Answers in results


ONE_ID = {"questions": [{"id": "q1", "question": "A?", "options": [{"label": "Yes"}]}]}
PARSED = [
    ("one answer", ask("A?"), answered(A="Yes"), {"A?": "Yes"}),
    ("two answers", ask("A?", "B?"), answered(A="8080", B="No"), {"A?": "8080", "B?": "No"}),
    ("several choices", ask("A?"), answered(A="x, y"), {"A?": "x, y"}),
    (
        "quotation marks in an answer",
        ask("A?", "B?"),
        answered(A='say "hi", "no"', B="x."),
        {"A?": 'say "hi", "no"', "B?": "x."},
    ),
    (
        "quotation marks in a question",
        ask('Use "x"?'),
        f'User has answered your questions: "Use "x"?"="Yes".{CLOSING}',
        {'Use "x"?': "Yes"},
    ),
    (
        "an answer with a full stop",
        ask("A?"),
        answered(A="Yes. And push it."),
        {"A?": "Yes. And push it."},
    ),
    ("no answers", ask("A?"), f"User has answered your questions: .{CLOSING}", {}),
    ("one of two answers", ask("A?", "B?"), answered(B="Yes"), {"B?": "Yes"}),
    (
        "a question that was skipped",
        ask("A?", "B?"),
        answered(A="Unanswered", B="Yes"),
        {"B?": "Yes"},
    ),
    (
        "another opening",
        ask("A?"),
        'Your questions have been answered: "A?"="Yes". You can now'
        " continue with these answers in mind.",
        {"A?": "Yes"},
    ),
    (
        "a note",
        ask("A?"),
        f'User has answered your questions: "A?"="Yes" user notes: only on staging.{CLOSING}',
        {"A?": "Yes\nonly on staging"},
    ),
    (
        "a preview and a note",
        ask("A?", "B?"),
        'User has answered your questions: "A?"="Yes"'
        f' selected preview:\n# X user notes: only on staging, "B?"="No".{CLOSING}',
        {"A?": "Yes\nonly on staging", "B?": "No"},
    ),
    ("without a closing", ask("A?"), 'User has answered your questions: "A?"="Yes"', {"A?": "Yes"}),
    ("JSON by ids", ONE_ID, '{"answers": {"q1": {"answers": ["Yes"]}}}', {"A?": "Yes"}),
    ("JSON by questions", ask("A?"), '{"answers": {"A?": "Yes"}}', {"A?": "Yes"}),
    (
        "JSON by numbers",
        ask("A?", "B?"),
        '{"answers": {"0": "8080", "1": "Yes"}}',
        {"A?": "8080", "B?": "Yes"},
    ),
    ("JSON without an answer", ONE_ID, '{"answers": {}}', {}),
    ("an error", ask("A?"), "InputValidationError: AskUserQuestion failed", {}),
    (
        "a tool with one question",
        {"question": "A?", "choices": ["Yes"]},
        "User selected: Yes",
        {"A?": "Yes"},
    ),
    ("an element", {"question": "A?"}, "<answer>\nYes\n</answer>", {"A?": "Yes"}),
    (
        "an element below a header",
        {"question": "A?"},
        "[ask_followup_question for 'A?'] Result:\n<answer>No</answer>",
        {"A?": "No"},
    ),
    (
        "an element before other text",
        {"question": "It's A?"},
        "[ask_followup_question for 'It's"
        " A?'] Result:\n\n<user_message>\nNo\n</user_message>\n\n# Time\n12:00",
        {"It's A?": "No"},
    ),
    (
        "an error below a header",
        {"question": "A?"},
        "[ask_followup_question for 'A?'] Result:\nThe tool failed:\n<error>no user</error>",
        {},
    ),
    ("JSON with an answer", {"question": "A?"}, '{"answer": "No"}', {"A?": "No"}),
    ("JSON with an error", {"question": "A?"}, '{"error": "no user", "answer": "Yes"}', {}),
    ("other JSON", {"question": "A?"}, '{"status": "ok", "text": "Yes"}', {}),
    ("an option", {"question": "A?", "options": ["Go on", "Stop"]}, "go on", {"A?": "go on"}),
    (
        "an option with a description",
        {"question": "A?", "choices": [{"label": "Go on", "description": "x"}]},
        '"Go on"',
        {"A?": "Go on"},
    ),
    (
        "an option of a list as text",
        {"question": "A?", "options": '["Go on"]'},
        "Go on",
        {"A?": "Go on"},
    ),
    ("yes", {"question": "A?"}, "Yes.", {"A?": "Yes."}),
    (
        "a refused call",
        {"question": "A?"},
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        {},
    ),
    (
        "an error of a tool with one question",
        {"question": "A?"},
        "Error: the tool is not available in this mode",
        {},
    ),
    ("a result that begins with no", {"question": "A?"}, "No user is present.", {}),
    ("a cancelled question", {"question": "A?"}, "User cancelled the question", {}),
    (
        "JSON with numbers and booleans",
        ask("A?", "B?"),
        '{"answers": {"A?": 8080, "B?": true}}',
        {"A?": "8080", "B?": "true"},
    ),
    (
        "JSON with falsehoods",
        ask("A?", "B?"),
        '{"answers": {"A?": {"answer": false}, "B?": [0]}}',
        {"A?": "false", "B?": "0"},
    ),
    ("JSON with null", ask("A?", "B?"), '{"answers": {"A?": null, "B?": "No"}}', {"B?": "No"}),
    (
        "a list in JSON without an answer",
        ask("A?", "B?"),
        '{"answers": [{"question": "B?", "answer": "Yes"}]}',
        {"B?": "Yes"},
    ),
]


@pytest.mark.parametrize(
    ("arguments", "result", "expected"),
    [row[1:] for row in PARSED],
    ids=[row[0] for row in PARSED],
)
def test_answers_are_read(arguments, result, expected):
    answers = answers_in(result, ToolCall("AskUserQuestion", arguments))
    assert {answer.question: answer.text for answer in answers} == expected


def test_questions_with_the_same_text_have_answers_of_their_own():
    result = f'User has answered your questions: "A?"="Yes", "A?"="No".{CLOSING}'
    answers = answers_in(result, ToolCall("AskUserQuestion", ask("A?", "A?")))
    assert answers == (UserAnswer("A?", "Yes"), UserAnswer("A?", "No"))


@pytest.mark.parametrize("padding", [" ", "\n", ". ", '" '])
def test_a_long_note_is_read_in_linear_time(padding):
    """A quadratic search would take 100 times as long for 10 times the text."""
    times = []
    for length in (20_000, 200_000):
        note = f"x{padding * length}y"
        result = f'User has answered your questions: "A?"="Yes" user notes: {note}.{CLOSING}'
        start = time.process_time()
        (answer,) = answers_in(result, ToolCall("AskUserQuestion", ask("A?")))
        times.append(time.process_time() - start)
        assert answer.text == f"Yes\n{note}"
    assert times[1] < 40 * times[0] + 0.05


# Results and their calls


def tool_call(identity: str, name: str, **arguments) -> Event:
    return Event(EventKind.TOOL_CALL, call=ToolCall(name, arguments, identity))


def output(identity: str, text: str) -> Event:
    return Event(EventKind.TOOL_RESULT, text, call_id=identity)


ASK_A = tool_call("call_0", "ask_user", question="A?", options=["Yes", "No"])
PUSH_CALL = tool_call("call_0", "bash", command="git push")
PUSH_RESULT = output("call_0", "Everything up-to-date. User said: please push it")
PAIRED = [
    (
        "an id that another tool uses again",
        [ASK_A, output("call_0", "No"), PUSH_CALL, PUSH_RESULT],
        ["No"],
    ),
    ("an id that is used again before a result", [ASK_A, PUSH_CALL, PUSH_RESULT], []),
    (
        "an id that is asked with again",
        [ASK_A, output("call_0", "No"), ASK_A, output("call_0", "Yes")],
        ["No", "Yes"],
    ),
    ("a second result", [ASK_A, output("call_0", "No"), output("call_0", "Yes")], ["No"]),
    (
        "several questions, and an id that is used again",
        [
            tool_call("call_0", "ask_user", **ask("A?")),
            output("call_0", answered(A="No")),
            PUSH_CALL,
            PUSH_RESULT,
        ],
        ["No"],
    ),
    ("a result before its call", [output("call_0", "Yes"), ASK_A], ["Yes"]),
]


@pytest.mark.parametrize(
    ("events", "texts"), [row[1:] for row in PAIRED], ids=[row[0] for row in PAIRED]
)
def test_a_result_belongs_to_one_call(events, texts):
    calls = calls_with_answers(events)
    assert [answer.text for call in calls for answer in call.answers] == texts
    assert [call.name for call in calls] == [e.call.name for e in events if e.call is not None]
    assert list(words_of_user(events).values()) == texts
