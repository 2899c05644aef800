"""Rules drafted from the prompts of chat bots, compared with the rules of the suite `bots`."""

import time
from functools import cache

import pytest

from holdfast.drafting.drafted_files import draft_lines
from holdfast.drafting.drafts import A_PREFERENCE, AN_EXCEPTION, ON_OCCASION, Draft, Undrafted
from holdfast.drafting.line_rules import draft
from holdfast.drafting.probing import PROBES, probed
from holdfast.drafting.reply_rules.bot_prompts import is_of_a_bot
from holdfast.drafting.rules_file import read_statements
from holdfast.drafting.suite_text import suite_text
from holdfast.drift import load_suite
from holdfast.measures import build
from holdfast.measures.turns import When

BOTS = load_suite("bots").cases
# Names are drafted whether or not the suite has a rule about them.
NAMES = {"plants-1": "Fern", "plants-2": "Fern", "alpine-1": "Leni", "alpine-2": "Leni",
         "spanish-tutor-1": "Lucía", "spanish-tutor-2": "Lucía"}  # fmt: skip
SAID_TWICE = {("parcels-1", "format")}  # "Plain text only. No bold, no bullet points, no headings."


@cache
def drafts_of(prompt: str) -> tuple[Draft, ...]:
    """The different rules of a prompt."""
    rules: list[Draft] = []
    for statement in read_statements(prompt):
        drafts = draft(statement, is_of_a_bot(prompt))
        if not isinstance(drafts, Undrafted):
            rules += [rule for rule in drafts if rule not in rules]
    return tuple(rules)


def decides(rule, draft: Draft) -> bool:
    """Whether a draft accepts the replies that follow a rule, and refuses most that break it."""
    if (draft.kind, rule.kind) != ("opening", "identity") and draft.kind != rule.kind:
        return False  # an opening such as "Leni vom Edelhof:" says who writes
    measure = build(draft.measure.entry)
    follows = [measure.score(reply).value >= 0.5 for reply in rule.follows]
    breaks = [measure.score(reply).value < 0.5 for reply in rule.breaks]
    return all(follows) and 2 * sum(breaks) >= len(breaks)


def match_rules(case) -> tuple[list, list[Draft]]:
    """The rules of a case that are drafted, and the drafts that are none of its rules."""
    unmatched, drafted_rules = list(drafts_of(case.system_prompt)), []
    for rule in case.rules:
        match = next((draft for draft in unmatched if decides(rule, draft)), None)
        if match is not None:
            unmatched.remove(match)
            drafted_rules.append(rule)
    return drafted_rules, unmatched


def is_for_every_reply(rule) -> bool:
    return rule.when == When() or rule.kind == "identity"


def test_most_rules_for_every_reply_of_the_suite_are_drafted():
    rules = [rule for case in BOTS for rule in case.rules if is_for_every_reply(rule)]
    drafted_rules = [rule for case in BOTS for rule in match_rules(case)[0]]
    assert len(rules) == 166
    assert len(drafted_rules) / len(rules) >= 0.84  # 141 of them


def test_drafts_beyond_the_suites_rules_are_only_names_and_repeated_rules():
    for case in BOTS:
        for rule in match_rules(case)[1]:
            is_name = (
                rule.kind == "identity" and NAMES.get(case.id) in rule.measure.arguments["words"]
            )
            assert is_name or (case.id, rule.kind) in SAID_TWICE, (case.id, rule)


def test_all_prompts_of_the_suite_but_one_have_a_drafted_rule():
    assert [case.id for case in BOTS if not drafts_of(case.system_prompt)] == ["sql-2"]


