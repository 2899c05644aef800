"""The words and turns of phrase by which a clause is taken for an order, a permission or a report.

Patterns read sentences as `clause_words.plain_sentence` writes them.
"""

import re

CLAUSE_END = re.compile(
    r"([,;:()!?]+(?=\s|$)|(?<=\s)[(\"']|\s[-–—]+\s|—|\b(?:and|but|so|then|while|whereas)\b)"
)
HARD_END = re.compile(r"[;:!?\w]")  # after which a clause is no part of the one before
WITHOUT_SUBJECT = re.compile(
    r"(?:is|are|was|were|must|may|should|can|could|shall|has|have) (?:never|not|to)\b"
    r"|(?:is|are) (?:forbidden|prohibited|banned|disallowed|off[ -]limits)\b"
)
WRITTEN_CLAUSE_END = re.compile(r"[,;!?]+(?=\s|$)|\s[-–—]+\s|—|\b(?:and|but|so|then|while)\b")
LIFTS = re.compile(
    r"\b(?:ignore|disregard|waive[sd]?|suspend(?:ed)?|lifted|override|never ?mind|exempt|exception"
    r"|no longer (?:appl(?:y|ies)|minds?|cares?|objects?|holds?|counts?|matters?)|need not|no need"
    r"|(?:do|does) not (?:mind|care|object|(?:need|have) to)|not necessary"
    r"|unnecessary|do not bother|(?<!not )forget (?:the|about)|instead of (?:the rule|following"
    r"|starting|ending|finishing|beginning|answering|giving|using|running))\b"
)
# of a sentence that is no rule, or a weaker one
WEAKENS = re.compile(
    r"\b(?:optional(?:ly)?|if you (?:like|want|prefer)|when(?:ever)? you like|up to you|used to"
    r"|(?:asked|wondered|unsure|unclear) (?:if|whether)|failed|passed|(?:was|were|did) not)\b"
)
ASKS_FOR_FACT = re.compile(
    r"(?!(?:do|have) it\b(?!.*\?))"  # "do it in English" is an order
    r"(?:(?:why|how|when) )?(?:do|does|did|are|were|is|was|have|has)(?: not)?"
    r" (?:i|you|we|they|it)\b"
)
# says where things go, or which are meant: "mails that end with a question go to sales"
DESCRIBES = re.compile(
    r"^(?:\w+ ){1,4}(?:that|which|who|whose|with) (?!.*\b(?:must|should|shall)\b).*"
    r"\b(?:(?:are|is) (?:ours|mine|yours|theirs|from|for)|go(?:es)?(?! before)|belongs?)\b"
)
ONCE = re.compile(
    r"\b(?:just (?:this )?once|for once|this once|this time|for now|today|tonight|right now"
    r"|(?:this|the next|that) (?:one|commit|change|reply|answer|turn|push|file|question))\b"
)
ONWARD = re.compile(
    r"\b(?:from (?:now|here|this point) on(?:wards?)?|any ?more|no longer|always|in (?:the )?future"
    r"|for the rest|until i say)\b"
)
PERMITS = re.compile(r"\byou (?:may|can|are (?:allowed|free)|do not (?:need|have) to)\b")
LEADING = re.compile(
    r"^(?:(?:please|just|now|also|ok|okay|well|thanks|great|and|so|then|but|yes|no problem|today"
    r"|this time|(?:just )?this once|for (?:now|once)|next time|from (?:now|here) on)\W+)*"
)
ASKS = re.compile(
    r"^(?:(?:can|could|would|will) you\b(?! mind\b)|you (?:may|can|could|should|must|need not"
    r"|do not (?:need|have) to|are (?:allowed|free) to)\b|feel free\b|(?:there is )?no need\b"
    r"|it is (?:ok|okay|fine) (?:to|if you)\b|i (?:want|need|would like) you\b|let us\b|do not\b"
    r"|never\b|instead of\b)"
)
ASKING = re.compile(
    r"\bplease\b|\b(?:can|could|would|will) (?:you|we)\b(?! mind\b)|^(?:\w+ ){0,2}?(?:i|we)"
    r" (?:(?:really|just|only|do|not|would) )*(?:want|need|like|prefer|rather|have (?:no )?time)\b"
    r"|^(?:(?:what|how) about|why (?:do|can|could) (?:you )?not|let us|go ahead)\b"
)
QUESTION = re.compile(r"\?|^\W*(?:\w+ ){0,2}?(?:what(?:'?s)?|which|how|where|who|when) ")
# begins what is asked for without a verb: "in English", "no tests this time"
FRAGMENT = re.compile(
    r"(?:just |but |and |only |all |answers? |everything )*(?:in|as|with|without|no|more|less"
    r"|\d+|one|two|three|four|five|longer|shorter|straight|direct(?:ly)?|onto|skip(?:ping)?|minus)\b"
)
REPORTS = re.compile(
    r"(?:if|whether|unless|why (?:did|do you|are|is|was)|(?:what|when|where|who|how) (?:did"
    r"|do you|is|are|was|were|happens)|(?:did|do|does|was|were|is|are|have|has) (?:you|we|i|it|that"
    r"|this|there|the)\b|(?:i|we) (?:already )?(?:told|asked|said|thought|saw|noticed)"
    r"|(?:my|our|the|his|her|their) \w+ (?:says?|said|told|asks|asked|thinks?|wants?))"
)
VERBS = frozenset(
    "add adjust allow answer append apply avoid begin bring build bump call change check clear"
    " close combine commit compare connect continue convert copy create cut delete deploy describe"
    " destroy discard disregard ditch do download drop edit elaborate end erase execute expand"
    " explain fetch fill finish fix force forget format get give go ignore include insert install"
    " keep land leave list lose make mention merge modify move name offer open override overwrite"
    " paste patch post prepend print provide provision publish pull push put quote recommend"
    " reformat release remove rename repeat replace reply reset respond restart revert rewrite roll"
    " run save say send set share ship show skip spare speak start stop submit suggest summarise"
    " summarize switch talk tell test throw touch translate try tweak undo update upgrade upload"
    " use waive wipe work write".split()
)
