"""Reasoning in the text of a reply: what is split off, and what is left alone."""

import time
from typing import ClassVar

import pytest

from holdfast import Reply, Sampling
from holdfast.chat.reasoning import split_reasoning
from holdfast.cli.serve.terminal_chat import Chat

BLOCKS = {
    "think": "<think>\nI look.\n</think>\n\nOui.",
    "upper case": "<THINK>I look.</THINK>Oui.",
    "leading space": "\n\n  <think>I look.</think> Oui.",
    "thinking": "<thinking>I look.</thinking>\nOui.",
    "thought": "<thought>I look.</thought>\nOui.",
    "reasoning": "<reasoning>I look.</reasoning>\n\nOui.",
    "Seed-OSS": "<seed:think>I look.</seed:think>Oui.",
    "Magistral": "[THINK]I look.[/THINK]Oui.",
    "Kimi": "◁think▷I look.◁/think▷Oui.",
    "Command A": "<|START_THINKING|>I look.<|END_THINKING|><|START_RESPONSE|>Oui.<|END_RESPONSE|>",
    "Gemma 4": "<|channel>thought\nI look.<channel|>Oui.",
    "Open WebUI": '<details type="reasoning" done="true" duration="2">\nI look.\n</details>\nOui.',
    "gpt-oss": "<|channel|>analysis<|message|>I look.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Oui.<|return|>",
    "gpt-oss without an end": "<|channel|>analysis<|message|>I look."
    "<|channel|>final<|message|>Oui.",
    "gpt-oss without its special tokens": "analysisI look.assistantfinalOui.",
    "opening in the prompt": "I look.\n</think>\n\nOui.",
    "opening in the prompt, one line": "I look.</think>Oui.",
    "opening in the prompt, Magistral": "I look.\n[/THINK]\nOui.",
}


@pytest.mark.parametrize("text", BLOCKS.values(), ids=BLOCKS)
def test_reasoning_is_split_from_the_reply(text):
    assert split_reasoning(text) == ("I look.", "Oui.")


def test_a_reply_that_begins_with_a_quote_is_split():
    assert split_reasoning("I look.</think>'Oui,' he said.") == ("I look.", "'Oui,' he said.")


def test_several_leading_blocks_are_joined():
    text = "<think>First.</think>\n<think>\n</think><thinking>Then.</thinking>\nOui."
    assert split_reasoning(text) == ("First.\n\nThen.", "Oui.")


def test_an_empty_block_is_removed():
    assert split_reasoning("<think>\n\n</think>\n\nOui.") == ("", "Oui.")


def test_nested_blocks_end_with_the_outer_one():
    text = "<think>a <think>b</think> c</think>Oui."
    assert split_reasoning(text) == ("a <think>b</think> c", "Oui.")


def test_an_opening_named_while_thinking_needs_no_closing():
    text = "<think>They asked about <think> tags.</think>Oui."
    assert split_reasoning(text) == ("They asked about <think> tags.", "Oui.")


MENTIONED = {
    "a quotation on both sides": (
        '<think>The user wants "no"</think>"No." is my answer.',
        'The user wants "no"',
        '"No." is my answer.',
    ),
    "code on both sides": ("<think>Say `no`</think>`no`", "Say `no`", "`no`"),
    "a quotation on both sides, no opening": ("It is 'yes'</think>'yes'", "It is 'yes'", "'yes'"),
    "a space before, a blank line after": ("2+2 is 4. </think>\n\nFour.", "2+2 is 4.", "Four."),
    "a token of gpt-oss in the reply": (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
        "Use <|end|> to stop.<|return|>",
        "Hm.",
        "Use <|end|> to stop.",
    ),
    "a space before the closing": ("I look. </think>Oui.", "I look.", "Oui."),
    "both in one reply": (
        "<think>They asked about <think> tags.</think>Write </think> last.",
        "They asked about <think> tags.",
        "Write </think> last.",
    ),
    "a quoted closing inside": (
        '<think>Never print "</think>" here.</think>Oui.',
        'Never print "</think>" here.',
        "Oui.",
    ),
    "a closing in code, no opening": (
        "Never print `</think>`.\n</think>\nOui.",
        "Never print `</think>`.",
        "Oui.",
    ),
    "a mentioned opening and a closing": (
        "Never print `<think>`.\n</think>\nOui.",
        "Never print `<think>`.",
        "Oui.",
    ),
    "nested details": (
        '<details type="reasoning"><details>a</details>b</details>Oui.',
        "<details>a</details>b",
        "Oui.",
    ),
    "a quoted token of another template": (
        "<think>I look.</think>It ends with `<|END_RESPONSE|>`.",
        "I look.",
        "It ends with `<|END_RESPONSE|>`.",
    ),
    "only a quoted closing": (
        "<think>I must not write `</think>` here, because",
        "I must not write `</think>` here, because",
        "",
    ),
    "a reply in tokens alone": ("<|START_RESPONSE|>Oui.<|END_RESPONSE|>", "", "Oui."),
}


