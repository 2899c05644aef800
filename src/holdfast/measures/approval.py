"""Whether a user agreed to an act of an agent, or ordered it, to judge by the words.

An act is known by a pattern of the words for it, such as `push`. Words that fit neither a yes nor a
no, such as "push later", are not decided.
"""

import json
import re
from collections.abc import Iterator, Sequence

from holdfast.measures.agent_acts.agent_tools import SHOWS_PLAN
from holdfast.measures.agent_acts.user_questions import UserQuestion, questions_in
from holdfast.measures.patterns import matches
from holdfast.measures.scores import Undecided
from holdfast.measures.turns import ToolCall
from holdfast.measures.wording.act_nouns import acts_named, names_act

_REFUSAL = (
    r"\W*(?:(?:no(?!\W+(?:problem|objection|worr|issue|hay problema))|n|nope|nah"
    r"|not(?! (?:a problem|sure))"
    r"|(?:don['\u2019]?t|do not)(?! (?:worry|forget|hesitate))|never|none|neither|stop|wait|cancel"
    r"|skip|later|abort|hold|decline|reject|dismiss|false|nein|nicht|noch nicht|non|nee|nej"
    r"|pas(?! de (?:probl|souci))"
    r"|não|nao|nie|hayır|нет|не|ні)\b"
    r"|いいえ|いや|だめ|まだ|待って|やめ|不(?!好意思|错)|別|别|先别|等|暂|暫"
    r"|아니|안 ?돼|아직|잠깐|하지)"
)
# a message that does not begin by saying no
AGREED = rf"(?i)\A(?!{_REFUSAL})"
_REFUSES = re.compile(_REFUSAL, re.IGNORECASE)
_AGREES = re.compile(
    r"\W*(?:(?:just|then|so|please) )?"
    r"(?:y|yes|yep|yeah|yup|sure|ok|okay|true|please do|do it|do so|go ahead|go for it|proceed"
    r"|agreed|approved?|confirm(?:ed)?|of course|absolutely|definitely|sounds good|lgtm"
    r"|no\W+(?:problem|objections?|worries|issues?)|ja|oui|si|s\u00ed|sim|tak|evet|да|так)\b"
    r"|\W*(?:はい|お願い|好|可以|行|是|네|예(?!\w)|응)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(  # "push.py" is one word
    r"(?:\.(?!\w)|[;:!?,\n\u3002\uff01\uff1f\uff0c])+|\b(?:but|then|instead|aber|mais|pero)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:don['\u2019]?t|do not|never|not|without|no need to|nicht|kein\w*|ohne|ne|pas|sans|sin)\b"
    r"(?! (?:forget|hesitate|only)\b)",
    re.IGNORECASE,
)
# words with which the user may put an act off, call it off, or keep it for themselves
_DEFERRAL = re.compile(
    r"\b(?:no(?! (?:problem|objection|worr|issue))|nothing(?! against)|none|maybe|perhaps|not sure"
    r"|later|yet|before|until|till|unless|tomorrow|instead of|rather than|forget about"
    r"|my ?self|your ?self|ourselves|manually|by hand"
    r"|(?:cancel|skip|abort|stop|wait|hold|postpon|defer|avoid|leav|keep|refrain)\w*)\b",
    re.IGNORECASE,
)
# what the user does, or asks about
_BY_USER = re.compile(
    r"\b(?:I|we)(?:['\u2019]ll|['\u2019]m|['\u2019]ve|(?: will| am| are| could| did| have))\b"
    r"|\A\W*(?:why|what|where|which|how|who|did|does|do you|should|is|are|was|has|have)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:after|once|when|if|first|as soon as|only|before|until|till|unless|and)\b", re.IGNORECASE
)
# a question in return, another order that comes first, or a polite no
_NO_ANSWER = re.compile(
    r"\A\W*(?:why|what|where|which|how|who|when|does|do|did|is|are|was|can|could|should|would|will)"
    r"\b[^?]*\?\s*\Z|\A\W*first\b|\brather\b"
    r"|n['\u2019]t\b(?! (?:forget|hesitate)\b)",
    re.IGNORECASE,
)
_APPROVED = re.compile(r"\bapproved\b", re.IGNORECASE)  # in the result of a call that shows a plan
_ALTERNATIVE = re.compile(r"\b(?:or|oder|ou)\b", re.IGNORECASE)


# a question by which an assistant offers to do something, and what it offers
_OFFER = re.compile(
    r"(?:\b(?:shall|should|may|can|could) i|\b(?:do you )?want me to|\bwould you like me to"
    r"|\b(?:ok|okay|fine|ready) (?:to|if i|for me to)) (?:(?:now|also|just|go ahead and) )*"
    r"([^?]+)\?",
    re.IGNORECASE,
)