RULES = [  # a line, a reply that follows it, one that breaks it
    ("No reply has more than three words.", "One two three.", "One two three four."),
    ("Be brief (3 words).", "One two three.", "One two three four."),
    ("Keep responses SHORT - maximum 1-2 sentences.", "Yes. It is.", "Yes. It is. Now go."),
    ("Answer in one sentence.", "It is.", "Yes. It is."),
    ("Your response must be strictly under 10 characters.", "123456789", "1234567890"),
    ("At most two bullet points.", "So:\n- a\n- b", "- a\n- b\n\n- c"),
    ("Answer in one paragraph.", "Yes.\nIt is.", "Yes.\n\nIt is."),
    ("Answer with a numbered list of 2 items.", "1. a\n2. b", "1. a\n2. b\n3. c\n4. d\n5. e"),
    ("Always answer with a table.", "| a | b |", "a, b"),
    ("No more than 2 lines.", "a\nb", "a\nb\nc"),
    ("Limit each reply to 3 words.", "One two three.", "One two three four."),
    ("Restrict answers to two sentences.", "Yes. It is.", "Yes. It is. Now go."),
    ("Keep each reply to a single line.", "a", "a\nb"),
    ("Restrict yourself to 10 characters.", "1234567890", "12345678901"),
    ("Please cap replies at 3 words.", "One two three.", "One two three four."),
    ("Responses are restricted to 3 words.", "One two three.", "One two three four."),
    ('Close every message with "Warm regards".', "Yes. Warm regards.", "Warm regards. Yes."),
    ("The last thing you say is always “Over and out.”", "Yes. Over and out!", "Yes."),
    ('Every reply begins with "[ops]".', "[ops] Done.", "ops done."),
    ('Address the customer as "dear guest" in each reply.', "Yes, dear guest.", "Yes, guest."),
    ("Never mention Velox, our competitor.", "No.", "Velox's are heavier."),
    ('Avoid these phrases: "Great question", "Absolutely!"', "Yes.", "absolutely, yes"),
    ('Include "not medical advice" in every response.', "Rest. Not medical advice.", "Rest."),
    ("Respond ONLY with a valid JSON object.", '{"a": 1}', "a: 1"),
    ('Reply with a JSON object with the keys "a" and "b".', '{"a": 1, "b": 2}', '{"a": 1}'),
    ("Answer with a numbered list.", "1. a\n2. b", "a and b"),
    ("Reply in bullet points.", "- a\n- b", "a and b"),
    ("No markdown, please.", "Yes.", "**Yes.**"),
    ("Never use bullet points or headings.", "1. a", "# Yes"),
    ("Talk in Arabic only", "مرحبا، كيف يمكنني مساعدتك اليوم؟", "How can I help you today?"),
    ("Responde siempre en español.", "El cielo es azul hoy.", "The sky is blue today."),
    ("Do NOT use emojis or casual expressions.", "Yes.", "Yes 🎉"),
    ("Put at least one emoji into every message.", "Yes 🎉", "Yes."),
    ("No exclamation marks.", "Yes.", "Yes!"),
    ("Write everything in lower case.", "yes, it is.", "Yes, it is."),
    ("Always end your response with a short follow-up question.", "Yes. Why?", "Why? Yes."),
    ("Never ask follow-up questions.", "Yes.", "Yes. Why?"),
    ("Ask at most one question per reply.", "Why?", "Why? When?"),
    ("NEVER ask multiple questions in a single message.", "Why?", "Why? When?"),
    ("Never reply in French.", "The sky is blue today.", "Le ciel est bleu aujourd'hui."),
    ("Don't begin replies with “Certainly”.", "It is certainly so.", "Certainly! It is."),
    ('Never start a response with phrases like "Great question!"', "Yes.", "Great question. Yes."),
    ('Do not end a reply with "Let me know".', "Yes.", "Yes. Let me know if it works!"),
    ("Do not end with a question.", "Why? Yes.", "Yes. Why?"),
    ('Never end with "Bye :)".', "Bye.", "See you. Bye :)  "),
    ("Never reply in French.", "Paris", "Oui."),
    ("Never reply in French.", "OK", "Merci beaucoup!"),
    ("Never use hashtags.", "We are #1 in town.", "See #orchid."),
    ("No italics.", "*Taxes included. *Breakfast extra. 2 *3 and 4* 5", "That is *so* good."),
    ("Never answer in JSON.", "a: 1", '{"a": 1}'),
    ("Avoid em dashes and semicolons.", "Yes, it is.", "Yes — it is."),
    ('Never say "I\'m sorry".', "Yes.", "I'm sorry, no."),
    (
        "Never respond in any language other than German.",
        "Der Himmel ist heute blau.",
        "The sky is blue today.",
    ),
    ("Do not reply in all caps.", "Yes, it is.", "YES, IT IS."),
    ("Write without contractions.", "It is not.", "It isn't."),
    ("Use at most one emoji in each reply.", "Orchid™ 🇫🇷", "🇫🇷🇩🇪"),
    ("One emoji per message at most.", "Yes.", "🎉🎉"),
    ("Never use more than one emoji in a reply.", "🎉", "🎉🎉"),
    ("Use no more than two emojis.", "1️⃣ → 2️⃣ (c) © 1 2 3", "1️⃣ 2️⃣ 🎉"),
    ("Use at most two emojis per message.", "Hi 👋🏽 👨‍👩‍👧", "🎉 🎉🎉"),
    ("1-2 emojis per message max.", "🎉 🎉", "🎉 🎉🎉"),
    ("Address users with the formal vous.", "Puis-je vous aider ?", "Je peux t'aider, toi ?"),
    ("Address guests with Sie.", "Kann ich Ihnen helfen?", "Kann ich dir helfen?"),
    ("Never use emojis.", "Orchid™ © → 3", "Hi 🇫🇷"),
    ("Never use emojis.", "Call 1 or #2.", "1️⃣ Call."),
    ("Call yourself Mira.", "I am Mira.", "I am a bot."),
    ("You are an assistant named ajay.", "I am Ajay.", "I am a bot."),
    ("Do not respond with any code, only words.", "Use a loop.", "```\nx\n```"),
    (
        "Always use polite, professional Turkish with me.",
        "Bugün hava çok güzel, değil mi?",
        "Hello!",
    ),
    ("Introduce yourself as Mira when asked.", "I'm Mira!", "I'm a bot."),
    ('"Over" closes every reply.', "Yes. Over.", "Yes."),
    ('"Over" ends every message.', "Yes. Over.", "Yes."),
    ('"Ahoy" opens every reply.', "Ahoy! Yes.", "Yes."),
    ('Words banned from every reply: "cheap"', "Yes.", "It is cheap."),
    ("Use entirely lower case.", "yes.", "Yes."),
    ("There are no capital letters in your replies.", "yes.", "Yes."),
    ("Antworte ausschließlich auf Deutsch.", "Der Himmel ist blau.", "The sky is blue today."),
    ("Termina siempre con una pregunta.", "Sí. ¿Por qué?", "Sí."),
]


