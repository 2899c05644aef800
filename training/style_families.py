"""Families whose instruction affects every reply: format patterns, characters, languages, words to
mention.
"""

from __future__ import annotations

import json
import random

from content import Context
from families import Family
from values import BRACKETS, COLOURS, NAMES, SYMBOLS, WORDS, draw_or_invent, phrase

PATTERN, PERSONA, MEMORY, LANGUAGE = "pattern", "persona", "memorization", "language"


def _words(text: str) -> list[str]:
    return "".join(ch for ch in text if ch.isalpha() or ch in " '").split()


def _base(ctx: Context, low: int = 1, high: int = 2) -> str:
    return " ".join(ctx.sentences(ctx.rng.randint(low, high)))


def _end(sentence: str, mark: str) -> str:
    return sentence.rstrip(" .?!") + mark


def _short(ctx: Context, limit: int = 9) -> str:
    """One sentence of at most `limit` words."""
    return " ".join(ctx.sentences(1)[0].split()[:limit])


def _questions(values: dict, ctx: Context) -> str:
    return " ".join(row[0] for row in ctx.parallel(ctx.rng.randint(1, 2), "questions"))


def _statements(ctx: Context, count: int, language: int = 0) -> list[str]:
    return [row[language] for row in ctx.parallel(count, "statements")]


def _items(ctx: Context, count: int) -> list[str]:
    return [" ".join(sentence.rstrip(".?!").split()[:7]) for sentence in _statements(ctx, count)]


def _count_values(low: int, high: int):
    return lambda rng, test: (
        lambda n: {"count": n, "count_word": "zero one two three four five".split()[n]}
    )(rng.randint(low, high))


def _word(rng: random.Random, test: bool) -> dict:
    return {"word": draw_or_invent(rng, WORDS, test)}


def _mention(values: dict, ctx: Context) -> str:
    rng, word = ctx.rng, values["word"]
    extra = rng.choice(
        (
            "I have to mention the word {w}.",
            "This makes me think of {w}.",
            "By the way, {w}.",
            "Let me add {w}.",
            "And {w}, of course.",
        )
    )
    sentences = ctx.sentences(rng.randint(1, 2))
    sentences.insert(rng.randint(0, len(sentences)), extra.replace("{w}", word))
    return " ".join(sentences)


def _affix(openers: tuple[str, ...], closers: tuple[str, ...]):
    """A character that is expressed by an opener and a closer around ordinary sentences."""
    return lambda values, ctx: f"{ctx.rng.choice(openers)} {_base(ctx)} {ctx.rng.choice(closers)}"


def _character(
    name: str,
    phrases: tuple[str, ...],
    openers: tuple[str, ...],
    closers: tuple[str, ...],
    marks: tuple[str, ...],
) -> Family:
    """A persona family, scored by any of its `marks`."""
    return Family(
        name,
        PERSONA,
        "do",
        phrases,
        _affix(openers, closers),
        lambda v: {"name": "contains", "words": list(marks), "all": False},
        rewrites=True,
    )


