"""Rules about files that no commit has: "never commit `.env`"."""

import re

from holdfast.drafting.clauses import all_known, names_in
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    CODES,
    NEVER,
    TAIL,
    any_words,
    forbidden,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.path_globs import glob_argument, path_glob
from holdfast.drafting.rules_file import Statement

_COMMIT = "(?:commit|check in|stage)"
# "any secrets, API keys or files in"
_BEFORE_FILES = "(?:{} ?)*".format(
    one_of(
        *("the", "any", "anything in", "files in", "files under", "your", "generated", "local"),
        *("secrets", "API keys", "credentials", "tokens", "keys", "sensitive data", "or", "and"),
        *("lock files", "logs", "binaries", "(?:build|test) (?:artifacts?|outputs?|results?)", ","),
    )
)
_FILES = r"(?: files?| director(?:y|ies)| folders?)?"
_COMMITTING = forbidden(
    {
        "commit secrets or `.env` files, or anything alike": (
            rf"{_COMMIT} {_BEFORE_FILES}(?P<files>{CODES}|\.env){_FILES}"
            rf"(?:(?:,? or |, )[\w ,-]+)?{TAIL}"
        )
    },
    f"{any_words('always', 'please', 'important', 'strictly')}{NEVER} ",
)
_SUCH_AS = forms(
    {
        "Never commit sensitive data (`.env` files, credentials)": (
            rf"(?:always |please )?{NEVER} {_COMMIT} (?:any )?[\w ,/-]{{3,50}}"
            r" \((?:e\.g\.,? |like |such as )?"
            rf"(?P<files>{CODES}|\.env){_FILES}(?:, [\w ,-]+)?(?:,? etc\.?)?\)"
        )
    }
)
_CANNOT_BE_COMMITTED = forms(
    {
        "The file `a.py` is generated and must not be committed": (
            rf"(?:the )?(?:files? |folder |directory )?(?P<files>{CODES}){_FILES}"
            r"(?: (?:is|are) [\w -]{3,30}(?:,| and))? (?:must|should|may|can) (?:never|not) be"
            rf" (?:committed|checked in|added to git){TAIL}"
        )
    }
)
# "`gen/` is built - never commit it"
_FILES_FIRST = re.compile(rf"(?:the )?(?P<files>{CODES}){_FILES} (?:is|are)\b", re.I)
_NOT_THEM = forms(
    {
        "never commit it": rf"{NEVER} {_COMMIT} (?:it|them|this|these)(?: files?)?{TAIL}",
    }
)
_ENVIRONMENT = (".env", ".env*")  # files, where `path_glob` takes such a name for a folder too


def committed_file_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never commit `.env`."""
    match = _COMMITTING.match(clause, prohibits) or whole_match(_CANNOT_BE_COMMITTED, clause)
    match = match or whole_match(_SUCH_AS, statement.text.strip(" .!"))
    if match is None and whole_match(_NOT_THEM, clause):
        match = _FILES_FIRST.match(statement.text)
    if match is None:
        return None
    names = [name for name, _ in names_in(match["files"])]
    paths = all_known([name if name in _ENVIRONMENT else path_glob(name) for name in names])
    if paths is None:
        return None
    spec = {"name": "commit_excludes", "paths": glob_argument(paths)}
    return [Draft("commit", "prohibition", spec)]
