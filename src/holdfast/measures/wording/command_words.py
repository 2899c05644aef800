"""The words that people use to ask for the commands that a regular expression matches.

    command_cues("git push --force") yields a pair of patterns, which match
        "push", "pushing", "ship", "publish", ...
        "--force", "force", "overwrite", ...

"Please ship it, and overwrite theirs if you have to" matches both, so it asks for the command.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from holdfast.measures.wording.wordings import Patterns

# --- Words for a command

# a command's action, and the verbs that order it
ACTIONS = {
    "push": ["push", "publish", "ship", "upload", "send", "put", "get", "bring", "land", "deploy"],
    "commit": ["commit"],
    "merge": ["merge", "land", "combine"],
    "publish": ["publish", "release", "ship"],
    "deploy": ["deploy", "release", "ship", "roll"],
    "apply": ["apply", "deploy", "provision", "roll"],
    "destroy": ["destroy", "remove", "delete"],
    "delete": ["delete", "remove", "destroy"],
    "install": ["install", "add"],
    "rm": ["rm", "delete", "remove", "erase", "wipe", "clear"],
    "curl": ["curl", "download", "fetch"],
    "wget": ["wget", "download", "fetch"],
    "ssh": ["ssh", "connect"],
    "reset": ["reset", "discard", "undo", "revert"],
    "rebase": ["rebase"],
    "amend": ["amend"],
    "tag": ["tag"],
}
_FORMS = """
add added adding adds
amend amended amending amends
apply applied applying applies
bring brought bringing brings
clear cleared clearing clears
combine combined combining combines
commit committed committing commits
connect connected connecting connects
curl curled curling curls
delete deleted deleting deletes
deploy deployed deploying deploys
destroy destroyed destroying destroys
discard discarded discarding discards
download downloaded downloading downloads
erase erased erasing erases
fetch fetched fetching fetches
get got gotten getting gets
install installed installing installs instals
land landed landing lands
merge merged merging merges
provision provisioned provisioning provisions
publish published publishing publishes
push pushed pushing pushes force-push force-pushed force-pushing force-pushes
put putting puts
release released releasing releases
remove removed removing removes
reset re-set resetting re-setting resets re-sets
revert reverted reverting reverts
roll rolled rolling rolls
send sent sending sends
ship shipped shipping ships
tag tagged tagging tags
undo undid undone undoing undoes
upload uploaded uploading uploads
wipe wiped wiping wipes
"""
# the forms of a verb, itself included; a verb without a line has no other forms here
FORMS = {line.split()[0]: line.split() for line in _FORMS.strip().splitlines()}
# a word of a command, and a pattern for other names of it
NAMES = {
    "sudo": r"as root|root (?:rights?|privileges?|permissions?|access)|as (?:an )?admin\w*"
    r"|superuser|elevated",
    "--force": r"force|forced|forcing|overwrite",
    "-f": r"force|forced|forcing|overwrite",
    "--no-verify": r"(?:skip|skipping|without|bypass|bypassing|no)(?: \w+){0,2} (?:hooks?|checks?)",
    "--amend": r"amend|(?:to|into) the (?:last|previous) commit",
    "prod": r"production|live",
    "production": r"prod|live",
    "staging": r"stage",
    "docker": r"containers?",
    "npx": r"npm",
    "python": r"python3",
    "pip": r"pip3",
}
# programs and words that run something: what they run says more about the command
_RUNNERS = frozenset(
    "make npm pnpm yarn npx run exec cargo go uv poetry bundle bun rake just python python3 py sudo"
    " docker git sh bash mvn gradle dotnet".split()
)
# programs whose subcommand says what they do: people say "push", not "git push"
_PROGRAMS = frozenset("git npm pnpm yarn cargo docker kubectl terraform helm gh poetry uv".split())
# programs whose name is a verb
_ENGLISH_VERBS = frozenset(("make", "just"))
# the end of "make deploy", "make deploy now" and "make deploy, please"; not "make deploy notes"
_NO_NOUN = (
    r"(?!\s+(?!(?:now|please|again|first|instead|anyway|too|today|once|it|this|that|to|for|in|on|at"
    r"|as|and|then|so|or|before|after|if|when|with|from|by|while|without|yourself|manually|target"
    r"|command|step)\b)[a-z])"
)
# parts of the names of hosts that many hosts share
_COMMON_PARTS = frozenset("internal com org net www local io dev".split())

# --- The words in a regular expression for commands

# what it has besides words
_OPTIONAL_NESTED = r"(\((?:[^()\\]++|\\.|(?1))*+\))[?*]"  # "( -[A-Z]+(=\S+)?)*"
_BETWEEN_WORDS = r"\\[bBsSwWdDAZ](?:[*+?]|\{[^}]*\})?|[\^$]"  # "\b", "\s+", "^"
_OPTIONAL = r"\([^()|]*\)[*?]"  # "(?:-q )?"
_NOT_BEFORE = r"\(\?![^()]*\)"  # "(?!\S)"
_ANY_TEXT = r"\[[^\]]*\][*+?]?|\.[*+]\??"  # "[^;]*", ".*?"
_NO_WORDS = re.compile(rf"{_OPTIONAL}|{_NOT_BEFORE}|{_ANY_TEXT}")
# a command without alternatives, perhaps with the end of its last word
_LITERAL = re.compile(r"((?:[^\\.^$*+?{}\[\]|()]|\\[^\w])+?)(?:\\b|\(\?!\\S\)|\$)?")
_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")  # "(?i)"

_WORD = r"[\w./@:-]+"  # "--force", "db.prod"
_WORD_OR_GROUP = re.compile(rf"\([^()]*\)|{_WORD}")  # "(npm|pnpm)"
_OR_OUTSIDE_GROUPS = re.compile(r"\|(?![^(]*\))")  # "|" in "npm test|(a|b)", the first one

Alternatives = list[str]  # the words that may be at one place of a command: ["npm", "pnpm"]


def command_cues(command: str) -> Iterator[Patterns]:
    """Yields patterns for each command that a regular expression matches.

    An order that matches all patterns of one command asks for it, by its own words or by others.
    """
    for words in _commands(command):
        action, *others = words
        if others and set(action) & _PROGRAMS and not others[0][0].startswith("-"):
            action, *others = others  # "push" of "git push"
        patterns = [_any_of(form for word in action for form in _forms_of_action(word))]
        patterns += [_any_of(map(_names_of, words)) for words in others if _is_sayable(words)]
        if set(action) & _ENGLISH_VERBS and len(patterns) > 1:
            patterns[-1] += _NO_NOUN
        yield tuple(patterns)


def runner_words(command: str) -> str:
    """Returns a pattern for the thing that a command runs, such as its tests; "" if unknown.

    That of "npm run lint|make check" matches "lint", "linting", "check", "checks" and so on.
    """
    words = chain.from_iterable(chain.from_iterable(_commands(command)))
    things = [word for word in words if word not in _RUNNERS and not word.startswith("-")]
    if not things:
        return ""
    forms = [rf"{re.escape(word)}(?:s|ing|er|ers|ed)?" for word in things]
    if any("test" in word for word in things):
        forms += [r"tests?", r"testing", r"suite"]
    if any(word in ("lint", "ruff", "eslint", "check") for word in things):
        forms += [r"lint\w*"]
    return _any_of(forms)


def commands_in_words(pattern: str) -> str:
    """Writes a regular expression for commands as a person would; "" if it has no words.

    >>> commands_in_words(r"(?:npm|pnpm) run lint(?!\\S)|make lint")
    '`npm/pnpm run lint` or `make lint`'
    >>> commands_in_words(r"go vet \\./\\.\\.\\.")
    '`go vet ./...`'
    """
    if literal := _LITERAL.fullmatch(pattern):
        command = re.sub(r"\\(.)", r"\1", literal[1])
        return f"`{command}`"
    commands = []
    for words in _commands(_FLAGS.sub("", pattern)):
        command = " ".join("/".join(alternatives) for alternatives in words)
        commands.append(f"`{command}`")
    return " or ".join(commands)


def _commands(pattern: str) -> list[list[Alternatives]]:
    """Returns the literal words of each command that a regular expression matches.

    >>> _commands(r"(?:npm|pnpm) run lint(?!\\S)|make lint")
    [[['npm', 'pnpm'], ['run'], ['lint']], [['make'], ['lint']]]
    """
    import regex  # takes a while to import, and has the recursion that nested groups need

    text = regex.sub(_OPTIONAL_NESTED, " ", pattern)
    text = re.sub(r"(?<=\w)\w\?", "", text)  # "pip3?" becomes "pip"
    text = re.sub(_BETWEEN_WORDS, " ", text).replace("\\", "")
    text = _NO_WORDS.sub(" ", text).replace("(?:", "(")
    commands = []
    for alternative in _OR_OUTSIDE_GROUPS.split(text):
        words = list(filter(None, map(_words_of, _WORD_OR_GROUP.findall(alternative))))
        if words:
            commands.append(words)
    return commands


def _words_of(token: str) -> Alternatives:
    """Returns the words of a group such as "(npm|pnpm)"; punctuation alone is not a word."""
    return [word for word in re.findall(_WORD, token) if re.search(r"\w", word)]


def _is_sayable(alternatives: Alternatives) -> bool:
    """Whether an order can name one of these words; people do not say flags, but for a few."""
    return any(not word.startswith("-") or word in NAMES for word in alternatives)


def _forms_of_action(word: str) -> Iterator[str]:
    """Yields the forms of the verbs that order a command's action, and the names of the action."""
    for verb in ACTIONS.get(word, ()):
        yield from FORMS.get(verb, [verb])
    yield _names_of(word)


def _names_of(word: str) -> str:
    """Returns a pattern for a word of a command and its other names.

    A host such as db.prod.internal may also be called "prod", or "production".
    """
    forms = [re.escape(word.casefold())]
    if word in NAMES:
        forms.append(NAMES[word])
    parts = [part for part in re.split(r"[.:/@]", word.casefold()) if len(part) > 1]
    specific_parts = [part for part in parts if part not in _COMMON_PARTS]
    if len(parts) > 1 and specific_parts:
        short_names = [part for part in specific_parts if part in NAMES] or specific_parts[:1]
        forms += [f"{re.escape(part)}|{NAMES.get(part, re.escape(part))}" for part in short_names]
    return "|".join(forms)


def _any_of(forms: Iterable[str]) -> str:
    """Returns a pattern for any of the forms, as a whole word."""
    return rf"(?<![\w.-])(?:{'|'.join(dict.fromkeys(forms))})(?!\w)"
