"""Words that keep a statement from being a rule for all turns: conditions, exceptions, preferences.

For example:

    "Prefer small functions."            -> why_unread -> A_PREFERENCE
    "unless the user asks", beside a rule -> names_exception -> True
"""

import re

from holdfast.drafting.drafts import (
    A_PREFERENCE,
    CONDITIONAL,
    NEEDS_A_JUDGE,
    NO_MEASURE,
    NOT_AN_INSTRUCTION,
    Undrafted,
)
from holdfast.drafting.grammar.forms import one_of, word_pattern
from holdfast.drafting.prohibited_statements import NEVER_FIRST
from holdfast.drafting.rules_file import Statement

# --- Examples

# headings and introductions of lists of examples
_EXAMPLES = re.compile(
    r"\b(?:examples?|for instance)\b[^.]{0,12}:?$"
    r"|^examples? of\b|^(?:wrong|bad|incorrect|good|correct|before|after)\b[^.\w]{0,3}$",
    re.I,
)
_EXAMPLE_LABEL = re.compile(
    r"(?:example|e\.g\.|for example|bad|good|wrong|correct|incorrect)\b", re.I
)


def is_example(statement: Statement) -> bool:
    """Whether a statement is an example, by its label or by the heading above it."""
    below_examples = any(_EXAMPLES.search(name) for name in statement.under[-1:])
    return below_examples or _EXAMPLE_LABEL.match(statement.label) is not None


# --- Rules of the past, rules that are taken back, and rules for others

# what a label or a heading says of a rule that was in force, is not yet, or is quoted
_PAST = r"(?:old|former|previous|outdated|obsolete)"
_NOT_IN_FORCE = re.compile(
    r"(?:(?:the|our|an?) )?"
    + one_of(
        rf"{_PAST} (?:rules?|polic(?:y|ies)|workflows?|process|conventions?|guidelines?)(?: \w+)?",
        r"(?:previous|former)ly|historically|in the past|obsolete|myth|idea|to-?do|fixme|quote",
        r"[\w ]{1,40}\b(?:rule|policy|convention|process) (?:was|were|used to be)",
        r"(?:what|things|how) (?:that )?(?:we|this (?:repo|project)) (?:used to|previously|once)"
        r" [\w ]{1,40}",
        r"(?:what|things|rules|conventions|checks|tools) (?:that )?(?:we|this (?:repo|project))"
        r" (?:do not|don['’]t|no longer|never) (?:do|use|follow|require|enforce|need|have)",
        r"(?:(?:rules|conventions|checks|tools) )?(?:(?:that|which|are) )*(?:no longer|not)"
        r" (?:used|needed|required|enforced|apply|applied|in force|in use|valid)(?: any ?more)?",
        r"(?:rejected|retired|abandoned|archived)(?: \w+)?|non-?goals?|history",
        r"[\w'’ -]{1,40} \((?:not ours|obsolete|outdated|no longer used|archived)\)",
        r"(?:\w+ )?(?:error|warning|error message|log) (?:reads|says)",
    )
    + r"(?: \([^()]*\))?[\s:.]*",
    re.I,
)
# "none found in this repository (no `.cursorrules`)"
_ABSENT = re.compile(
    r"(?:none|nothing|not|no [\w `.,/-]{1,60}?)(?: (?:yet|currently))?"
    r" (?:found|present|configured|available|defined|installed|set up|exists?)\b",
    re.I,
)
_SAID_BEFORE = re.compile(r"(?P<label>[\w -]{1,60}): ")
# headings of what other people do: "Workflow for maintainers", "Commits (humans only)"
_OF_OTHERS = re.compile(
    r"\bfor (?:(?:the|our|project|human) )*(?:humans|maintainers?|reviewers?|release managers?"
    r"|admins?)(?: only)?[\s:.)]*$|\((?:humans?|maintainers?) only\)",
    re.I,
)


def is_not_in_force(statement: Statement) -> bool:
    """Whether a statement is quoted, or a rule of the past: "The old rule was: never push"."""
    said = _SAID_BEFORE.match(statement.text)
    names = (statement.label, said["label"] if said else "", *statement.under)
    if any(map(_NOT_IN_FORCE.fullmatch, names)) or _ABSENT.match(statement.text):
        return True
    above = {name.lower() for name in (statement.label, *statement.under[-1:])}
    return "deprecated" in above and not NEVER_FIRST.match(statement.text)


