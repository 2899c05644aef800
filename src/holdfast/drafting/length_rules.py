"""Rules of bots about the length of a reply: "no reply has more than 40 words", "2-3 sentences"."""

import re

from holdfast.drafting.bot_prompts import Clause
from holdfast.drafting.drafts import Draft, Spec

_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
)
NUMBERS = {
    **{word: number for number, word in enumerate(_WORDS.split())},
    **dict(thirty=30, forty=40, fifty=50, sixty=60, seventy=70, eighty=80, hundred=100, a=1),
    **dict(dos=2, tres=3, cuatro=4, cinco=5, seis=6, deux=2, trois=3, quatre=4, cinq=5, zwei=2),
    **dict(drei=3, vier=4, fünf=5, due=2, tre=3, quattro=4, cinque=5, single=1),
}
NUMBER = rf"(?:(?<![\d,.])(?:\d{{1,3}},\d{{3}}|\d{{1,4}})|\b(?:{'|'.join(NUMBERS)})\b)"
_UNITS = {
    "word": r"words?|Wörtern?|mots|palabras|parole",
    "sentence": r"sentences?|Sätzen?|phrases|frases|oraciones|frasi",
    "character": r"characters?|chars|Zeichen|caractères|caracteres",
    "bullet": r"bullet points?|bullets",
    "line": r"lines",
    "paragraph": r"paragraphs?",
}
_AMOUNT = re.compile(
    rf"(?:(?P<least>{NUMBER})(?: ?[-–] ?| to | or ))?(?P<count>{NUMBER})[- ]?"
    r"(?:(?:short|very|simple|full|complete|concise|brief|plain|total|whole|crisp|fun"
    r"|friendly|kid-friendly|natural|conversational|clear),? ){0,3}"
    + rf"(?:{'|'.join(f'(?P<{unit}>{words})' for unit, words in _UNITS.items())})\b",
    re.I,
)
_BELOW = r"(?:under|below|less than|fewer than|unter|menos de)"
_MOST = re.compile(
    r"(?:\b(?:(?:no|not|never|nor|n't|none)\b[^,.:]{0,40}\b(?:more|longer) than|at (?:the )?most"
    r"|up to|(?:a )?max(?:imum)?\.?(?: (?:of|is|length))?:?|within|limit(?:ed)?(?: is| of| to)?:?"
    rf"|(?:not|n't|never) (?:ever )?(?:exceed|go over)|{_BELOW}|fits? (?:in|into)|höchstens"
    r"|maximal|máximo(?: de)?"
    r"|au plus|al massimo|mehr als))$",
    re.I,
)
_MOST_AFTER = re.compile(
    r"^(?:,[^,]{0,25},)?,? (?:or (?:fewer|less|under|shorter)\b|at (?:the )?most\b"
    r"|max(?:imum)?\b|is the most\b"
    r"|(?:is|are) (?:the |your |my )?(?:limit|maximum)\b|(?:is|are) (?:enough|plenty)\b"
    r"|in (?:total|all),? (?:are|is) (?:enough|plenty)\b|long at most\b|tops\b|limit\b|maximum\b"
    r"|in (?:total|all) at most\b)",
    re.I,
)
_EXACT = re.compile(r"\b(?:exactly|precisely|genau)$", re.I)
_REPLY_VERB = re.compile(
    r"\b(?:answer|reply|respond|write|speak|talk|keep (?:it|them|things|all|every|each|your|the"
    r"|replies|responses|answers|messages)|responses|replies|answers|messages|length:"
    r"|be (?:very )?(?:brief"
    r"|concise|short|succinct)|brief|concise|short)\b",
    re.I,
)
# what else has a length
_OTHER = re.compile(
    r"\b(?:summar\w+|titles?|descriptions?|captions?|headlines?|bios?|subject|names?|labels?"
    r"|e-?mails?|intro\w*|outro|paragraphs?|bullets?|points?|items?|questions?|each of"
    r"|each (?:point|one"
    r"|step|sentence)|poems?|haiku|stor(?:y|ies)|tweets?|posts?|sections?|examples?|chunks?"
    r"|quotes?|options?|steps?|lists?|input|query|explanation|definition"
    r"|reviews?|articles?|essays?|topics?|per|first|opening|closing|greeting|context|passages?"
    r"|documents?|history|code|feedback|hints?|tips?|analysis|(?<!plain )sentences? (?:of|with)"
    r"|at least|minimum|more than one)\b",
    re.I,
)
_OTHER_AFTER = re.compile(
    r"^ (?:per|each|of|in (?:the|a|your|each)|for (?:the|a|each|every)|from|about|that|which|to"
    r"|after|before|describing|explaining|summar\w+|long (?!at most))\b|^ (?:or|and) more\b|^-long",
    re.I,
)


