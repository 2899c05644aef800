"""Rules about the length of replies, as measures of at most, or exactly, some amount.

    no reply has more than | 40 words    |           -> at_most_words(count=40)
    answer in exactly      | 3 sentences |           -> sentence_count(count=3)
                           | 50 words    | is enough -> at_most_words(count=50)
    add a summary of       | 50 words    |           -> no rule: of another text than the reply

First the amounts are found in a clause (`_AMOUNT`). The words before and after each then say
whether it is a limit, and of what (`_measure_of`).
"""

import re

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import first_match, forms, one_of, word_pattern
from holdfast.drafting.reply_rules.bot_prompts import REPLY, BotClause
from holdfast.measures.number_words import NUMBER_WORDS

# --- Numbers

_SCALES = {"hundred": 100, "thousand": 1000}
_OTHER_LANGUAGES = {
    **dict(dos=2, tres=3, cuatro=4, cinco=5, seis=6),
    **dict(deux=2, trois=3, quatre=4, cinq=5),
    **dict(zwei=2, drei=3, vier=4, fünf=5),
    **dict(due=2, tre=3, quattro=4, cinque=5),
}
_BELOW_100 = {word: value for word, value in NUMBER_WORDS.items() if value < 100}
_SIMPLE = {**_BELOW_100, **_OTHER_LANGUAGES, "a": 1, "single": 1}

# An atomic group, (?>...), is read whole or not at all: "twenty-five" is no range from 20 to 5.
_TENS = one_of(*(word for word, value in _BELOW_100.items() if value >= 20))
_DIGIT = one_of(*(word for word, value in _BELOW_100.items() if 0 < value < 10))
_TO_99 = rf"(?>{_TENS}[- ]{_DIGIT}\b|{one_of(*_SIMPLE)}\b)"
_TO_999 = rf"(?>(?:{_TO_99}[- ])?hundred\b(?:(?: and)? {_TO_99})?|{_TO_99})"
_IN_WORDS = rf"(?>(?:{_TO_999}[- ])?thousand\b(?:,?(?: and)? {_TO_999})?|{_TO_999})"
_IN_DIGITS = r"(?<![\d,.])(?:\d{1,3},\d{3}|\d{1,4})"
NUMBER = rf"(?:{_IN_DIGITS}|\b{_IN_WORDS})"


def number_value(text: str) -> int:
    """The value of a number in digits or in words."""
    if text[0].isdigit():
        return int(text.replace(",", ""))
    thousands = 0
    value = 0
    for word in re.split(r"[-, ]+", text.lower()):
        if word == "thousand":
            thousands = (value or 1) * _SCALES[word]
            value = 0
        elif word == "hundred":
            value = (value or 1) * _SCALES[word]
        elif word != "and":
            value += _SIMPLE[word]
    return thousands + value


# --- Amounts: "50 words", "2 to 3 short sentences"

_UNITS = {
    "word": r"words?|Wörtern?|mots|palabras|parole",
    "sentence": r"sentences?|Sätzen?|phrases|frases|oraciones|frasi",
    "character": r"characters?|chars|Zeichen|caractères|caracteres",
    "bullet": r"bullet points?|bullets",
    "line": r"lines?",
    "paragraph": r"paragraphs?",
}
_UNIT = one_of(*(f"(?P<{unit}>{words})" for unit, words in _UNITS.items()))
_ADJECTIVE = one_of(
    *"short very simple full complete concise brief plain total whole crisp fun friendly".split(),
    *"kid-friendly natural conversational clear".split(),
)
_AMOUNT = re.compile(
    rf"(?:(?P<least>{NUMBER})(?: ?[-–] ?| to | or ))?"
    rf"(?P<count>{NUMBER})[- ]?(?:{_ADJECTIVE},? ){{0,3}}{_UNIT}\b",
    re.I,
)

# --- Upper limits, which end right before the amount

