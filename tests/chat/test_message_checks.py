"""A template has to render every message of a chat; one that drops or rewrites any is refused."""

import pytest
from chat_templates import CONTENT, PLAIN, TOOLS_LAST, marked
from tiny import LOOK, TEMPLATE, TOOLED, chat, tokenizer, tool_talk

from holdfast.chat.prompt import render
from holdfast.errors import PromptError

TALK = chat("Be kind.", "hello", "hi", "hello")


# Contents as lists of parts

# as those of vision models do: the content of a message is a list of parts
PARTS = (
    "{% for m in messages %}<{{ m['role'] }}>{% for part in m['content'] %}{% if part['type'] =="
    " 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
)
USER_PARTS = (
    "{% for m in messages %}<{{ m['role'] }}>{% if m['role'] == 'user' %}{{ m['content']"
    " | selectattr('type', 'equalto', 'text') | map(attribute='text') | join }}{% else %}"
    "{{ m['content'] }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("template", (PARTS, USER_PARTS))
def test_content_is_given_in_parts_where_a_template_drops_a_string(template):
    expected = "<system>⟦Be kind.⟧<user>hello<assistant>hi<user>hello"
    assert marked(template, TALK)[0] == expected
    text, starts = marked(template, TALK, emphasis=["hi"])
    assert text == "<system>Be kind.<user>hello<assistant>⟦hi⟧<user>hello" and len(starts) == 1
    in_user_message, _ = marked(template, TALK, system_as="first-user")
    assert in_user_message == "<user>⟦Be kind.⟧\n\nhello<assistant>hi<user>hello"


def test_a_tools_result_is_given_in_parts_as_a_users_message_is():
    calls = "{% for m in messages %}{{ m['tool_calls'] | tojson if m['tool_calls'] }}{% endfor %}"
    text, _ = marked(PARTS + calls, tool_talk("Be kind."), tools=())
    assert "<tool>nine" in text


# Messages


@pytest.mark.parametrize(
    ("keeps", "culprit"),
    (
        ("m['role'] != 'user'", "user message 1 ('hello')"),
        ("m['role'] != 'assistant'", "assistant message 1 ('hi')"),
        ("loop.index0 != 1", "user message 1 ('hello')"),
        ("loop.first or loop.index0 > messages | length - 3", "user message 1 ('hello')"),
        ("not loop.last", "user message 2 ('hello')"),
        ("m['content'] != 'hi'", "assistant message 1 ('hi')"),
    ),
)
def test_a_message_that_the_template_leaves_out_is_refused(keeps, culprit):
    template = PLAIN.replace(CONTENT, "{{ m['content'] if KEEPS }}").replace("KEEPS", keeps)
    with pytest.raises(PromptError) as excinfo:
        render(TALK, tokenizer(template))
    message = str(excinfo.value)
    assert f"rewrites {culprit};" in message and "another chat template" in message
    with pytest.raises(PromptError, match=r"message [12]"):
        render(TALK, tokenizer(template), emphasis=["Be kind"])


@pytest.mark.parametrize("body", ("[:9]", "|upper", "|replace('garden', 'house')"))
def test_a_users_message_that_the_template_rewrites_is_refused(body):
    template = PLAIN.replace(
        CONTENT, "{{ m['content'] if m['role'] != 'user' else m['content']BODY }}"
    )
    long = chat("Be kind.", "Do you like the garden?")
    with pytest.raises(PromptError, match=r"message 1 .*'Do"):
        render(long, tokenizer(template.replace("BODY", body)))


REASONING = (
    "{% for m in messages %}<{{ m['role'] }}>{% set text = m['content'] %}{% if m['role'] =="
    " 'assistant' %}{% set text = text.split('END')[-1].strip() %}{% endif %}{{ text }}{% endfor %}"
)


@pytest.mark.parametrize("end", ("</think>", "[/THINK]", "<channel|>", "</reasoning>", "◁/think▷"))
def test_white_space_and_the_reasoning_of_earlier_replies_may_be_left_out(end):
    reply = f"<think> hello is a greeting {end} \n Good   day. "
    messages = chat("Be kind.", " hello \n", reply, "bye")
    template = REASONING.replace("END", end)
    text, _ = marked(template, messages)
    assert text == "<system>⟦Be kind.⟧<user> hello \n<assistant>Good   day.<user>bye"
    assert "Good   day." in marked(template.replace("{{ text }}", "{{ text | trim }}"), messages)[0]
    squeezed = template.replace("{{ text }}", "{{ text.split() | join(' ') }}")
    assert "Good day." in marked(squeezed, messages)[0]
    nothing = chat("Be kind.", "hello", f"<think> never mind {end}", "bye")
    assert marked(template, nothing)[0].endswith("<assistant><user>bye")
    with pytest.raises(PromptError, match="rewrites assistant message 1"):
        marked(template.replace("[-1]", "[0]"), messages)


def test_checking_a_dialog_renders_it_once_more_per_sequence_of_roles(monkeypatch):
    tokenizer_of_plain = tokenizer(PLAIN.replace("<{{", "<<{{"))
    rendered, apply = [], type(tokenizer_of_plain).apply_chat_template

    def count_render(self, messages, *args, **kwargs):
        rendered.append(messages)
        return apply(self, messages, *args, **kwargs)

    monkeypatch.setattr(type(tokenizer_of_plain), "apply_chat_template", count_render)
    for name in ("Ann", "Bob"):
        for turns in (1, 3, 5):
            contents = [f"{name} has message {number}" for number in range(turns)]
            render(chat("Be kind to everyone.", *contents), tokenizer_of_plain)
    # the template itself, then each chat, and each sequence of roles once
    assert len(rendered) == 1 + 6 + 3


# Tools


def test_a_message_that_the_template_leaves_out_is_refused_with_tools_too():
    for role in ("user", "assistant", "tool"):
        content = f"m['content'] if m['role'] != '{role}'"
        template = TOOLS_LAST.replace("m['content']", f"({content} else '')")
        with pytest.raises(PromptError, match="leaves out the"):
            render(tool_talk("Be kind."), tokenizer(template), tools=[LOOK])


@pytest.mark.parametrize(
    ("template", "old", "new", "message"),
    [
        (PLAIN, "", "", "leaves out the declared tool 'look'"),
        (TOOLS_LAST, "tools and", "false and", "the declared tool 'look'"),
        (TOOLED, "m['tool_calls'] or ()", "()", "the call of 'look'"),
        (
            TOOLS_LAST,
            "] | tojson",
            "][0]['function']['name']",
            "the arguments {'at': 'the price', 'ma",
        ),
        (TOOLS_LAST, CONTENT, "{{ m['content'] if not m['name'] }}", "the tool's result 'nine'"),
        (
            TOOLS_LAST,
            CONTENT,
            "{{ m['content'] if not m['tool_calls'] }}",
            "the text 'I will look.' bes",
        ),
        (TEMPLATE, "", "", "refuses this chat with tools"),
    ],
)
def test_a_template_that_leaves_out_part_of_the_tools_is_refused(template, old, new, message):
    template = template.replace(old, new) if old else template
    # a result that occurs elsewhere in the text does not prove that the template renders it
    messages = tool_talk("Be kind.", user="Is the price nine? I will look.")
    with pytest.raises(PromptError) as excinfo:
        render(messages, tokenizer(template), tools=[LOOK])
    assert message in str(excinfo.value)