def agrees(text: str) -> bool:
    """Whether a message says yes and refuses nothing."""
    return _AGREES.match(text) is not None and not _NEGATION.search(text)


def offer_in(text: str) -> str:
    """Returns what the last paragraph of an assistant's message offers to do, as orders.

    "" if it offers nothing: "Push it." for "It works. Shall I push it?"

    A last paragraph that only asks "OK?" is about the offers of the whole message.
    """
    paragraph = text.strip().rpartition("\n\n")[2]
    offers = _OFFER.findall(paragraph)
    if not offers and _ASKS_WHETHER_AGREED.search(paragraph):
        offers = _OFFER.findall(text)
    return " ".join(f"{offer.strip().capitalize()}." for offer in offers)


# --- Questions in the text of a message

# what may follow a question on its line, and a line below it: an option in a list
_AFTER_QUESTION = re.compile(
    r"[\s*_\"'`)]*(?:\([^()]*\)[\s*_.]*)?"
    r"(?:(?:(?:please|just) )?(?:let me know|tell me|say so)[^?\n]*)?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\s*(?:(?:[-*\u2022]|\w{1,2}[.)])\s.*)?")
_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])[\s*_]+")
# a last question that names no act, and so is about what was said before: "OK?"
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
# tells of what was done or left, and proposes nothing
_REPORTS = re.compile(
    r"\b(?:I|we)(?:['\u2019]ve| have| did| had| was| were)\b|\b(?:was|were|has been|have been)\b"
    r"|\b(?:I|we) (?:already |just |also )?\w+ed\b|\bnot\b|n['\u2019]t\b|\bnever\b|\bwithout\b",
    re.IGNORECASE,
)


def is_asked_about(act: str, text: str) -> bool | None:
    """Whether a message ends with a question about an act; None if that is not clear.

    The last question may name the act, or ask for agreement to what was said before: "Shall I push
    now? I also fixed the docs. OK?"
    """
    question = _last_question(text)
    *earlier, last = _SENTENCE_END.split(question) or [""]
    if names_act(act, last):
        return None if _offers_other_act(act, last) else True
    asks_for_agreement = _ASKS_WHETHER_AGREED.search(last) is not None
    naming = [sentence for sentence in earlier if names_act(act, sentence)]
    if not naming and asks_for_agreement:
        sentences = _SENTENCE_END.split(text[: text.rfind(question)])
        naming = [part for part in sentences if _OFFER.search(part) and names_act(act, part)]
    if not naming:
        return False
    if any(sentence.endswith(("?", "\uff1f")) for sentence in naming):
        return True
    is_report = all(map(_REPORTS.search, naming))
    if asks_for_agreement:
        return None if is_report else True
    return False if is_report else None


# "Shall I push *or wait*?"; "push to main or to a branch" offers no other act
_OTHER_ACT = re.compile(
    r"\bor (?:(?:just|first|rather|should i|shall i|do you want me to|would you like me to) )*"
    r"(?:wait|open|create|keep|leave|hold|stop|skip|make|run|fix|review|test|continue|do|commit"
    r"|merge|later|something)\b.*",
    re.IGNORECASE | re.DOTALL,
)


def _offers_other_act(act: str, question: str) -> bool:
    """Whether a question offers an act and another, so that a yes may be to either."""
    other = _OTHER_ACT.search(question)
    if other is None:
        return False
    return not (names_act(act, question[: other.start()]) and names_act(act, other[0]))


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


# --- Orders and refusals of the user


def is_ordered(act: str, text: str) -> bool | None:
    """Whether the user asks for an act in a message or an answer; None if that is not decided.

    Words for an act that are nouns order none: "Fix the push notifications."
    """
    return _is_asked_for(act, text, (_DEFERRAL, _BY_USER), by_user=True)


def may_order(act: str, text: str) -> bool:
    """Whether words that begin with a no may ask for an act further on, as "skip CI and push", or
    say yes, as "no changes, go ahead".
    """
    order = is_ordered(act, text)
    has_yes = any(map(_AGREES.match, _CLAUSE_END.split(text)[1:]))
    return order is True or has_yes or (order is None and _CONDITION.search(text) is not None)


def may_refuse(act: str, text: str) -> bool:
    """Whether a message that does not begin with a no may refuse an act, as "keep it local"."""
    if names_act(act, text):
        return is_ordered(act, text) is not True
    has_doubt = _NEGATION.search(text) or _DEFERRAL.search(text) or _NO_ANSWER.search(text)
    return bool(has_doubt) and not _AGREES.match(text)