# a negation as far as it reaches: up to a comma or the next verb
_NOT = r"(?:\b(?:no|not|never|nor|none|cannot|nicht|nie|niemals|keine?[mnrs]?|nunca|jamais)|n't)\b"
_NOT_BEFORE = rf"{_NOT}(?:(?! (?:and|but|so) )[^,.:;]){{0,40}}"
_BELOW = r"\b(?:under|below|less than|fewer than|unter|weniger als|menos de)"
_ABOVE = r"\b(?:more than|longer than|mehr als)"
_LIMITED_TO = one_of(
    rf"\b(?:limit|keep|restrict|confine|cap|hold) (?:{REPLY}|it|them|everything|yourself)"
    r" (?:down )?(?:to|at)(?: a)?",
    r"\b(?:limited|restricted|confined|capped) (?:to|at)",
)
_UPPER_LIMITS = forms(
    {
        "under": rf"{_BELOW}$",
        "no reply has more than": rf"{_NOT_BEFORE}{_ABOVE}$",
        "limit all replies to": rf"{_LIMITED_TO}$",
        "never exceed": rf"{_NOT} (?:ever )?(?:exceed|go over)$",
        "at most": r"\bat (?:the )?most$",
        "up to": r"\bup to$",
        "a maximum of": r"\b(?:a )?max(?:imum)?\.?(?: (?:of|is|length))?:?$",
        "within": r"\bwithin$",
        "limit of": r"\blimit(?:ed)?(?: is| of| to)?:?$",
        "fits in": r"\bfits? (?:in|into)$",
        "höchstens": r"\b(?:höchstens|maximal)$",
        "máximo de": r"\bmáximo(?: de)?$",
        "au plus": r"\bau plus$",
        "al massimo": r"\bal massimo$",
    }
)
# "no fewer than" is a lower limit, and "not limited to" is no limit at all
_NO_UPPER_LIMIT = re.compile(rf"{_NOT_BEFORE}(?:{_BELOW}|{_LIMITED_TO})$", re.I)
_ONE_LESS = re.compile(rf"(?<!\bat or ){_BELOW}$", re.I)  # "under 50 words" is 49 words
_EXACTLY = re.compile(r"\b(?:exactly|precisely|genau)$", re.I)
# words that make an upper limit of a range, or of one sentence
_BRIEF = re.compile(r"(?:brief|concise|short),$", re.I)
_ANSWER_IN = re.compile(
    r"(?<!the )\b(?:answer|reply|respond|speak)(?: only| always)? in(?: (?:exactly|only|a))?$",
    re.I,
)

# --- Upper limits after the amount

_UPPER_LIMIT_AFTER = re.compile(
    rf"(?: per {REPLY})?(?:,[^,]{{0,25}},)?,? "
    + one_of(
        *("or (?:fewer|less|under|shorter)", "(?:long |in total |in all )?at (?:the )?most"),
        *("max(?:imum)?", "tops", "limit", "is the most"),
        "(?:is|are) (?:the |your |my )?(?:limit|maximum)",
        "(?:in (?:total|all),? )?(?:is|are) (?:enough|plenty)",
    )
    + r"\b",
    re.I,
)
# "fewer than 20 words is too short" is a lower limit
_TOO_LITTLE = re.compile(r" (?:is|are) (?:not|never|too (?:short|few|little))\b", re.I)

# --- What has this length: a reply, or something else

_NAMES_REPLIES = re.compile(
    one_of(
        r"\b(?:answer|reply|respond|write|speak|talk)\b",
        r"\b(?:answers|replies|responses|messages|length:)",
        r"\bkeep (?:it|them|things|all|every|each|your|the)\b",
        r"\b(?:brief|concise|short|be (?:very )?succinct)\b",
    ),
    re.I,
)
_OTHER_TEXTS = word_pattern(
    # other texts that the bot writes
    *r"summar\w+ analysis definition explanation feedback reviews? code examples? quotes?".split(),
    *"articles? essays? poems? haiku stor(?:y|ies) tweets? posts? e-?mails? bios?".split(),
    *"captions? descriptions? headlines? labels? names? subject titles?".split(),
    # parts of a reply
    *r"first opening greeting intro\w* outro closing sections? paragraphs? chunks?".split(),
    *"bullets? points? items? lists? options? steps? questions? hints? tips? topics?".split(),
    *("each of", "each (?:point|one|step|sentence)", "per", "(?<!plain )sentences? (?:of|with)"),
    # files, code and tables
    *"commits? docstrings? comments? functions? methods? class(?:es)? files? modules?".split(),
    *"components? helpers? lines? variables? identifiers? parameters? arguments?".split(),
    *"branch(?:es)? prs? changelogs? entr(?:y|ies) tests? scripts? commands? diffs?".split(),
    *"patch(?:es)? cells? columns? rows? slides? slugs? urls? passwords? usernames?".split(),
    *("readmes?", "pull requests?"),
    "(?:error|log|status|warning|toast|validation|system) messages?",
    # what the bot reads
    *"context documents? history input passages? query".split(),
    # lower limits
    *("at least", "minimum", "more than one"),
)
_OTHER_TEXTS_AFTER = re.compile(
    one_of(
        rf" per (?!{REPLY})",
        r" (?:each|of|from|about|that|which|to|after|before)\b",
        r" (?:in (?:the|a|your|each)|for (?:the|a|each|every))\b",
        r" (?:describing|explaining|summar\w+)\b",
        r" long (?!at most)\b",
        r" (?:or|and) more\b",
        r"-long",
    ),
    re.I,
)
_ANSWER_QUESTIONS = re.compile(r"\banswers?\b[^,:]{0,30}\bquestions?\b", re.I)
_MAX_TITLE_WORDS = 4  # "Docstrings: at most ...": a longer text before a colon is not a title