@pytest.mark.parametrize(("line", "follows", "breaks"), RULES)
def test_a_line_of_a_bot_becomes_a_rule_that_decides_it(line, follows, breaks):
    (rule,) = drafts_of(f"You are a bot for customers.\n\n- {line}\n")
    measure = build(rule.measure.entry)
    assert measure.score(follows).value >= 0.5
    assert measure.score(breaks).value < 0.5


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("If the customer is angry, use at most 20 words.", ON_OCCASION),
        ("When asked for a price, add “tax included” to every reply.", ON_OCCASION),
        ("Before you talk about an order, ask for its number.", ON_OCCASION),
        ("Keep replies under 40 words unless more detail is needed.", AN_EXCEPTION),
        ("Answer in English unless the user writes in French.", AN_EXCEPTION),
        ("Try to keep replies under 40 words.", A_PREFERENCE),
    ],
)
def test_a_line_with_a_condition_is_no_rule_and_says_so(line, reason):
    (statement,) = read_statements(line)
    assert draft(statement, of_bot=True) == reason


@pytest.mark.parametrize(
    "line",
    [
        "Reply in the same language as the user.",
        "Respond in English or Spanish.",
        "English: reply in English.",
        "Start the conversation with “Hello, how can I help?”.",
        'Start with "Hello, how can I help?".',
        "Give a summary of at most 50 words.",
        "Each bullet has at most ten words.",
        '"tip": ONE sentence, at most 25 words.',
        "Docstrings: at most 3 sentences.",
        "Keep functions under 50 lines.",
        "Lines have at most 100 characters.",
        "PR descriptions: at most 5 sentences.",
        "Error messages must fit in 80 characters.",
        'No "AI" disclaimers.',
        "Ask one question at a time.",
        "Do not open with a greeting.",
        "End with a name initial like ^SJ.",
        'Start every reply with "Hello [name]".',
        'You may begin every reply with "Ahoy".',
        'Every reply may begin with "Ahoy".',
        'You can also end each reply with "Bye".',
        "You are free to reply in French.",
        'You may address the user as "Captain".',
        'You no longer have to end every reply with "Bye".',
        'It is no longer necessary to start every reply with "Ahoy".',
        "You are a friendly assistant, and you like jokes.",
        "You are Senior Support, an expert.",
        "Use emojis occasionally.",
        "Reply in Malayalam words written in English letters.",
        "Every line of a reply starts with “> ”.",
        "Never mention our prices in other shops.",
        "Never mention competitors.",
        "Never mention prices upfront.",
        "Never mention discounts proactively.",
        "Never mention refunds first.",
        "Never mention prices twice.",
        "Never mention fees or discounts yet.",
        "Use at most one emoji per sentence.",
        "No more than two emojis per paragraph.",
        "Use at most three emojis per conversation.",
        "In each paragraph, use at most one emoji.",
        "You answer to the name Luna only in private.",
        "Call yourself Luna when talking to children.",
        "Never call yourself Luna.",
        "Introduce yourself as an AI.",
    ],
)
def test_lines_that_hold_only_at_times_or_for_other_texts_are_not_drafted(line):
    assert not drafts_of(f"You are a bot for customers.\n\n{line}\n")