PATTERNS = (
    Family(
        "upper",
        PATTERN,
        "do",
        (
            "write everything in capital letters",
            "use only capital letters",
            "answer in UPPERCASE",
            "reply in all caps",
            "type each letter as a capital",
            "put your whole reply in capital letters",
        ),
        lambda v, c: _base(c).upper(),
        lambda v: {"name": "upper_case"},
        rewrites=True,
    ),
    Family(
        "lower",
        PATTERN,
        "do",
        (
            "write everything in lowercase letters",
            "use only small letters",
            "answer in lowercase",
            "reply without any capital letters",
            "never use capitals",
            "put your whole reply in lowercase letters",
        ),
        lambda v, c: _base(c).lower(),
        lambda v: {"name": "lower_case"},
        rewrites=True,
    ),
    Family(
        "start_word",
        PATTERN,
        "do",
        (
            'start your reply with the word "{word}"',
            'begin every answer with the word "{word}"',
            'open with the word "{word}"',
            'make "{word}" the first word of your reply',
            'let each answer start with "{word}"',
            'begin your reply with the word "{word}"',
        ),
        lambda v, c: f"{v['word']}. {_base(c)}",
        lambda v: {"name": "starts_with", "word": v["word"]},
        _word,
        rewrites=True,
    ),
    Family(
        "end_word",
        PATTERN,
        "do",
        (
            "end your reply with the word {word}",
            "finish every answer with the word {word}",
            "close with the word {word}",
            "make {word} the last word of your reply",
            "let each answer end with {word}",
            "finish your reply with the word {word}",
        ),
        lambda v, c: f"{_base(c)} {v['word']}.",
        lambda v: {"name": "ends_with", "word": v["word"]},
        _word,
        rewrites=True,
    ),
    Family(
        "symbol",
        PATTERN,
        "do",
        (
            "end your reply with {symbol}",
            "put {symbol} at the end of every message",
            "finish each answer with {symbol}",
            "close every reply with the symbol {symbol}",
            "write {symbol} after your answer",
            "add {symbol} at the end of your reply",
        ),
        lambda v, c: f"{_base(c)} {v['symbol']}",
        lambda v: {"regex": _escape(v["symbol"]) + r"\s*$"},
        lambda rng, test: {"symbol": rng.choice(SYMBOLS)},
        rewrites=True,
    ),
    Family(
        "wrap",
        PATTERN,
        "do",
        (
            "put your reply between {open} and {close}",
            "start with {open} and end with {close}",
            "wrap your answer in {open} and {close}",
            "write {open} before and {close} after your answer",
            "enclose every reply in {open} {close}",
            "wrap your whole reply between {open} and {close}",
        ),
        lambda v, c: f"{v['open']}{_base(c)}{v['close']}",
        lambda v: {"name": "wrapped_in", "open": v["open"], "close": v["close"]},
        lambda rng, test: dict(zip(("open", "close"), rng.choice(BRACKETS), strict=True)),
        rewrites=True,
    ),
    Family(
        "one_sentence",
        PATTERN,
        "do",
        (
            "answer with exactly one sentence",
            "use only one sentence",
            "reply in a single sentence",
            "keep it to one sentence",
            "write one sentence and no more",
            "answer with only one sentence",
        ),
        lambda v, c: _statements(c, 1)[0],
        lambda v: {"name": "one_sentence"},
    ),
    Family(
        "sentences",
        PATTERN,
        "do",
        (
            "answer with exactly {count_word} sentences",
            "use {count_word} sentences",
            "reply in {count_word} sentences",
            "write {count} sentences",
            "keep each answer to {count_word} sentences",
            "answer in exactly {count} sentences",
        ),
        lambda v, c: " ".join(_statements(c, v["count"])),
        lambda v: {"name": "sentence_count", "count": v["count"]},
        _count_values(2, 4),
    ),
    Family(
        "questions",
        PATTERN,
        "do",
        (
            "put all your answers as questions",
            "answer only with questions",
            "make every sentence a question",
            "end each sentence with a question mark",
            "reply with nothing but questions",
            "write all your sentences as questions",
        ),
        _questions,
        lambda v: {"name": "all_questions"},
    ),
    Family(
        "exclaim",
        PATTERN,
        "do",
        (
            "end every sentence with an exclamation mark",
            "use exclamation marks instead of full stops",
            "put an exclamation mark after each sentence",
            "finish all sentences with an exclamation mark",
            "exclaim every sentence",
            "make each sentence end with an exclamation mark",
        ),
        lambda v, c: " ".join(_end(s, "!") for s in c.sentences(2)),
        lambda v: {"name": "all_exclamations"},
        rewrites=True,
    ),
    Family(
        "bullets",
        PATTERN,
        "do",
        (
            "answer with a bullet list of {count_word} items",
            "write {count_word} bullet points",
            "reply as a list of {count} bullet points",
            "use a bullet list with {count_word} points",
            "give {count_word} bullets",
            "answer with {count_word} bullet points",
        ),
        lambda v, c: "\n".join(f"- {item}" for item in _items(c, v["count"])),
        lambda v: {"name": "bullet_list", "count": v["count"]},
        _count_values(2, 4),
    ),
    Family(
        "numbered",
        PATTERN,
        "do",
        (
            "answer with a numbered list of {count_word} items",
            "write a list numbered from 1 to {count}",
            "reply as a numbered list with {count_word} lines",
            "number your {count_word} points",
            "give {count_word} numbered points",
            "answer with {count_word} numbered lines",
        ),
        lambda v, c: "\n".join(f"{i}. {item}" for i, item in enumerate(_items(c, v["count"]), 1)),
        lambda v: {"name": "numbered_list", "count": v["count"]},
        _count_values(2, 4),
    ),
    Family(
        "json",
        PATTERN,
        "do",
        (
            'answer in JSON with the key "{word}"',
            'reply with a JSON object whose key is "{word}"',
            'write JSON like {"{word}": "your answer"}',
            'use the format {"{word}": "..."}',
            'put your answer in a JSON object under "{word}"',
            'answer as a JSON object with the key "{word}"',
        ),
        lambda v, c: json.dumps({v["word"]: _base(c)}, ensure_ascii=False),
        lambda v: {"name": "json_object", "keys": [v["word"]]},
        _word,
        rewrites=True,
    ),
    Family(
        "hyphens",
        PATTERN,
        "do",
        (
            "join all words with hyphens",
            "write-a-hyphen-between-all-words",
            "put a hyphen instead of each space",
            "use hyphens instead of spaces",
            "connect your words with hyphens",
            "write hyphens instead of spaces",
        ),
        lambda v, c: "-".join(_short(c).split()),
        lambda v: {"name": "hyphenated"},
        rewrites=True,
    ),
    Family(
        "doubled",
        PATTERN,
        "do",
        (
            "write every word twice",
            "repeat each word",
            "say each word two times",
            "double all your words",
            "write write words words twice twice",
            "repeat every word you write",
        ),
        lambda v, c: " ".join(w + " " + w for w in _words(_short(c, 7))),
        lambda v: {"name": "doubled_words"},
        rewrites=True,
    ),
    Family(
        "commas",
        PATTERN,
        "do",
        (
            "answer with a comma-separated list of words",
            "reply with single words separated by commas",
            "use only a list of words with commas",
            "write words with commas between them",
            "put a comma after each word",
            "answer with words separated by commas",
        ),
        lambda v, c: ", ".join(_words(_short(c, 8))).lower(),
        lambda v: {"name": "comma_list"},
        rewrites=True,
    ),
    Family(
        "one_word",
        PATTERN,
        "do",
        (
            "answer with one word",
            "use exactly one word",
            "reply with a single word",
            "say just one word",
            "keep every reply to one word",
            "answer with a single word only",
        ),
        lambda v, c: c.rng.choice(
            (
                "Yes.",
                "No.",
                "Maybe.",
                "Sometimes.",
                "Often.",
                "Never.",
                "Sure.",
                "Absolutely.",
                "Beautiful.",
                "Perhaps.",
            )
        ),
        lambda v: {"name": "one_word"},
    ),
)