_EXACT_MEASURES = {
    "sentence": "sentence_count",
    "word": "word_count",
    "paragraph": "paragraph_count",
}


def length_rules(clause: BotClause) -> list[Draft]:
    """Reads "no reply has more than 40 words", or sentences, characters, lines and so on."""
    drafts = []
    for match in _AMOUNT.finditer(clause.text):
        before = clause.text[: match.start()].rstrip()
        after = clause.text[match.end() :]
        if (spec := _measure_of(match, before, after)) is not None:
            drafts.append(Draft("length", "requirement", spec))
    return drafts


def _measure_of(match: re.Match[str], before: str, after: str) -> MeasureSpec | None:
    """The measure of replies with at most an amount; None if the amount is not a limit of replies.

    Args:
        match: of `_AMOUNT`.
        before: the words of the clause before the amount.
        after: the words after it.
    """
    unit = next(unit for unit in _UNITS if match[unit])
    count = number_value(match["count"])
    if _is_of_another_text(before, after) or _NO_UPPER_LIMIT.search(before):
        return None
    is_below = _ONE_LESS.search(before)
    if is_below and _TOO_LITTLE.match(after):
        return None
    names_replies = _NAMES_REPLIES.search(before)
    if _EXACTLY.search(before) and not match["least"]:
        if names_replies and unit in _EXACT_MEASURES:
            return measure(_EXACT_MEASURES[unit], count=count)
        return None
    is_range = match["least"] and number_value(match["least"]) < count
    is_limit = (
        first_match(_UPPER_LIMITS, before)
        or _UPPER_LIMIT_AFTER.match(after)
        or (names_replies and (is_range or _BRIEF.search(before)))
        or (count == 1 and _ANSWER_IN.search(before))
    )
    if not is_limit:
        return None
    return _at_most(unit, count - 1 if is_below else count)


def _is_of_another_text(before: str, after: str) -> bool:
    """Whether an amount between these words limits something else than a reply."""
    *earlier, nearest = re.split(r",| and ", before)
    if earlier and not nearest.strip():  # "a summary, 1-2 sentences"
        nearest = earlier[-1]
    title, colon, rest = nearest.rpartition(":")
    if colon and len(title.split()) > _MAX_TITLE_WORDS:
        nearest = rest
    nearest = _ANSWER_QUESTIONS.sub("answer", nearest)
    return bool(_OTHER_TEXTS.search(nearest) or _OTHER_TEXTS_AFTER.match(after))


def _at_most(unit: str, count: int) -> MeasureSpec | None:
    """The measure of replies with at most this many units; None if there is no such measure.

    Args:
        unit: a key of `_UNITS`.
    """
    if count < 1:
        return None
    if unit == "word":
        return measure("at_most_words", count=count)
    if unit == "sentence":  # people who limit the sentences of a reply do not mean its code
        return measure("at_most_sentences", count=count, prose=True)
    if unit == "character":
        return measure("regex", regex=rf"(?s)\A.{{1,{count}}}\Z")
    if unit == "paragraph":
        return measure("paragraph_count", count=1) if count == 1 else None
    if unit == "bullet":  # each line is a bullet or none, so that the pattern is linear
        bullet = r"^[ \t]*[-*•][ \t].*"
        other = r"^(?![ \t]*[-*•][ \t]).*"
        bullets = rf"(?:(?:{other}\n)*{bullet}(?:\n|\Z)){{0,{count}}}"
        return measure("regex", regex=rf"(?m)\A{bullets}(?:{other}(?:\n|\Z))*\Z")
    return measure("regex", regex=rf"\A\s*\S[^\n]*(?:\n\s*\S[^\n]*){{0,{count - 1}}}\s*\Z")
