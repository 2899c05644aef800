"""A bot's prompt that forbids something, or leaves it open, is not drafted as a rule that asks for
it.
"""

import pytest
import yaml
from test_bot_rules import drafts_of

from holdfast.drafting import draft_file, suite_text
from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import read_statements

REQUESTS = (
    "reply in lowercase",
    "reply in French",
    "answer in JSON",
    "reply with a JSON object",
    'begin every reply with "Ahoy"',
    'start your replies with "Hello!"',
    'end every reply with "Best, Pip"',
    'close each message with "Cheers"',
    'sign off with "Ada"',
    "end with a question",
    "answer in a numbered list",
    "reply in plain text",
    "reply in at most 20 words",
    "keep replies under 50 words",
    "limit each reply to two sentences",
    "include one emoji in each reply",
    'call the user "captain"',
    'address the user as "sir"',
)
NEGATIONS = (
    "Never {}.",
    "Do not {}.",
    "Don't {}.",
    "Don’t {}.",
    "Please don't {}.",
    "You must never {}.",
    "You should not {}.",
    "You shouldn't {}.",
    "Under no circumstances {}.",
    "There is no need to {}.",
    "You do not have to {}.",
    "You need not {}.",
    "Don't always {}.",
    "It is not necessary to {}.",
    "It is forbidden to {}.",
    "Never, ever {}.",
    "Do not, under any circumstances, {}.",
    "It is wrong to {}.",
    "Nobody wants you to {}.",
    "There is no reason to {}.",
    "Never: {}.",
    "Do not:\n\n- {}",
    "## What to avoid\n\n- {}",
    "## Common mistakes\n\n- {}",
)


def measures(sentence):
    """The measures drafted from a sentence of a bot's prompt, but for that of its name."""
    rules = drafts_of(f"You are Ada, the assistant of a shop.\n\n{sentence}")
    return [rule.measure.entry for rule in rules if rule.kind != "identity"]


@pytest.mark.parametrize("request_", REQUESTS)
def test_the_opposite_of_a_rule_is_not_drafted(request_):
    drafts = measures(f"{request_[0].upper()}{request_[1:]}.")
    assert drafts
    for negation in NEGATIONS:
        sentence = negation.format(request_)
        assert not [measure for measure in measures(sentence) if measure in drafts], sentence


@pytest.mark.parametrize(
    ("heading", "line", "is_drafted"),
    [
        ("Common mistakes", "Always reply in at most 20 words instead.", True),
        ("Common mistakes", "Always reply in French.", False),
        ("Common mistakes", "You must reply in French instead of English.", False),
        ("Common mistakes to avoid", "You must reply in French instead.", False),
        ("Mistakes to avoid", "Always reply in French.", False),
        ("Bad habits", "You always answer in French.", False),
        ("Bad habits", "You never answer in French.", False),
        ("Anti-patterns (never do these)", "You must answer in French.", False),
        ("Wrong ways of answering", "Please answer in French.", False),
        ("Common mistakes", "Reply in French.", False),
        ("Common mistakes to avoid", 'Always starting with "Sure".', False),
        ("Never", "Always reply in French.", False),
    ],
)
def test_what_to_do_is_drafted_below_a_heading_of_mistakes(heading, line, is_drafted):
    assert bool(measures(f"## {heading}\n\n- {line}")) is is_drafted


@pytest.mark.parametrize(
    ("sentence", "same_as"),
    [
        ('Don\'t forget to end every reply with "Best, Pip".', 'End every reply with "Best, Pip".'),
        ("Never use slang, and reply in French.", "Reply in French."),
        ("Do not use slang; reply in at most 20 words.", "Reply in at most 20 words."),
        ("Never write more than 20 words.", "Reply in at most 20 words."),
    ],
)
def test_a_rule_beside_a_negation_is_drafted(sentence, same_as):
    (expected,) = measures(same_as)
    assert expected in measures(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Never use emojis.",
        "Don't use exclamation marks.",
        "Do not use tables.",
        "Never reply in French.",
        "Never, ever reply in French.",
        "Remember to never reply in French.",
        "Make sure that you never reply in French.",
        "The assistant must never reply in French.",
        "You are polite, and you never reply in French.",
        "Do not:\n\n- Reply in French",
        "Avoid:\n\n- Replying in French",
        'Never begin a reply with "Sure".',
        "Don't end your replies with a question.",
    ],
)
def test_a_prohibition_is_drafted_as_one(sentence):
    (rule,) = (rule for rule in drafts_of(f"You are Ada.\n\n{sentence}") if rule.kind != "identity")
    assert rule.polarity == "prohibition"