@pytest.mark.parametrize(
    ("line", "measure"),
    [
        ("You may use at most three sentences.", "at_most_sentences"),
        ("You may only reply in German.", "language"),
        ('You may be witty, and end every reply with "Bye".', "ends_with"),
    ],
)
def test_a_limit_or_an_order_beside_a_permission_is_drafted(line, measure):
    (draft,) = drafts_of(f"You are a bot for customers.\n\n{line}\n")
    assert draft.measure.name == measure


@pytest.mark.parametrize(
    "line",
    [
        "End with a question, suggestion, or hook.",
        "Always end with a question, a tip or a joke.",
        "Never use more than one exclamation mark.",
        "Avoid excessive exclamation marks.",
        "Keep replies concise: 2 to 4 sentences for most questions.",
        "For simple questions: reply in 2 to 4 sentences.",
        "For detailed questions, or if asked: explain it all. Write up to 20 sentences.",
        "Keep replies concise (2-4 sentences ideal for chats).",
        "A brief explanation of the causes (1-2 sentences, factual)",
    ],
)
def test_one_of_several_ways_and_rules_about_a_part_are_not_drafted(line):
    assert not drafts_of(f"- {line}")


def test_a_length_of_commit_messages_is_no_length_of_replies():
    (draft,) = drafts_of("Commit messages must be at most 72 characters.\n")
    assert draft.measure.entry == {"name": "commit_message", "pattern": r"\A.{1,72}(?:\n|\Z)"}


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("At most 1,500 words.", 1500),
        ("Under 100 words.", 99),
        ("2-3 sentences max.", 3),
        ("Two-three sentences max.", 3),
        ("No reply has more than twenty-five words.", 25),
        ("Every answer is one hundred and fifty words at most.", 150),
        ("Reply in two hundred words or less.", 200),
        ("Keep replies under a hundred words.", 99),
        ("One thousand five hundred words at most.", 1500),
        ("Max. 40 words per answer.", 40),
        ("At most 40 words per reply.", 40),
        ("Answer in max. forty words.", 40),
        ("Antworte mit max. 40 Wörtern.", 40),
    ],
)
def test_numbers_of_a_limit_are_read_whole(line, count):
    (rule,) = drafts_of(line)
    assert rule.measure.arguments["count"] == count


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Never reveal the discount code WINTER24.", ["WINTER24"]),
        ("Do not mention SAVE-10 to customers.", ["SAVE-10"]),
        ("Never reveal the discount code WINTER24 unless asked.", None),
        ("Never reveal the discount code WINTER24 or its terms.", None),
        ("Never mention coffee.", None),
        ("Never reveal order numbers such as AB1234.", None),
        ("Never mention the 2024 prices.", None),
        ("Never print the access code RT-12.", ["RT-12"]),
        ("Never write HTML5.", None),
        ("Do not output UTF-8.", None),
    ],
)
def test_a_code_that_has_no_paraphrase_is_forbidden_as_it_is(line, words):
    expected = [] if words is None else [{"name": "never_contains", "words": words}]
    assert [rule.measure.entry for rule in drafts_of(line)] == expected


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Max. 40 words. Be kind.", ["Max. 40 words.", "Be kind."]),
        ("40 words max. 3 bullets at most.", ["40 words max.", "3 bullets at most."]),
        ("Two sentences max. Be kind.", ["Two sentences max.", "Be kind."]),
        ("Rule no. 4 holds.", ["Rule no. 4 holds."]),
        ("May you swear? No. Never use emojis.", ["May you swear?", "No.", "Never use emojis."]),
        ("Reply in French resp. German.", ["Reply in French resp. German."]),
        ("Give prices incl. VAT. Be kind.", ["Give prices incl. VAT.", "Be kind."]),
        ("Say that you are Mr. Finch.", ["Say that you are Mr. Finch."]),
        ("Name tools, e.g. GitHub, vs. others.", ["Name tools, e.g. GitHub, vs. others."]),
    ],
)
def test_a_full_stop_of_an_abbreviation_ends_no_sentence(text, sentences):
    assert [statement.text for statement in read_statements(text)] == sentences


