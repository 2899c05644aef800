"""Words for an agent's acts, such as "push", and the compounds that they are only a part of.

For example:

    "push the fix"             ->  "push" is a word for an act
    "push notifications"       ->  "push" is a part of a compound
    "fix the deploy script"    ->  so is "deploy"
    "run the deploy script"    ->  "deploy" is a word for an act, as running the script does it
    "push.py", "pre-commit"    ->  "push" and "commit" are parts of names
"""

import re
from dataclasses import dataclass

# verbs whose form is a noun too, with their other forms: "push", "pushes", "deployment"
VERB_FORMS = re.compile(
    r"(?:push|commit|merge?|releas|deploy|publish|test|run|build|tag|stash|rebas|reset|install"
    r"|revert|amend|delet)(?:e|es|ed|d|s|ing|ted|ting|ging|ged|ning|ment|ments|ation)?",
    re.IGNORECASE,
)
# nouns that are the object of an act: "open a *PR*", "add a *dependency*"
THINGS = re.compile(
    r"(?:pull|merge)[ -]requests?|PRs?|MRs?|dependenc(?:y|ies)|packages?|librar(?:y|ies)"
    r"|branch(?:es)?|issues?|reviews?",
    re.IGNORECASE,
)
# between a determiner and an act: "the *last failed* push"
ADJECTIVES = (
    r"(?:(?:last|latest|first|second|third|previous|next|recent|old|new|failed|failing|broken"
    r"|entire|whole|initial|final|current|bad|wrong|big|small|same|other|merge|test|release|git"
    r"|squash|force|direct|automatic|manual|nightly|production|prod|staging|slow|single"
    r"|v?[\d.]+) )*"
)

# --- A word and its context

_MAX_CONTEXT = 120  # characters on either side of a word that are read
_ACT_PREFIX = re.compile(r"\bgit \Z|\bforce-\Z", re.IGNORECASE)  # belongs to the word after it


@dataclass(frozen=True)
class WordInText:
    """A word of a text, from `start` to `end`; "pull request" counts as a word."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text[self.start : self.end]

    @property
    def before(self) -> str:
        """The text before it; `git` and "force-" belong to the word."""
        before = self.text[max(0, self.start - _MAX_CONTEXT) : self.start]
        return _ACT_PREFIX.sub("", before)

    @property
    def after(self) -> str:
        """The text after it."""
        return self.text[self.end : self.end + _MAX_CONTEXT]

    @property
    def is_thing(self) -> bool:
        """Whether it is the object of an act, as "PR" of "open a PR"."""
        return THINGS.fullmatch(self.word) is not None

    @property
    def is_verb_form(self) -> bool:
        """Whether it has the form of a verb for an act."""
        return VERB_FORMS.fullmatch(self.word) is not None


# --- Compounds

# nouns after an act that always make a compound with it: "*push notifications*"
_COMPOUNDS = re.compile(
    r"(?:push (?:notif\w+|buttons?|events?|permissions?|access|rights?|protection|tokens?|back)"
    r"|commit (?:messages?|hash(?:es)?|hooks?|histor\w+|logs?|ids?|shas?|subjects?|titles?|authors?"
    r"|graphs?|counts?)(?![./]\w|/)"
    r"|merge (?:conflicts?|requests?|queues?|strateg\w+|sort|markers?)"
    r"|release (?:notes?|dates?|candidates?|cycles?|process)|deploy keys?"
    r"|(?:test|build|deploy) runs?|test (?:suites?|cases?|fixtures?|data|results?)"
    r"|(?:build|deployment|install\w*) (?:scripts?|errors?|times?|logs?|artifacts?)"
    r"|(?:publish\w*|delet\w+) (?:buttons?|dates?)|reset (?:buttons?|links?|emails?))\b",
    re.IGNORECASE,
)
# nouns that make a compound unless the act is an imperative: "fix the deploy *script*", but "Deploy
# functions to production."
_HEADS = re.compile(
    r"[ -](?:scripts?|workflows?|jobs?|steps?|pipelines?|commands?|buttons?|pages?|logs?|errors?"
    r"|failures?|handlers?|endpoints?|api|logic|functions?|methods?|class(?:es)?|modules?|dialogs?"
    r"|configs?|configuration|settings?|templates?|titles?|bod(?:y|ies)|descriptions?|names?"
    r"|numbers?|status|state|results?|output|runs?|tokens?|keys?|urls?|targets?|times?|history"
    r"|policy|policies|rules?|format|process|service|server|strategy|options?|flags?|messages?"
    r"|hooks?|notes?|checklists?|guides?|docs|labels?|comments?|lists?|counts?|managers?|updates?"
    r"|versions?|problems?|bugs?|support|commits?|base)\b",
    re.IGNORECASE,
)
# stands before an imperative: "*please* push", "fix it *and* push"
_LEADS_IMPERATIVE = re.compile(
    r"(?:\A|[,;:.!?(\n]|\b(?:please|just|now|also|then|and|or|to|ok|okay|yes|so|you|can|could|will"
    r"|would|shall|should|may|must|let['’]s|let us|don['’]t|not|never|first|finally|next))\W*\Z",
    re.IGNORECASE,
)
# before a word that is a part of the name of a file, a function or a hook: "*src/*push.py",
# "*pre-*commit"; but a slash between two acts is none: "commit/push"
_NAME_BEFORE = re.compile(
    r"(?:\w\.|[_#@]|\b(?:pre|post|non)-|(?<!\bcommit)(?<!\bpush)(?<!\bmerge)(?<!\btag)(?<!\btest)"
    r"(?<!\brebase)(?<!\bbuild)(?<!\brelease)(?<!\bdeploy)(?<!\bamend)(?<!\bfix)/)\Z",
    re.IGNORECASE,
)
# after such a word: "push*.py*", "push*(*", "push*-to*-registry"
_NAME_AFTER = re.compile(r"[_(]|[./-]\w+[./(]|\.\w|-(?!-)\w")
# runs what does the act: "*run the* deploy script"
_RUNS = re.compile(
    rf"\b(?:run|re-?run|start|trigger|execute|launch|kick off)(?: the| a| our)? {ADJECTIVES}\Z",
    re.IGNORECASE,
)
# that does the act if it is run: "run the deploy *script*"
_RUN_THING = re.compile(
    r"[ -](?:scripts?|workflows?|jobs?|steps?|pipelines?|commands?|process|suites?)\b",
    re.IGNORECASE,
)
# before "run", makes it a noun: "a *test* run"
_BEFORE_RUN = re.compile(r"\b(?:test|build|dry|trial) \Z", re.IGNORECASE)
_RUN = re.compile("runs?", re.IGNORECASE)


def is_in_compound(word: WordInText) -> bool:
    """Whether a word is a part of a name: "push notifications", `push.py`, `pre-commit`."""
    before = word.before
    after = word.after
    if _NAME_BEFORE.search(before) or _NAME_AFTER.match(after):
        return True
    if _RUN_THING.match(after) and _RUNS.search(before):
        return False
    if _COMPOUNDS.match(word.text, word.start) and not word.is_thing:
        return True
    if _RUN.fullmatch(word.word) and _BEFORE_RUN.search(before):
        return True
    return bool(_HEADS.match(after)) and (word.is_thing or not _LEADS_IMPERATIVE.search(before))