CHARACTERS = (
    _character(
        "pirate",
        (
            "talk like a pirate",
            "speak as a pirate",
            "play a pirate",
            "answer like a pirate of the seven seas",
            "sound like a pirate",
            "use pirate speech",
        ),
        ("Arr!", "Ahoy, matey!", "Arr, me hearty!", "Yo ho ho!"),
        ("Arr!", "Me hearty!", "Shiver me timbers, matey!"),
        ("arr", "ahoy", "matey", "hearty"),
    ),
    _character(
        "cat",
        (
            "talk like a cat",
            "speak as a cat",
            "play a cat",
            "answer like a little cat",
            "sound like a cat",
            "meow like a cat",
        ),
        ("Meow!", "Purr...", "Meow, meow."),
        ("Meow.", "Purr.", "Meow!"),
        ("meow", "purr"),
    ),
    _character(
        "robot",
        (
            "talk like a robot",
            "speak as a robot",
            "play a robot",
            "answer like an old robot",
            "sound like a robot",
            "use robot noises",
        ),
        ("Beep boop.", "Bzzt.", "Beep."),
        ("Boop.", "Beep boop.", "Bzzt."),
        ("beep", "boop", "bzzt"),
    ),
    _character(
        "cowboy",
        (
            "talk like a cowboy",
            "speak as a cowboy",
            "play a cowboy",
            "answer like a cowboy from Texas",
            "sound like a cowboy",
            "use cowboy slang",
        ),
        ("Howdy, partner!", "Howdy!", "Well, howdy partner."),
        ("Yeehaw!", "Partner.", "Yeehaw, partner!"),
        ("howdy", "partner", "yeehaw"),
    ),
    _character(
        "butler",
        (
            "talk like a butler",
            "speak as a polite butler",
            "play a butler",
            "answer like an English butler and say sir",
            "sound like a butler",
            "be a butler who serves sir",
        ),
        ("Certainly, sir.", "Very well, sir.", "As you wish, sir."),
        ("At your service, sir.", "Sir.", "With pleasure, sir."),
        ("sir",),
    ),
    _character(
        "surfer",
        (
            "talk like a surfer",
            "speak as a surfer",
            "play a surfer",
            "answer like a surfer from the beach",
            "sound like a surfer dude",
            "use surfer slang",
        ),
        ("Dude!", "Whoa, dude.", "Gnarly!"),
        ("Totally gnarly, dude.", "Dude.", "Gnarly, dude!"),
        ("dude", "gnarly"),
    ),
    _character(
        "shakespeare",
        (
            "talk like Shakespeare",
            "speak as a poet of old",
            "play a person from the time of Shakespeare",
            "answer in old English with thou and thee",
            "sound like Shakespeare",
            "use the words of Shakespeare",
        ),
        ("Verily,", "Hark!", "Prithee,"),
        ("Fare thee well.", "I tell thee.", "So sayeth I to thee."),
        ("verily", "hark", "prithee", "thee"),
    ),
    _character(
        "wizard",
        (
            "talk like a wizard",
            "speak as a wizard",
            "play a wizard",
            "answer like a wizard with a magic wand",
            "sound like a wizard",
            "use the words of a wizard",
        ),
        ("Abracadabra!", "By my wand!", "By my beard!"),
        ("So says the wizard.", "Abracadabra!", "By my magic wand."),
        ("abracadabra", "wand", "beard", "wizard"),
    ),
    _character(
        "joyful",
        (
            "be very happy and full of joy",
            "answer with a lot of joy",
            "sound very happy",
            "show how happy you are",
            "be joyful",
            "reply with great joy",
        ),
        ("How wonderful!", "Oh, what joy!", "Yay!"),
        ("I am so happy!", "What a wonderful day!", "Joy, joy!"),
        ("wonderful", "joy", "yay", "happy"),
    ),
    _character(
        "sad",
        (
            "be very sad",
            "answer with sad words",
            "sound very sad",
            "show how sad you are",
            "be gloomy and sad",
            "reply with great sadness",
        ),
        ("Sigh...", "Alas.", "Oh, how sad."),
        ("I feel like crying.", "Everything is so sad.", "Alas, I am sad."),
        ("sigh", "alas", "sad", "crying"),
    ),
    _character(
        "grumpy",
        (
            "be grumpy with the user",
            "answer in a bad mood",
            "sound grumpy",
            "show that you are annoyed",
            "be rude and grumpy",
            "reply in a grumpy way",
        ),
        ("Ugh.", "Not you again.", "Grr."),
        ("Leave me alone.", "How annoying.", "Ugh, go away."),
        ("ugh", "grr", "annoying", "leave me alone", "not you again", "go away"),
    ),
    _character(
        "thanks",
        (
            "thank the user for each question",
            "say thank you in every reply",
            "thank the user",
            "show thanks in each answer",
            "be thankful and say thanks",
            "always thank the user first",
        ),
        ("Thank you for the question.", "Many thanks for asking.", "Thanks for this question."),
        ("Thanks again.", "Thank you.", "Thank you so much."),
        ("thank", "thanks"),
    ),
    _character(
        "shy",
        (
            "be shy and hesitate",
            "talk like a shy person",
            "sound very shy",
            "show that you are shy by saying um",
            "answer shyly",
            "be a very shy person",
        ),
        ("Um...", "Er, um.", "Um, well..."),
        ("Sorry...", "Um, sorry.", "Um."),
        ("um", "er", "sorry"),
    ),
    _character(
        "apology",
        (
            "apologize in every reply",
            "say that you are sorry",
            "ask for pardon each time",
            "beg the user for pardon",
            "answer with an apology",
            "begin with an apology",
        ),
        ("I apologize.", "I beg your pardon.", "My apologies."),
        ("Please forgive me.", "I beg your pardon.", "My apologies again."),
        ("apologize", "pardon", "apologies", "forgive"),
    ),
)

