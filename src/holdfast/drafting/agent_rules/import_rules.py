"""Rules about what code imports, and where.

    Never import from `lodash`.               -> code_not_written(pattern="from 'lodash'")
    All imports at the top of the file.       -> code_not_written(pattern=an indented import)

The patterns are shortened above: they also cover `require`, parts of a library and other quotes.
"""

import re
from collections.abc import Sequence

from holdfast.drafting.agent_rules.code_places import (
    Places,
    forbid_code,
    is_place_of_code,
    places_of,
)
from holdfast.drafting.agent_rules.code_tokens import INLINE_IMPORT, CodeToken
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in
from holdfast.drafting.grammar.forms import CODES, form, forms, literal, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.grammar.named_files import SCRIPT, path_glob

# --- Libraries and modules

# libraries as people name them without backticks, and the modules that code imports
_SCRIPT_LIBRARIES = {
    **{
        name: name
        for name in (
            "antd axios chai date-fns dayjs ember enzyme express formik graphql-request immer jotai"
            " jquery langchain lodash lodash-es luxon mobx moment mongoose nativewind next-auth"
            " node-fetch ramda recoil redux rxjs sequelize sinon socket.io"
            " pinia prisma styled-components superagent swr typeorm vuex winston yup zod zustand"
        ).split()
    },
    "ant design": "antd",
    "chakra ui": "@chakra-ui",
    "framer motion": "framer-motion",
    "expo router": "expo-router",
    "material ui": "@mui",
    "moment.js": "moment",
    "mui": "@mui",
    "react query": "@tanstack/react-query",
    "redux toolkit": "@reduxjs/toolkit",
    "styled components": "styled-components",
    "tailwind": "tailwindcss",
}
_PYTHON_LIBRARIES = {
    **{
        name: name
        for name in (
            "aiohttp celery django fastapi flask httpx langchain loguru nose numpy pandas peewee"
            " polars pydantic requests sqlalchemy tensorflow unittest urllib urllib2 urllib3"
        ).split()
    },
    "beautifulsoup": "bs4",
    "llamaindex": "llama_index",
}
_RUST_LIBRARIES = frozenset(
    "anyhow axum clap crossterm diesel hyper ratatui rayon reqwest rusqlite serde sqlx thiserror"
    " tokio tonic".split()
)
_GO_LIBRARIES = {
    "gorm": "gorm.io/gorm",
    "logrus": "sirupsen/logrus",
    "testify": "stretchr/testify",
}
_QUOTES = "[\"']"
_IMPORTS = r"(?:\bfrom|\bimport|\b(?:require|import)\()"  # in JavaScript and TypeScript


def library_token(name: str) -> CodeToken | None:
    """The imports of a library with this name; None if the library is unknown."""
    plain = name.lower()
    patterns: list[str] = []
    files: list[str] = []
    if module := _SCRIPT_LIBRARIES.get(plain):
        patterns.append(_script_import(module))
        files += SCRIPT
    if module := _PYTHON_LIBRARIES.get(plain):
        patterns.append(rf"^\s*(?:import|from)\s+{module}\b")
        files.append("*.py")
    if plain in _RUST_LIBRARIES:
        patterns.append(rf"^\s*(?:pub\s+)?use\s+{plain}(?:_\w+)?\b")
        files.append("*.rs")
    if module := _GO_LIBRARIES.get(plain):
        patterns.append(rf'"[^"\n]*{literal(module)}["/]')
        files.append("*.go")
    return CodeToken("|".join(patterns), tuple(files)) if patterns else None


_MODULE = re.compile(  # `lodash`, `'@prisma/client'`, `encoding/json`, `os.path`
    rf"(?P<quote>{_QUOTES}?)(?P<name>(?:@|node:)?[\w-]+(?:[/.][\w-]+)*)(?P=quote)"
)
_FILE = re.compile(r"\.(?:tsx?|jsx?|mjs|py|json|css|scss|md|svg|png|env)$")
_ANY_CODE = ("*", "!*.{md,mdx,txt,rst,json}")


