"""Rules about what code imports, and where: "no jQuery", "never import from `lodash`"."""

import re

from holdfast.drafting.clauses import all_known, codes_in
from holdfast.drafting.code_rules import files_of_places, not_written
from holdfast.drafting.code_tokens import INLINE_IMPORT, SCRIPT, CodeToken
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODES, forms, one_of, whole_match
from holdfast.drafting.instructions import Instruction, Modality, compared, instruction_of
from holdfast.drafting.rules_file import Statement

# libraries as people name them without backticks, and as code imports them
_OF_SCRIPTS = {
    **{
        name: name
        for name in (
            "antd axios chai date-fns dayjs ember enzyme express formik graphql-request immer jotai"
            " jquery langchain lodash lodash-es luxon mobx moment mongoose nativewind next-auth"
            " node-fetch ramda recoil redux rxjs sequelize sinon socket.io"
            " styled-components superagent typeorm winston yup zod zustand"
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
_OF_PYTHON = {
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
_OF_OTHERS = {  # and the line that imports it
    "automapper": r"^\s*(?:global\s+)?using\s+AutoMapper\b",
    "fluentassertions": r"^\s*(?:global\s+)?using\s+FluentAssertions\b",
    "guava": r"^\s*import\s+com\.google\.common\b",
    "lombok": r"^\s*import\s+lombok\b",
    "mediatr": r"^\s*(?:global\s+)?using\s+MediatR\b",
    "mockito": r"^\s*import\s+(?:static\s+)?org\.mockito\b",
    "moq": r"^\s*(?:global\s+)?using\s+Moq\b",
    "newtonsoft.json": r"^\s*(?:global\s+)?using\s+Newtonsoft\.Json\b",
}
_QUOTES = "[\"']"
_MODULE = re.compile(  # `lodash`, `'@prisma/client'`, `encoding/json`, `os.path`
    rf"(?P<quote>{_QUOTES}?)(?P<name>@?[\w-]+(?:[/.][\w-]+)*)(?P=quote)"
)
_PACKAGE = re.compile(
    r"@[\w-]+/[\w.-]+|(?!src/|lib/|app/|test)[\w.-]+/[\w-]+"
)  # `mattn/go-sqlite3`
_FILE = re.compile(r"\.(?:tsx?|jsx?|mjs|py|json|css|scss|md|svg|png|env)$")
_ANY_CODE = ("*", "!*.{md,mdx,txt,rst,json}")


def library_token(name: str) -> CodeToken | None:
    """The imports of a library by its name; None if it is none of those that are known."""
    plain = name.lower()
    patterns: list[str] = []
    files: list[str] = []
    if module := _OF_SCRIPTS.get(plain):
        patterns.append(_script_import(module))
        files += SCRIPT
    if module := _OF_PYTHON.get(plain):
        patterns.append(rf"^\s*(?:import|from)\s+{module}\b")
        files.append("*.py")
    if pattern := _OF_OTHERS.get(plain):
        patterns.append(pattern)
        files.append("*.{java,kt,cs}")
    return CodeToken("|".join(patterns), tuple(files)) if patterns else None


def module_token(code: str) -> CodeToken | None:
    """The imports of a module that a code span names; None if it may be something else."""
    module = _MODULE.fullmatch(code)
    if module is None or _FILE.search(code):
        return None
    if library := library_token(module["name"]):
        return library
    if module["quote"] or "/" in module["name"]:  # also in the lists of imports of Go
        name = f"(?:[\\w.@~-]+/)*{_escaped(module['name'])}"
        return CodeToken(f"{_QUOTES}{name}[\"'/]", _ANY_CODE)
    by_name = rf"^\s*(?:import|from|use|using)\s+{_escaped(module['name'])}\b"
    return CodeToken(f"{_script_import(module['name'])}|{by_name}", _ANY_CODE)


def _script_import(module: str) -> str:
    """The pattern of an import of a module, or of a part of it, in JavaScript and TypeScript."""
    return rf"(?:\bfrom|\bimport|\b(?:require|import)\()\s*{_QUOTES}{_escaped(module)}[\"'/]"


def _escaped(name: str) -> str:
    return re.escape(name).replace(r"\-", "-")


_ON_TOP = forms(
    {
        "All imports must be at the top of the file": (
            r"(?:(?:always|all|keep|put|place|python) )*imports"
            r" (?:must |should |are |be |go |placed |always )*(?:at|on) (?:the )?top"
            r"(?: of (?:the|each|every|a) (?:file|module)s?| of files| level)?"
        )
    }
)
_BELOW_TOP = CodeToken(INLINE_IMPORT, ("*.py",))
_NOT_PYTHON = re.compile(r"type[ -]?script|java|\bgo\b|rust|react|\bjs\b|swift|kotlin", re.I)


def import_place_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """All imports at the top of the file, as only Python can have them elsewhere."""
    if prohibits or whole_match(_ON_TOP, clause) is None:
        return None
    about = " ".join((statement.text, statement.label, *statement.under))
    return None if _NOT_PYTHON.search(about) else not_written([_BELOW_TOP], [], statement)


_LIBRARY = one_of(*(re.escape(name) for name in (*_OF_SCRIPTS, *_OF_PYTHON, *_OF_OTHERS)))
_LIBRARIES = forms(
    {
        "jQuery, lodash or other libraries": (
            rf"(?P<names>{_LIBRARY}(?:(?:, | or |, or |/| and ){_LIBRARY})*)"
            r"(?:,? or (?:any )?other [\w -]+)?"
            r"(?: (?:library|libraries|package|packages|module|dependency|imports?))?"
        )
    }
)
_MODULES = forms(
    {"`lodash` and `'moment'`": rf"(?:the )?(?P<codes>{CODES})(?: (?:packages?|modules?))?"}
)
_VERBS = ("use", "import", "add", "introduce", "install", "include")
_PLACES = ("in", "inside", "within", "outside", "outside of")
_AGAINST = ("instead of", "in place of", "rather than", "not", "never", "over", "from", "for")


def import_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """No jQuery; use dayjs, not moment; never import from `lodash`."""
    instruction = instruction_of(clause, prohibits)
    if instruction is None or not _is_about_imports(instruction):
        return None
    objects = _forbidden_modules(instruction)
    files = files_of_places(instruction, statement)
    if objects is None or files is None:
        return None
    tokens = None
    if libraries := whole_match(_LIBRARIES, objects):
        names = re.findall(_LIBRARY, libraries["names"], re.I)
        if _is_of_the_network(objects, instruction):
            return None
        tokens = all_known([library_token(name) for name in names])
    elif modules := whole_match(_MODULES, objects):
        codes = codes_in(modules["codes"])
        if "import" in instruction.verbs or all(map(_PACKAGE.fullmatch, codes)):
            tokens = all_known([module_token(code) for code in codes])
    return not_written(tokens, files, statement) if tokens else None


def _is_about_imports(instruction: Instruction) -> bool:
    """Whether its verbs are of imports; "import or call" is, and "call" alone is not."""
    if instruction.does(["call"]):
        return False
    return instruction.does((*_VERBS, "call"))


def _is_of_the_network(objects: str, instruction: Instruction) -> bool:
    """Whether "no requests" may be about requests to servers rather than the library."""
    is_bare = objects.lower() == "requests" and "import" not in instruction.verbs
    return is_bare and instruction.modality is Modality.NEVER


def _forbidden_modules(instruction: Instruction) -> str | None:
    """The words for what is not imported; None if nothing is forbidden, or only at times."""
    against = compared(instruction)
    source = instruction.behind("from")
    if instruction.modality is Modality.NEVER:
        if against or not instruction.has_only(*_PLACES, "from"):
            return None
        if source is None:
            return instruction.object
        return None if instruction.object else source  # "never import `a` from `b`" is of `a`
    words = [word for word, _ in instruction.circumstances]
    if instruction.modality is not Modality.MUST or not against:
        return None
    if not instruction.has_only(*_PLACES, *_AGAINST) or words[-1] == "from":
        return None
    return re.sub(r"^(?:the|from) ", "", against)
