"""Rules that files are not edited, or not committed.

For example:

    Never edit `vendor/`.                -> file_not_touched(path="vendor/*")
    `src/gen/` is generated, don't edit. -> file_not_touched(path="src/gen/*")
    Never commit `.env`.                 -> commit_excludes(paths=".env")
"""

import re
from collections.abc import Iterable

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in, names_in
from holdfast.drafting.grammar.forms import (
    CODE,
    CODES,
    NEVER,
    OBJECTS,
    REASON,
    first_match,
    form,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.grammar.instruction_words import (
    EDIT,
    MAKE_FILES,
    REMOVE_FILES,
    VERBS,
    Relation,
)
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.grammar.named_files import glob_argument, path_glob

# --- Files that are named in the prohibition: "never edit `vendor/`"

# what comes before and after the names of files: "*any files in* `src/`", "`src/` *JSON files*"
_FILE_WORDS = (
    r"the|any|all|generated|existing|translated|translations|docs|artifacts|bindings|output|files?"
    r"|folders?|anything|code|director(?:y|ies)|changes|edits|content|contents|manual|direct|new"
    r"|artefacts|outputs|results|raw|original"
)
_NAMED_FILES = forms(
    {
        "any generated files in `vendor/`": (
            rf"(?:(?:{_FILE_WORDS}|in|inside|under|of|to|such as|like) )*"
            rf"(?P<files>{CODES}|{OBJECTS})"
            r"(?:,? (?:or|and) (?:other |any )?[a-z ]+ (?:artifacts|files|output))?"
            r"(?: (?P<kind>YAML|JSON|TOML|Markdown|SQL|XML|CSS|HTML))?"
            r"(?: files?| folders?| director(?:y|ies))?"
        ),
        "system files (`/etc`)": (
            r"(?:[\w-]+,? ){1,6}?(?:files?|code|folders|directories)"
            rf" \((?:e\.g\.,? |such as )?(?P<files>{CODES}(?:(?:,|,? or|,? and) any {CODE})*)"
            r"(?:,? [\w., -]*?etc\.?)?\)"
        ),
    }
)
# files that people name by their kind, and their globs
_KINDS_OF_FILES = (
    (
        form("any changeset files", r"(?:(?:the|any|a|new) )*changesets?(?: files?)?"),
        ".changeset/*",
    ),
    (
        form(
            "the Prisma schema structure",
            r"(?:(?:the|any|a) )*Prisma (?:schema|data model|models)(?: (?:structure|files?))?",
        ),
        "*schema.prisma",
    ),
    (
        form("lock files", r"(?:(?:the|any|a) )*lock ?files?"),
        "{package-lock.json,yarn.lock,pnpm-lock.yaml,bun.lock,bun.lockb,uv.lock,poetry.lock"
        ",Cargo.lock,Gemfile.lock,composer.lock,go.sum}",
    ),
)
# the ending of files of a kind, where it is not the name of the kind
_ENDINGS = {"yaml": "{yml,yaml}", "markdown": "{md,mdx}"}
# measures know that `npm install` edits package.json, so such a rule would forbid the command
_BY_COMMAND = (
    r"(?:with|via|through|by|using)(?: running)? `(?!(?:npm|pnpm|yarn|bun|uv|poetry|cargo|composer"
    r"|bundle|go) (?:i|install|add|remove|uninstall|version|require|get|pkg)\b)[^`]+`(?: .*)?"
)
_LEFT_ALONE = forms(
    {
        "Leave `vendor/` untouched": (
            rf"(?:always |please )?leave (?:the |all )?(?:files in )?(?P<files>{CODES})"
            r"(?: files?| folders?| director(?:y|ies))?"
            r" (?:alone|untouched|unchanged|as (?:it|they) (?:is|are)|as is)"
        ),
        "Stay out of `vendor/`": (
            rf"(?:always |please )?(?:(?:stay|keep) out of|hands off|keep your hands off)"
            rf" (?:the |all )?(?:files in )?(?P<files>{CODES})"
            r"(?: files?| folders?| director(?:y|ies))?"
        ),
        "Keep `vendor/` and `a.json` intact": (
            r"(?:always |please )?keep (?:the |all )?(?:files in )?"
            rf"(?P<files>{CODES}(?:,? and {CODE})?)(?: files?| folders?| director(?:y|ies))?"
            r" (?:intact|untouched|unchanged|as is|as (?:it|they) (?:is|are))"
        ),
        "Treat `dist/` as a generated snapshot": (
            rf"(?:always |please )?treat (?:the |all |everything in |files in )?(?P<files>{CODES})"
            r"(?: files?| folders?| director(?:y|ies))? as"
            r" (?:(?:an? |strictly |fully |auto-?)*(?:generated|vendored|immutable|frozen)"
            r"(?: [\w-]+){0,3}|(?:strictly )?read-only)"
        ),
        "Change `VERSION` only through `make bump`": (
            rf"(?:change|edit|update|modify|bump) (?:the )?(?P<files>{CODES})(?: files?)? only"
            rf" {_BY_COMMAND}"
        ),
        "Only change `VERSION` through `make bump`": (
            rf"only (?:ever )?(?:change|edit|update|modify|bump) (?:the )?(?P<files>{CODES})"
            rf"(?: files?)? {_BY_COMMAND}"
        ),
    }
)
_NEVER_HAND_EDITED = forms(
    {
        "Generated files are not hand-edited: `a.ts`, `b.ts`": (
            r"(?:(?:all|the|these|generated|auto-generated|vendored|build|following) )*"
            r"(?:files|code|folders|artifacts) (?:are|is|must|should) (?:never|not)(?: be)?"
            r" (?:hand-?edited|edited(?: by hand| manually)?|modified(?: by hand| manually)?):"
            rf" (?P<files>{CODES})"
        ),
        "Do not touch generated files: `a.ts`, `dist/`": (
            r"(?:do not|don['’]t|never|must not)(?: ever)?(?: (?:directly|manually))?"
            r" (?:touch|edit|modify|change|hand-?edit)"
            r" (?:(?:any|all|the|these|generated|auto-generated|vendored|build|following) )*"
            rf"(?:files|code|folders|directories|artifacts|paths): (?P<files>{CODES})"
        ),
    }
)
_NO_FILES = form("No `.ts`, `.tsx` files", rf"no (?P<files>{CODES}) files?(?: anywhere| at all)?")


def protected_file_rule(clause: Clause) -> list[Draft]:
    """Reads "do not edit files in `vendor/`"."""
    if match := whole_match(_NO_FILES, clause.text):
        globs = [path_glob(code) or "" for code in codes_in(match["files"])]
        return _protect(globs) if all(glob.startswith("*.") for glob in globs) else []
    if match := whole_match(_NEVER_HAND_EDITED, clause.statement.text.strip(" .")):
        return _protect(_globs_in(match["files"])) if clause.begins_statement else []
    instruction = instruction_of(clause.text, clause.is_prohibited)
    words = _files_left_alone(instruction) if instruction else ""
    for kind_of_files, glob in _KINDS_OF_FILES:
        if whole_match(kind_of_files, words):
            return _protect([glob])
    match = whole_match(_NAMED_FILES, words) or _match_instead_of_editing(clause)
    if match is None and not clause.is_prohibited:
        match = whole_match(_LEFT_ALONE, clause.text)
    return _protect(_named_globs(match)) if match else []


def _named_globs(match: re.Match[str]) -> list[str]:
    """The globs of the files that a wording names, perhaps only those of a kind: "any JSON files in
    `src/`".
    """
    globs = _globs_in(match["files"].replace(" any ", " "))
    kind = (match.groupdict().get("kind") or "").lower()
    if not kind:
        return globs
    ending = _ENDINGS.get(kind, kind)
    return [f"{glob.removesuffix('*')}*.{ending}" for glob in globs]


# verbs that are forbidden beside an edit: "modify or suggest"
_BESIDE_EDITS = {"write", "suggest", "propose", "commit", "stage", "push"}
_ANY_FILES = re.compile(rf"(?:(?:{_FILE_WORDS})(?: |$))*", re.I)
_PLACES = (Relation.IN, Relation.TO)
# "when *updating*"
_CHANGING = re.compile("updating|editing|changing|modifying", re.I)


def _files_left_alone(instruction: Instruction) -> str:
    """The words for the files that an instruction forbids to edit, or to make; "" if it forbids
    something else, or only at times.
    """
    verbs = set(instruction.verbs)
    places = instruction.texts_of(*_PLACES)
    whens = instruction.texts_of(Relation.WHEN)
    is_edit = bool(verbs & EDIT) and verbs <= EDIT | MAKE_FILES | REMOVE_FILES | _BESIDE_EDITS
    is_write = verbs <= {"write", "make", "add"} and len(places) == 1
    is_written = verbs <= {"write", "add", "create"} and "changeset" in instruction.object
    # "create new `.html` files" leaves the old ones to be edited
    is_making = verbs <= MAKE_FILES and not places and "new" not in instruction.object.split()
    if (
        instruction.modality is not Modality.NEVER
        or not instruction.has_only(*_PLACES, Relation.WHEN)
        or not all(map(_CHANGING.fullmatch, whens))
        or not (is_edit or is_write or is_written or is_making)
        or len(places) > 1
    ):
        return ""
    if not places:
        return instruction.object
    if "code" in instruction.object and not is_edit:
        return ""
    return places[0] if _ANY_FILES.fullmatch(instruction.object) else ""


_INSTEAD_OF_EDITING = form(
    "rather than editing `tasks.json` directly",
    r"(?:rather than|instead of|never by|not by) (?:directly |manually )?(?:hand-?)?editing"
    rf" (?:the )?(?P<files>{CODES})(?: files?)?(?: directly| manually| by hand)?"
    r"(?= so\b|$|[,.;:)])",
)


def _match_instead_of_editing(clause: Clause) -> re.Match[str] | None:
    """The match of "instead of editing `a.json`", if it follows an order."""
    is_soft = re.search(r"\b(?:prefer|consider|if|when)\b", clause.text, re.I)
    match = first_match(_INSTEAD_OF_EDITING, clause.text)
    if clause.is_prohibited or is_soft or match is None:
        return None
    return match if _says_what_to_do(clause.text[: match.start()], match[0]) else None


def _says_what_to_do(before: str, comparison: str) -> bool:
    """Whether the words before "instead of editing" are an order.

    "Never by editing" needs no order, as it forbids by itself, unless a negation comes before it.
    """
    if re.match("never|not", comparison, re.I):
        return not re.search(r"\b(?:never|not)\b|n['’]t\b", before, re.I)
    return _is_imperative(before)


_NEGATED_OR_PERMITTED = re.compile(
    r"\b(?:never|not|cannot|can|could|may|might|fine|ok|okay|allowed|avoid|stop)\b|n['’]t\b", re.I
)


def _is_imperative(text: str) -> bool:
    """Whether a text begins with an imperative, and neither forbids nor permits anything."""
    first = re.match(
        r"(?:(?:always|please|only|instead|just|you (?:must|should)),? )*([\w-]+)", text, re.I
    )
    begins_with_verb = first is not None and first[1].lower() in VERBS
    return begins_with_verb and not _NEGATED_OR_PERMITTED.search(text)


# --- The only files that are edited: "never edit files outside `src/`"

_FILES_ONLY = form("files", r"(?:(?:any|the|other|new|code|files?|anything|code in) ?)*")
# "Only edit `en.json` directly": the other files of its kind are generated, not all others
_BY_HAND = re.compile(r"\b(?:directly|manually|by hand)\b", re.I)
_ONLY_IN = form("files in `src/`", rf"(?:(?:files?|code) (?:in|under|inside) )?(?P<files>{CODES})")
_WORKS_ONLY_IN = form(
    "You are working exclusively inside the `web/` folder",
    r"(?:you (?:are |must |should )?)?(?:work|working) (?:exclusively|only|solely)"
    # "only on `feature/login`" is about a branch
    rf" (?:in|inside|within|on(?= (?:the )?(?:`[^`]+/`|{CODE} (?:folder|directory))))"
    rf" (?:the )?(?P<files>{CODE})(?: folder| directory)?",
)


def only_files_rule(clause: Clause) -> list[Draft]:
    """Reads "do not edit files outside `src/`" and "only edit files in `src/`"."""
    if match := whole_match(_WORKS_ONLY_IN, clause.text):
        return [] if clause.is_prohibited else _allow_only(match["files"])
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or not set(instruction.verbs) <= EDIT | MAKE_FILES:
        return []
    if instruction.modality is Modality.NEVER and instruction.has_only(Relation.OUTSIDE):
        place = instruction.text_of(Relation.OUTSIDE) or ""
        is_any = whole_match(_FILES_ONLY, instruction.object) is not None
        return _allow_only(place) if is_any else []
    is_edit = instruction.does(EDIT) and not _BY_HAND.search(clause.text)
    if instruction.modality is Modality.ONLY and is_edit and instruction.has_only(Relation.IN):
        places = instruction.texts_of(Relation.IN)
        return _allow_only(" in ".join(filter(None, (instruction.object, *places))))
    return []


def _allow_only(files: str) -> list[Draft]:
    """The rule that nothing is written into other files than these; [] if they are not paths."""
    match = whole_match(_ONLY_IN, files)
    globs = all_known([path_glob(code) for code in codes_in(match["files"])]) if match else []
    if not globs or (len(globs) == 1 and "*" not in globs[0]):
        return []  # "edit `api.yml` only" is about some kind of change
    spec = measure("code_not_written", pattern=r"\A", files=["*", *(f"!{glob}" for glob in globs)])
    return [Draft("file", "prohibition", spec)]


# --- Files that are named first: "`src/gen/` is generated - do not edit"

_EDIT = r"(?:hand-?|manually |directly |ever )?" + one_of(*sorted(EDIT))
_FOLDER = r"(?: files?| folder| directory)?"
_FILES_FIRST = re.compile(
    r"(?:the |all |(?:(?:all )?(?:files|code)|everything|anything) (?:in|under|inside|within) )?"
    rf"(?P<files>{CODES}){_FOLDER}"
    r"\s*(?:[—–:(,-]|(?:is|are|was|were)\b)",
    re.I,
)
# what may be said of files that were named before it
_NOT_EDITED = forms(
    {
        "generated, do not edit it directly": (
            rf"(?:(?:so|and|auto-?generated|generated|please)[,:.]? )*{NEVER} {_EDIT}(?:,? or \w+)?"
            r"(?: (?:it|them|this|these|this file|that file|these files|any of it|(?:the )?(?:raw|"
            rf"original) (?:files|data) in[ -]place|{REASON}))*"
        ),
        "frozen": r"(?:is |are )?(?:now |strictly |completely )?(?:frozen|immutable)",
        "generated and read-only": (
            r"(?:auto-?generated|generated)?(?:,| and)? ?(?:is |are )?(?:strictly )?read-only"
        ),
    }
)
# "`ui/` (our own), `ui/base/` (generated - do not edit)"
_CODE_WITH_REMARK = re.compile(rf"({CODE})(?: files?| folders?| directory)? \(([^()]*)\)")


def _says_not_edited(remark: str) -> bool:
    """Whether a part of what is said of files says that they are not edited."""
    pieces = re.split(r"[—–;:,]|\s-\s|\. ", remark)
    return any(whole_match(_NOT_EDITED, piece.strip(" .!")) for piece in pieces)


def generated_file_rule(clause: Clause) -> list[Draft]:
    """Reads "`src/gen/` is generated - do not edit"."""
    statement = clause.statement
    whole = statement.text.strip(" .")
    if clause.text not in statement.text and clause.text != whole:
        return []
    remarks = _CODE_WITH_REMARK.findall(statement.text)
    codes = [code for code, remark in remarks if _says_not_edited(remark)]
    if len(remarks) > 1 or codes:
        return _protect(_globs_in(", ".join(codes))) if codes and clause.begins_statement else []
    match = _FILES_FIRST.match(statement.text)
    if match is None or not clause.begins_statement:
        return []
    pieces = re.split(r"[—–;:(,]|\s-\s|, (?=\w)|\. ", statement.text[match.end("files") :])
    pieces += re.split(r"[;—–]|\. |, (?=\w)", statement.following)[:1]
    if not any(whole_match(_NOT_EDITED, piece.strip(" .!,:)")) for piece in pieces):
        return []
    return _protect(_globs_in(match["files"]))


# --- Files after a label that forbids editing them

_NO_EDIT_LABEL = forms(
    {
        "Do not edit generated or vendored files": (
            rf"{NEVER} {_EDIT}(?: (?:the|these|any|generated|vendored|third-party|or|and))*"
            r" (?:files?|paths?|folders?|director(?:y|ies)|code|artifacts?)[\s:.]*"
        ),
        "Generated files — do not hand-edit": (
            rf"(?:(?:auto-?)?generated|protected|vendored) files?\W+{NEVER} {_EDIT}"
        ),
    }
)
# "`src/gen/` (from the schema)", but not "`b.ts` (edit this one freely)"
_REMARK = re.compile(
    r" \((?![^()]*\b(?:edit\w*|chang\w+|modif\w+|except|but|not|unless|may|can|ok|fine)\b)[^()]*\)",
    re.I,
)


def labelled_file_rule(clause: Clause) -> list[Draft]:
    """Reads "Generated files — do not hand-edit: `src/gen/`, `src/api.ts`", also as a heading."""
    statement = clause.statement
    text = _REMARK.sub("", statement.text).strip(" .")
    above = (statement.label, *statement.under[-1:])
    is_labelled = any(whole_match(_NO_EDIT_LABEL, name) for name in above)
    is_list = re.fullmatch(CODES, text) is not None
    return _protect(_globs_in(text)) if is_labelled and is_list else []


# a file without backticks: "package.json"
_BARE_FILE = re.compile(
    r"[\w./-]*\w\.(?:py|js|mjs|ts|tsx|jsx|json|toml|ya?ml|cfg|ini|lock|md|txt|sh|sql|css|html|env)"
    r"|PDF|DOCX|XLSX|PPTX|SVG|PNG"
)
_KINDS_BY_ENDING = frozenset("PDF DOCX XLSX PPTX SVG PNG".split())


def _globs_in(objects: str) -> list[str]:
    """The globs of a list of paths, without what is no clear path; [] if the list may have
    something else than paths.
    """
    names = names_in(objects)
    if not all(is_code or _BARE_FILE.fullmatch(name) for name, is_code in names):
        return []
    paths = [f".{name.lower()}" if name in _KINDS_BY_ENDING else name for name, _ in names]
    return [glob for glob in map(path_glob, paths) if glob]


def _protect(globs: Iterable[str]) -> list[Draft]:
    """Protects the files of each glob, with one rule per glob."""
    specs = [measure("file_not_touched", path=glob) for glob in dict.fromkeys(globs)]
    return [Draft("file", "prohibition", spec) for spec in specs]


# --- Files that are never committed

# "any secrets, API keys or files in"
_WORDS_BEFORE_FILES = "(?:{} ?)*".format(
    one_of(
        *("the", "any", "anything in", "files? in", "files under", "your", "generated", "local"),
        *("secrets", "API keys", "credentials", "tokens", "keys", "sensitive data", "or", "and"),
        *("lock files", "logs", "binaries", "(?:build|test) (?:artifacts?|outputs?|results?)", ","),
        *("files?", "folder", "directory"),
    )
)
_FOLDERS = r"(?: files?| director(?:y|ies)| folders?| artifacts?| outputs?)?"
_IN_SOURCES = re.compile(r" in (?:the )?(?:source|working) (?:trees?|folders?|director(?:y|ies))$")
_COMMITTED_FILES = forms(
    {
        "secrets or `.env` files, or anything alike": (
            rf"{_WORDS_BEFORE_FILES}(?P<files>{CODES}|\.env){_FOLDERS}"
            rf"(?P<others>(?:(?:, |,? or )(?:the )?{CODE}{_FOLDERS})*)"
            r"(?:(?:,? or |, )[\w ,-]+)?"
        ),
        "sensitive data (`.env` files, credentials)": (
            r"(?:any )?[\w ,/-]{3,50} \((?:e\.g\.,? |like |such as )?"
            rf"(?P<files>{CODES}|\.env){_FOLDERS}(?:, [\w ,-]+)?(?:,? etc\.?)?\)"
        ),
    }
)
_KEPT_OUT = form(
    "Keep `.env` out of version control",
    rf"(?:always |please )?keep (?:the |all |your )?(?P<files>{CODES}){_FOLDERS}"
    r" out of (?:the )?(?:git|repo|repository|version control|source control|commits)"
    r"(?P<others>)",
)
_CHANGES = re.compile(r"(?:(?:any|your|local|unrelated) )*(?:changes|edits|modifications|updates)")
# "`gen/` is built", before "never commit it"
_BUILT_FILES = re.compile(rf"(?:the )?(?P<files>{CODES}){_FOLDERS} (?:is|are)\b", re.I)
# "secrets are ignored by Git: `.env`, `*.pem`", before "never commit them"
_LISTED_LAST = re.compile(rf"[^`:]+: (?P<files>{CODES})", re.I)
_ONLY_FILE = re.compile(rf"[^`]*(?P<files>{CODE})[^`]*")  # "use `.env.local`, never commit it"
_THEM = re.compile("(?:it|them|this|these)(?: files?)?|(?:their|its) contents?", re.I)
_REPOSITORY = re.compile(r"(?:the )?(?:git|repo|repository|version control|source control)", re.I)
_ENVIRONMENT = (".env", ".env*")  # files only, which `path_glob` would take for folders too
# "secrets live in `.env` (never commit)"
_FILE_NEVER_COMMITTED = re.compile(
    rf".*(?P<files>{CODE})[^`().;]{{0,20}}(?:\(| [—–-] ){NEVER} commit(?:ted)?\b", re.I
)
_NEVER_COMMIT = re.compile(rf"{NEVER} commit(?:ted)?(?=,|$)", re.I)


def committed_file_rule(clause: Clause) -> list[Draft]:
    """Reads "never commit `.env`" and "`.env` must not be committed"."""
    match = _committed_files(clause)
    if match is None:
        return []
    others = codes_in(match.groupdict().get("others") or "")
    names = [*(name for name, _ in names_in(match["files"])), *others]
    globs = [name if name in _ENVIRONMENT else path_glob(name) for name in names]
    paths = [glob for glob in globs if glob]
    if not paths:
        return []
    allowed = _allowed_files(clause)
    if allowed is None:
        return []
    spec = measure("commit_excludes", paths=glob_argument([*paths, *allowed]))
    return [Draft("commit", "prohibition", spec)]


def _allowed_files(clause: Clause) -> list[str] | None:
    """The globs that leave out what a clause names after "except"; None if it names no files."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    exceptions = instruction.texts_of(Relation.EXCEPT) if instruction else []
    if not exceptions:
        return []
    globs = [path_glob(code) for text in exceptions for code in codes_in(text)]
    is_list = all(re.fullmatch(rf"(?:for )?{CODES}", text) for text in exceptions)
    return [f"!{glob}" for glob in all_known(globs)] or None if is_list else None


def _committed_files(clause: Clause) -> re.Match[str] | None:
    """The match that names the files, in the clause or elsewhere in its statement; None if the
    clause does not forbid committing files.
    """
    whole = clause.statement.text.strip(" .!")
    if kept_out := whole_match(_KEPT_OUT, clause.text):
        return None if clause.is_prohibited else kept_out
    if _NEVER_COMMIT.match(clause.text):  # "secrets live in `.env` (never commit)"
        is_whole = _NEVER_COMMIT.fullmatch(clause.text) is not None
        beside = _FILE_NEVER_COMMITTED.match(whole)
        if match := beside or (_ONLY_FILE.fullmatch(whole) if is_whole else None):
            return match
    instructions = [instruction_of(text, clause.is_prohibited) for text in (clause.text, whole)]
    for instruction in filter(None, instructions):
        if not _forbids_committing(instruction):
            continue
        if match := whole_match(_COMMITTED_FILES, _words_for_committed(instruction)):
            return match
        if _THEM.fullmatch(instruction.object):
            opening = clause.statement.opening.strip(" .")
            return (
                _BUILT_FILES.match(whole)
                or _LISTED_LAST.fullmatch(opening)
                or _ONLY_FILE.fullmatch(whole)
            )
    return None


def _words_for_committed(instruction: Instruction) -> str:
    """The words for the files that are not to be committed."""
    changed = instruction.text_of(Relation.TO)
    if changed and _CHANGES.fullmatch(instruction.object):  # "never commit changes to `a.json`"
        return changed
    place = instruction.text_of(Relation.IN)
    files = f"{instruction.object} in {place}" if place else instruction.object
    return _IN_SOURCES.sub("", files)


def _forbids_committing(instruction: Instruction) -> bool:
    """Whether an instruction forbids to commit something, always."""
    place = instruction.text_of(Relation.TO) or "git"
    if _CHANGES.fullmatch(instruction.object) and re.fullmatch(rf"(?:the )?{CODES}", place):
        place = "git"
    return bool(
        instruction.modality is Modality.NEVER
        and {"commit", "stage"} & set(instruction.verbs)
        and instruction.does(("commit", "stage", "print", "push", "paste", "log", "share"))
        and instruction.has_only(Relation.TO, Relation.IN, Relation.EXCEPT)
        and _REPOSITORY.fullmatch(place) is not None
    )
