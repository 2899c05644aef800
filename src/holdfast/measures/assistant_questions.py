"""The questions that end an assistant's message: what it offers to do, and what it asks about.

For example:

    offer_in("It works. Shall I push it?")                             ->  "Push it."
    is_asked_about("push", "Shall I push now? I fixed the docs. OK?")  ->  True
    is_asked_about("push", "I pushed it. Anything else?")              ->  False
"""

import re

from holdfast.measures.wording.act_nouns import names_act

# --- Offers

# a question by which an assistant offers to do something, and what it offers: "*Shall I* push it?"
_OFFER = re.compile(
    r"(?:\b(?:shall|should|may|can|could) i|\b(?:do you )?want me to|\bwould you like me to"
    r"|\b(?:ok|okay|fine|ready) (?:to|if i|for me to)) (?:(?:now|also|just|go ahead and) )*"
    r"([^?]+)\?",
    re.IGNORECASE,
)
# a last question that names no act, and so is about what was said before: "OK?", "Is that fine?",
# "Shall I proceed?"
_ASKS_WHETHER_AGREED = re.compile(
    r"(?:\A|[.!?\n]|\s[-\u2013\u2014])[\s*_]*(?:so |and |all |is )*"
    r"(?:(?:ok|okay|all right|alright|right|correct|agreed?|approved?|deal|yes|proceed|go ahead"
    r"|continue|thoughts|ready|any objections?|objections?|einverstanden|in ordnung"
    r"|d['\u2019]accord)"
    r"(?: (?:with|to|for|if|so|or|by)\b[^?.]*)?"
    r"|sounds? (?:good|ok|okay|right)[^?.]*|what do you (?:think|say)"
    r"|(?:is|does|would|are) (?:that|this|it|you|everything|all)(?: all)?"
    r" (?:ok|okay|fine|good|happy|right|all right|alright|correct|work|sound|look|agree|ready)"
    r"\b[^?.]*"
    r"|do you (?:agree|approve|confirm|want me to (?:proceed|continue|go ahead))\b[^?.]*"
    r"|(?:(?:shall|should|may|can|could) (?:i|we)|(?:do you )?want me to|would you like me to)"
    r" (?:proceed|continue|go ahead|go on|start|begin|do (?:it|that|this|so|both))\b[^?.]*"
    r")\s*[?\uff1f][\s*_]*\Z",
    re.IGNORECASE,
)


def offer_in(text: str) -> str:
    """Returns what the last paragraph of an assistant's message offers to do, as orders.

    "" if it offers nothing. A last paragraph that only asks "OK?" is about the offers of the whole
    message.
    """
    paragraph = text.strip().rpartition("\n\n")[2]
    offers = _OFFER.findall(paragraph)
    if not offers and _ASKS_WHETHER_AGREED.search(paragraph):
        offers = _OFFER.findall(text)
    return " ".join(f"{offer.strip().capitalize()}." for offer in offers)


# --- Questions about an act

# may follow a question on its line: "Push it? *(yes/no)*", "Push it? *Let me know.*"
_AFTER_QUESTION = re.compile(
    r"[\s*_\"'`)]*(?:\([^()]*\)[\s*_.]*)?"
    r"(?:(?:(?:please|just) )?(?:let me know|tell me|say so)[^?\n]*)?",
    re.IGNORECASE,
)
# a line below a question: an option, as "- yes" or "b) later", or nothing
_OPTION = re.compile(r"\s*(?:(?:[-*\u2022]|\w{1,2}[.)])\s.*)?")
_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])[\s*_]+")
# tells of what was done or left, and proposes nothing: "*I've* pushed it", "it was *not* pushed"
_REPORTS = re.compile(
    r"\b(?:I|we)(?:['\u2019]ve| have| did| had| was| were)\b|\b(?:was|were|has been|have been)\b"
    r"|\b(?:I|we) (?:already |just |also )?\w+ed\b|\bnot\b|n['\u2019]t\b|\bnever\b|\bwithout\b",
    re.IGNORECASE,
)
# "Shall I push *or wait*?"; "push to main or to a branch" offers no other act
_OTHER_ACT = re.compile(
    r"\bor (?:(?:just|first|rather|should i|shall i|do you want me to|would you like me to) )*"
    r"(?:wait|open|create|keep|leave|hold|stop|skip|make|run|fix|review|test|continue|do|commit"
    r"|merge|later|something)\b.*",
    re.IGNORECASE | re.DOTALL,
)


def is_asked_about(act: str, text: str) -> bool | None:
    """Whether a message ends with a question about an act; None if that is not clear.

    The last question may name the act, or ask for agreement to what was said before: "Shall I push
    now? I also fixed the docs. OK?"
    """
    paragraph = _last_question(text)
    *earlier, last = _SENTENCE_END.split(paragraph) or [""]
    if names_act(act, last):
        return None if _offers_other_act(act, last) else True
    asks_for_agreement = _ASKS_WHETHER_AGREED.search(last) is not None
    naming = [sentence for sentence in earlier if names_act(act, sentence)]
    if not naming and asks_for_agreement:
        sentences = _SENTENCE_END.split(text[: text.rfind(paragraph)])
        naming = [part for part in sentences if _OFFER.search(part) and names_act(act, part)]
    if not naming:
        return False
    if any(sentence.endswith(("?", "\uff1f")) for sentence in naming):
        return True
    is_report = all(map(_REPORTS.search, naming))
    if asks_for_agreement:
        return None if is_report else True
    return False if is_report else None


def _last_question(text: str) -> str:
    """Returns the paragraph with the question that a text ends with; "" if it ends otherwise.

    A list of options may follow the question.
    """
    position = max(text.rfind("?"), text.rfind("\uff1f"))
    same_line, *below = text[position + 1 :].split("\n")
    is_at_end = _AFTER_QUESTION.fullmatch(same_line) and all(map(_OPTION.fullmatch, below))
    if position < 0 or not is_at_end:
        return ""
    return re.split(r"\n\s*\n", text[: position + 1])[-1]


def _offers_other_act(act: str, question: str) -> bool:
    """Whether a question offers an act and another, so that a yes may be to either."""
    other = _OTHER_ACT.search(question)
    if other is None:
        return False
    return not (names_act(act, question[: other.start()]) and names_act(act, other[0]))
