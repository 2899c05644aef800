"""How a template is run: its clock stands still, and its errors become sentences."""

from datetime import datetime

import pytest
from chat_templates import KIND_CHAT, PLAIN
from tiny import chat, tokenizer

from holdfast.chat.prompt import render
from holdfast.chat.templates import TODAY, render_text
from holdfast.errors import PromptError

# The clock


def test_the_clock_of_templates_stands_still():
    template = (
        "\n{%- if strftime_now is defined %}{% set today = strftime_now('%d %b %Y') %}{% endif"
        " %}\nToday: {{ today }}\n" + PLAIN
    )
    text = render(KIND_CHAT, tokenizer(template)).text
    assert text == "Today: 26 Jul 2024\n<system>Be kind.<user>hello"
    hello = [{"role": "user", "content": "hello"}]
    untouched = tokenizer(template).apply_chat_template(hello, tokenize=False)
    assert datetime.now().strftime("%Y") in untouched  # the clock of others' renderings runs


def test_a_template_that_asks_for_the_time_renders_as_in_transformers():
    template = "\n  {% if false %}{{ strftime_now('%Y') }}{% endif %}x\n" + PLAIN
    hello = [{"role": "user", "content": "hello"}]
    expected = tokenizer(template).apply_chat_template(hello, tokenize=False)
    assert render_text(chat("", "hello"), tokenizer(template)) == expected


def test_dates_are_formatted_as_python_formats_them():
    day = datetime(2024, 7, 26)
    template = f"{{{{ strftime_now({'|'.join(TODAY)!r}) }}}}"
    assert render_text(chat("", "hello"), tokenizer(template)) == day.strftime("|".join(TODAY))


# Errors


@pytest.mark.parametrize(
    ("template", "messages", "words"),
    (
        ("{{ messages[0]['content'] + 7 }}", chat("", "hello"), ["refuses this chat"]),
        ("{{ messages[0]['content'] % 7 }}", chat("", "%d %d"), ["refuses this chat"]),
        (PLAIN, chat(""), ["refuses this chat", "empty conversation"]),
        ("{% for", chat("", "hello"), ["refuses this chat"]),
    ),
)
def test_an_error_of_a_template_becomes_a_prompt_error(template, messages, words):
    with pytest.raises(PromptError) as excinfo:
        render(messages, tokenizer(template))
    assert all(word in str(excinfo.value) for word in words), excinfo.value


@pytest.mark.parametrize(
    ("role", "cure", "other_cure"),
    [
        ("bot", "role 'bot'; use system, user or assistant", "alternate"),
        ("user", "alternate", "use"),
    ],
)
def test_a_template_that_refuses_a_role_gets_the_cure_for_it(role, cure, other_cure):
    refuses = "{{ raise_exception('No: ' + messages[-1]['role']) }}"
    with pytest.raises(PromptError) as excinfo:
        render([{"role": role, "content": "x"}], tokenizer(refuses))
    sentence = str(excinfo.value).partition(";" if role == "user" else "(")[2]
    assert cure in sentence and f" {other_cure} " not in sentence


ENDLESS = "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}"


@pytest.mark.parametrize(
    ("template", "message"),
    (
        (ENDLESS, "calls itself without end"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "OverflowError"),
    ),
)
def test_a_template_that_crashes_is_reported_in_a_sentence(template, message):
    with pytest.raises(PromptError, match=message):
        render_text(chat("be kind", "hello"), tokenizer(template))
