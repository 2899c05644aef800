"""Emphasis: which text attention is steered towards, and what is refused by name."""

from dataclasses import replace

import pytest
from tiny import TEMPLATE, chat, model, tokenizer

from holdfast import Boost, Guidance, Pasta, Repetition, Sampling, SplitSoftmax, cli
from holdfast.chat.nearest import find_nearest
from holdfast.chat.prompt import render, render_with_spans
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.models.connecting import connect
from holdfast.models.requests import Request

RIVER = "What is the river? The river is slow."
DIALOG = chat("Talk about the garden.", RIVER, "The river runs.", "And the old town?")
SHORT = Sampling(0, 1, 8)


THREE_PARTS = ["the garden", "The river runs", "old town"]


def marked_text(messages, *, template=TEMPLATE, **options) -> str:
    """The rendered chat with its spans in brackets."""
    text, spans = render_with_spans(messages, tokenizer(template), **options)
    for first, last in reversed(spans):
        text = f"{text[:first]}⟦{text[first:last]}⟧{text[last:]}"
    return text


# Parts of messages, and marks


@pytest.mark.parametrize(
    ("emphasis", "expected"),
    (
        (["old town"], ["old town"]),
        (THREE_PARTS, THREE_PARTS),
        ([("the river", 1)], ["the river"]),
        ([("The river", 2)], ["The river"]),
        ([(0, 0, 4), (3, 4, 7)], ["Talk", "the"]),
        (["Talk about", "about the"], ["Talk about the"]),
        ([" the garden.", "slow. "[:5]], ["the garden.", "slow."]),
    ),
)
def test_parts_of_any_role_are_found_where_they_are_written(emphasis, expected):
    request = Request(DIALOG, emphasis=emphasis)
    contents = [message["content"] for message in request.messages]
    assert [contents[at][first:last] for at, first, last in request.emphasis] == expected
    text = marked_text(DIALOG, emphasis=emphasis)
    assert [part.split("⟧")[0] for part in text.split("⟦")[1:]] == expected
    assert text.replace("⟦", "").replace("⟧", "") == marked_text(DIALOG, emphasis=())
    assert replace(request, seed=3).emphasis == request.emphasis


def test_a_text_that_also_occurs_in_the_template_or_another_message_is_found_once():
    messages = chat("user", "Be kind to the user", "user")
    message_template = "{% for m in messages %}<{{ m['role'] }}>{{ m['content']|trim }}{% endfor %}"
    template = f"{message_template}Be kind to the user"
    text = marked_text(messages, template=template, emphasis=[("user", 1)])
    assert text == "<system>⟦user⟧<user>Be kind to the user<assistant>userBe kind to the user"
    assert "⟦user⟧Be kind" in marked_text(messages, template=template, emphasis=[("user", 3)])
    text = marked_text(chat("", " hello there "), template=template, emphasis=[(0, 0, 6)])
    assert text.startswith("<user>⟦hello⟧ there")


@pytest.mark.parametrize(
    ("text", "plain", "emphasised"),
    (
        ("Is *the river* by *the town*?", "Is the river by the town?", ["the river", "the town"]),
        (r"2 \* 3 is *six \* one*", "2 * 3 is six * one", ["six * one"]),
        (r"nothing \*here\*", "nothing *here*", []),
    ),
)
def test_marks_are_read_and_removed(text, plain, emphasised):
    request = Request(chat("", text), marks=True)
    assert request.messages[0]["content"] == plain
    assert [plain[first:last] for _, first, last in request.emphasis] == emphasised
    assert replace(request, seed=1).messages == request.messages
    unread = Request(chat("", text))
    assert unread.messages[0]["content"] == text and unread.emphasis == ()


@pytest.mark.parametrize(
    ("emphasis", "error", "parts"),
    (
        (["the old twon"], PromptError, ["'the old twon'", "nearest is 'the old town"]),
        (["twown"], PromptError, ["'twown'", "nearest is 'town'"]),
        (["Pierre"], PromptError, ["'Pierre' is in no message; give it"]),
        (["river"], UsageError, ["'river'", "3 times", "('river', 1)"]),
        ([("river", 4)], UsageError, ["3 times", "occurrence 4"]),
        ([("river", 0)], UsageError, ["('river', 0)", "from 1"]),
        ("river", UsageError, ["'river'", "emphasis=['like this']"]),
        ([(0, 5, 99)], UsageError, ["(0, 5, 99)", "22 characters"]),
        ([(9, 0, 1)], UsageError, ["(9, 0, 1)", "4 messages"]),
        ([(0, 4, 5)], UsageError, ["(0, 4, 5)", "white space"]),
    ),
)
def test_what_cannot_be_emphasised_is_refused_by_name(emphasis, error, parts):
    with pytest.raises(error) as excinfo:
        Request(DIALOG, emphasis=emphasis)
    assert all(part in str(excinfo.value) for part in parts), str(excinfo.value)


@pytest.mark.parametrize(
    ("quote", "text", "near"),
    [
        ("Pierre", "Ask the concierge.", ""),
        ("Pierre", "Ask Pierres mother.", "Pierres"),
        ("in Jason", "Answer (in JSON), please.", "in JSON"),
        ("mother-in-lawn", "Ask my mother-in-law, please.", "mother-in-law"),
        ("zebra", "Ask the concierge.", ""),
        ("北京大學", "我在北京大学。", "北京大学"),
    ],
)
def test_the_nearest_match_is_made_of_whole_words(quote, text, near):
    assert find_nearest(quote, [text]) == near