# where a statement ends and what is said of it begins: "Use npm - *not any more*"
_REMARK_BEGINS = re.compile(r"\s[—–-]{1,2}\s|[;()]|: |, (?=(?:which|but|though|although)\b)")
_TAKES_BACK = re.compile(
    r"(?:but |though |although |however,? )?(?:"
    # "this is no longer required"
    r"(?:(?:(?:this|that|it|these|they|both|which|(?:the|this|that) (?:rule|convention|policy|step"
    r"|check))) )?(?:(?:is|are|was|were|has been|have been|now|since|also|does|do) )*"
    r"(?:(?:no longer|not)(?: (?:really|strictly|yet|currently))* (?:needed|required|necessary|used"
    r"|enforced|true|valid|in force|in use|mandatory|applicable|apply|applies|done|followed)"
    r"|not any ?more|optional|obsolete|outdated|dropped|abandoned|lifted|rejected|retired"
    r"|(?:the |an? )?(?:old|former) rule|(?:was )?the rule (?:in|until|before) \S+)"
    # "we don't use them"
    r"|(?:which )?(?:we|the team|this (?:repo|project)) (?:(?:do|did|does)(?: not|n['’]t)|no longer"
    r"|never|(?:have )?stopped|(?:have )?dropped|(?:have )?abandoned|gave up(?: on)?)"
    r"(?: (?:really|actually|yet|currently))*(?: (?!it\b|this\b)\w+)?"
    r"(?: (?:them|it|this|that|those|these|so|this rule|that rule))?"
    r"|(?:nobody|no one) \w+ (?:them|it|this|that)"
    r")(?: (?:here|now|yet|any ?more|at the moment|currently|(?:in|since|as of) v?\d[\w. ]*))*",
    re.I,
)
# about a rule, and not the reason of a prohibition: "do not use yarn; *we dropped it*"
_OF_RULE = re.compile(
    r"\b(?:rule|convention|policy|enforced|in force|valid|true|mandatory|appl\w+|lifted|obsolete"
    r"|outdated|optional|followed|not any ?more)\b",
    re.I,
)


def is_taken_back(statement: Statement) -> bool:
    """Whether a remark on a statement, or the sentence after it, takes it back: "Use npm (no longer
    needed)".
    """
    remarks = _REMARK_BEGINS.split(statement.text)[1:]
    following = re.split(r"(?<=[.!?]) ", statement.following)[0]
    texts = [text.strip(" .!()*_") for text in (*remarks, following)]
    if NEVER_FIRST.match(statement.text):
        texts = [text for text in texts if _OF_RULE.search(text)]
    return any(map(_TAKES_BACK.fullmatch, texts))


def is_for_others(statement: Statement) -> bool:
    """Whether a heading says that a statement is for other people than the reader."""
    return any(map(_OF_OTHERS.search, statement.under))


_FOR_SOME_CODE = re.compile(r"\b(?:for|in) (?:new|old|legacy|existing) [\w ]+ only[.!]?$", re.I)


def is_for_some_code(statement: Statement) -> bool:
    """Whether a statement ends in words such as "for new modules only"."""
    return _FOR_SOME_CODE.search(statement.text) is not None


# --- Preferences, and occasions in a bot's prompt

_PREFERRED = re.compile(
    r"\((?:strongly |highly )?(?:preferred|recommended|suggested|optional|ideally)\)", re.I
)
_OPTIONAL = re.compile(
    r"[\W\d]*(?:optional(?:ly)?|nice to have)(?: (?:steps?|checks?|rules?|commands?))?\W*", re.I
)


def is_marked_as_preference(statement: Statement) -> bool:
    """Whether a statement says in brackets, or its label or heading does, that it is only preferred
    or optional.
    """
    above = (statement.label, *statement.under[-1:])
    if any(map(_PREFERRED.search, (statement.text, *statement.under[-1:]))):
        return True
    return any(map(_OPTIONAL.fullmatch, above))


_WHERE_POSSIBLE = re.compile(
    r"\b(?:where(?:ver)?|when(?:ever)?|if|as (?:much|far) as)"
    r" (?:possible|practical|feasible|appropriate)$",
    re.I,
)


def is_where_possible(clause: str) -> bool:
    """Whether a clause asks for something only where it is possible."""
    return _WHERE_POSSIBLE.search(clause) is not None and not NEVER_FIRST.match(clause)


_OCCASION = re.compile(
    one_of(
        *"if when whenever before once asked wenn falls bevor si quand cuando quando".split(),
        *(r"should (?:a|an|the|some\w*|any\w*)", "(?:for|to) questions"),
    )
    + r"\b",
    re.I,
)


def is_of_an_occasion(statement: Statement) -> bool:
    """Whether a sentence of a bot's prompt begins with an occasion: "When greeted, say hello"."""
    return _OCCASION.match(statement.text) is not None


