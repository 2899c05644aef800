"""The system prompt that a template inserts by itself: found, and left out if none is wanted."""

import pytest
from chat_templates import EMPTY_PROMPT, PLAIN, PREAMBLE, ROLES_ALONE, TWICE
from tiny import LOOK, TOOLED, chat, tokenizer

import holdfast
from holdfast.chat.default_prompts import DefaultSystemPrompt, default_system_prompt
from holdfast.chat.prompt import render_with_spans
from holdfast.errors import PromptError

DEFAULT = (
    "{% if messages[0]['role'] == 'system' %}<system>{{ messages[0]['content'] }}\n{% else"
    " %}<system>You are a helpful assistant.\n{% endif %}{% for m in messages if m['role'] !="
    " 'system' %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
)

OR_DEFAULT = (
    "{{ (messages[0]['role'] == 'system' and messages[0]['content']) or 'Be helpful. ' }}"
    "{% for m in messages if m['role'] != 'system' %}<{{ m['role'] }}>{{ m['content'] }}"
    "{% endfor %}"
)

NO_ROLE = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}" + PLAIN
DATED = (  # a date in every chat, with a system prompt or without, as Llama 3.1 has it
    "<system>Today: {{ strftime_now('%A') }}.\n{% for m in messages %}{% if m['role'] != 'system'"
    " %}<{{ m['role'] }}>{% endif %}{{ m['content'] }}{% endfor %}"
)
CHATML = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou are kind.<|im_end|>\n"
    "{% endif %}{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant"
)

WITHOUT_ROLE = (
    "{% if messages[0]['role'] != 'system' %}A chat with an assistant. {% endif %}" + PLAIN
)


@pytest.mark.parametrize(
    ("template", "default"),
    (
        (DEFAULT, "You are a helpful assistant."),
        (CHATML, "You are kind."),
        (WITHOUT_ROLE, "A chat with an assistant."),
        (OR_DEFAULT, "Be helpful."),
        (PLAIN, ""),
        (PREAMBLE, ""),
        (DATED, ""),
        (NO_ROLE, ""),
    ),
)
def test_the_prompt_that_a_template_inserts_is_found(template, default):
    assert default_system_prompt(tokenizer(template)) == DefaultSystemPrompt(default)


OTHER_ROLE = DEFAULT.replace("<system>You", "<policy>You")
OTHER_GREETING = DEFAULT.replace("<system>You are a helpful assistant.", "Hi.")
CHATML_QUESTION = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant"


@pytest.mark.parametrize(
    ("template", "text"),
    (
        (DEFAULT, "<system>\n<user>hello"),
        (PLAIN, "<user>hello"),
        (PREAMBLE, "You are kind.\n<user>hello"),  # part of every chat, with a prompt or without
        (ROLES_ALONE, "<user>hello"),
        (TWICE, "hello|hello|"),
        (NO_ROLE, "<user>hello"),
        (OTHER_ROLE, "<system>\n<user>hello"),
        (WITHOUT_ROLE, "<system><user>hello"),
        (OTHER_GREETING, "<system>\n<user>hello"),
        (CHATML, "<|im_start|>system\n<|im_end|>\n" + CHATML_QUESTION),
        (DATED, "<system>Today: Friday.\n<user>hello"),
    ),
)
def test_a_default_system_prompt_is_left_out_if_none_is_wanted(template, text):
    plain = chat("", "hello")
    rendered = render_with_spans(plain, tokenizer(template), default_system=False)
    assert rendered == (text, ())
    for system_as in ("role", "first-user"):
        assert render_with_spans(EMPTY_PROMPT, tokenizer(template), system_as=system_as) == (
            text,
            (),
        )


def test_emphasis_is_found_when_a_default_prompt_is_left_out():
    messages = chat("", "hello there")
    arguments = messages, tokenizer(DEFAULT)
    text, spans = render_with_spans(*arguments, emphasis=["there"], default_system=False)
    assert text == "<system>\n<user>hello there"
    assert [text[first:last] for first, last in spans] == ["there"]


AT_THE_END = PLAIN + (
    "{% if messages[0]['role'] != 'system' or not messages[0]['content'] %} Be helpful!"
    "{% endif %}<assistant>"
)


def test_a_default_prompt_that_cannot_be_left_out_is_refused_if_none_may_be_read():
    # it is where a system prompt would be, so it can be cut out
    rendered = render_with_spans(chat("", "hello"), tokenizer(OR_DEFAULT), default_system=False)
    assert rendered == ("<user>hello", ())
    with pytest.raises(PromptError, match="Be helpful!"):
        render_with_spans(chat("", "hello"), tokenizer(AT_THE_END), default_system=False)
    text, _ = render_with_spans(EMPTY_PROMPT, tokenizer(AT_THE_END))
    assert text == "<system><user>hello Be helpful!<assistant>"
    rendered = default_system_prompt(tokenizer(AT_THE_END))
    assert "Be helpful!" in rendered.text and not rendered.can_be_left_out


def test_an_empty_prompt_replaces_the_templates_own_with_tools_as_well():
    text, spans = render_with_spans(chat("", "hello"), tokenizer(TOOLED), tools=[LOOK])
    assert text.startswith("<sys>Help.\n\n# Tools") and spans == ()
    text, spans = render_with_spans(EMPTY_PROMPT, tokenizer(TOOLED), tools=[LOOK])
    assert text.startswith("<sys>\n\n# Tools") and spans == ()


def test_an_empty_prompt_equals_none_if_the_template_inserts_none():
    """Like the default model's: its baselines and guidance read the same as in version 0.2."""
    shipped = holdfast.load("default").tokenizer
    assert default_system_prompt(shipped).text == ""
    assert render_with_spans(EMPTY_PROMPT, shipped) == render_with_spans(chat("", "hello"), shipped)