@pytest.mark.parametrize(
    "sentence",
    [
        "Do not only reply in French.",
        "You need not reply in French.",
        "Users never reply in French.",
        'Never start sentences with "And".',
        'Never begin the conversation with "Hello".',
        "Some visitors do not speak English.",
        "Parents may not speak English.",
        "Travellers may not speak English and need help.",
        "Our guests do not speak French.",
        "My wife can not speak German.",
        "You may not speak German well.",
        'Don\'t begin with "Sure" more than once.',
        'Do not end every reply with "Best, Pip" more than twice.',
        'Never end without "Best, Pip".',
        'Never start a reply without "Hello".',
        "Do not write without emojis.",
        "Never use exclamation marks excessively.",
        'Never begin with "Hello" without the name of the guest.',
        'Never begin with "Hello" twice.',
        'Never begin with "Hello" again.',
        'Do not start every reply with "Certainly".',
        "Do not end every reply with a question.",
        "Do not answer in English or French only.",
        "Avoid responding in all caps or with one word.",
    ],
)
def test_what_forbids_nothing_of_a_reply_is_no_prohibition(sentence):
    assert not measures(sentence)


def test_what_to_do_instead_is_not_forbidden():
    french = {"name": "never", "measure": {"name": "language", "code": "fr"}}
    assert measures("Do not:\n\n- Reply in French. Reply in German.") == [french]
    drafts = measures("Avoid:\n\n- Exclamation marks. End with a question instead.")
    assert drafts == measures("No exclamation marks.")


def test_the_text_of_a_rule_below_do_not_says_so(tmp_path):
    path = tmp_path / "prompt.md"
    items = "- Reply in French\n- Be rude\n- Long answers\n- Gossiping"
    path.write_text(f"You are a bot.\n\nDo not:\n\n{items}\n", encoding="utf-8")
    file = draft_file(path)
    (rule,) = file.rules
    assert rule.statement.text == "Reply in French"
    (case,) = yaml.safe_load(suite_text([file]))["cases"]
    assert [(rule["id"], rule["text"]) for rule in case["rules"]] == [
        ("never-language-fr", "Never reply in French")
    ]
    text = suite_text([file])
    assert "# line 5: Reply in French\n" in text and "# line 6: Be rude (" in text
    for order in ("Never be rude", "Avoid long answers", "Avoid gossiping"):
        assert f"text: {order}\n" in text


@pytest.mark.parametrize(
    ("heading", "is_rule"),
    [
        ("Never stop learning", True),
        ("Stop words", True),
        ("Wrong number", True),
        ("Never", False),
        ("Stop", False),
        ("Wrong", False),
    ],
)
def test_a_heading_that_only_has_a_word_of_a_prohibition_forbids_nothing(heading, is_rule):
    assert bool(measures(f"## {heading}\n\n- Reply in at most 20 words.")) == is_rule


def test_rules_that_say_never_are_drafted_two_levels_below_never():
    text = "## Never\n\n### Git\n\n- Never push to `main`.\n- Never run `git push --force`."
    drafts = [draft(statement) for statement in read_statements(text)[2:]]
    assert [isinstance(rules, list) for rules in drafts] == [True, True]


def test_words_below_never_are_forbidden():
    forbidden = {"name": "never_contains", "words": ["bad", "wrong"]}
    assert measures('**NEVER:**\n\n- Use the words: "bad", "wrong"') == [forbidden]


@pytest.mark.parametrize(
    ("text", "is_rule"),
    [
        ("Never reply in French.", True),
        ('Never start your responses with "Great question".', True),
        ("Never write comments in French.", False),
        ('Never start a commit message with "WIP".', False),
    ],
)
def test_prohibitions_of_a_rules_file_are_read_where_they_name_replies(text, is_rule):
    drafts = draft(read_statements(text)[0])
    assert isinstance(drafts, list) == is_rule