def module_token(code: str) -> CodeToken | None:
    """The imports of the module that a code span names; None if it may name something else."""
    if folder := _FOLDER.fullmatch(code):
        return _folder_token(folder["path"] or folder["rooted"])
    module = _MODULE.fullmatch(code)
    if module is None or _FILE.search(code):
        return None
    if library := library_token(module["name"]):
        return library
    if module["quote"] or "/" in module["name"]:  # also in the import lists of Go
        name = f"(?:[\\w.@~-]+/)*{literal(module['name'])}"
        return CodeToken(f"{_QUOTES}{name}[\"'/]", _ANY_CODE)
    by_name = rf"^\s*(?:import|from|use|using)\s+{literal(module['name'])}\b"
    return CodeToken(f"{_script_import(module['name'])}|{by_name}", _ANY_CODE)


_ROOTS = ("src", "lib", "app")
_FOLDER = re.compile(  # `src/ui/`, `ui/**`, `src/ui`
    r"(?:\./)?(?P<path>[\w-]+(?:/[\w-]+)*)/\*{0,2}|(?P<rooted>(?:src|lib|app)/[\w-]+(?:/[\w-]+)*)"
)


def _folder_token(path: str) -> CodeToken:
    """The imports of what is in a folder of the repository, by its path from the root or from a
    folder beside it.
    """
    parts = path.split("/")
    inner = parts[1:] if parts[0] in _ROOTS and len(parts) > 1 else parts
    script = (
        rf"{_IMPORTS}\s*{_QUOTES}"
        rf"(?:(?:[\w.@~-]+/)*{literal(path)}|(?:\.\.?/)+{literal('/'.join(inner))})[\"'/]"
    )
    root = one_of(r"\.+", rf"(?:crate|{'|'.join(_ROOTS)})(?:\.|::)")
    names = r"(?:\.|::)".join(map(literal, inner))
    return CodeToken(rf"{script}|^\s*(?:from|import|use)\s+{root}?{names}\b", _ANY_CODE)


def _layer_token(name: str) -> CodeToken:
    """The imports of a layer such as "infrastructure", which is a folder somewhere."""
    name = literal(name)
    by_path = rf"{_IMPORTS}\s*{_QUOTES}(?:[\w.@~-]+/)*{name}[\"'/]"
    return CodeToken(
        rf"{by_path}|^\s*(?:from|import|use)\s+\.*(?:\w+(?:\.|::))*{name}\b", _ANY_CODE
    )


def _script_import(module: str) -> str:
    """The pattern of an import of a module, or of a part of it, in JavaScript and TypeScript."""
    return rf"{_IMPORTS}\s*{_QUOTES}{literal(module)}[\"'/]"


# --- Instructions about imports

# `a/go-sqlite3`, but not `script/release`
_PACKAGE = re.compile(
    r"@[\w-]+/[\w.-]+|(?!(?:src|lib|app|scripts?|bin|tools?|docs?|ci)/|test)[\w.-]+/[\w-]+"
)
_LIBRARY = one_of(
    *(
        re.escape(name)
        for names in (_SCRIPT_LIBRARIES, _PYTHON_LIBRARIES, sorted(_RUST_LIBRARIES), _GO_LIBRARIES)
        for name in names
    )
)
_LIBRARIES = form(
    "jQuery, lodash or other libraries",
    rf"(?P<names>{_LIBRARY}(?:(?:, | or |, or |/| and ){_LIBRARY})*)"
    r"(?:,? or (?:any )?other [\w -]+)?"
    r"(?: (?:library|libraries|package|packages|module|dependency|imports?))?",
)
_CODE_OF_LIBRARY = re.compile(rf"`({_LIBRARY})`", re.I)
_MODULES = form(
    "`lodash` and `'moment'`",
    rf"(?:the )?(?P<codes>{CODES})(?: (?:packages?|modules?|(?P<imports>imports?)))?",
)
_LAYER = "`?[a-z][a-z-]{3,}`?"
_LAYERS = form(
    "the infrastructure or `adapters` layers",
    rf"(?:the |any )?(?P<names>{_LAYER}(?:(?:,? or |,? and |, )(?:the )?{_LAYER})*)"
    r" (?:layers?|modules?)",
)
_USUAL_NAMES = frozenset("utils core common shared types models other same".split())
_VERBS = ("use", "import", "add", "introduce", "install", "include")
_PLACES = (Relation.IN, Relation.OUTSIDE)
_AGAINST = (
    *(Relation.INSTEAD_OF, Relation.NOT, Relation.OVER, Relation.FROM, Relation.FOR),
    Relation.WITHOUT,
)


