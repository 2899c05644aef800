"""The place of the system prompt in a rendered chat, and of the other spans that are steered."""

from dataclasses import replace

import pytest
from chat_templates import (
    EMPTY_PROMPT,
    KIND_CHAT,
    PLAIN,
    PREAMBLE,
    ROLES,
    ROLES_ALONE,
    TOOLS_LAST,
    TWICE,
    marked,
)
from tiny import LOOK, TOOLED, chat, model, tokenizer, tool_talk

from holdfast.chat.prompt import RenderedText, render, render_with_spans, tokenize
from holdfast.errors import PromptError, UsageError

TRIMMED = ROLES.replace("BODY", "|trim")


def with_two_prompts(first: str, second: str, *turns: str):
    """A chat with a second system message at its end."""
    return (*chat(first, *turns), {"role": "system", "content": second})


# as Qwen 2.5 does: a system prompt of its own, unless the chat begins with one
BRANDED = (
    "{% if messages[0]['role'] != 'system' %}<system>You are Quill, made by Acme.{% endif %}"
    + PLAIN
)


# The system prompt

MERGED = (
    "{% set system = messages[0]['content'] if messages[0]['role'] == 'system' else '' %}{% for m"
    " in messages if m['role'] != 'system' %}[{{ system ~ '\n' if loop.last }}{{ m['content'] }}]{%"
    " endfor %}"
)

PRIVATE = "\U000f0100x\U000f0101"


@pytest.mark.parametrize(
    ("template", "messages", "expected"),
    (
        (PLAIN, KIND_CHAT, "<system>⟦Be kind.⟧<user>hello"),
        (PLAIN, chat(" Be kind.\n", "Be kind."), "<system> ⟦Be kind.⟧\n<user>Be kind."),
        (TRIMMED, chat(" Be kind.\n", "Be kind."), "<system>⟦Be kind.⟧<user>Be kind."),
        (PREAMBLE, chat("You are kind.", "a"), "You are kind.\n<system>⟦You are kind.⟧<user>a"),
        (PLAIN, chat("system", "user"), "<system>⟦system⟧<user>user"),
        (MERGED, chat("Be kind.", "Be kind.", "no", "Go."), "[Be kind.][no][⟦Be kind.⟧\nGo.]"),
        (TWICE, KIND_CHAT, "⟦Be kind.⟧|⟦Be kind.⟧|hello|"),
        (
            PLAIN,
            with_two_prompts("Be kind.", "Rhyme.", "a"),
            "<system>⟦Be kind.⟧<user>a<system>⟦Rhyme.⟧",
        ),
        (
            PLAIN,
            with_two_prompts("Be kind.", "Be kind.", "a"),
            "<system>⟦Be kind.⟧<user>a<system>⟦Be kind.⟧",
        ),
        (
            PLAIN,
            with_two_prompts("Be kind.", " ", "hello"),
            "<system>⟦Be kind.⟧<user>hello<system> ",
        ),
        (PLAIN, chat(PRIVATE, f"x{PRIVATE}"), f"<system>⟦{PRIVATE}⟧<user>x{PRIVATE}"),
        (PLAIN, chat("", "hello"), "<user>hello"),
        (PLAIN, chat("  ", "hello"), "<system>  <user>hello"),
    ),
)
def test_every_system_prompt_is_found_where_the_template_put_it(template, messages, expected):
    assert marked(template, messages)[0] == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    (
        (chat(" Be kind. ", "hello"), "<user> ⟦Be kind.⟧ \n\nhello"),
        (chat("Be kind.", "Be kind."), "<user>⟦Be kind.⟧\n\nBe kind."),
        (with_two_prompts("Be kind.", "Be.", "a", "b"), "<user>⟦Be kind.\n\nBe.⟧\n\na<assistant>b"),
    ),
)
def test_a_system_prompt_moved_into_the_first_user_message_is_found_there(messages, expected):
    assert marked(PLAIN, messages, system_as="first-user")[0] == expected


def test_a_given_system_prompt_replaces_the_templates_own_and_alone_is_the_span():
    assert marked(BRANDED, KIND_CHAT)[0] == "<system>⟦Be kind.⟧<user>hello"
    text, starts = marked(BRANDED, chat("", "hello"))
    assert text == "<system>You are Quill, made by Acme.<user>hello" and not starts
    messages = chat("You are Quill, made by Acme.", "hello")
    assert marked(BRANDED, messages)[0] == "<system>⟦You are Quill, made by Acme.⟧<user>hello"
    tiny = replace(model(), tokenizer=tokenizer(BRANDED))
    with pytest.raises(UsageError, match="or emphasis"):
        tiny.generate(chat("", "hello"), "boost:factor=2")


