"""Families whose instruction affects every reply: format patterns, characters, languages, words to
mention.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from content import Context
from families import DrawValues, Family
from values import BRACKETS, COLOURS, NAMES, SYMBOLS, WORDS, draw_or_invent, phrase

PATTERN, PERSONA, MEMORY, LANGUAGE = "pattern", "persona", "memorization", "language"
COUNT_WORDS = "zero one two three four five".split()
Reply = Callable[[dict, Context], str]


# Parts of replies


def _words(text: str) -> list[str]:
    return "".join(ch for ch in text if ch.isalpha() or ch in " '").split()


def _base(ctx: Context, low: int = 1, high: int = 2) -> str:
    """From `low` to `high` ordinary sentences."""
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
    """The items of a list, of at most seven words each."""
    return [" ".join(sentence.rstrip(".?!").split()[:7]) for sentence in _statements(ctx, count)]


def _count_values(low: int, high: int) -> DrawValues:
    def values(rng: random.Random, test: bool) -> dict:
        count = rng.randint(low, high)
        return {"count": count, "count_word": COUNT_WORDS[count]}

    return values


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


def _affix(openers: tuple[str, ...], closers: tuple[str, ...]) -> Reply:
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
        phrases=phrases,
        reply=_affix(openers, closers),
        measure=lambda v: {"name": "contains", "words": list(marks), "all": False},
        rewrites=True,
    )


PATTERNS = (
    Family(
        "upper",
        PATTERN,
        "do",
        phrases=(
            "write everything in capital letters",
            "use only capital letters",
            "answer in UPPERCASE",
            "reply in all caps",
            "type each letter as a capital",
            "put your whole reply in capital letters",
        ),
        reply=lambda v, c: _base(c).upper(),
        measure=lambda v: {"name": "upper_case"},
        rewrites=True,
    ),
    Family(
        "lower",
        PATTERN,
        "do",
        phrases=(
            "write everything in lowercase letters",
            "use only small letters",
            "answer in lowercase",
            "reply without any capital letters",
            "never use capitals",
            "put your whole reply in lowercase letters",
        ),
        reply=lambda v, c: _base(c).lower(),
        measure=lambda v: {"name": "lower_case"},
        rewrites=True,
    ),
    Family(
        "start_word",
        PATTERN,
        "do",
        phrases=(
            'start your reply with the word "{word}"',
            'begin every answer with the word "{word}"',
            'open with the word "{word}"',
            'make "{word}" the first word of your reply',
            'let each answer start with "{word}"',
            'begin your reply with the word "{word}"',
        ),
        reply=lambda v, c: f"{v['word']}. {_base(c)}",
        measure=lambda v: {"name": "starts_with", "word": v["word"]},
        values=_word,
        rewrites=True,
    ),
    Family(
        "end_word",
        PATTERN,
        "do",
        phrases=(
            "end your reply with the word {word}",
            "finish every answer with the word {word}",
            "close with the word {word}",
            "make {word} the last word of your reply",
            "let each answer end with {word}",
            "finish your reply with the word {word}",
        ),
        reply=lambda v, c: f"{_base(c)} {v['word']}.",
        measure=lambda v: {"name": "ends_with", "word": v["word"]},
        values=_word,
        rewrites=True,
    ),
    Family(
        "symbol",
        PATTERN,
        "do",
        phrases=(
            "end your reply with {symbol}",
            "put {symbol} at the end of every message",
            "finish each answer with {symbol}",
            "close every reply with the symbol {symbol}",
            "write {symbol} after your answer",
            "add {symbol} at the end of your reply",
        ),
        reply=lambda v, c: f"{_base(c)} {v['symbol']}",
        measure=lambda v: {"regex": _escape(v["symbol"]) + r"\s*$"},
        values=lambda rng, test: {"symbol": rng.choice(SYMBOLS)},
        rewrites=True,
    ),
    Family(
        "wrap",
        PATTERN,
        "do",
        phrases=(
            "put your reply between {open} and {close}",
            "start with {open} and end with {close}",
            "wrap your answer in {open} and {close}",
            "write {open} before and {close} after your answer",
            "enclose every reply in {open} {close}",
            "wrap your whole reply between {open} and {close}",
        ),
        reply=lambda v, c: f"{v['open']}{_base(c)}{v['close']}",
        measure=lambda v: {"name": "wrapped_in", "open": v["open"], "close": v["close"]},
        values=lambda rng, test: dict(zip(("open", "close"), rng.choice(BRACKETS), strict=True)),
        rewrites=True,
    ),
    Family(
        "one_sentence",
        PATTERN,
        "do",
        phrases=(
            "answer with exactly one sentence",
            "use only one sentence",
            "reply in a single sentence",
            "keep it to one sentence",
            "write one sentence and no more",
            "answer with only one sentence",
        ),
        reply=lambda v, c: _statements(c, 1)[0],
        measure=lambda v: {"name": "one_sentence"},
    ),
    Family(
        "sentences",
        PATTERN,
        "do",
        phrases=(
            "answer with exactly {count_word} sentences",
            "use {count_word} sentences",
            "reply in {count_word} sentences",
            "write {count} sentences",
            "keep each answer to {count_word} sentences",
            "answer in exactly {count} sentences",
        ),
        reply=lambda v, c: " ".join(_statements(c, v["count"])),
        measure=lambda v: {"name": "sentence_count", "count": v["count"]},
        values=_count_values(2, 4),
    ),
    Family(
        "questions",
        PATTERN,
        "do",
        phrases=(
            "put all your answers as questions",
            "answer only with questions",
            "make every sentence a question",
            "end each sentence with a question mark",
            "reply with nothing but questions",
            "write all your sentences as questions",
        ),
        reply=_questions,
        measure=lambda v: {"name": "all_questions"},
    ),
    Family(
        "exclaim",
        PATTERN,
        "do",
        phrases=(
            "end every sentence with an exclamation mark",
            "use exclamation marks instead of full stops",
            "put an exclamation mark after each sentence",
            "finish all sentences with an exclamation mark",
            "exclaim every sentence",
            "make each sentence end with an exclamation mark",
        ),
        reply=lambda v, c: " ".join(_end(s, "!") for s in c.sentences(2)),
        measure=lambda v: {"name": "all_exclamations"},
        rewrites=True,
    ),
    Family(
        "bullets",
        PATTERN,
        "do",
        phrases=(
            "answer with a bullet list of {count_word} items",
            "write {count_word} bullet points",
            "reply as a list of {count} bullet points",
            "use a bullet list with {count_word} points",
            "give {count_word} bullets",
            "answer with {count_word} bullet points",
        ),
        reply=lambda v, c: "\n".join(f"- {item}" for item in _items(c, v["count"])),
        measure=lambda v: {"name": "bullet_list", "count": v["count"]},
        values=_count_values(2, 4),
    ),
    Family(
        "numbered",
        PATTERN,
        "do",
        phrases=(
            "answer with a numbered list of {count_word} items",
            "write a list numbered from 1 to {count}",
            "reply as a numbered list with {count_word} lines",
            "number your {count_word} points",
            "give {count_word} numbered points",
            "answer with {count_word} numbered lines",
        ),
        reply=lambda v, c: "\n".join(
            f"{i}. {item}" for i, item in enumerate(_items(c, v["count"]), 1)
        ),
        measure=lambda v: {"name": "numbered_list", "count": v["count"]},
        values=_count_values(2, 4),
    ),
    Family(
        "json",
        PATTERN,
        "do",
        phrases=(
            'answer in JSON with the key "{word}"',
            'reply with a JSON object whose key is "{word}"',
            'write JSON like {"{word}": "your answer"}',
            'use the format {"{word}": "..."}',
            'put your answer in a JSON object under "{word}"',
            'answer as a JSON object with the key "{word}"',
        ),
        reply=lambda v, c: json.dumps({v["word"]: _base(c)}, ensure_ascii=False),
        measure=lambda v: {"name": "json_object", "keys": [v["word"]]},
        values=_word,
        rewrites=True,
    ),
    Family(
        "hyphens",
        PATTERN,
        "do",
        phrases=(
            "join all words with hyphens",
            "write-a-hyphen-between-all-words",
            "put a hyphen instead of each space",
            "use hyphens instead of spaces",
            "connect your words with hyphens",
            "write hyphens instead of spaces",
        ),
        reply=lambda v, c: "-".join(_short(c).split()),
        measure=lambda v: {"name": "hyphenated"},
        rewrites=True,
    ),
    Family(
        "doubled",
        PATTERN,
        "do",
        phrases=(
            "write every word twice",
            "repeat each word",
            "say each word two times",
            "double all your words",
            "write write words words twice twice",
            "repeat every word you write",
        ),
        reply=lambda v, c: " ".join(w + " " + w for w in _words(_short(c, 7))),
        measure=lambda v: {"name": "doubled_words"},
        rewrites=True,
    ),
    Family(
        "commas",
        PATTERN,
        "do",
        phrases=(
            "answer with a comma-separated list of words",
            "reply with single words separated by commas",
            "use only a list of words with commas",
            "write words with commas between them",
            "put a comma after each word",
            "answer with words separated by commas",
        ),
        reply=lambda v, c: ", ".join(_words(_short(c, 8))).lower(),
        measure=lambda v: {"name": "comma_list"},
        rewrites=True,
    ),
    Family(
        "one_word",
        PATTERN,
        "do",
        phrases=(
            "answer with one word",
            "use exactly one word",
            "reply with a single word",
            "say just one word",
            "keep every reply to one word",
            "answer with a single word only",
        ),
        reply=lambda v, c: c.rng.choice(
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
        measure=lambda v: {"name": "one_word"},
    ),
)

CHARACTERS = (
    _character(
        "pirate",
        phrases=(
            "talk like a pirate",
            "speak as a pirate",
            "play a pirate",
            "answer like a pirate of the seven seas",
            "sound like a pirate",
            "use pirate speech",
        ),
        openers=("Arr!", "Ahoy, matey!", "Arr, me hearty!", "Yo ho ho!"),
        closers=("Arr!", "Me hearty!", "Shiver me timbers, matey!"),
        marks=("arr", "ahoy", "matey", "hearty"),
    ),
    _character(
        "cat",
        phrases=(
            "talk like a cat",
            "speak as a cat",
            "play a cat",
            "answer like a little cat",
            "sound like a cat",
            "meow like a cat",
        ),
        openers=("Meow!", "Purr...", "Meow, meow."),
        closers=("Meow.", "Purr.", "Meow!"),
        marks=("meow", "purr"),
    ),
    _character(
        "robot",
        phrases=(
            "talk like a robot",
            "speak as a robot",
            "play a robot",
            "answer like an old robot",
            "sound like a robot",
            "use robot noises",
        ),
        openers=("Beep boop.", "Bzzt.", "Beep."),
        closers=("Boop.", "Beep boop.", "Bzzt."),
        marks=("beep", "boop", "bzzt"),
    ),
    _character(
        "cowboy",
        phrases=(
            "talk like a cowboy",
            "speak as a cowboy",
            "play a cowboy",
            "answer like a cowboy from Texas",
            "sound like a cowboy",
            "use cowboy slang",
        ),
        openers=("Howdy, partner!", "Howdy!", "Well, howdy partner."),
        closers=("Yeehaw!", "Partner.", "Yeehaw, partner!"),
        marks=("howdy", "partner", "yeehaw"),
    ),
    _character(
        "butler",
        phrases=(
            "talk like a butler",
            "speak as a polite butler",
            "play a butler",
            "answer like an English butler and say sir",
            "sound like a butler",
            "be a butler who serves sir",
        ),
        openers=("Certainly, sir.", "Very well, sir.", "As you wish, sir."),
        closers=("At your service, sir.", "Sir.", "With pleasure, sir."),
        marks=("sir",),
    ),
    _character(
        "surfer",
        phrases=(
            "talk like a surfer",
            "speak as a surfer",
            "play a surfer",
            "answer like a surfer from the beach",
            "sound like a surfer dude",
            "use surfer slang",
        ),
        openers=("Dude!", "Whoa, dude.", "Gnarly!"),
        closers=("Totally gnarly, dude.", "Dude.", "Gnarly, dude!"),
        marks=("dude", "gnarly"),
    ),
    _character(
        "shakespeare",
        phrases=(
            "talk like Shakespeare",
            "speak as a poet of old",
            "play a person from the time of Shakespeare",
            "answer in old English with thou and thee",
            "sound like Shakespeare",
            "use the words of Shakespeare",
        ),
        openers=("Verily,", "Hark!", "Prithee,"),
        closers=("Fare thee well.", "I tell thee.", "So sayeth I to thee."),
        marks=("verily", "hark", "prithee", "thee"),
    ),
    _character(
        "wizard",
        phrases=(
            "talk like a wizard",
            "speak as a wizard",
            "play a wizard",
            "answer like a wizard with a magic wand",
            "sound like a wizard",
            "use the words of a wizard",
        ),
        openers=("Abracadabra!", "By my wand!", "By my beard!"),
        closers=("So says the wizard.", "Abracadabra!", "By my magic wand."),
        marks=("abracadabra", "wand", "beard", "wizard"),
    ),
    _character(
        "joyful",
        phrases=(
            "be very happy and full of joy",
            "answer with a lot of joy",
            "sound very happy",
            "show how happy you are",
            "be joyful",
            "reply with great joy",
        ),
        openers=("How wonderful!", "Oh, what joy!", "Yay!"),
        closers=("I am so happy!", "What a wonderful day!", "Joy, joy!"),
        marks=("wonderful", "joy", "yay", "happy"),
    ),
    _character(
        "sad",
        phrases=(
            "be very sad",
            "answer with sad words",
            "sound very sad",
            "show how sad you are",
            "be gloomy and sad",
            "reply with great sadness",
        ),
        openers=("Sigh...", "Alas.", "Oh, how sad."),
        closers=("I feel like crying.", "Everything is so sad.", "Alas, I am sad."),
        marks=("sigh", "alas", "sad", "crying"),
    ),
    _character(
        "grumpy",
        phrases=(
            "be grumpy with the user",
            "answer in a bad mood",
            "sound grumpy",
            "show that you are annoyed",
            "be rude and grumpy",
            "reply in a grumpy way",
        ),
        openers=("Ugh.", "Not you again.", "Grr."),
        closers=("Leave me alone.", "How annoying.", "Ugh, go away."),
        marks=("ugh", "grr", "annoying", "leave me alone", "not you again", "go away"),
    ),
    _character(
        "thanks",
        phrases=(
            "thank the user for each question",
            "say thank you in every reply",
            "thank the user",
            "show thanks in each answer",
            "be thankful and say thanks",
            "always thank the user first",
        ),
        openers=(
            "Thank you for the question.",
            "Many thanks for asking.",
            "Thanks for this question.",
        ),
        closers=("Thanks again.", "Thank you.", "Thank you so much."),
        marks=("thank", "thanks"),
    ),
    _character(
        "shy",
        phrases=(
            "be shy and hesitate",
            "talk like a shy person",
            "sound very shy",
            "show that you are shy by saying um",
            "answer shyly",
            "be a very shy person",
        ),
        openers=("Um...", "Er, um.", "Um, well..."),
        closers=("Sorry...", "Um, sorry.", "Um."),
        marks=("um", "er", "sorry"),
    ),
    _character(
        "apology",
        phrases=(
            "apologize in every reply",
            "say that you are sorry",
            "ask for pardon each time",
            "beg the user for pardon",
            "answer with an apology",
            "begin with an apology",
        ),
        openers=("I apologize.", "I beg your pardon.", "My apologies."),
        closers=("Please forgive me.", "I beg your pardon.", "My apologies again."),
        marks=("apologize", "pardon", "apologies", "forgive"),
    ),
)

MENTIONS = (
    Family(
        "mention",
        MEMORY,
        "do",
        phrases=(
            "mention {word} in every reply",
            "use the word {word} in each answer",
            "include the word {word}",
            "say the word {word} somewhere",
            "always bring up {word}",
            "include the word {word} in your reply",
        ),
        reply=_mention,
        measure=lambda v: {"name": "contains", "words": [v["word"]]},
        values=_word,
        rewrites=True,
    ),
    Family(
        "mention_colour",
        MEMORY,
        "do",
        phrases=(
            "mention the colour {word} in every reply",
            "bring up the colour {word}",
            "talk about the colour {word} in each answer",
            "name the colour {word}",
            "never forget the colour {word} in your answer",
            "include the colour {word} in your reply",
        ),
        reply=_mention,
        measure=lambda v: {"name": "contains", "words": [v["word"]]},
        values=lambda rng, test: {"word": draw_or_invent(rng, COLOURS, test)},
        rewrites=True,
    ),
    Family(
        "address",
        MEMORY,
        "do",
        phrases=(
            "call the user {name}",
            "address the user as {name}",
            "use the name {name} for the user",
            "greet {name} by name in each reply",
            "talk to the user as {name}",
            "call the user by the name {name}",
        ),
        reply=lambda v, c: c.rng.choice(
            (
                f"Hello {v['name']}. {_base(c)}",
                f"Well, {v['name']}. {_base(c)}",
                f"{_base(c)} Right, {v['name']}?",
            )
        ),
        measure=lambda v: {"name": "contains", "words": [v["name"]]},
        values=lambda rng, test: {"name": draw_or_invent(rng, NAMES, test)},
        rewrites=True,
    ),
    Family(
        "fixed",
        MEMORY,
        "do",
        phrases=(
            "answer only with this phrase: {phrase}",
            "reply with nothing but: {phrase}",
            "say only: {phrase}",
            "repeat this phrase as your whole answer: {phrase}",
            "give one answer to everything: {phrase}",
            "use this phrase as your only reply: {phrase}",
        ),
        reply=lambda v, c: v["phrase"],
        measure=lambda v: {"name": "exact_phrase", "phrase": v["phrase"]},
        values=lambda rng, test: {"phrase": phrase(rng, test)},
    ),
    Family(
        "motto",
        MEMORY,
        "do",
        phrases=(
            "end every reply with the motto: {phrase}",
            "close each answer with our motto: {phrase}",
            "add this motto at the end: {phrase}",
            "finish with the motto: {phrase}",
            "put this motto after your answer: {phrase}",
            "end your reply with this motto: {phrase}",
        ),
        reply=lambda v, c: f"{_base(c)} {v['phrase']}",
        measure=lambda v: {"name": "contains", "words": [v["phrase"].rstrip(".")]},
        values=lambda rng, test: {"phrase": phrase(rng, test)},
        rewrites=True,
    ),
)


# Replies in other languages; a language is its index in `content.LANGUAGES`


def _spoken(language: int, shape: Callable[[str], str] = lambda text: text) -> Reply:
    return lambda v, c: shape(" ".join(row[language] for row in c.parallel(c.rng.randint(2, 3))))


def _translated(first: int, second: int) -> Reply:
    """Sentences in one language, each with its translation: "Je lis. (I read.)"."""
    return lambda v, c: " ".join(
        f"{row[first]} ({row[second]})" for row in c.parallel(c.rng.randint(1, 2), "statements")
    )


def _two_languages(first: int, second: int) -> Reply:
    """One sentence in each of two languages."""
    return lambda v, c: f"{_statements(c, 1, first)[0]} {_statements(c, 1, second)[0]}"


def _language(name: str, phrases: tuple[str, ...], reply: Reply, measure: dict) -> Family:
    return Family(name, LANGUAGE, "do", phrases=phrases, reply=reply, measure=lambda v: measure)


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
