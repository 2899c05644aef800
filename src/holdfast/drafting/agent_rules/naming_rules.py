"""Rules about the names of code, files and folders, and the language of files.

    Classes: PascalCase.           -> code_not_written(pattern=r"\\bclass [a-z]")
    `snake_case` for functions.    -> code_not_written(pattern=r"\\bdef \\w*[A-Z]", files="*.py")

    File names: kebab-case.        -> tool_not_called(tool="*rite*", arguments={"file_path": ...})
    Folders: kebab-case.           -> the same, with a pattern of folders
    Use TypeScript for all code.   -> the same, with a pattern of files of JavaScript

A name is known by its declaration, so only the kinds of names that some keyword declares become
rules: types, functions and constants. The patterns are shortened above.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.drafting.agent_rules.code_places import code_draft
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODES,
    NEVER,
    form,
    forms,
    literal,
    one_of,
    whole_match,
)
from holdfast.drafting.grammar.named_files import (
    DOCUMENTS,
    MARKUP,
    PYTHON,
    RUST,
    SCRIPT,
    file_endings,
    files_of_language,
)

# --- The names of types, functions and constants

# the words for a kind of type, and the keyword of its declarations
_TYPE = r"(?:abstract\s+|final\s+|data\s+|sealed\s+)*(?:{})\s+"
_TYPES_BY_NAME = {
    r"class(?:es)?": _TYPE.format("class"),
    r"interfaces?": _TYPE.format("interface"),
    r"types?|type aliases|custom types": _TYPE.format("class|interface|type|enum|struct|trait"),
    r"enums?": _TYPE.format("enum"),
    r"structs?": _TYPE.format("struct"),
    r"traits?": _TYPE.format("trait"),
}
_FUNCTION_NAMES = r"functions?|methods?|function names?"
_CONSTANT_NAMES = r"constants?|consts?|statics?|static variables?"
# the case of names, as people write it, and the pattern of a name that does not have it
_CASES = {
    "pascalcase|upper camel case": "[a-z_]",
    "camelcase|lower camel case": "[a-z0-9]+_[a-z]",  # components are functions in PascalCase
    "snake_case": r"[a-z_0-9]*[A-Z]",
    "upper_snake_case|screaming_snake_case|upper_case|screaming snake case": "[a-z]",
}
_CASE = rf"`?(?P<case>{one_of(*(case for cases in _CASES for case in cases.split('|')))})`?"
_KIND = one_of(*_TYPES_BY_NAME, _FUNCTION_NAMES, _CONSTANT_NAMES)
_AND = r"(?:,? (?:and|or) |, |/| / | & )"
# kinds that no keyword declares, before one that a keyword does: "variables, functions"
_UNDECLARED = rf"(?:(?:variables?|modules?|files?|fields|properties|parameters|hooks){_AND})*"
_LISTED = rf"(?P<kinds>{_UNDECLARED}{_KIND}(?:{_AND}(?:[\w-]+(?=[,/: ]|$)))*)"
# "PascalCase for classes", "classes: PascalCase"
_NAMED = (
    re.compile(
        rf"(?:always )?(?:use )?{_CASE} (?:for|in) (?:all )?(?P<kinds>[\w ,/&-]{{3,80}})", re.I
    ),
    re.compile(rf"{_LISTED}(?: names?)?(?: (?:must |should )?(?:be|use|are|in))*:? {_CASE}", re.I),
)
_MAX_CHARACTERS = 300  # a longer list of cases is prose
# a label such as "File names"
_IS_ABOUT_FILES = re.compile(r"(?:[\w ]+ )?(?:files?|folders?|director(?:y|ies))(?: nam\w+)?", re.I)
# "camelCase for functions: `loadAll`"
_EXAMPLES = re.compile(rf"(?P<rule>.*case\b.*): {CODES}", re.I)


def naming_rule(clause: Clause) -> list[Draft]:
    """Reads "PascalCase for classes", "functions: `snake_case`" and lists of these."""
    if clause.is_prohibited or len(clause.text) > _MAX_CHARACTERS:
        return []
    label = clause.statement.label
    if _IS_ABOUT_FILES.fullmatch(label):
        return []  # "Files: PascalCase for classes" is said of the files that have them
    drafts: list[Draft] = []
    for part in _parts_of(_EXAMPLES.sub(r"\g<rule>", clause.text)):
        labelled = f"{label}: {part}" if label else part
        # "Functions: camelCase, with one purpose"
        for text in dict.fromkeys((part, labelled, labelled.split(",")[0])):
            match = next(filter(None, (way.fullmatch(text) for way in _NAMED)), None)
            if match:
                drafts += _rules_of(match["kinds"], match["case"].lower(), clause)
                break
    return [rule for number, rule in enumerate(drafts) if rule not in drafts[:number]]


# the comma in "PascalCase for types, camelCase for functions"
_NEXT_CASE = re.compile(
    r"(?:[,;] (?:and )?| and )"
    r"(?=`?[\w-]+(?:_|-| )?case`?\b|\w+:? (?:(?:are|is|in|use) )?`?[\w-]+case`?(?:,|$))",
    re.I,
)


def _parts_of(text: str) -> list[str]:
    """The parts of "PascalCase for types, camelCase for functions", each with one case."""
    cases = re.findall(r"case\b", text, re.I)
    ends = _NEXT_CASE.split(text) if len(cases) > 1 else [text]  # "types, enums: PascalCase"
    return [re.sub(r" \([^()]*\)$| in \w+$", "", part).strip(" .,;") for part in ends]


# what may stand before the keyword of a declaration: "export default"
_LEADS = r"^\s*(?:(?:export|default|public|private|protected|internal|pub|static)\s+)*"
# what follows a name in its declaration, and not a word of a text: "class of the object"
_DECLARED = r"\w*\s*(?:[:({<=;]|$|(?:extends|implements|struct|interface)\b)"


def _rules_of(kinds: str, case: str, clause: Clause) -> list[Draft]:
    """One rule for the types in a list of kinds of names, and one for each way to declare the other
    kinds; kinds that no keyword declares are left out.
    """
    wrong = next(pattern for cases, pattern in _CASES.items() if case in cases.split("|"))
    about = files_of_language(clause.context)
    names = [_plain_kind(words) for words in re.split(_AND, kinds)]
    drafts: list[Draft] = []
    keywords = [keyword for name in names for keyword in _type_keywords(name, case)]
    if keywords:
        pattern = f"{_LEADS}{one_of(*dict.fromkeys(keywords))}{wrong}{_DECLARED}"
        drafts.append(code_draft(pattern, about or ["*", DOCUMENTS]))
    languages = about or files_of_language(clause.statement.document)
    languages = [glob for glob in languages if glob != MARKUP]  # of Tailwind, in any language
    for name in names:
        for declaration, files in _declarations_of(name, case):
            if globs := _files_of_both(files, languages):
                drafts.append(code_draft(f"{_LEADS}{declaration}{wrong}", globs))
    return drafts


_LANGUAGE = re.compile(r"^(?:all )?(?:python|rust|typescript|javascript|java|kotlin|php|go) ")


def _plain_kind(words: str) -> str:
    """A kind of name without its language: "Python function names" is "function"."""
    return _LANGUAGE.sub("", words.lower().strip()).removesuffix(" names").strip()


_IS_TYPE_CASE = re.compile("pascal|upper camel")


def _type_keywords(name: str, case: str) -> list[str]:
    """The patterns of the keywords that declare a kind of type; [] for a case that is not that of
    types.
    """
    if not _IS_TYPE_CASE.match(case):
        return []
    return [keyword for names, keyword in _TYPES_BY_NAME.items() if re.fullmatch(names, name)]


# the keyword of functions by their case, and of constants, which is that of one language
_FUNCTIONS = {
    "snake_case": (
        (r"(?:async\s+)?def\s+(?!setUp|tearDown|do_|visit_|assert)", PYTHON),
        (r"(?:async\s+|unsafe\s+)*fn\s+", RUST),
    ),
    "camelcase": ((r"(?:async\s+)?function\s+", SCRIPT), (r"(?:suspend\s+)?fun\s+", ("*.kt",))),
}
_IS_CONSTANT_CASE = re.compile("(?:upper|screaming)[_ ](?!camel)")
_CONSTANTS = (
    (r"(?:const|static(?:\s+mut)?)\s+(?!fn\b)(?=\w+\s*:)", RUST),
    (r"const\s+val\s+", ("*.{kt,kts}",)),
    (r"(?:final\s+)?const\s+(?=\w+\s*=)", ("*.php",)),
)


def _declarations_of(name: str, case: str) -> Sequence[tuple[str, Sequence[str]]]:
    """How functions or constants are declared, each with the globs of the files that may have it;
    () for other kinds, and where the case is not the usual one.
    """
    if re.fullmatch(_FUNCTION_NAMES, name):
        return _FUNCTIONS.get(case, ())
    if re.fullmatch(_CONSTANT_NAMES, name) and _IS_CONSTANT_CASE.match(case):
        return _CONSTANTS
    return ()


def _files_of_both(files: Sequence[str], named: Sequence[str]) -> list[str]:
    """The globs of the files that have a declaration and are of the languages that are named: those
    of TypeScript, of the files that may have `function`.
    """
    endings = file_endings(files)
    if endings <= file_endings(named):
        return list(files)
    return [glob for glob in named if file_endings([glob]) <= endings]


# --- The names of files

# the case of names of files, and what a name has that is not in this case
_FILE_CASES = {
    "kebab-case|kebab case|lowercase with (?:dashes|hyphens)|param-case": (
        "(?:[a-z][A-Z]|[A-Z][a-z]|[A-Za-z0-9]_[A-Za-z0-9])"
    ),
    "snake_case|snake case|lowercase with underscores": (
        "(?:[a-z][A-Z]|[A-Z][a-z]|[a-z0-9]-[a-z0-9])"
    ),
}
_FILE_CASE = (
    rf"`?(?P<case>{'|'.join(_FILE_CASES)})(?P<ending>\.\w+)?`?"
    r"(?: \((?:kebab|snake)[- _]?case\))?"
)
_FILE_NAMES = (
    r"(?P<of>(?:[\w.#+]+ )??)files?(?:[- ]?names?| naming)?(?: and (?:folder|directory) names)?"
)
_FILES_IN_CASE = forms(
    {
        "Name files in kebab-case": (
            rf"{ADVERBS}name (?:all |new )*(?P<of>(?:[\w.#+]+ )??)files"
            rf" (?:in|using|with) {_FILE_CASE}"
        ),
        "Use kebab-case for all file names": (
            rf"(?:always )?(?:use )?{_FILE_CASE} (?:for|in) (?:all |every |new )*{_FILE_NAMES}"
        ),
        "Files are named in snake_case": (
            rf"(?:all |new )*{_FILE_NAMES}(?: (?:are|is|must be|should be|must use|use))?"
            rf"(?: named)?(?: in| with)?:? {_FILE_CASE}"
        ),
        "Use consistent file naming conventions (kebab-case for files)": (
            r"(?:use )?(?:consistent )?(?P<of>)file[ -]?(?:naming|names?)(?: conventions?)?"
            rf" \({_FILE_CASE}(?: for files)?\)"
        ),
        "kebab-case file names": rf"(?:always )?(?:use )?{_FILE_CASE} {_FILE_NAMES}",
        "Files: kebab-case for TypeScript": (
            rf"files?(?: names?| naming)?: {_FILE_CASE} for (?P<of>[\w.#+]+)(?: files)?"
        ),
    }
)
_SCRIPT_ENDINGS = ("ts", "tsx", "js", "jsx", "mjs", "cjs", "vue", "svelte", "css", "scss")
# "kebab-case (e.g. `user-card.tsx`)"
_NAME_OF_FILE = r"`?[\w-]+(?:\.[\w-]+)*\.\w+`?"
_FILE_EXAMPLES = re.compile(
    rf" \((?:(?:e\.g\.|for example|like|such as),? )?{_NAME_OF_FILE}"
    rf"(?:, (?:not )?{_NAME_OF_FILE})*\)$",
    re.I,
)
# "tsx" in "kebab-case, as in `user-card.tsx`"
_ENDING_OF_EXAMPLE = re.compile(r"[\w-]\.(\w+)(?=`|[,)])")
# the comma in "kebab-case for TypeScript, snake_case for Rust"
_NEXT_LANGUAGE = re.compile(r"[,;] (?:and )?(?=`?[\w-]+ ?case`? for )", re.I)


def file_name_rule(clause: Clause) -> list[Draft]:
    """Reads "use kebab-case for file names", which only the tool that writes a file shows."""
    if clause.is_prohibited:
        return []
    label = clause.statement.label
    whole = clause.statement.text.strip(" .")
    without_examples = _FILE_EXAMPLES.sub("", f"{label}: {whole}" if label else whole)
    parts = _NEXT_LANGUAGE.split(without_examples)
    if len(parts) > 1:  # "Files: kebab-case for TypeScript, snake_case for Rust"
        listed = [parts[0], *(f"Files: {part}" for part in parts[1:])]
        matches = [whole_match(_FILES_IN_CASE, part) for part in listed]
        return [rule for match in filter(None, matches) for rule in _file_names(match, clause)]
    first = re.split(r"; |, (?=with\b)", without_examples)[0]
    texts = (clause.text, f"{label}: {clause.text}", whole, without_examples, first)
    match = next(filter(None, (whole_match(_FILES_IN_CASE, text) for text in texts)), None)
    return _file_names(match, clause) if match else []


def _file_names(match: re.Match[str], clause: Clause) -> list[Draft]:
    """The rule for the names of files in a case; [] if it is not known which files these are."""
    wrong = next(
        pattern
        for cases, pattern in _FILE_CASES.items()
        if re.fullmatch(cases, match["case"], re.I)
    )
    globs = files_of_language(match["of"]) or files_of_language(clause.context)
    if match["of"].strip() and not files_of_language(match["of"]):
        return []  # "component files" are some of all
    is_of_script = match["case"].lower().startswith(("kebab", "param"))
    usual = _SCRIPT_ENDINGS if is_of_script else _ENDING_OF_EXAMPLE.findall(clause.statement.text)
    endings = re.findall(r"\w+", " ".join(globs)) or usual
    if match["ending"]:  # "`snake_case.rs`"
        endings = [match["ending"].removeprefix(".")]
    if not endings:
        return []
    path = rf"(?:^|/)[^/]*{wrong}[^/]*\.{one_of(*dict.fromkeys(endings))}$"
    return [_no_file_written(path)]


def _no_file_written(path: str) -> Draft:
    """The rule that no tool writes a file whose path a pattern finds."""
    spec = measure("tool_not_called", tool="*rite*", arguments={"file_path": path})
    return Draft("file", "requirement", spec)


# --- The language of files

_APPLICATION = r"(?P<application>(?:application|app|production) )"
_COMPONENTS = r"(?P<components>(?:(?:UI|React) )*components?)"
_CODE_WORDS = (
    r"(?:(?:all|any|every|the|our|new|source|project) )*"
    rf"(?:{_APPLICATION}?(?:code|files?)|(?P<logic>logic)|everything"
    rf"|{_COMPONENTS})"
)
_IN_TYPESCRIPT = forms(
    {
        "Use TypeScript for all code": (
            rf"{ADVERBS}(?:use )?(?:strict )?TypeScript(?: only)? (?:for|in) {_CODE_WORDS}"
        ),
        "Write all code in TypeScript": rf"{ADVERBS}write {_CODE_WORDS} in TypeScript",
        "All code must be TypeScript": (
            rf"{_CODE_WORDS} (?:must|should|has to|have to) be (?:written )?(?:in )?TypeScript"
        ),
        "Use TypeScript exclusively": (
            rf"{ADVERBS}use TypeScript (?:only|exclusively|everywhere|throughout)"
            r"|(?:use only|only use) TypeScript|TypeScript only"
        ),
        "No JavaScript files": (
            rf"(?:{NEVER} (?:add|create|write|use) |no )(?:any |new |plain )*"
            r"(?:JavaScript|JS|`\.js`) files"
        ),
    }
)
_IN_FOLDER = re.compile(r"\(`(?P<folder>[\w./-]+/)`")  # "for all logic (`src/` folder)"


def language_rule(clause: Clause) -> list[Draft]:
    """Reads "use TypeScript for all code": no file of JavaScript is written, except for those of
    tools, such as `eslint.config.js`.
    """
    if clause.is_prohibited:
        return []
    match = whole_match(_IN_TYPESCRIPT, clause.text)
    if match is None:
        return []
    parts = match.groupdict()
    if parts.get("components"):  # other files may be JavaScript
        return [_no_file_written(r"(?:^|/)(?:components/(?:[^/]+/)*[^/.]+\.js|[^/]+\.jsx)$")]
    folder = _IN_FOLDER.search(clause.statement.text)
    inside = "(?:^|/)"
    if folder:
        inside = rf"(?:^|/){literal(folder['folder'])}(?:[^/]+/)*"
    elif parts.get("logic"):
        return []
    elif parts.get("application"):
        inside = r"(?:^|/)(?:src|app|lib)/(?:[^/]+/)*"
    return [_no_file_written(rf"{inside}(?!(?:[Gg]ulp|[Gg]runt)file)[^/.]+\.jsx?$")]


# --- Files with generic names

_GENERIC_FILES = form(
    "No generic `utils.py` / `helpers.py` files",
    rf"(?:{NEVER} (?:add|create|write) |no )(?:any |new |generic |catch-?all |grab-?bag |dump )*"
    r"(?P<names>`[\w.-]+\.\w+`(?:(?:,? (?:or|and) |, |/| / )`[\w.-]+\.\w+`)*)"
    r"(?: (?:dump|grab-?bag|catch-?all|style))? (?:files|modules)",
)


def generic_file_rule(clause: Clause) -> list[Draft]:
    """Reads "no generic `utils.py` / `helpers.py` files"."""
    match = None if clause.is_prohibited else whole_match(_GENERIC_FILES, clause.text)
    if match is None:
        return []
    names = any_of(map(literal, codes_in(match["names"])))
    return [_no_file_written(rf"(?:^|/){names}$")]


# --- Kinds of files that are never created

_DOCUMENT = (
    r"(?:documentation|docs?|markdown|readme|`?readme\.md`?|`(?:\*?\.[a-z]\w{1,4})`|\*?\.md)"
)
_DOCUMENTS = rf"{_DOCUMENT}(?: files?)?(?: \({_DOCUMENT}\))?"
_NEW_FILES = form(
    "Never create documentation files (`*.md`) or README files",
    rf"{NEVER} (?:create|write|add|generate|make) "
    r"(?:(?:any|new|extra|additional|separate|standalone|other) )*"
    rf"(?P<kinds>{_DOCUMENTS}(?:(?:,? or |,? nor |, |/)(?:any |new |other )?{_DOCUMENTS})*)",
)


def new_file_rule(clause: Clause) -> list[Draft]:
    """Reads "never create documentation files": a tool that writes a whole file creates it."""
    match = None if clause.is_prohibited else whole_match(_NEW_FILES, clause.text)
    if match is None or not re.search(r"\bfiles?\b|\.", match["kinds"]):
        return []
    kinds = match["kinds"].lower()
    endings = re.findall(r"\.([a-z]\w{1,4})\b", re.sub(r"readme\.md", "", kinds))
    if re.search("documentation|doc|markdown", kinds):
        endings += ["md", "mdx", "rst"]
    names = "|".join(re.escape(code) for code in codes_in(clause.statement.text) if code[0] != ".")
    known = rf"(?<!(?:^|/)(?:{names}))" if names else ""  # "all is in `index.html`"
    paths = [rf"\.{any_of(dict.fromkeys(endings))}$"] if endings else []
    if "readme" in kinds and "md" not in endings:
        paths.append(r"(?:^|/)(?i:readme)[^/]*$")
    return [replace(_no_file_written(any_of(paths) + known), polarity="prohibition")]


# --- The prefix of interfaces

_PREFIX = r"(?:an? |the )?(?:prefix )?`?\"?(?P<prefix>I)\"?`?(?: prefix)?"
_INTERFACE_PREFIX = forms(
    {
        "Interfaces are prefixed with `I`": (
            rf"(?:all )?interfaces?(?: names?)?:? (?:(?:are|is|must be|should be) )?"
            rf"(?:always )?(?:prefixed with|start with|begin with|use) {_PREFIX}"
        ),
        "Prefix interfaces with `I`": (
            rf"{ADVERBS}(?:prefix|start|name) (?:all )?interfaces?(?: names?)? with {_PREFIX}"
        ),
        "`I` prefix for interfaces": (
            r"(?:use )?(?:an? |the )?`?(?P<prefix>I)`? prefix (?:for|on) (?:all )?interfaces"
        ),
    }
)
_NO_INTERFACE_PREFIX = form(
    "Do not prefix interfaces with `I`",
    rf"{NEVER} (?:prefix|start|name) (?:all |any )?interfaces?(?: names?)? with {_PREFIX}"
    rf"|no `?I`? prefix (?:for|on) interfaces",
)
_EXAMPLE_IN_BRACKETS = re.compile(r" \((?:e\.g\.,?|like|such as|for example,?) ?`[^`]+`\)$")


def interface_prefix_rule(clause: Clause) -> list[Draft]:
    """Reads "interfaces are prefixed with `I`" and "do not prefix interfaces with `I`"."""
    if clause.is_prohibited:
        return []
    text = _EXAMPLE_IN_BRACKETS.sub("", clause.text)
    has_prefix = r"I[A-Z]"
    if whole_match(_INTERFACE_PREFIX, text):
        wrong = f"(?!{has_prefix})[A-Za-z]"
    elif whole_match(_NO_INTERFACE_PREFIX, text):
        wrong = has_prefix
    else:
        return []
    files = files_of_language(clause.context) or ["*", DOCUMENTS]
    return [code_draft(rf"{_LEADS}interface\s+{wrong}{_DECLARED}", files)]


# --- The names of environment variables

_ENVIRONMENT = r"(?:all |new |every )*(?:environment|env) (?:variables?|vars?)(?: names?)?"
_UPPER = r"`?(?:UPPER[_ -]?SNAKE[_ -]?CASE|SCREAMING[_ ]SNAKE[_ ]CASE|UPPER[_ -]?CASE)`?"
_ENVIRONMENT_IN_UPPER_CASE = forms(
    {
        "Use UPPERCASE for environment variables": (
            rf"{ADVERBS}(?:use |write )?{_UPPER} for {_ENVIRONMENT}"
        ),
        "Environment variables: UPPER_SNAKE_CASE": (
            rf"{_ENVIRONMENT}(?::| (?:must|should) (?:be|use)| are| use)(?: in)? {_UPPER}"
        ),
    }
)
# the names that npm and proxies give to variables are in lower case
_LOWER_CASE_VARIABLE = (
    r"\b(?:process\.env\.(?!npm_|(?:https?|no)_proxy\b)\w*[a-z]"
    r"|(?:os\.environ(?:\.get)?|os\.getenv|os\.Getenv|process\.env|env::var)[(\[]\s*"
    r"[\"'](?!npm_|(?:https?|no)_proxy\b)\w*[a-z])"
)


def environment_name_rule(clause: Clause) -> list[Draft]:
    """Reads "use UPPERCASE for environment variables"."""
    label = clause.statement.label
    texts = (clause.text, f"{label}: {clause.text}")
    matches = any(whole_match(_ENVIRONMENT_IN_UPPER_CASE, text) for text in texts)
    if clause.is_prohibited or not matches:
        return []
    return [code_draft(_LOWER_CASE_VARIABLE, ["*", DOCUMENTS])]


# --- The names of folders, and of the files of components

_DASHES = (
    r"`?(?:kebab[- ]case|lower-?case with (?:dashes|hyphens)|lower-?case,? (?:and )?"
    r"(?:hyphen|dash)(?:ed|-separated)?)`?(?:, no spaces)?(?: \(kebab-case\))?"
)
_FOLDER_NAMES = r"(?:folders?|director(?:y|ies))(?: names?| naming)?"
_FOLDERS_IN_CASE = forms(
    {
        "Use lowercase with dashes for directories": (
            rf"(?:always )?(?:use )?{_DASHES} (?:for|in) (?:all |new )*"
            rf"(?:files? (?:and|or|&) )?{_FOLDER_NAMES}"
        ),
        "Directories: lowercase with dashes": rf"{_FOLDER_NAMES}: (?:use )?{_DASHES}",
        "Folders must be named in kebab-case": (
            rf"(?:all |new )*{_FOLDER_NAMES} (?:are|is|must be|should be|use)(?: named)?(?: in)?"
            rf" {_DASHES}"
        ),
    }
)
_FOLDER_EXAMPLES = re.compile(
    r",? \(?(?:(?:e\.g\.|for example|like|such as),? )`?[\w/-]+`?(?:, `?[\w/-]+`?)*\)?$", re.I
)
# folders above the repository have names of their own, so only those inside of these are judged
_SOURCE_FOLDER = (
    r"(?:^(?:src|app|lib)/|(?:^|/)(?:apps|packages|components|pages|features|modules|services)/)"
)
_COMPONENT_FILES = form(
    "Use PascalCase for React component file names",
    r"(?:always )?(?:use )?`?PascalCase`? for (?:all )?(?:React |Vue |Svelte |UI )?"
    r"component (?:files?|file ?names?)"
    r"|(?:React |Vue |Svelte |UI )?component (?:files?|file ?names?)"
    r"(?: (?:are|use|must be|should be))?(?: named)?(?: in)?:? `?PascalCase`?",
)


def folder_name_rule(clause: Clause) -> list[Draft]:
    """Reads "directories: lowercase with dashes", and "PascalCase for component files"."""
    statement = clause.statement
    if clause.is_prohibited or not clause.begins_statement:
        return []
    text = statement.text.strip(" .")
    labelled = f"{statement.label}: {text}" if statement.label else text
    if whole_match(_FOLDERS_IN_CASE, _FOLDER_EXAMPLES.sub("", labelled)):
        wrong = "(?:[A-Z]|[a-z0-9]_[a-z0-9])"
        return [_no_file_written(rf"{_SOURCE_FOLDER}(?:[^/]+/)*[^/\[(]*{wrong}[^/]*/")]
    if whole_match(_COMPONENT_FILES, _FILE_EXAMPLES.sub("", labelled)):
        path = r"(?:^|/)components/(?:[^/]+/)*(?!index\.)[a-z][^/]*\.(?:tsx|jsx|vue|svelte)$"
        return [_no_file_written(path)]
    return []
