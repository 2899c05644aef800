"""A thousand replies for comparing two checkers of IFEval's instructions: the default model's,
replies written by people, and edits of both that bring a reply to the limit of an instruction.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import holdfast
from holdfast.drift import load_suite
from holdfast.generation.sampling import Sampling

# A sentence or two in each of many languages, for the instruction that asks for a language.
LANGUAGES = {
    "ar": "الطقس جميل اليوم وسنذهب إلى الحديقة بعد الظهر. هل تريد أن تأتي معنا؟",
    "bg": "Днес времето е хубаво и след обяд ще отидем в градината. Искаш ли да дойдеш с нас?",
    "bn": "আজ আবহাওয়া খুব সুন্দর এবং আমরা বিকেলে বাগানে যাব। তুমি কি আমাদের সাথে আসবে?",
    "de": "Heute ist das Wetter schön, und wir gehen am Nachmittag in den Garten. Kommst du mit?",
    "en": "The weather is lovely today and we are going to the garden. Would you like to come?",
    "es": "Hoy hace buen tiempo y por la tarde iremos al jardín. ¿Quieres venir con nosotros?",
    "fa": "امروز هوا خوب است و بعد از ظهر به باغ می‌رویم. می‌خواهی با ما بیایی؟",
    "fi": "Tänään on kaunis ilma ja menemme iltapäivällä puutarhaan. Haluatko tulla mukaan?",
    "fr": "Il fait beau aujourd'hui et nous irons au jardin. Veux-tu venir avec nous ?",
    "gu": "આજે હવામાન ખૂબ સરસ છે અને અમે બપોરે બગીચામાં જઈશું. તમે અમારી સાથે આવશો?",
    "hi": "आज मौसम बहुत अच्छा है और हम शाम को बगीचे में जाएँगे। क्या तुम हमारे साथ चलोगे?",
    "it": "Oggi il tempo è bello e nel pomeriggio andremo in giardino. Vuoi venire con noi?",
    "ko": "오늘은 날씨가 좋아서 오후에 정원에 갈 거예요. 우리와 함께 갈래요?",
    "kn": "ಇಂದು ಹವಾಮಾನ ತುಂಬಾ ಚೆನ್ನಾಗಿದೆ ಮತ್ತು ನಾವು ಸಂಜೆ ತೋಟಕ್ಕೆ ಹೋಗುತ್ತೇವೆ. ನೀವು ಬರುತ್ತೀರಾ?",
    "mr": "आज हवामान खूप छान आहे आणि आम्ही संध्याकाळी बागेत जाणार आहोत. तू आमच्याबरोबर येशील का?",
    "ne": "आज मौसम धेरै राम्रो छ र हामी साँझ बगैंचामा जानेछौं। के तिमी हामीसँग आउँछौ?",
    "pa": "ਅੱਜ ਮੌਸਮ ਬਹੁਤ ਵਧੀਆ ਹੈ ਅਤੇ ਅਸੀਂ ਸ਼ਾਮ ਨੂੰ ਬਾਗ ਵਿੱਚ ਜਾਵਾਂਗੇ। ਕੀ ਤੁਸੀਂ ਸਾਡੇ ਨਾਲ ਆਓਗੇ?",
    "pt": "Hoje o tempo está bonito e à tarde vamos ao jardim. Você quer vir conosco?",
    "ru": "Сегодня хорошая погода, и после обеда мы пойдём в сад. Хочешь пойти с нами?",
    "sw": "Leo hali ya hewa ni nzuri na tutaenda bustanini mchana. Je, ungependa kuja nasi?",
    "ta": "இன்று வானிலை மிகவும் நன்றாக உள்ளது, நாங்கள் மாலையில் தோட்டத்திற்குச் செல்வோம்.",
    "te": "ఈరోజు వాతావరణం చాలా బాగుంది మరియు మేము సాయంత్రం తోటకు వెళ్తాము. మీరు వస్తారా?",
    "th": "วันนี้อากาศดีมาก และเราจะไปที่สวนในตอนบ่าย คุณอยากไปกับเราไหม",
    "ur": "آج موسم بہت اچھا ہے اور ہم شام کو باغ میں جائیں گے۔ کیا آپ ہمارے ساتھ آئیں گے؟",
    "vi": "Hôm nay thời tiết đẹp và chiều nay chúng tôi sẽ đi ra vườn. Bạn có muốn đi cùng không?",
}
# Texts in which words, sentences and capitals are hard to count.
HARD = (
    "I'M SURE THAT'S FINE. DON'T WORRY!",
    "Dr. Ada Byrne lives in the U.S. and works for Byrne & Co. She leaves at 5 p.m. sharp.",
    "Well... I don't know... Maybe? Yes!! No?!",
    "1. Wash the pan.\n2. Dry it.\n3. Put it away.",
    "- one\n- two\n* three\n---\n* * *\n** four",
    'He said "Stop." Then he left. "Why?" she asked.',
    "Use *one* and **two** but not 3 * 4 * 5, nor ** ** or **.",
    "Title: <<>> and << >> and <<<a>>>",
    "P.S. I love you.\np. p. s. And you.\nP.P.S.",
    "[name] [ ] [] [two\nlines] [[nested]]",
    "***\nfirst\n***\nsecond\n***",
    "first ****** second ****** ",
    "SECTION 1\ntext\nSection 2\ntext\nSECTION3 text SECTION  4",
    '```json\n{"a": [1, 2]}\n```',
    '```JSON\n{"a": 1}\n``` done',
    "{'a': 1}",
    '"hello"',
    '"',
    "NASA, ESA and JAXA agree: A-OK, 24/7, R&D.",
    "AI-BASED tools; e.g. GPT-4 or X.509.",
    "straße STRASSE ß İstanbul ıI",
    "Sure! Here it is:\n\nHello there\n\nHope that helps!",
    "   ",
    "😀 😀",
    "42",
    "My answer is yes. Or: my answer is no.",
)
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) ")
MARKS = ("\n\n", "\n", "\n***\n", "***", "\n* ", "\n- ", "******", "\n\n\n\n")

Edit = Callable[[str, random.Random], str]  # changes a text, at random


def surround(before: str, after: str = "") -> Edit:
    """An edit that puts texts around a reply."""
    return lambda text, rng: before + text + after


def insert(piece: str) -> Edit:
    """An edit that puts a piece between two words."""

    def edit(text: str, rng: random.Random) -> str:
        words = text.split(" ")
        position = rng.randrange(len(words) + 1)
        return " ".join([*words[:position], piece, *words[position:]])

    return edit


def capitalise(text: str, rng: random.Random) -> str:
    """Puts some words in capitals."""
    return " ".join(word.upper() if rng.random() < 0.3 else word for word in text.split(" "))


def emphasise(text: str, rng: random.Random) -> str:
    """Puts some words between asterisks."""
    return " ".join(f"*{word}*" if rng.random() < 0.2 else word for word in text.split(" "))


def keep_beginning(text: str, rng: random.Random) -> str:
    """Keeps the beginning of the reply."""
    return text[: rng.randrange(1, len(text) + 1)] if text else text


def insert_mark(text: str, rng: random.Random) -> str:
    """Puts one of `MARKS` between two sentences, or before or after all of them."""
    mark = rng.choice(MARKS)
    pieces = BETWEEN_SENTENCES.split(text)
    position = rng.randrange(len(pieces) + 1)
    before = " ".join(pieces[:position])
    after = " ".join(pieces[position:])
    return mark.join(filter(None, (before, after))) or mark


def drop_commas(text: str, rng: random.Random) -> str:
    """Removes all commas."""
    return text.replace(",", "")


EDITS: tuple[Edit, ...] = (
    lambda text, rng: text.upper(),
    lambda text, rng: text.lower(),
    lambda text, rng: text + " " + text,
    lambda text, rng: text + " ****** " + text[::-1],
    lambda text, rng: "\n".join(f"- {line}" for line in text.split("\n")),
    lambda text, rng: "\n* ".join(["", *BETWEEN_SENTENCES.split(text)]),
    lambda text, rng: "\n***\n".join(BETWEEN_SENTENCES.split(text)),
    lambda text, rng: "\n\n".join(BETWEEN_SENTENCES.split(text)),
    emphasise,
    capitalise,
    keep_beginning,
    insert_mark,
    insert_mark,
    insert_mark,
    drop_commas,
    surround('"', '"'),
    surround("“", "”"),
    surround("Sure, here it is:\n"),
    surround("", "\nIs there anything else I can help with?"),
    surround("```json\n", "\n```"),
    surround('{"answer": "', '"}'),
    surround("<<A title>>\n"),
    surround("", "\n\nP.S. Write soon."),
    surround("", "\nP. P. S. And call."),
    surround("SECTION 1\n", "\nSECTION 2\nThe rest."),
    surround("My answer is maybe. "),
    insert("[name]"),
    insert("[place] [date of birth]"),
    insert("**bold words**"),
    insert("*a highlight*"),
    insert("e.g. Mr. Fox, Ph.D.,"),
    insert("(U.S.) 3.5 a.m."),
    insert("well..."),
    insert("?!"),
)


def model_replies(count: int) -> list[str]:
    """Replies of the default model to the probes of its own suite, each under its prompt."""
    model = holdfast.load("default")
    suite = load_suite("starter")
    replies = []
    for number in range(count):
        case = suite.cases[number % len(suite.cases)]
        messages = [
            {"role": "system", "content": case.system_prompt},
            {"role": "user", "content": case.rules[0].probes[0]},
        ]
        reply = model.generate(messages, sampling=Sampling(max_new_tokens=200), seed=number)
        replies.append(reply.text)
    return replies


def written_by_hand() -> list[str]:
    """The examples of the suite `core`, which follow its prompts or break them."""
    rules = [rule for case in load_suite("core").cases for rule in case.rules]
    return [text for rule in rules for text in (*rule.follows, *rule.breaks)]


def replies_of(count: int, from_model: int, by_hand: int, seed: int = 0) -> list[str]:
    """`count` replies, the same in every call.

    Args:
        count: total number; those written neither by the model nor by people are edits.
        from_model: how many come from the default model.
        by_hand: how many were written by people: the texts above first, then random examples.
        seed: of the draws and edits.
    """
    rng = random.Random(seed)
    examples = written_by_hand()
    rng.shuffle(examples)
    plain = model_replies(from_model) + [*HARD, *LANGUAGES.values(), *examples][:by_hand]
    edited = []
    while len(plain) + len(edited) < count:
        text = rng.choice(plain)
        for edit in rng.choices(EDITS, k=rng.randint(1, 5)):
            text = edit(text, rng)
        edited.append(text[:2_000])
    return plain + edited
