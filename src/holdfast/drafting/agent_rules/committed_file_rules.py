"""Rules about files that no commit has: "never commit `.env`"."""

import re

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, all_known, names_in
from holdfast.drafting.grammar.forms import CODES, forms, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.grammar.path_globs import glob_argument, path_glob

# "any secrets, API keys or files in"
_WORDS_BEFORE_FILES = "(?:{} ?)*".format(
    one_of(
        *("the", "any", "anything in", "files? in", "files under", "your", "generated", "local"),
        *("secrets", "API keys", "credentials", "tokens", "keys", "sensitive data", "or", "and"),
        *("lock files", "logs", "binaries", "(?:build|test) (?:artifacts?|outputs?|results?)", ","),
        *("files?", "folder", "directory"),
    )
)
_FILES = r"(?: files?| director(?:y|ies)| folders?)?"
_COMMITTED_FILES = forms(
    {
        "secrets or `.env` files, or anything alike": (
            rf"{_WORDS_BEFORE_FILES}(?P<files>{CODES}|\.env){_FILES}"
            r"(?:(?:,? or |, )[\w ,-]+)?"
        ),
        "sensitive data (`.env` files, credentials)": (
            r"(?:any )?[\w ,/-]{3,50} \((?:e\.g\.,? |like |such as )?"
            rf"(?P<files>{CODES}|\.env){_FILES}(?:, [\w ,-]+)?(?:,? etc\.?)?\)"
        ),
    }
)
# "`gen/` is built", before "never commit it"
_FILES_FIRST = re.compile(rf"(?:the )?(?P<files>{CODES}){_FILES} (?:is|are)\b", re.I)
_THEM = re.compile("(?:it|them|this|these)(?: files?)?", re.I)
_REPOSITORY = re.compile(r"(?:the )?(?:git|repo|repository|version control|source control)", re.I)
_ENVIRONMENT = (".env", ".env*")  # files only, which `path_glob` would take for folders too


def committed_file_rule(clause: Clause) -> list[Draft]:
    """Reads "never commit `.env`" and "`.env` must not be committed"."""
    match = _match_in(clause)
    if match is None:
        return []
    names = [name for name, _ in names_in(match["files"])]
    paths = all_known([name if name in _ENVIRONMENT else path_glob(name) for name in names])
    if not paths:
        return []
    spec = measure("commit_excludes", paths=glob_argument(paths))
    return [Draft("commit", "prohibition", spec)]


def _match_in(clause: Clause) -> re.Match[str] | None:
    """The match that names the files, in the clause or elsewhere in its statement; None if the
    clause does not forbid committing files.
    """
    whole = clause.statement.text.strip(" .!")
    instructions = [instruction_of(text, clause.is_prohibited) for text in (clause.text, whole)]
    for instruction in filter(None, instructions):
        if not _forbids_committing(instruction):
            continue
        place = instruction.text_of(Relation.IN)
        files = f"{instruction.object} in {place}" if place else instruction.object
        if match := whole_match(_COMMITTED_FILES, files):
            return match
        if _THEM.fullmatch(instruction.object):
            return _FILES_FIRST.match(whole)
    return None


def _forbids_committing(instruction: Instruction) -> bool:
    """Whether an instruction forbids to commit something, always."""
    place = instruction.text_of(Relation.TO) or "git"
    return (
        instruction.modality is Modality.NEVER
        and instruction.does(("commit", "stage"))
        and instruction.has_only(Relation.TO, Relation.IN)
        and _REPOSITORY.fullmatch(place) is not None
    )