def import_rule(clause: Clause) -> list[Draft]:
    """Reads "no jQuery", "use dayjs, not moment" and "never import from `lodash`"."""
    text = _with_folders_as_code(clause)
    instruction = instruction_of(text, clause.is_prohibited)
    if instruction is None or not _is_about_imports(instruction):
        return []
    objects = _forbidden_modules(instruction)
    places = places_of(instruction, clause.statement)
    if objects is None or places is None:
        return []
    tokens = _imports_of(objects, instruction)
    return forbid_code(tokens, places, clause.statement) if tokens else []


_BETWEEN_PARTS = re.compile(
    r"(?P<part>[a-z][\w-]{2,}) (?P<never>(?:must|should) (?:not|never) import) (?:anything )?from"
    r" (?:the )?(?P<other>[a-z][\w-]{2,})",
    re.I,
)


def _with_folders_as_code(clause: Clause) -> str:
    """A clause such as "Frontend must not import from backend" with "`frontend/`" and "`backend/`",
    if the rules file names folders of these names; any other clause as it is.
    """
    match = _BETWEEN_PARTS.fullmatch(clause.text)
    if match is None:
        return clause.text
    folders = [match[part].lower() for part in ("part", "other")]
    document = clause.statement.document
    if not all(re.search(rf"(?<![\w-]){re.escape(folder)}/", document) for folder in folders):
        return clause.text
    return f"`{folders[0]}/` {match['never']} from `{folders[1]}/`"


def _is_about_imports(instruction: Instruction) -> bool:
    """Whether the verbs may be about imports: "import or call" may, and "call" alone may not."""
    if instruction.does(["call"]):
        return False
    return instruction.does((*_VERBS, "call"))


def _forbidden_modules(instruction: Instruction) -> str | None:
    """The words for what must not be imported; None if nothing is forbidden, or only at times."""
    rejected = instruction.rejected_object or instruction.text_of(Relation.WITHOUT)
    source = instruction.text_of(Relation.FROM)
    if instruction.modality is Modality.NEVER:
        if rejected or not instruction.has_only(*_PLACES, Relation.FROM):
            return None
        if source is None or (instruction.object and is_place_of_code(source)):
            return instruction.object
        return None if instruction.object else source  # "never import `a` from `b`" is about `a`
    if instruction.modality is not Modality.MUST or not rejected:
        return None
    if (
        not instruction.has_only(*_PLACES, *_AGAINST)
        or instruction.circumstances[-1].relation is Relation.FROM
    ):
        return None
    return re.sub(r"^(?:the|from) ", "", rejected)


def _imports_of(objects: str, instruction: Instruction) -> list[CodeToken]:
    """The imports of the libraries or modules in a list; [] if it may list other things."""
    names_of_libraries = _CODE_OF_LIBRARY.sub(r"\1", objects)
    if libraries := whole_match(_LIBRARIES, names_of_libraries):
        if _is_of_the_network(objects, instruction):
            return []
        names = re.findall(_LIBRARY, libraries["names"], re.I)
        return all_known([library_token(name) for name in names])
    layers = whole_match(_LAYERS, objects)
    if layers and "import" in instruction.verbs:
        names = re.findall(r"[a-z-]{4,}", re.sub(r"\b(?:the|and)\b", "", layers["names"]))
        return [] if _USUAL_NAMES & set(names) else [_layer_token(name) for name in names]
    modules = whole_match(_MODULES, objects)
    codes = codes_in(modules["codes"]) if modules else []
    names_package = _is_part_of(codes, instruction.object)
    names_imports = modules is not None and modules["imports"] is not None
    is_import = "import" in instruction.verbs or names_imports
    if is_import or names_package or all(map(_PACKAGE.fullmatch, codes)):
        return all_known([module_token(code) for code in codes])
    return []


