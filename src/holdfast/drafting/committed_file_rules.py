"""Rules about files that no commit has: "never commit `.env`"."""

import re

from holdfast.drafting.clauses import Clause, all_or_none, names_in
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    CODES,
    NEVER,
    TAIL,
    any_words,
    forbid,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.path_globs import glob_argument, path_glob

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
_COMMITTING = forbid(
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
# "`gen/` is built", before "never commit it"
_FILES_FIRST = re.compile(rf"(?:the )?(?P<files>{CODES}){_FILES} (?:is|are)\b", re.I)
_NOT_THEM = forms(
    {
        "never commit it": rf"{NEVER} {_COMMIT} (?:it|them|this|these)(?: files?)?{TAIL}",
    }
)
_ENVIRONMENT = (".env", ".env*")  # files only, which `path_glob` would take for folders too


def committed_file_rule(clause: Clause) -> list[Draft]:
    """Reads "never commit `.env`"."""
    match = _match_in(clause)
    if match is None:
        return []
    names = [name for name, _ in names_in(match["files"])]
    paths = all_or_none([name if name in _ENVIRONMENT else path_glob(name) for name in names])
    if paths is None:
        return []
    spec = {"name": "commit_excludes", "paths": glob_argument(paths)}
    return [Draft("commit", "prohibition", spec)]


def _match_in(clause: Clause) -> re.Match[str] | None:
    """The match that names the files, in the clause or elsewhere in its statement; None if the
    clause does not forbid committing files.
    """
    whole = clause.statement.text
    match = _COMMITTING.match(clause.text, clause.is_prohibited)
    match = match or whole_match(_CANNOT_BE_COMMITTED, clause.text)
    match = match or whole_match(_SUCH_AS, whole.strip(" .!"))
    if match is None and whole_match(_NOT_THEM, clause.text):
        match = _FILES_FIRST.match(whole)
    return match