@pytest.mark.parametrize("system_as", ("role", "first-user"))
@pytest.mark.parametrize("template", (TOOLED, TOOLS_LAST))
def test_with_tools_the_span_is_only_the_given_system_prompt(template, system_as):
    # the tool's description and the question have the same text as the prompt
    messages = (*tool_talk("Be kind."), {"role": "user", "content": "Be kind."})
    text, starts = marked(template, messages, tools=[LOOK], system_as=system_as)
    before = {"role": "<sys>" if template == TOOLED else "<system>", "first-user": "<user>"}
    assert f"{before[system_as]}⟦Be kind.⟧" in text and len(starts) == 1
    for part in ('"description": "Be kind."', '"at": "the price"', "nine", "I will look."):
        assert part in text
    assert ("<tool look>nine" in text) is (template == TOOLS_LAST)
    plain, _ = render_with_spans(messages, tokenizer(template), tools=[LOOK], system_as=system_as)
    assert text.replace("⟦", "").replace("⟧", "") == plain
    emphasised, starts = marked(template, messages, tools=[LOOK], emphasis=["nine."])
    assert "It is ⟦nine.⟧" in emphasised and len(starts) == 1


def test_tokens_of_every_span_are_marked():
    rendered = render_with_spans(
        with_two_prompts("Talk about bread.", "the rain", "the garden"), tokenizer()
    )
    prompt = tokenize([rendered], tokenizer())[0]
    inside = zip(prompt.token_ids, prompt.span_mask, strict=True)
    marked = [tokenizer().decode([token]) for token, in_span in inside if in_span]
    assert "".join(marked) == "Talk about bread.the rain"
    assert not any(tokenize([RenderedText(rendered.text)], tokenizer())[0].span_mask)


# Everything but the replies


@pytest.mark.parametrize(
    ("template", "messages", "expected"),
    (
        (PLAIN, KIND_CHAT, "⟦<system>Be kind.<user>hello⟧"),
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


@pytest.mark.parametrize(
    ("first", "options"),
    (((), {"default_system": False}), (EMPTY_PROMPT[:1], {})),
    ids=("none", "empty"),
)
def test_replies_are_found_where_the_templates_own_prompt_is_left_out(first, options):
    messages = (*first, *chat("", "a", "yes", "a", "yes", "c"))
    expected = "⟦<system><user>a<assistant>⟧yes⟦<user>a<assistant>⟧yes⟦<user>c⟧"
    assert marked(BRANDED, messages, spares_replies=True, **options)[0] == expected


def test_replies_that_the_template_rewrites_are_refused():
    shouting = ROLES.replace("BODY", "|upper if m['role'] == 'assistant' else m['content']")
    with pytest.raises(PromptError, match="assistant message 1"):
        render(chat("Be.", "a", "yes", "a"), tokenizer(shouting), spares_replies=True)


# System prompts that cannot be found

DROPPED = "{% for m in messages if m['role'] != 'system' %}{{ m['content'] }}{% endfor %}"
ONE_DROPPED = (
    "{% for m in messages %}{{ m['content'] if m['role'] != 'system' or loop.first }}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "messages", "culprit"),
    (
        (DROPPED, KIND_CHAT, "'Be kind.'"),
        ("Be kind." + DROPPED, KIND_CHAT, "'Be kind.'"),
        (ROLES_ALONE, chat("user", "hello"), "'user'"),
        (ROLES.replace("BODY", "|upper"), chat("be kind", "BE KIND"), "'be kind'"),
        (ROLES.replace("BODY", "[:6]"), KIND_CHAT, "'Be kind.'"),
        (ROLES.replace("BODY", "|replace('kind', 'rude')"), KIND_CHAT, "'Be kind.'"),
        (ROLES.replace("BODY", "|length"), chat("3", "abc"), "'3'"),
        (ONE_DROPPED, with_two_prompts("Be kind.", "Be kind.", "hello"), "'Be kind.'"),
        (ONE_DROPPED, with_two_prompts("Be kind.", "Rhyme.", "hello"), "'Be kind.' or 'Rhyme.'"),
    ),
)
def test_a_system_prompt_that_the_template_does_not_keep_is_refused(template, messages, culprit):
    with pytest.raises(PromptError) as excinfo:
        render(messages, tokenizer(template))
    message = str(excinfo.value)
    assert f" {culprit};" in message and "system_as='first-user'" in message


def test_an_option_already_in_use_is_not_suggested():
    message = r"rewrites the system prompt 'be kind'; use a model whose template"
    upper = tokenizer(ROLES.replace("BODY", "|upper"))
    with pytest.raises(PromptError, match=message):
        render(chat("be kind", "hello"), upper, system_as="first-user")
