"""Rewrites a clause in the words that the grammar knows.

For example:

    "Omit semicolons"                      -> "no semicolons"
    "Ensure that `.env` is not committed"  -> "`.env` must not be committed"
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rewording:
    """A wording that the grammar does not know, and the usual one.

    Args:
        example: a clause with the wording, and `rewritten`: the clause that it becomes. A test
            rewrites every example.
        replacement: the usual words, in which `\\g<name>` is a part of the match.
    """

    example: str
    rewritten: str
    pattern: re.Pattern[str]
    replacement: str


def _reword(example: str, rewritten: str, pattern: str, replacement: str) -> Rewording:
    """A rewording; the case of letters does not matter."""
    return Rewording(example, rewritten, re.compile(pattern, re.I), replacement)


# They are applied one after the other, so that one may prepare the words for those below it.
REWORDINGS = (
    # --- Who may do something, and where
    _reword(
        "the domain layer never imports FastAPI",
        "the domain layer must not import FastAPI",
        r"^(?P<place>(?:the |all )?(?:`[^`]+`|[\w-]+ (?:layer|code|module|package|crate|classes)))"
        r" never (?P<verb>import|depend)s?(?P<on> on)? ",
        r"\g<place> must not \g<verb>\g<on> ",
    ),
    _reword(
        "when running shell commands, never use `sudo`",
        "never use `sudo`",
        r"^when running (?:shell |any )?commands, ",
        "",
    ),
    _reword(
        "nothing outside `src/api/` may call `fetch()`",
        "never call `fetch()` outside `src/api/`",
        r"^(?:only (?:code |files )?(?:in |inside |under )?"
        r"|(?:nothing|no code|no files?|no other (?:code|files?)) outside (?:of )?)(?:the )?"
        r"(?P<place>`[^`]*[/.][^`]*`)"
        r" (?:may|can|should|must|is allowed to|are allowed to)(?: ever| directly)?"
        r" (?P<verb>use|call|import|access|read|touch|import from)(?: directly)?"
        r" (?P<what>`[^`]+`)(?: directly)?$",
        r"never \g<verb> \g<what> outside \g<place>",
    ),
    _reword(
        "never edit anything below `gen/`",
        "never edit anything in `gen/`",
        r"\b(?P<files>anything|everything|(?:any )?files?) (?:below|beneath|underneath)"
        r" (?=`[^`]+/`)",
        r"\g<files> in ",
    ),
    # --- Prohibitions in other words
    _reword(
        "there must be no `print`",
        "no `print`",
        r"^there (?:(?:must|should|shall|can) (?:be no|never be|not be)|(?:is|are) to be no)"
        r" (?:any )?(?=\S)",
        "no ",
    ),
    _reword(
        "never fetch data directly in components",
        "never call `fetch()` in components",
        r"\b(?P<never>never|do not|don['’]t) fetch (?:data )?directly (?=(?:from|in|inside) )",
        r"\g<never> call `fetch()` ",
    ),
    _reword(
        "keep `src/core/` free of `print`",
        "no `print` in `src/core/`",
        r"^(?:(?:always )?keep (?P<kept>[^,;:]{1,60}?)"
        r"|(?P<place>[^,;:]{1,60}?) (?:must|should) (?:always )?(?:be(?: kept)?|stay|remain)) free"
        r" (?:of|from) (?:any |all )?(?P<what>(?:`[^`]*`|[^;:`])+)$",
        r"no \g<what> in \g<kept>\g<place>",
    ),
    _reword(
        "no direct pushes to main allowed",
        "no direct pushes to main",
        r"^(?P<nothing>no .+?) (?:(?:are|is) )?(?:allowed|permitted)$",
        r"\g<nothing>",
    ),
    # says again what a condition named
    _reword(
        "if you change `ui/`, run the checks for that package",
        "if you change `ui/`, run the checks",
        r" for that (?:package|folder|module|app)(?: too| as well)?\b",
        "",
    ),
    # an order, where "`.env` is not committed" alone is a description
    _reword(
        "ensure that `.env` is not committed",
        "`.env` must not be committed",
        r"^(?:(?:always|please) )?(?:ensure|make sure|be sure|see to it|verify|check)(?: that)?"
        r" (?P<subject>[^,;:]{1,80}?) (?:is|are) (?:not|never)"
        r" (?=(?:being )?[a-z-]+(?:ed|en)\b)",
        r"\g<subject> must not be ",
    ),
    _reword(
        "never leave whitespace at the end of lines",
        "never use trailing whitespace",
        r"\bleave (?:any )?(?:trailing whitespace|whitespace at the end of (?:the )?lines?)",
        "use trailing whitespace",
    ),
    # --- Acts and occasions
    _reword(
        "run `make` before asking for a review",
        "run `make` before requesting review",
        r"\b(?:asking|submitting|sending|handing)"
        r"(?: (?:it|them|(?:the |your )?(?:changes|code|work|PR)))?"
        r" (?:for|to) (?:a )?(?:(?:human|peer|final|code) )*review\b",
        "requesting review",
    ),
    _reword(
        "make sure all tests pass (`make test`)",
        "make sure `make test` passes",
        r"\b(?:(?:all|the|your|existing|unit) )*"
        r"(?:tests?|build|lint(?:er|ing)?|type ?checks?|checks?)"
        r" (?:pass(?:es)?|succeeds?|(?:is|are) (?:clean|green)|must pass)(?: locally)?"
        r"(?: \((?=`[^`]+`\))|: (?=`[^`]+`$))(?P<command>`[^`]+`)\)?",
        r"\g<command> passes",
    ),
    _reword(
        "for Rust changes, run `cargo test`",
        "after Rust changes, run `cargo test`",
        # "Rust" and "C#" begin with a capital letter
        r"(?-i:\b[Ff]or (?=(?:(?:any|every|all|each) )?(?:[A-Z][\w#+]* |code )?"
        r"(?:changes?|edits?|modifications?)(?:$|[,:]| (?:to|in|under|of)\b)))",
        "after ",
    ),
    _reword(
        "never use direct `os.environ` access",
        "never use `os.environ`",
        r"\b(?:never|no|not) (?:use )?direct (?P<codes>`[^`]+`) (?:access|usage|use)\b",
        r"never use \g<codes>",
    ),
    _reword(
        "do not reintroduce `legacy/`",
        "do not create or edit `legacy/`",
        r"(?:(?<=n[o'’]t )|(?<=never ))"
        r"(?:re-?introduce|re-?create|bring back|re-?add) (?=`[^`]*/)",
        "create or edit ",
    ),
    _reword(
        "direct pushes to `main` are blocked",
        "never push to `main`",
        r"^direct pushes to (?P<branch>\S+(?: branch)?)"
        r" (?:are|is) (?:blocked|rejected|disabled|prevented)\b.*",
        r"never push to \g<branch>",
    ),
    _reword(
        "never check in `.env`",
        "never commit `.env`",
        r"(?:(?<=n[o'’]t )|(?<=never ))check in (?=`)",
        "commit ",
    ),
    _reword(
        "never work on `vendor/`",
        "never edit `vendor/`",
        r"(?<=never )work on (?:or develop )?",
        "edit ",
    ),
    _reword(
        "`web/` must not depend on `db/`",
        "`web/` must not import from `db/`",
        r"(?<=\bnot )depend (?:directly )?on (?=`|the )",
        "import from ",
    ),
    # --- The first words
    _reword(
        "absolutely no emojis",
        "no emojis",
        r"^(?:(?:absolutely|strictly|definitely|leave) no|(?:absolutely )?zero(?= [a-z-]+s\b)) ",
        "no ",
    ),
    _reword("no todo's", "no TODOs", r"\btodo['’]?s\b", "TODOs"),
    _reword("never force push", "never force-push", r"\bforce (?=push)", "force-"),
    _reword(
        "this repository uses pnpm",
        "use pnpm",
        r"^(?:we|(?:this|the|our) (?:project|repo|repository|codebase|workspace|monorepo))"
        r" uses? (?=\S)|^(?:(?:all|our|the) )?(?:[A-Z]\w+ )?(?:unit )?tests use (?=`)",
        "use ",
    ),
    _reword(
        "omit semicolons",
        "no semicolons",
        r"^(?:always )?(?:omit|leave out) (?:all |any |the )?",
        "no ",
    ),
)


def in_usual_words(text: str) -> str:
    """A clause in the words that the grammar knows: "omit semicolons" is "no semicolons"."""
    for rewording in REWORDINGS:
        text = rewording.pattern.sub(rewording.replacement, text)
    return text