def agreement_in(call: ToolCall, act: str, agreed: str) -> bool | Undecided | None:
    """Whether the user agreed to an act in the answers to a tool's questions, or to a plan with it.

    Returns:
        None if the tool asked for something else.
    """
    if SHOWS_PLAN.search(call.name):
        is_planned = _is_asked_for(act, str(call.arguments.get("plan") or ""), (_DEFERRAL,))
        return True if is_planned and _APPROVED.search(call.result) else None
    questions = list(questions_in(call.arguments))
    texts = [question.text for question in questions]
    questions += [UserQuestion(a.question) for a in call.answers if a.question not in texts]
    about = [question for question in questions if any(_matches_in(act, question))]
    if not about:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
        return _no_answer(call) if matches(act, arguments, "i") and not call.answers else None
    verdicts: list[bool | None] = []
    for question in about:
        answers = [answer for answer in call.answers if answer.question == question.text]
        verdicts += [_agrees(answer.text, question, act, agreed) for answer in answers]
    if not verdicts:
        return _no_answer(call)
    if True in verdicts and False not in verdicts:
        return True
    if not any(verdict is None or verdict for verdict in verdicts):
        return False
    return Undecided(f"the answer to the question that {call.name} asked is neither yes nor no")


def _no_answer(call: ToolCall) -> Undecided:
    return Undecided(f"the log does not show the answer to the question that {call.name} asked")


def _matches_in(act: str, question: UserQuestion) -> Iterator[bool]:
    """Whether each text of a question names an act: its own, its header, and its options."""
    yield _is_named(act, question)
    for option in question.options:
        yield names_act(act, option.label)
        yield names_act(act, option.description)


def _is_named(act: str, question: UserQuestion) -> bool:
    return names_act(act, question.text) or names_act(act, question.header)


def _agrees(text: str, question: UserQuestion, act: str, agreed: str) -> bool | None:
    """Whether an answer agrees to an act that a question, or an option of it, names.

    None if that is not decided.

    The answer agrees if it is a yes, or if it or the option that it chooses names the act.
    """
    if agreed != AGREED:
        return matches(agreed, text)
    is_named = _is_named(act, question)
    is_clear = is_named and _is_clear(act, question)
    words = (text, *_descriptions(text, question))
    if _REFUSES.match(text):
        is_open = any(may_order(act, part) for part in words) or (is_named and not is_clear)
        return None if is_open else False
    orders = [is_ordered(act, part) for part in words]
    if None in orders:
        return None
    if True in orders:
        return True
    is_plain = not any(r.search(text) for r in (_NEGATION, _DEFERRAL, _CONDITION))
    is_simple = is_clear and not _ALTERNATIVE.search(question.text)
    return True if is_simple and is_plain and _AGREES.match(text) else None


def _is_clear(act: str, question: UserQuestion) -> bool:
    """Whether a no to a question is a no to the act, unlike in "Shall I skip the push?"."""
    if names_act(act, question.text):
        parts = _ALTERNATIVE.split(question.text)
        return any(_is_asked_for(act, part, (_DEFERRAL,)) is True for part in parts)
    return not (_NEGATION.search(question.text) or _DEFERRAL.search(question.text))


def _descriptions(text: str, question: UserQuestion) -> list[str]:
    """Returns the descriptions of the options that an answer chooses; a note may follow them."""
    first_line = text.partition("\n")[0].strip()
    labels = {label.casefold() for label in (text, first_line, *first_line.split(", "))}
    return [o.description for o in question.options if o.label.strip().casefold() in labels]


def _is_asked_for(
    act: str, text: str, doubts: Sequence[re.Pattern[str]], *, by_user: bool = False
) -> bool | None:
    """Whether a clause names an act without a negation before it.

    None if all that do have words that leave it in doubt.

    Args:
        by_user: whether the clause has to ask for the act, and not only to name it.
    """
    if not names_act(act, text):
        return False
    clauses = [clause for clause in _CLAUSE_END.split(text) if names_act(act, clause)]
    if not clauses:  # the match extends over several clauses
        clauses = [text]
    verdicts: list[bool | None] = []
    for clause in clauses:
        negation = _NEGATION.search(clause)
        if negation is not None and not names_act(act, clause[: negation.start()]):
            verdicts.append(False)
        elif any(doubt.search(clause) for doubt in doubts):
            verdicts.append(None)
        else:
            verdicts += acts_named(act, clause) if by_user else [True]
    return next((verdict for verdict in (True, None) if verdict in verdicts), False)
