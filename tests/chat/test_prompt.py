"""The place of the system prompt in a rendered chat, and templates that read the clock."""

from dataclasses import replace
from datetime import datetime

import pytest
from tiny import LOOK, TEMPLATE, TOOLED, chat, model, tokenizer, tool_talk

import holdfast
from holdfast.chat.default_prompts import DefaultSystemPrompt, default_system_prompt
from holdfast.chat.prompt import RenderedText, render, render_with_spans, tokenize
from holdfast.chat.templates import TODAY, render_text
from holdfast.errors import PromptError, UsageError

ROLES = "{% for m in messages %}<{{ m['role'] }}>{{ m['content']BODY }}{% endfor %}"
PLAIN = ROLES.replace("BODY", "")
TRIMMED = ROLES.replace("BODY", "|trim")
PREAMBLE = "You are kind.\n" + PLAIN
MERGED = (
    "{% set system = messages[0]['content'] if messages[0]['role'] == 'system' else '' %}{% for m"
    " in messages if m['role'] != 'system' %}[{{ system ~ '\n' if loop.last }}{{ m['content'] }}]{%"
    " endfor %}"
)
DROPPED = "{% for m in messages if m['role'] != 'system' %}{{ m['content'] }}{% endfor %}"
ONE_DROPPED = (
    "{% for m in messages %}{{ m['content'] if m['role'] != 'system' or loop.first }}{% endfor %}"
)
NAMES = PLAIN.replace("messages", "messages if m['role'] != 'system'")
TWICE = "{{ messages[0]['content'] }}|{% for m in messages %}{{ m['content'] }}|{% endfor %}"
SAID = "{{ m['content'] }}"
ENDLESS = "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}"


def double(first: str, second: str, *turns: str):
    """A chat with a second system message at its end."""
    return (*chat(first, *turns), {"role": "system", "content": second})


def marked(template: str, messages, **options) -> tuple[str, list[int]]:
    """The rendered text with the spans in brackets, and where they start."""
    text, spans = render_with_spans(messages, tokenizer(template), **options)
    marked, last = "", 0
    for start, end in spans:
        marked, last = f"{marked}{text[last:start]}⟦{text[start:end]}⟧", end
    return marked + text[last:], [start for start, _ in spans]


KIND, EMPTY = chat("Be kind.", "hello"), ({"role": "system", "content": ""}, *chat("", "hello"))
PRIVATE = "\U000f0100x\U000f0101"


@pytest.mark.parametrize(
    ("template", "messages", "expected"),
    (
        (PLAIN, KIND, "<system>⟦Be kind.⟧<user>hello"),
        (PLAIN, chat(" Be kind.\n", "Be kind."), "<system> ⟦Be kind.⟧\n<user>Be kind."),
        (TRIMMED, chat(" Be kind.\n", "Be kind."), "<system>⟦Be kind.⟧<user>Be kind."),
        (PREAMBLE, chat("You are kind.", "a"), "You are kind.\n<system>⟦You are kind.⟧<user>a"),
        (PLAIN, chat("system", "user"), "<system>⟦system⟧<user>user"),
        (MERGED, chat("Be kind.", "Be kind.", "no", "Go."), "[Be kind.][no][⟦Be kind.⟧\nGo.]"),
        (TWICE, KIND, "⟦Be kind.⟧|⟦Be kind.⟧|hello|"),
        (PLAIN, double("Be kind.", "Rhyme.", "a"), "<system>⟦Be kind.⟧<user>a<system>⟦Rhyme.⟧"),
        (PLAIN, double("Be kind.", "Be kind.", "a"), "<system>⟦Be kind.⟧<user>a<system>⟦Be kind.⟧"),
        (PLAIN, double("Be kind.", " ", "hello"), "<system>⟦Be kind.⟧<user>hello<system> "),
        (PLAIN, chat(PRIVATE, f"x{PRIVATE}"), f"<system>⟦{PRIVATE}⟧<user>x{PRIVATE}"),
        (PLAIN, chat("", "hello"), "<user>hello"),
        (PLAIN, chat("  ", "hello"), "<system>  <user>hello"),
    ),
)
def test_every_system_prompt_is_found_where_the_template_put_it(template, messages, expected):
    assert marked(template, messages)[0] == expected