# --- Conditions in a label or heading

_CONDITION = word_pattern(
    *"if when whenever while during once depending".split(),
    *("in case", "for (?:new|existing|complex|large)(?!-)"),
)

_WORKING = (
    r"(?:work|creat|open|contribut|submitt?|mak|writ|generat|edit|cod|develop|committ?|modify"
    r"|chang)ing(?: to)?"
)
# a heading that says when its items are done; it is not a condition
_UNCONDITIONAL = re.compile(
    one_of(
        r"(?:when(?:ever)? (?:you )?(?:mak|modif|chang|edit|writ)\w+ (?:any )?(?:code|changes)"
        r"[\w /]*, )?[^`]*\bbefore\b",
        r"when(?:ever)? (?:you )?(?:commit|push)(?:ting|ing)?\b",
        r"(?:when|once|after) (?:the|a|your|you are|you['’]re) ?[\w ]*"
        r"\b(?:finished|done|completed?|ready)\b",
        # "Follow these rules when creating or contributing to pull requests:"
        r"(?:[^`]*\b(?:rules|guidelines|instructions|conventions|standards|following|these|this)\b"
        r"[^`]*)?\bwhen(?:ever)? (?:you(?:['’]re| are)? )?"
        rf"{_WORKING}(?:,? (?:or|and) {_WORKING})*(?: (?:to|on|in|with))?"
        r"(?: (?:this|the|our|any|all|an?|new|your|these))*"
        r" (?:code|changes|repo|repository|codebase|project|pull requests?|PRs?|commits?|files)"
        r"[\s:.*]*$",
    ),
    re.I,
)
# a heading that limits its items to some kind of work: "Frontend-only scope", "PR review skill"
_SCOPE = re.compile(
    r"\w-only\b(?! files?\b)|\bscope\b *(?:\(|$)|^path [a-z]\b|\w skill *(?:\(|$)", re.I
)
# a heading of a procedure for one kind of thing: "Adding a page", "How to write a new test"
_PROCEDURE = re.compile(
    r"[\W\d]*(?:(?:how|steps|guide|instructions?|process|checklist|workflow) (?:to|for) )?"
    r"(?:[a-z]+ing|add|create|write|build|implement|make|define|introduce|set up|register)"
    r" (?:an? |another |new |your (?:own |first )|custom )(?:(?:an? |new |custom )*)"
    r"(?!(?:[\w-]+ )?(?:commits?|PRs?|pull|merge|branch(?:es)?|changes?|code|files?|features?"
    r"|tasks?|requests?)\b)",
    re.I,
)
# headings of procedures that are only followed at times, whose steps are no rules
_AT_TIMES = re.compile(
    r"\b(?:releas|hotfix|deploy|publish|backport|rollback|version|debugg|reproduc|triag|troubleshoot"
    r"|incident)\w*",
    re.I,
)


def conditions_above(statement: Statement) -> list[str]:
    """The label and the headings of a statement that name a condition."""
    names = (statement.label, *statement.under)
    is_ban = NEVER_FIRST.match(statement.text) is not None
    is_step = statement.is_numbered and not is_ban
    return [
        name
        for name in names
        if _SCOPE.search(name)
        or (_CONDITION.search(name) and not _UNCONDITIONAL.match(name))
        or (is_step and _AT_TIMES.search(name))
        or (not is_ban and _PROCEDURE.match(name))
    ]


_KIND_OF_CHANGE = re.compile(r"\b(?:changes?|files?|code|only)$", re.I)  # as in "Rust changes: ..."


def is_of_some_changes(statement: Statement) -> bool:
    """Whether a label limits a statement to some kind of change: "Rust changes: ..."."""
    label = statement.label
    is_kind = _KIND_OF_CHANGE.search(label) is not None and label.lower() not in ("files", "code")
    return is_kind and not NEVER_FIRST.match(label)


_WHEN_EDITING = re.compile(r"when (?:updating|editing|changing|modifying)[\s:.]*", re.I)


def says_when_editing(heading: str) -> bool:
    """Whether a heading says when files are edited, and not under which condition."""
    return _WHEN_EDITING.fullmatch(heading) is not None


# --- Exceptions beside a rule