@pytest.mark.parametrize(("text", "reasoning", "reply"), MENTIONED.values(), ids=MENTIONED)
def test_a_marker_that_the_reasoning_mentions_is_none(text, reasoning, reply):
    assert split_reasoning(text) == (reasoning, reply)


CUT = {
    "think": "<think>\nI think. And think.",
    "Magistral": "[THINK]I think. And think.",
    "gpt-oss": "<|channel|>analysis<|message|>I think. And think.",
}


@pytest.mark.parametrize("text", CUT.values(), ids=CUT)
def test_a_block_that_is_never_closed_leaves_no_reply(text):
    assert split_reasoning(text) == ("I think. And think.", "")


def test_a_channel_that_has_only_begun_leaves_no_reply():
    assert split_reasoning("<|channel|>analysis") == ("", "")


def test_commentary_is_not_the_reply():
    text = (
        "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary"
        " to=functions.f <|constrain|>json<|message|>{}<|call|>"
        "<|start|>assistant<|channel|>final<|message|>Oui."
    )
    assert split_reasoning(text) == ("I look.\n\n{}", "Oui.")


ALONE = {
    "nothing": "",
    "plain": "Oui.\n",
    "in the middle": "Models write <think>a</think> before they answer.",
    "code": "```\n<think>a</think>\n```\nThis is how it looks.",
    "fenced closing": "Write this:\n```\nthoughts\n</think>\n```\nThen answer.",
    "inline code": "End it with `</think>`.",
    "quoted": 'End it with "</think>" and go on.',
    "a word of a sentence": "The tag </think> ends it.",
    "other details": "<details><summary>More</summary>Oui.</details>",
    "the word": "analysis of the case: the assistantfinal word is a typo",
    "another tag": "<thinker>Oui.</thinker>",
    "the last word": "End reasoning with </think>",
    "the last word of a line": "Close it with </think>\nThen go on.",
    "in a list": "- <think>\n- </think> is its end",
}


@pytest.mark.parametrize("text", ALONE.values(), ids=ALONE)
def test_a_reply_that_only_mentions_a_marker_is_left_alone(text):
    assert split_reasoning(text) == ("", text)


def test_a_chat_in_the_terminal_goes_on_without_the_reasoning(capsys):
    class Thinks:
        name, capabilities = "thinks", frozenset()
        chats: ClassVar[list] = []

        def stream(self, request, write):
            self.chats.append([message["content"] for message in request.messages])
            write("<think>Hm.</think>Oui.")
            return Reply("<think>Hm.</think>Oui.", None, "stop")

    terminal = Chat(Thinks(), Sampling())
    terminal.handle("one")
    terminal.handle("two")
    assert Thinks.chats[1] == ["one", "Oui.", "two"]
    assert "Hm." in capsys.readouterr().out  # it is shown as it comes


def test_very_many_markers_are_split_at_once():
    """Comparing each with the whole text before it would take minutes."""
    text = "<think>" * 60_000 + "Hm." + "</think>" * 60_000 + "Oui."
    start = time.process_time()
    assert split_reasoning(text).reply == "Oui."
    assert time.process_time() - start < 10