@pytest.mark.parametrize(
    ("template", "messages", "expected"),
    (
        (PLAIN, KIND, "⟦<system>Be kind.<user>hello⟧"),
        (PLAIN, chat("Be.", "a", "b", "a"), "⟦<system>Be.<user>a<assistant>⟧b⟦<user>a⟧"),
        (PLAIN, chat("b", "b", "b", "b"), "⟦<system>b<user>b<assistant>⟧b⟦<user>b⟧"),
        (TRIMMED, chat("", "a", " yes \n", "a"), "⟦<user>a<assistant>⟧yes⟦<user>a⟧"),
        (
            PLAIN,
            chat("Be.", "a", "yes", "a", "yes", "c"),
            "⟦<system>Be.<user>a<assistant>⟧yes⟦<user>a<assistant>⟧yes⟦<user>c⟧",
        ),
    ),
)
def test_the_span_may_be_everything_but_the_replies(template, messages, expected):
    assert marked(template, messages, spares_replies=True)[0] == expected


def test_replies_that_the_template_rewrites_are_refused():
    shouting = ROLES.replace("BODY", "|upper if m['role'] == 'assistant' else m['content']")
    with pytest.raises(PromptError, match="assistant message 1"):
        render(chat("Be.", "a", "yes", "a"), tokenizer(shouting), spares_replies=True)


@pytest.mark.parametrize(
    ("messages", "expected"),
    (
        (chat(" Be kind. ", "hello"), "<user> ⟦Be kind.⟧ \n\nhello"),
        (chat("Be kind.", "Be kind."), "<user>⟦Be kind.⟧\n\nBe kind."),
        (double("Be kind.", "Be.", "a", "b"), "<user>⟦Be kind.\n\nBe.⟧\n\na<assistant>b"),
    ),
)
def test_a_system_prompt_moved_into_the_first_user_message_is_found_there(messages, expected):
    assert marked(PLAIN, messages, system_as="first-user")[0] == expected


@pytest.mark.parametrize(
    ("template", "messages", "culprit"),
    (
        (DROPPED, KIND, "'Be kind.'"),
        ("Be kind." + DROPPED, KIND, "'Be kind.'"),
        (NAMES, chat("user", "hello"), "'user'"),
        (ROLES.replace("BODY", "|upper"), chat("be kind", "BE KIND"), "'be kind'"),
        (ROLES.replace("BODY", "[:6]"), KIND, "'Be kind.'"),
        (ROLES.replace("BODY", "|replace('kind', 'rude')"), KIND, "'Be kind.'"),
        (ROLES.replace("BODY", "|length"), chat("3", "abc"), "'3'"),
        (ONE_DROPPED, double("Be kind.", "Be kind.", "hello"), "'Be kind.'"),
        (ONE_DROPPED, double("Be kind.", "Rhyme.", "hello"), "'Be kind.' or 'Rhyme.'"),
    ),
)
def test_a_system_prompt_that_the_template_does_not_keep_is_refused(template, messages, culprit):
    with pytest.raises(PromptError) as excinfo:
        render(messages, tokenizer(template))
    message = str(excinfo.value)
    assert f" {culprit};" in message and "system_as='first-user'" in message


# as Qwen 2.5 does: a system prompt of its own, unless the chat begins with one
BRANDED = (
    "{% if messages[0]['role'] != 'system' %}<system>You are Quill, made by Acme.{% endif %}"
    + PLAIN
)


@pytest.mark.parametrize(
    ("first", "options"), (((), {"default_system": False}), (EMPTY[:1], {})), ids=("none", "empty")
)
def test_replies_are_found_where_the_templates_own_prompt_is_left_out(first, options):
    messages = (*first, *chat("", "a", "yes", "a", "yes", "c"))
    expected = "⟦<system><user>a<assistant>⟧yes⟦<user>a<assistant>⟧yes⟦<user>c⟧"
    assert marked(BRANDED, messages, spares_replies=True, **options)[0] == expected