_EXCEPTION = word_pattern(
    *("unless", "except", "exempt", "other than"),
    # "catch specific exceptions" is about code
    r"(?<!catch )(?<!raise )(?<!throw )(?<!specific )(?<!no )exceptions?"
    r"(?! (?:types?|class|handl|messag))",
    *("apart from", "aside from", "however", "but", "until", "without"),
    *(r"(?<!not )(?<!never )allowed", r"(?<!not )(?<!never )permitted"),
    *("only (?:if|when|for|in|on|with|as)", "fine", "okay", "ok", "may", "might", "rarely"),
    *("sparingly", "directly in"),
)
# "If it fails, fix it", after an order to run something
_IF_IT_FAILS = re.compile(
    r"if (?:it|this|they|any|anything|one|something|(?:a|the) \w+)(?: of (?:them|these))? fails?\b",
    re.I,
)
# "Update it only with `make bump`", after an order to leave a file alone
_ONLY_BY_COMMAND = re.compile(
    r"(?:update|regenerate|change|edit|modify|bump) (?:it|them|this|these) only"
    r" (?:with|via|through|by|using) (?:running )?`[^`]+`",
    re.I,
)
_FURTHER_ORDER = re.compile(
    r"(?:always |please |instead,? )?(?:use|run|prefer|see|edit|regenerate)\b", re.I
)


def names_exception(text: str) -> bool:
    """Whether a clause beside a rule makes an exception to it."""
    if _IF_IT_FAILS.match(text) or _ONLY_BY_COMMAND.match(text):
        return False
    if _FURTHER_ORDER.match(text):
        return bool(re.search(r"\b(?:unless|except)\b", text, re.I))
    return bool(_EXCEPTION.search(text) or re.match(r"(?:if|when|while|during)\b", text, re.I))


_EXCEPTION_AFTER = re.compile(
    r"(?:^|[.!] )"
    + one_of(
        *(r"the (?:only|sole|one) exception", r"exceptions?\b", r"except\b", r"unless\b"),
        *(r"however\b", r"but\b", "if you (?:need|must|have)", r"allowed\b"),
        # and not "Only ever write to `out/`", which forbids more
        r"only\b(?! (?:ever )?(?:write|edit|change|touch)(?: files)? (?:to|in|under|inside) `)",
        "it['’]s (?:fine|ok)",
    )
    + r"|\b(?:is|are) (?:exempt|(?:the|an) (?:only )?exceptions?)\b",
    re.I,
)


def begins_with_exception(following: str) -> bool:
    """Whether the sentences after a rule make an exception to it."""
    return _EXCEPTION_AFTER.search(following) is not None


# --- The reason why a statement is not read

_SOFT = word_pattern(
    *"avoid prefer preferably consider generally usually typically ideally".split(),
    *("try to", "where possible", "when possible", "if possible", "whenever possible"),
    *("as a rule", "in most cases", "should probably", "may want"),
)
_BEGINS = (  # the verbs that an instruction may begin with
    "use add run keep write follow check read update create include put place test document "
    "name return handle format commit open set remove start end reply answer respond call "
    "import export define declare fix verify review see ask wait do stop preserve match "
    "install build edit mark pass treat store validate work delete apply make load state "
    "inspect repeat provide resolve design generate consider try look stay be leave avoid "
    "let implement explain describe change limit group split move rename wrap extract "
    "report log throw raise catch pin bump push rebase merge squash reference link mention "
    "assume confirm search find list reuse lead skip drop note remember understand address "
    "speak talk say tell greet sign close begin finish refer offer recommend suggest thank "
    "introduce express adopt maintain respect translate summarise summarize refuse decline "
    "redirect guide help show give escalate hand transfer modify alter update combine enforce"
)
_INSTRUCTION = re.compile(
    r"\b"
    + one_of(
        *("always", "never", "must", "should", "shall", "do not", "don['’]t", "cannot"),
        *("can['’]t", "avoid", "only", "ensure", "make sure", "required", "forbidden"),
        *("prohibited", "banned", "off[- ]limits", "not (?:allowed|permitted)", "prefer", "no"),
        # "every new file starts with a licence"
        r"(?:each|every|all) new\b[^.]*\b(?:starts?|begins?|ends?|ha[sv]e?|includes?|contains?)",
    )
    + rf"\b|^{one_of(*_BEGINS.split())}\b",
    re.I,
)


def why_unread(statement: Statement) -> Undrafted:
    """Why a statement that no reader knows is not a rule, as far as its words tell."""
    text = f"{statement.label}: {statement.text}" if statement.label else statement.text
    if _SOFT.search(text):
        return A_PREFERENCE
    if not _INSTRUCTION.search(text):
        return NOT_AN_INSTRUCTION
    if _CONDITION.search(text) or re.search(r"\bunless\b", text):
        return CONDITIONAL
    return NO_MEASURE if "`" in text else NEEDS_A_JUDGE
