"""Emphasis: which text attention is steered towards, and what is refused by name; head sets."""

import json
import pickle
from dataclasses import replace

import pytest
from tiny import TEMPLATE, chat, model, tokenizer

from holdfast import Boost, Guidance, Pasta, Repetition, Sampling, SplitSoftmax, cli, methods
from holdfast.chat.nearest import find_nearest
from holdfast.chat.prompt import render, render_with_spans
from holdfast.errors import ModelError, ParameterOutOfRange, PromptError, UsageError
from holdfast.methods import HeadSet, Ranking, Shape, intersection, union, write_heads
from holdfast.models.connecting import connect
from holdfast.models.requests import Request

RIVER = "What is the river? The river is slow."
TALK = chat("Talk about the garden.", RIVER, "The river runs.", "And the old town?")
SHORT = Sampling(0, 1, 8)
THREE = ["the garden", "The river runs", "old town"]


def marked_text(messages, *, template=TEMPLATE, **options) -> str:
    """The rendered chat with its spans in brackets."""
    text, spans = render_with_spans(messages, tokenizer(template), **options)
    for first, last in reversed(spans):
        text = f"{text[:first]}⟦{text[first:last]}⟧{text[last:]}"
    return text


@pytest.mark.parametrize(
    ("emphasis", "expected"),
    (
        (["old town"], ["old town"]),
        (THREE, THREE),
        ([("the river", 1)], ["the river"]),
        ([("The river", 2)], ["The river"]),
        ([(0, 0, 4), (3, 4, 7)], ["Talk", "the"]),
        (["Talk about", "about the"], ["Talk about the"]),
        ([" the garden.", "slow. "[:5]], ["the garden.", "slow."]),
    ),
)
def test_parts_of_any_role_are_found_where_they_are_written(emphasis, expected):
    request = Request(TALK, emphasis=emphasis)
    contents = [message["content"] for message in request.messages]
    assert [contents[at][first:last] for at, first, last in request.emphasis] == expected
    text = marked_text(TALK, emphasis=emphasis)
    assert [part.split("⟧")[0] for part in text.split("⟦")[1:]] == expected
    assert text.replace("⟦", "").replace("⟧", "") == marked_text(TALK, emphasis=())
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
        Request(TALK, emphasis=emphasis)
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
        render(TALK, tokenizer(template), emphasis=["old town"])
    assert all(part in str(excinfo.value) for part in parts), str(excinfo.value)


@pytest.mark.parametrize(
    "steered", ((Pasta(0.1),), (SplitSoftmax(0.3), Repetition(1)), (Boost(4), Guidance(1.5)))
)
def test_methods_steer_towards_the_emphasis_instead_of_the_system_prompt(steered):
    tiny = model()

    def score(emphasis):
        result = tiny.score(TALK, ["bread and rain"], steered, emphasis=emphasis)
        return result.log_probabilities[0]

    emphases = {"system": (), "the same words": ["Talk about the garden."]}
    emphases["other words"] = ["And the old town?"]
    scores = {name: score(emphasis) for name, emphasis in emphases.items()}
    if len(steered) == 1:  # repetition repeats the emphasis with the system prompt
        assert scores["the same words"] == pytest.approx(scores["system"], abs=1e-5)
    assert abs(scores["other words"] - scores["system"]) > 1e-3
    reply = tiny.generate(TALK, steered, SHORT, emphasis=["old town"])
    marked = (*TALK[:3], {"role": "user", "content": "And the *old town*?"})
    assert tiny.generate(marked, steered, SHORT, marks=True).text == reply.text


def test_the_traced_mass_is_that_of_the_emphasis():
    tiny = model()
    request = Request(TALK, (Boost(1e6),), SHORT, trace=True, emphasis=["garden", "old town"])
    plain = replace(request, emphasis=(), methods=())
    emphasised, base = (reply.trace.mass.min() for reply in tiny.generate_batch([request, plain]))
    assert emphasised > 0.9 > base


CHANGES = ((["garden"],) * 2, (["garden"], ["river runs"]), ((), ["garden"]), (["garden"], ()))


@pytest.mark.parametrize(("first", "second"), CHANGES)
def test_a_thread_whose_emphasis_changes_recomputes_what_it_must(first, second):
    tiny, session = model(), model().session()
    steered = (Pasta(0.05),)
    start = Request(TALK[:2], steered, SHORT, thread="t", keep=True, emphasis=first)
    session.generate_batch([start])
    later = Request(TALK, steered, SHORT, thread="t", emphasis=second)
    (shared,) = session.generate_batch([later])
    (alone,) = tiny.generate_batch([replace(later, thread=None)])
    assert shared.token_ids == alone.token_ids
    if first == second:
        assert shared.forwarded < alone.forwarded