def test_unpaired_or_empty_marks_are_refused_with_their_position():
    for messages, parts in (
        (chat("s", "a *b"), ["Message 2", "character 2", "'*b'"]),
        (chat("", "**bold**"), ["Message 1", "nothing", "character 0"]),
    ):
        with pytest.raises(UsageError) as excinfo:
            Request(messages, marks=True)
        assert all(part in str(excinfo.value) for part in parts), str(excinfo.value)


@pytest.mark.parametrize(
    ("body", "parts"),
    (
        ("m['content']|upper", ["rewrites the emphasised 'old town'", "'OLD TOWN'"]),
        ("m['content']|replace('old ', '')", ["rewrites the emphasised 'old town'", "nearest"]),
        ("m['content'] ~ m['content']", ["repeats the emphasised 'old town'"]),
    ),
)
def test_emphasis_that_the_template_rewrites_or_repeats_is_refused(body, parts):
    template = "{% for m in messages %}{{ " + body + " }}{% endfor %}"
    with pytest.raises(PromptError) as excinfo:
        render(DIALOG, tokenizer(template), emphasis=["old town"])
    assert all(part in str(excinfo.value) for part in parts), str(excinfo.value)


# Methods that steer towards it


@pytest.mark.parametrize(
    "steered", ((Pasta(0.1),), (SplitSoftmax(0.3), Repetition(1)), (Boost(4), Guidance(1.5)))
)
def test_methods_steer_towards_the_emphasis_instead_of_the_system_prompt(steered):
    tiny = model()

    def score(emphasis):
        result = tiny.score(DIALOG, ["bread and rain"], steered, emphasis=emphasis)
        return result.log_probabilities[0]

    emphases = {"system": (), "the same words": ["Talk about the garden."]}
    emphases["other words"] = ["And the old town?"]
    scores = {name: score(emphasis) for name, emphasis in emphases.items()}
    if len(steered) == 1:  # repetition repeats the emphasis with the system prompt
        assert scores["the same words"] == pytest.approx(scores["system"], abs=1e-5)
    assert abs(scores["other words"] - scores["system"]) > 1e-3
    reply = tiny.generate(DIALOG, steered, SHORT, emphasis=["old town"])
    marked = (*DIALOG[:3], {"role": "user", "content": "And the *old town*?"})
    assert tiny.generate(marked, steered, SHORT, marks=True).text == reply.text


def test_the_traced_mass_is_that_of_the_emphasis():
    tiny = model()
    request = Request(DIALOG, (Boost(1e6),), SHORT, trace=True, emphasis=["garden", "old town"])
    plain = replace(request, emphasis=(), methods=())
    emphasised, base = (reply.trace.mass.min() for reply in tiny.generate_batch([request, plain]))
    assert emphasised > 0.9 > base


CHANGES = ((["garden"],) * 2, (["garden"], ["river runs"]), ((), ["garden"]), (["garden"], ()))


@pytest.mark.parametrize(("first", "second"), CHANGES)
def test_a_thread_whose_emphasis_changes_recomputes_what_it_must(first, second):
    tiny, session = model(), model().session()
    steered = (Pasta(0.05),)
    start = Request(DIALOG[:2], steered, SHORT, thread="t", keep=True, emphasis=first)
    session.generate_batch([start])
    later = Request(DIALOG, steered, SHORT, thread="t", emphasis=second)
    (shared,) = session.generate_batch([later])
    (alone,) = tiny.generate_batch([replace(later, thread=None)])
    assert shared.token_ids == alone.token_ids
    if first == second:
        assert shared.forwarded < alone.forwarded


# Endpoints and the command line


def test_an_endpoint_refuses_emphasis_by_name():
    endpoint = connect("http://localhost:1/v1", "m")
    with pytest.raises(ModelError, match="'old town'"):
        endpoint.generate(DIALOG, emphasis=["old town"])
    with pytest.raises(ModelError, match=r"pasta:alpha=0\.01 needs attention"):
        endpoint.generate(DIALOG, [Pasta(0.01)], emphasis=["old town"])


def test_the_command_line_takes_emphasis_and_marks(capsys, tmp_path):
    command = ["generate", "--system", "Reply in French.", "--temperature", "0"]
    command += ["--max-new-tokens", "8", "--user", "Do you like the garden, the garden?"]
    emphasis = ["--emphasis", "the garden", "2", "--emphasis", "French"]
    for options in ([], ["--method", "boost:factor=4", *emphasis]):
        assert cli.main([*command, *options]) == 0
        assert capsys.readouterr().out.strip()
    for options, code, message in (
        (["--emphasis", "the garden"], 2, "2 times"),
        (["--emphasis", "Frensh"], 1, "'French"),
        (["--emphasis", "a", "b"], 2, "'a b'"),
    ):
        assert cli.main([*command, *options]) == code
        assert message in capsys.readouterr().err
    command[command.index("--user") + 1] = "Do you *like it?"
    assert cli.main([*command, "--marks"]) == 2
    assert "without a partner" in capsys.readouterr().err