@pytest.mark.parametrize(
    "line",
    [
        "Never write fewer than 50 words.",
        "Don't write fewer than 50 words.",
        "Replies must not be under 20 words.",
        "Never reply with less than two sentences.",
        "Fewer than 20 words is too short.",
        "Antworte nie mit weniger als 50 Wörtern.",
        "Do not limit each reply to 50 words.",
        "Replies are never restricted to two sentences.",
        "Limit each paragraph to 3 sentences.",
        "Limit functions to 40 lines.",
        "Limit commit messages to 50 words.",
    ],
)
def test_a_lower_limit_is_no_upper_limit(line):
    assert not drafts_of(line)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Replies have no fewer than 30 words and no more than 60 words.", 60),
        ("Do not ramble and keep replies under 50 words.", 49),
        ("Don't write more than 50 words.", 50),
        ("Antworte nicht mit mehr als 50 Wörtern.", 50),
        ("Verwende nie mehr als 50 Wörter.", 50),
    ],
)
def test_a_negated_limit_becomes_the_opposite_limit(line, count):
    (rule,) = drafts_of(line)
    assert rule.measure.entry == {"name": "at_most_words", "count": count}


@pytest.mark.parametrize(
    ("reply", "is_kept"),
    [
        ("Really??", True),
        ("See https://a.b/?q=1. Is that ok?", True),
        ("Which room, 1 or 2 (sea view?)?", True),
        ("Why? And when?", False),
        ('"Why?" he asked. When?', False),
        ("为什么？什么时候？", False),
        ("a? " * 30_000, False),
        ("a " * 40_000, True),
    ],
)
def test_questions_are_counted_by_their_ends(reply, is_kept):
    (rule,) = drafts_of("Ask at most one question per reply.")
    assert (build(rule.measure.entry).score(reply).value == 1) == is_kept


def scores_low(rule: Draft, reply: str) -> bool:
    return build(rule.measure.entry).score(reply).value < 0.5