def test_an_endpoint_refuses_emphasis_by_name():
    endpoint = connect("http://localhost:1/v1", "m")
    with pytest.raises(ModelError, match="'old town'"):
        endpoint.generate(TALK, emphasis=["old town"])
    with pytest.raises(ModelError, match=r"pasta:alpha=0\.01 needs attention"):
        endpoint.generate(TALK, [Pasta(0.01)], emphasis=["old town"])


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


HEADS = {(0, 1), (2, 0), (2, 3)}
TINY = Shape(3, 4, "tiny", "abc")


def test_head_files_are_written_in_the_published_format_and_read_back(tmp_path):
    write_heads(tmp_path / "plain.json", HEADS)
    assert json.loads((tmp_path / "plain.json").read_text()) == {"0": [1], "2": [0, 3]}
    write_heads(tmp_path / "ours.json", HEADS, TINY)
    assert json.loads((tmp_path / "ours.json").read_text())["made_for"]["layers"] == 3
    for name, made_for in (("plain", None), ("ours", TINY)):
        (pasta,) = methods.parse(f"pasta:alpha=0.1,heads={tmp_path / name}.json")
        assert pasta == Pasta(0.1, HEADS) and pasta.heads.made_for == made_for
        assert methods.spec_of([pasta]) == "pasta:alpha=0.1,heads=0.1/2.0/2.3"
        model().check([pasta])
        assert pickle.loads(pickle.dumps(pasta)).heads.made_for == made_for


def test_a_head_set_of_another_shape_is_refused_but_not_one_of_a_parent_model(tmp_path):
    write_heads(tmp_path / "large.json", HEADS, Shape(32, 32, "large"))
    message = r"large\.json.*chosen for large with 32 layers x 32 heads, but this model has 3 x 4"
    with pytest.raises(UsageError, match=message):
        model().check(methods.parse(f"pasta:alpha=0.1,heads={tmp_path / 'large.json'}"))
    write_heads(tmp_path / "plain.json", {(2, 9)})
    with pytest.raises(UsageError, match=r"head 9 .*plain\.json.* 4"):
        model().check(methods.parse(f"pasta:alpha=0.1,heads={tmp_path / 'plain.json'}"))
    model().check([Pasta(0.1, HeadSet(HEADS, Shape(3, 4, "parent", "another fingerprint")))])


@pytest.mark.parametrize(
    ("text", "parts"),
    (
        ('{"2": [0, 3, 0]}', ["head 0 in layer 2 twice"]),
        ('{"2": [0], "2": [1]}', ["layer 2 twice"]),
        ('{"2": [-1]}', ["head -1 in layer 2"]),
        ('{"2": [true]}', ["head True"]),
        ('{"2": [4], "made_for": {"layers": 3, "heads": 4}}', ["head 4 in layer 2", "of 4 heads"]),
        ('{"2": [1], "made_for": {"layers": 0, "heads": 4}}', ["0 layers"]),
        ("{}", ["names no heads"]),
        ("[[1, 2, 3]]", ["[[layer, head], ...]"]),
    ),
)
def test_bad_head_files_are_refused_by_file_and_head(tmp_path, text, parts):
    (tmp_path / "heads.json").write_text(text)
    with pytest.raises(UsageError) as excinfo:
        methods.parse(f"pasta:alpha=0.1,heads={tmp_path / 'heads.json'}")
    assert all(part in str(excinfo.value) for part in ["heads.json", *parts]), str(excinfo.value)


def test_rankings_are_combined_and_an_empty_intersection_suggests_a_larger_k():
    ranking = Ranking(((0, 0), (0, 1), (1, 0), (1, 1)), TINY)
    reverse = Ranking(((1, 1), (0, 1), (1, 0), (0, 0)), TINY)
    assert ranking.top(2) == {(0, 0), (0, 1)} and ranking.top(2).made_for == TINY
    shared = intersection([ranking, reverse], 2)
    assert shared == {(0, 1)} == HeadSet.intersection(ranking.top(2), reverse.top(2))
    assert shared.made_for == TINY
    assert union([ranking, reverse], 1) == {(0, 0), (1, 1)}
    with pytest.raises(UsageError) as excinfo:
        intersection([ranking, reverse], 1)
    assert excinfo.value.value == 1
    assert {k: excinfo.value.allowed[k] for k in (2, 3)} == {2: 1, 3: 2}, "heads in common by k"
    with pytest.raises(ParameterOutOfRange) as excinfo:
        ranking.top(5)
    assert (excinfo.value.option, excinfo.value.value) == ("k", 5)
    with pytest.raises(UsageError) as excinfo:
        union([ranking, replace(reverse, made_for=Shape(8, 8))], 1)
    assert (excinfo.value.value, excinfo.value.allowed) == ((8, 8), (3, 4))