def _is_part_of(codes: Sequence[str], wanted: str) -> bool:
    """Whether a wanted package is named after each of some others, as `lodash-es` after `lodash`,
    so that they are packages too.
    """
    parts = re.fullmatch(r"`([a-z0-9]+(?:[-_:/][a-z0-9]+)+)`", wanted)
    if parts is None or not codes:
        return False
    names = [code.removeprefix("node:") for code in codes]
    if "_" in parts[1]:  # `toml_edit`, and not `user_id` after `id`
        return all(parts[1].startswith(f"{name}_") for name in names)
    return all(name in re.split("[-:/]", parts[1]) for name in names)


def _is_of_the_network(objects: str, instruction: Instruction) -> bool:
    """Whether "no requests" may be about requests to servers rather than the library."""
    is_bare = objects.lower() == "requests" and "import" not in instruction.verbs
    return is_bare and instruction.modality is Modality.NEVER


# --- The ending of what is imported

_ENDING = r"`?(?P<ending>\.(?:js|ts|mjs))`?(?: file)? ?(?:extensions?|endings?|suffix(?:es)?)?"
_PATHS = r"imports?(?: paths?| statements?| specifiers?)?"
_RELATIVE = r"(?:(?:all|every|each|local|relative|internal|TypeScript|TS|ES|ESM|the) )*"
_IN_FOLDER = r"(?: (?:in|under|inside) (?P<folder>`[^`]+/?`))?"
_WITH_ENDING = forms(
    {
        "All local imports in `api/` must use `.js` extensions": (
            rf"{_RELATIVE}{_PATHS}{_IN_FOLDER} (?:(?:must|should|need to|have to|always) )*"
            r"(?:use|include|have|carry|contain|end (?:with|in)|need|require)s?"
            rf" (?:an? |the |explicit )*{_ENDING}"
        ),
        "Use `.js` extensions in relative imports": (
            r"(?:always )?(?:use|include|add|write|keep) (?:an? |the |explicit )*"
            rf"{_ENDING} (?:in|on|for|to) {_RELATIVE}{_PATHS}{_IN_FOLDER}"
        ),
    }
)
_OTHER_ENDINGS = (
    r"\.(?:jsx|mjs|cjs|json|css|scss|sass|less|svg|png|jpe?g|vue|svelte|wasm|node|mdx?|html?|txt)"
)


def import_ending_rule(clause: Clause) -> list[Draft]:
    """Reads "relative imports must use the `.js` extension"."""
    match = None if clause.is_prohibited else whole_match(_WITH_ENDING, clause.text)
    if match is None or not re.search("extension|ending|suffix|end (?:with|in)", match[0], re.I):
        return []
    folder = match["folder"] and path_glob(match["folder"].strip("`").rstrip("/") + "/")
    if match["folder"] and folder is None:
        return []
    known = one_of(literal(match["ending"]), _OTHER_ENDINGS)
    pattern = (
        rf"(?:\bfrom|\bimport|\bimport\()\s*{_QUOTES}\.{{1,2}}/"
        rf"(?![^\"'\n]*{known}[\"'?])[^\"'\n]*{_QUOTES}"
    )
    places = Places((f"{folder}.{{ts,tsx,mts,js,jsx,mjs}}",) if folder else ())
    return forbid_code([CodeToken(pattern, SCRIPT)], places, clause.statement)


# --- The place of imports

_ON_TOP = form(
    "All imports must be at the top of the file",
    r"(?:(?:always|all|keep|put|place|python) )*imports"
    r" (?:must |should |are |be |go |placed |always )*(?:at|on) (?:the )?top"
    r"(?: of (?:the|each|every|a) (?:file|module)s?| of files| level)?",
)
_BELOW_TOP = CodeToken(INLINE_IMPORT, ("*.py",))
_NOT_PYTHON = re.compile(r"(?i:type[ -]?script|java|rust|react|\bjs\b|swift|kotlin)|\bGo\b|golang")


def import_place_rule(clause: Clause) -> list[Draft]:
    """Reads "all imports at the top of the file", a rule about Python: other languages have their
    imports there anyway.
    """
    if clause.is_prohibited or whole_match(_ON_TOP, clause.text) is None:
        return []
    if _NOT_PYTHON.search(clause.statement.context):
        return []
    return forbid_code([_BELOW_TOP], Places(), clause.statement)
