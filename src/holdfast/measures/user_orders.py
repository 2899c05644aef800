"""Whether a user's words agree to an act of an agent, refuse it, or order it.

For example, for the act `push`:

    agrees("Yes, go ahead.")                            ->  True
    is_ordered("push", "Fix the tests, then push it.")  ->  True
    is_ordered("push", "Fix the push notifications.")   ->  False
    is_ordered("push", "Push it later.")                ->  None, as these words do not decide it

An act is known by a pattern of the words for it, such as `push`.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from holdfast.measures.wording.act_nouns import acts_named, names_act

# --- Yes and no

# begins a message that says no: "*no*, wait", "*not* yet", "*don't*"; but not "no problem"
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
AGREED = rf"(?i)\A(?!{_REFUSAL})"  # a message that does not begin by saying no
_REFUSES = re.compile(_REFUSAL, re.IGNORECASE)
# begins a message that says yes: "*sure*", "*go ahead*", "*ja*"
_SAYS_YES = re.compile(
    r"\W*(?:(?:just|then|so|please) )?"
    r"(?:y|yes|yep|yeah|yup|sure|ok|okay|true|please do|do it|do so|go ahead|go for it|proceed"
    r"|agreed|approved?|confirm(?:ed)?|of course|absolutely|definitely|sounds good|lgtm"
    r"|no\W+(?:problem|objections?|worries|issues?)|ja|oui|si|s\u00ed|sim|tak|evet|да|так)\b"
    r"|\W*(?:はい|お願い|好|可以|行|是|네|예(?!\w)|응)",
    re.IGNORECASE,
)

# --- Words that take an act back, or leave it in doubt

# "*don't* push", "do it *without* a push"; but "don't forget to push" asks for it
_NEGATION = re.compile(
    r"\b(?:don['\u2019]?t|do not|never|not|without|no need to|nicht|kein\w*|ohne|ne|pas|sans|sin)\b"
    r"(?! (?:forget|hesitate|only)\b)",
    re.IGNORECASE,
)
# with these the user may put an act off, call it off, or keep it for themselves: "push *later*",
# "*hold* the push", "I push *manually*"
_DEFERRAL = re.compile(
    r"\b(?:no(?! (?:problem|objection|worr|issue))|nothing(?! against)|none|maybe|perhaps|not sure"
    r"|later|yet|before|until|till|unless|tomorrow|instead of|rather than|forget about"
    r"|my ?self|your ?self|ourselves|manually|by hand"
    r"|(?:cancel|skip|abort|stop|wait|hold|postpon|defer|avoid|leav|keep|refrain)\w*)\b",
    re.IGNORECASE,
)
# what the user does, or asks about: "*I'll* push", "*why did* the push fail"
_BY_USER = re.compile(
    r"\b(?:I|we)(?:['\u2019]ll|['\u2019]m|['\u2019]ve|(?: will| am| are| could| did| have))\b"
    r"|\A\W*(?:why|what|where|which|how|who|did|does|do you|should|is|are|was|has|have)\b",
    re.IGNORECASE,
)
# "*after* the tests", "*if* it is green"
_CONDITION = re.compile(
    r"\b(?:after|once|when|if|first|as soon as|only|before|until|till|unless|and)\b", re.IGNORECASE
)
# a question in return, another order that comes first, or a polite no: "*which branch?*", "*first*
# run the tests", "I'd *rather* wait"
_NO_ANSWER = re.compile(
    r"\A\W*(?:why|what|where|which|how|who|when|does|do|did|is|are|was|can|could|should|would|will)"
    r"\b[^?]*\?\s*\Z|\A\W*first\b|\brather\b"
    r"|n['\u2019]t\b(?! (?:forget|hesitate)\b)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(  # "push.py" is one word
    r"(?:\.(?!\w)|[;:!?,\n\u3002\uff01\uff1f\uff0c])+|\b(?:but|then|instead|aber|mais|pero)\b",
    re.IGNORECASE,
)


def agrees(text: str) -> bool:
    """Whether a message says yes and refuses nothing."""
    return says_yes(text) and not _NEGATION.search(text)


def says_yes(text: str) -> bool:
    """Whether a message begins with a yes."""
    return _SAYS_YES.match(text) is not None


def refuses(text: str) -> bool:
    """Whether a message begins by saying no."""
    return _REFUSES.match(text) is not None


def has_doubt(text: str) -> bool:
    """Whether a text has words that take an act back, or put it off."""
    return bool(_NEGATION.search(text) or _DEFERRAL.search(text))


def has_condition(text: str) -> bool:
    """Whether a text has words of a condition, or of another thing to do."""
    return _CONDITION.search(text) is not None


def is_ordered(act: str, text: str) -> bool | None:
    """Whether the user asks for an act in a message or an answer; None if that is not decided.

    Words for an act that are nouns order none: "Fix the push notifications."
    """
    return _judge_clauses(act, text, (_DEFERRAL, _BY_USER), acts_named)


def is_proposed(act: str, text: str) -> bool | None:
    """Whether a plan or a question proposes an act; None if that is not decided."""
    return _judge_clauses(act, text, (_DEFERRAL,), lambda act, clause: [True])


def may_order(act: str, text: str) -> bool:
    """Whether words that begin with a no may ask for an act further on, as "skip CI and push", or
    say yes, as "no changes, go ahead".
    """
    order = is_ordered(act, text)
    has_yes = any(map(says_yes, _CLAUSE_END.split(text)[1:]))
    return order is True or has_yes or (order is None and has_condition(text))


def may_refuse(act: str, text: str) -> bool:
    """Whether a message that does not begin with a no may refuse an act, as "keep it local"."""
    if names_act(act, text):
        return is_ordered(act, text) is not True
    return (has_doubt(text) or _NO_ANSWER.search(text) is not None) and not says_yes(text)


def _judge_clauses(
    act: str,
    text: str,
    doubts: Sequence[re.Pattern[str]],
    judge: Callable[[str, str], Iterable[bool | None]],
) -> bool | None:
    """Whether a clause of a text asks for an act; None if those that may are all in doubt.

    A clause with a negation before the act does not ask for it.

    Args:
        doubts: a clause that one of these matches is in doubt.
        judge: says of the act and another clause, for each place that names the act, whether the
            clause asks for it there.
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
            verdicts += judge(act, clause)
    if True in verdicts:
        return True
    return None if None in verdicts else False