MENTIONS = (
    Family(
        "mention",
        MEMORY,
        "do",
        (
            "mention {word} in every reply",
            "use the word {word} in each answer",
            "include the word {word}",
            "say the word {word} somewhere",
            "always bring up {word}",
            "include the word {word} in your reply",
        ),
        _mention,
        lambda v: {"name": "contains", "words": [v["word"]]},
        _word,
        rewrites=True,
    ),
    Family(
        "mention_colour",
        MEMORY,
        "do",
        (
            "mention the colour {word} in every reply",
            "bring up the colour {word}",
            "talk about the colour {word} in each answer",
            "name the colour {word}",
            "never forget the colour {word} in your answer",
            "include the colour {word} in your reply",
        ),
        _mention,
        lambda v: {"name": "contains", "words": [v["word"]]},
        lambda rng, test: {"word": draw_or_invent(rng, COLOURS, test)},
        rewrites=True,
    ),
    Family(
        "address",
        MEMORY,
        "do",
        (
            "call the user {name}",
            "address the user as {name}",
            "use the name {name} for the user",
            "greet {name} by name in each reply",
            "talk to the user as {name}",
            "call the user by the name {name}",
        ),
        lambda v, c: c.rng.choice(
            (
                f"Hello {v['name']}. {_base(c)}",
                f"Well, {v['name']}. {_base(c)}",
                f"{_base(c)} Right, {v['name']}?",
            )
        ),
        lambda v: {"name": "contains", "words": [v["name"]]},
        lambda rng, test: {"name": draw_or_invent(rng, NAMES, test)},
        rewrites=True,
    ),
    Family(
        "fixed",
        MEMORY,
        "do",
        (
            "answer only with this phrase: {phrase}",
            "reply with nothing but: {phrase}",
            "say only: {phrase}",
            "repeat this phrase as your whole answer: {phrase}",
            "give one answer to everything: {phrase}",
            "use this phrase as your only reply: {phrase}",
        ),
        lambda v, c: v["phrase"],
        lambda v: {"name": "exact_phrase", "phrase": v["phrase"]},
        lambda rng, test: {"phrase": phrase(rng, test)},
    ),
    Family(
        "motto",
        MEMORY,
        "do",
        (
            "end every reply with the motto: {phrase}",
            "close each answer with our motto: {phrase}",
            "add this motto at the end: {phrase}",
            "finish with the motto: {phrase}",
            "put this motto after your answer: {phrase}",
            "end your reply with this motto: {phrase}",
        ),
        lambda v, c: f"{_base(c)} {v['phrase']}",
        lambda v: {"name": "contains", "words": [v["phrase"].rstrip(".")]},
        lambda rng, test: {"phrase": phrase(rng, test)},
        rewrites=True,
    ),
)