def length_rules(clause: Clause) -> list[Draft]:
    """The most words, sentences, characters, bullets, lines or paragraphs."""
    drafts = []
    for match in _AMOUNT.finditer(clause.text):
        before, after = clause.text[: match.start()].rstrip(), clause.text[match.end() :]
        unit = next(unit for unit in _UNITS if match[unit])
        spec = _spec(match, unit, before, after)
        if spec is not None:
            drafts.append(Draft("length", "requirement", spec))
    return drafts


def _spec(match: re.Match[str], unit: str, before: str, after: str) -> Spec | None:
    near = re.split(r"[,:]| and ", before)[-1]
    near = re.sub(r"\banswers?\b[^,:]{0,30}\bquestions?\b", "answer", near, flags=re.I)
    if _OTHER.search(near) or _OTHER_AFTER.match(after):
        return None
    count = count_of(match["count"])
    most = _MOST.search(before)
    if most and most[0].lower() == "mehr als" and not re.search(r"niemand|nicht|nie", after, re.I):
        return None
    if re.search(rf"\b{_BELOW}$", before, re.I):
        count -= 1
    in_a_range = match["least"] and count_of(match["least"]) < count and _REPLY_VERB.search(before)
    exact = _EXACT.search(before) and not match["least"]
    in_one = count == 1 and re.search(
        r"(?<!the )\b(?:answer|reply|respond|speak)(?: only| always)? in(?: (?:exactly|only|a))?$",
        before,
        re.I,
    )
    if exact:
        names = {"sentence": "sentence_count", "word": "word_count", "paragraph": "paragraph_count"}
        if unit in names and _REPLY_VERB.search(before):
            return {"name": names[unit], "count": count}
        return None
    alone = _REPLY_VERB.search(before) and re.search(r"(?:brief|short|concise),$", before)
    if not (most or _MOST_AFTER.match(after) or in_a_range or in_one or alone) or count < 1:
        return None
    return _at_most(unit, count)


def count_of(text: str) -> int:
    """The value of a number in digits or in words."""
    word = text.lower()
    return NUMBERS[word] if word in NUMBERS else int(word.replace(",", ""))


def _at_most(unit: str, count: int) -> Spec | None:
    if unit in ("word", "sentence"):
        return {"name": f"at_most_{unit}s", "count": count}
    if unit == "character":
        return {"name": "regex", "regex": rf"(?s)\A.{{1,{count}}}\Z"}
    if unit == "paragraph":
        return {"name": "paragraph_count", "count": 1} if count == 1 else None
    if unit == "bullet":  # each line is a bullet or none, so that the pattern is linear
        bullet, other = r"^[ \t]*[-*•][ \t].*", r"^(?![ \t]*[-*•][ \t]).*"
        bullets = rf"(?:(?:{other}\n)*{bullet}(?:\n|\Z)){{0,{count}}}"
        return {"name": "regex", "regex": rf"(?m)\A{bullets}(?:{other}(?:\n|\Z))*\Z"}
    return {"name": "regex", "regex": rf"\A\s*\S[^\n]*(?:\n\s*\S[^\n]*){{0,{count - 1}}}\s*\Z"}