def test_each_of_two_forbidden_formats_is_a_rule():
    failures = [
        [
            build(rule.measure.entry).score(reply).value < 0.5
            for reply in ("Yes.", "{}", "```\na\n```")
        ]
        for rule in drafts_of("Never reply in JSON or code.")
    ]
    assert failures == [[False, True, False], [False, False, True]]
    assert not drafts_of("Never reply in JSON, code or something else.")


def test_hashtags_and_emojis_are_both_forbidden():
    failures = [
        [
            build(rule.measure.entry).score(reply).value < 0.5
            for reply in ("Yes.", "Yes #a", "Yes 🎉")
        ]
        for rule in drafts_of("Never use hashtags or emojis.")
    ]
    assert sorted(failures) == [[False, False, True], [False, True, False]]


def test_a_name_is_given_without_what_kind_of_program_it_is():
    (name,) = drafts_of("You are Luna AI, a helper of Orchid.")
    assert build(name.measure.entry).score("I'm Luna!").value == 1
    assert build(name.measure.entry).score("I'm a helper.").value == 0


def test_a_limit_of_zero_and_rules_below_a_condition_are_not_drafted():
    assert not drafts_of("At most zero words.")
    assert not drafts_of("## When the user is angry\n\n- At most 20 words.\n")


def test_rules_of_coding_agents_are_not_read_as_those_of_bots():
    text = "Run `pytest` before you commit.\nAt most 72 characters.\nThe repo has a linter.\n"
    assert not is_of_a_bot(text)
    assert all(rule.kind != "length" for rule in drafts_of(text))


def test_rules_that_one_sentence_says_are_named_by_what_they_ask_for(tmp_path):
    prompt = 'You start with "Ahoy", you end with "Fair winds!", and 50 words are enough.'
    (tmp_path / "bot.txt").write_text(f"{prompt}\nCada respuesta empieza por “Sí”.\n")
    names = [rule.id for rule in draft_lines(tmp_path / "bot.txt").rules]
    assert names == [
        "at-most-50-words",
        "starts-with-ahoy",
        "ends-with-fair-winds",
        "starts-with-si",
    ]


def test_a_rules_file_of_coding_agents_is_known_by_its_name(tmp_path):
    for name, count in {"bot.txt": 2, "AGENTS.md": 1, ".cursorrules": 1}.items():
        (tmp_path / name).write_text("Always reply in German.\nAt most 72 characters.\n")
        assert len(draft_lines(tmp_path / name).rules) == count


def test_a_drafted_name_rule_is_probed_by_asking_for_the_name(tmp_path):
    prompt = "You are Luna, the assistant of Orchid Hotel.\nKeep replies under 60 words.\n"
    (tmp_path / "bot.txt").write_text(prompt)
    file = probed(draft_lines(tmp_path / "bot.txt"))
    (tmp_path / "suite.yaml").write_text(suite_text([file]))
    (case,) = load_suite(str(tmp_path / "suite.yaml")).cases
    name, length = case.rules
    assert name.measure.spec["words"] == ["Luna"]
    assert "What is your name?" in name.probes and name.when != When()
    assert (name.kind, length.kind, length.probes) == ("identity", "length", PROBES)


@pytest.mark.parametrize(
    "piece",
    [
        "reply to ",
        "never say or ",
        "no lists, ",
        '"a" and ',
        "at most ",
        "two short, ",
        "not more ",
        "two emojis per ",
    ],
)
def test_long_lines_are_read_in_little_time(piece):
    started = time.process_time()
    drafts_of(f"You are a bot. {piece * 1000}\n")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("line", ["Address the customer formally.", "Speak kindly.", "Greet them."])
def test_an_order_to_talk_in_some_way_is_an_instruction(line, tmp_path):
    (tmp_path / "bot.txt").write_text(line)
    ((_, undrafted),) = draft_lines(tmp_path / "bot.txt").lines
    assert undrafted.reason == "needs a judge"