def test_a_given_system_prompt_replaces_the_templates_own_and_alone_is_the_span():
    assert marked(BRANDED, KIND)[0] == "<system>⟦Be kind.⟧<user>hello"
    text, starts = marked(BRANDED, chat("", "hello"))
    assert text == "<system>You are Quill, made by Acme.<user>hello" and not starts
    messages = chat("You are Quill, made by Acme.", "hello")
    assert marked(BRANDED, messages)[0] == "<system>⟦You are Quill, made by Acme.⟧<user>hello"
    tiny = replace(model(), tokenizer=tokenizer(BRANDED))
    with pytest.raises(UsageError, match="or emphasis"):
        tiny.generate(chat("", "hello"), "boost:factor=2")


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
TALK = chat("Be kind.", "hello", "hi", "hello")
REASONING = (
    "{% for m in messages %}<{{ m['role'] }}>{% set text = m['content'] %}{% if m['role'] =="
    " 'assistant' %}{% set text = text.split('END')[-1].strip() %}{% endif %}{{ text }}{% endfor %}"
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
    template = PLAIN.replace(SAID, "{{ m['content'] if KEEPS }}").replace("KEEPS", keeps)
    with pytest.raises(PromptError) as excinfo:
        render(TALK, tokenizer(template))
    message = str(excinfo.value)
    assert f"rewrites {culprit};" in message and "another chat template" in message
    with pytest.raises(PromptError, match=r"message [12]"):
        render(TALK, tokenizer(template), emphasis=["Be kind"])


@pytest.mark.parametrize("body", ("[:9]", "|upper", "|replace('garden', 'house')"))
def test_a_users_message_that_the_template_rewrites_is_refused(body):
    template = PLAIN.replace(
        SAID, "{{ m['content'] if m['role'] != 'user' else m['content']BODY }}"
    )
    long = chat("Be kind.", "Do you like the garden?")
    with pytest.raises(PromptError, match=r"message 1 .*'Do"):
        render(long, tokenizer(template.replace("BODY", body)))


def test_a_message_that_the_template_leaves_out_is_refused_with_tools_too():
    for role in ("user", "assistant", "tool"):
        content = f"m['content'] if m['role'] != '{role}'"
        template = BESIDE.replace("m['content']", f"({content} else '')")
        with pytest.raises(PromptError, match="leaves out the"):
            render(tool_talk("Be kind."), tokenizer(template), tools=[LOOK])


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


# as Mistral does: the tools before the last user message; a tool's result with its name
BESIDE = (
    "{% for m in messages %}{% if tools and loop.last %}[TOOLS]{{ tools | tojson }}{% endif %}"
    "<{{ m['role'] }}{{ ' ' + m['name'] if m['name'] }}>{{ m['content'] }}{% if m['tool_calls'] %}"
    "{{ m['tool_calls'] | tojson }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("system_as", ("role", "first-user"))
@pytest.mark.parametrize("template", (TOOLED, BESIDE))
def test_with_tools_the_span_is_only_the_given_system_prompt(template, system_as):
    # the tool's description and the question have the same text as the prompt
    messages = (*tool_talk("Be kind."), {"role": "user", "content": "Be kind."})
    text, starts = marked(template, messages, tools=[LOOK], system_as=system_as)
    before = {"role": "<sys>" if template == TOOLED else "<system>", "first-user": "<user>"}
    assert f"{before[system_as]}⟦Be kind.⟧" in text and len(starts) == 1
    for part in ('"description": "Be kind."', '"at": "the price"', "nine", "I will look."):
        assert part in text
    assert ("<tool look>nine" in text) is (template == BESIDE)
    plain, _ = render_with_spans(messages, tokenizer(template), tools=[LOOK], system_as=system_as)
    assert text.replace("⟦", "").replace("⟧", "") == plain
    emphasised, starts = marked(template, messages, tools=[LOOK], emphasis=["nine."])
    assert "It is ⟦nine.⟧" in emphasised and len(starts) == 1


def test_an_empty_prompt_replaces_the_templates_own_with_tools_as_well():
    text, spans = render_with_spans(chat("", "hello"), tokenizer(TOOLED), tools=[LOOK])
    assert text.startswith("<sys>Help.\n\n# Tools") and spans == ()
    text, spans = render_with_spans(EMPTY, tokenizer(TOOLED), tools=[LOOK])
    assert text.startswith("<sys>\n\n# Tools") and spans == ()


@pytest.mark.parametrize(
    ("template", "old", "new", "message"),
    [
        (PLAIN, "", "", "leaves out the declared tool 'look'"),
        (BESIDE, "tools and", "false and", "the declared tool 'look'"),
        (TOOLED, "m['tool_calls'] or ()", "()", "the call of 'look'"),
        (BESIDE, "] | tojson", "][0]['function']['name']", "the arguments {'at': 'the price', 'ma"),
        (BESIDE, SAID, "{{ m['content'] if not m['name'] }}", "the tool's result 'nine'"),
        (BESIDE, SAID, "{{ m['content'] if not m['tool_calls'] }}", "the text 'I will look.' bes"),
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


def test_an_option_already_in_use_is_not_suggested():
    message = r"rewrites the system prompt 'be kind'; use a model whose template"
    upper = tokenizer(ROLES.replace("BODY", "|upper"))
    with pytest.raises(PromptError, match=message):
        render(chat("be kind", "hello"), upper, system_as="first-user")


def test_tokens_of_every_span_are_marked():
    rendered = render_with_spans(double("Talk about bread.", "the rain", "the garden"), tokenizer())
    prompt = tokenize([rendered], tokenizer())[0]
    inside = zip(prompt.token_ids, prompt.span_mask, strict=True)
    marked = [tokenizer().decode([token]) for token, in_span in inside if in_span]
    assert "".join(marked) == "Talk about bread.the rain"
    assert not any(tokenize([RenderedText(rendered.text)], tokenizer())[0].span_mask)


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


def test_the_clock_of_templates_stands_still():
    template = (
        "\n{%- if strftime_now is defined %}{% set today = strftime_now('%d %b %Y') %}{% endif"
        " %}\nToday: {{ today }}\n" + PLAIN
    )
    text = render(KIND, tokenizer(template)).text
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


DEFAULT = (
    "{% if messages[0]['role'] == 'system' %}<system>{{ messages[0]['content'] }}\n{% else"
    " %}<system>You are a helpful assistant.\n{% endif %}{% for m in messages if m['role'] !="
    " 'system' %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
)
ELSEWHERE = DEFAULT.replace("<system>You", "<policy>You")
SHORT = DEFAULT.replace("<system>You are a helpful assistant.", "Hi.")
ANYWAY = (
    "{{ (messages[0]['role'] == 'system' and messages[0]['content']) or 'Be helpful. ' }}"
    "{% for m in messages if m['role'] != 'system' %}<{{ m['role'] }}>{{ m['content'] }}"
    "{% endfor %}"
)
STUBBORN = PLAIN + (
    "{% if messages[0]['role'] != 'system' or not messages[0]['content'] %} Be helpful!"
    "{% endif %}<assistant>"
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
ASKED = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant"
BARE = "{% if messages[0]['role'] != 'system' %}A chat with an assistant. {% endif %}" + PLAIN


@pytest.mark.parametrize(
    ("template", "text"),
    (
        (DEFAULT, "<system>\n<user>hello"),
        (PLAIN, "<user>hello"),
        (PREAMBLE, "You are kind.\n<user>hello"),  # part of every chat, with a prompt or without
        (NAMES, "<user>hello"),
        (TWICE, "hello|hello|"),
        (NO_ROLE, "<user>hello"),
        (ELSEWHERE, "<system>\n<user>hello"),
        (BARE, "<system><user>hello"),
        (SHORT, "<system>\n<user>hello"),
        (CHATML, "<|im_start|>system\n<|im_end|>\n" + ASKED),
        (DATED, "<system>Today: Friday.\n<user>hello"),
    ),
)
def test_a_default_system_prompt_is_left_out_if_none_is_wanted(template, text):
    plain = chat("", "hello")
    rendered = render_with_spans(plain, tokenizer(template), default_system=False)
    assert rendered == (text, ())
    for system_as in ("role", "first-user"):
        assert render_with_spans(EMPTY, tokenizer(template), system_as=system_as) == (text, ())


def test_emphasis_is_found_when_a_default_prompt_is_left_out():
    messages = chat("", "hello there")
    arguments = messages, tokenizer(DEFAULT)
    text, spans = render_with_spans(*arguments, emphasis=["there"], default_system=False)
    assert text == "<system>\n<user>hello there"
    assert [text[first:last] for first, last in spans] == ["there"]


def test_a_default_prompt_that_cannot_be_left_out_is_refused_if_none_may_be_read():
    # it is where a system prompt would be, so it can be cut out
    rendered = render_with_spans(chat("", "hello"), tokenizer(ANYWAY), default_system=False)
    assert rendered == ("<user>hello", ())
    with pytest.raises(PromptError, match="Be helpful!"):
        render_with_spans(chat("", "hello"), tokenizer(STUBBORN), default_system=False)
    text, _ = render_with_spans(EMPTY, tokenizer(STUBBORN))
    assert text == "<system><user>hello Be helpful!<assistant>"
    rendered = default_system_prompt(tokenizer(STUBBORN))
    assert "Be helpful!" in rendered.text and not rendered.can_be_left_out


@pytest.mark.parametrize(
    ("template", "default"),
    (
        (DEFAULT, "You are a helpful assistant."),
        (CHATML, "You are kind."),
        (BARE, "A chat with an assistant."),
        (ANYWAY, "Be helpful."),
        (PLAIN, ""),
        (PREAMBLE, ""),
        (DATED, ""),
        (NO_ROLE, ""),
    ),
)
def test_the_prompt_that_a_template_inserts_is_found(template, default):
    assert default_system_prompt(tokenizer(template)) == DefaultSystemPrompt(default)


def test_an_empty_prompt_equals_none_if_the_template_inserts_none():
    """Like the default model's: its baselines and guidance read the same as in version 0.2."""
    shipped = holdfast.load("default").tokenizer
    assert default_system_prompt(shipped).text == ""
    assert render_with_spans(EMPTY, shipped) == render_with_spans(chat("", "hello"), shipped)


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