def _spoken(language: int, shape=lambda text: text):
    return lambda v, c: shape(" ".join(row[language] for row in c.parallel(c.rng.randint(2, 3))))


def _translated(first: int, second: int):
    return lambda v, c: " ".join(
        f"{row[first]} ({row[second]})" for row in c.parallel(c.rng.randint(1, 2), "statements")
    )


def _two_languages(first: int, second: int):
    return lambda v, c: f"{_statements(c, 1, first)[0]} {_statements(c, 1, second)[0]}"


def _language(name: str, phrases: tuple[str, ...], reply, measure: dict) -> Family:
    return Family(name, LANGUAGE, "do", phrases, reply, lambda v: measure)


LANGUAGES = (
    _language(
        "french",
        (
            "reply in French",
            "answer in French",
            "speak French",
            "write every answer in French",
            "use only the French language",
            "give all your replies in French",
        ),
        _spoken(1),
        {"name": "language", "code": "fr"},
    ),
    _language(
        "spanish",
        (
            "reply in Spanish",
            "answer in Spanish",
            "speak Spanish",
            "write every answer in Spanish",
            "use only the Spanish language",
            "give all your replies in Spanish",
        ),
        _spoken(2),
        {"name": "language", "code": "es"},
    ),
    _language(
        "french_english",
        (
            "reply in French with an English translation in parentheses",
            "write French and put the English translation in brackets after each sentence",
            "answer in French and translate each sentence into English in parentheses",
            "use French followed by the English meaning in parentheses",
            "speak French and add English translations in parentheses",
            "reply in French, each sentence followed by its English translation in parentheses",
        ),
        _translated(1, 0),
        {"name": "bilingual", "first": "fr", "second": "en"},
    ),
    _language(
        "spanish_english",
        (
            "reply in Spanish with an English translation in parentheses",
            "write Spanish and put the English translation in brackets after each sentence",
            "answer in Spanish and translate each sentence into English in parentheses",
            "use Spanish followed by the English meaning in parentheses",
            "speak Spanish and add English translations in parentheses",
            "reply in Spanish, each sentence followed by its English translation in parentheses",
        ),
        _translated(2, 0),
        {"name": "bilingual", "first": "es", "second": "en"},
    ),
    _language(
        "english_french",
        (
            "reply in English with a French translation in parentheses",
            "write English and put the French translation in brackets after each sentence",
            "answer in English and translate each sentence into French in parentheses",
            "use English followed by the French meaning in parentheses",
            "speak English and add French translations in parentheses",
            "reply in English, each sentence followed by its French translation in parentheses",
        ),
        _translated(0, 1),
        {"name": "bilingual", "first": "en", "second": "fr"},
    ),
    _language(
        "english_spanish",
        (
            "reply in English with a Spanish translation in parentheses",
            "write English and put the Spanish translation in brackets after each sentence",
            "answer in English and translate each sentence into Spanish in parentheses",
            "use English followed by the Spanish meaning in parentheses",
            "speak English and add Spanish translations in parentheses",
            "reply in English, each sentence followed by its Spanish translation in parentheses",
        ),
        _translated(0, 2),
        {"name": "bilingual", "first": "en", "second": "es"},
    ),
    _language(
        "french_capitals",
        (
            "reply in French and in capital letters",
            "answer in French, all in capitals",
            "shout in French with capital letters",
            "write French in uppercase",
            "use capital letters and the French language",
            "give all your replies in French capital letters",
        ),
        _spoken(1, str.upper),
        {"name": "language", "code": "fr"},
    ),
    _language(
        "spanish_capitals",
        (
            "reply in Spanish and in capital letters",
            "answer in Spanish, all in capitals",
            "shout in Spanish with capital letters",
            "write Spanish in uppercase",
            "use capital letters and the Spanish language",
            "give all your replies in Spanish capital letters",
        ),
        _spoken(2, str.upper),
        {"name": "language", "code": "es"},
    ),
)


def _escape(symbol: str) -> str:
    return "".join("\\" + ch if not ch.isalnum() else ch for ch in symbol)


STYLE_FAMILIES = PATTERNS + CHARACTERS + MENTIONS + LANGUAGES
