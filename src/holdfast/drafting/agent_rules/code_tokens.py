"""Pieces of code as rules files name them, with the patterns and files that measures take.

The files of a piece are those of the language that a text names, or of the only language that has
such code. What could as well be an English word is taken for code only beside such a language.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.drafting.grammar.commands import is_command
from holdfast.drafting.grammar.forms import EMOJI_SIGNS
from holdfast.drafting.grammar.language_files import DOCUMENTS, MARKUP, PYTHON, SCRIPT, TYPED
from holdfast.drafting.grammar.path_globs import path_glob


@dataclass(frozen=True)
class CodeToken:
    """A piece of code.

    Args:
        pattern: the regular expression that finds it.
        files: the globs of the files that may have it; () if any may.
    """

    pattern: str
    files: tuple[str, ...] = ()


class _NamedToken(NamedTuple):
    """A piece of code whose name in rules files is not its text: "wildcard imports".

    Args:
        names: what people call it, in words or in backticks.
        files: as in `CodeToken`.
    """

    names: tuple[str, ...]
    pattern: str
    files: tuple[str, ...]

    @property
    def token(self) -> CodeToken:
        return CodeToken(self.pattern, self.files)


TABS = CodeToken(r"^ *\t", ("*", "!*.{md,mdx,txt,mk,go,tsv}", "!*Makefile"))
SPACES = CodeToken(r"^\t* {2,}[^ *]", ("*", "!*.{md,mdx,txt,yml,yaml,py}"))

# --- Patterns of several parts

# an import within a block of Python, other than a block at the margin: `if TYPE_CHECKING:`
INLINE_IMPORT = (
    r"^(?<!^(?:if|elif|else|try|except|finally|with)\b[^\n]*:[^\n]*\n(?:[ \t][^\n]*\n|\n){0,60})"
    r"[ \t]+(?:import\s+\w|from\s+\S+\s+import\b)"
)

# --- Tables


_TOKENS = (
    _NamedToken(
        ("any", "any type", "any types"), r"(?:[:<|&,(=]\s*|\bas\s+)any\b(?!\s*[:(])", TYPED
    ),
    _NamedToken(
        ("enum", "enums"), r"^\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w", TYPED
    ),
    _NamedToken(("var", "var declarations"), r"^\s*(?:export\s+)?var\s+\w|\(var\s+\w", SCRIPT),
    _NamedToken(
        ("eval",), r"(?<![\w.])eval\(", ("*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,vue,svelte,py}",)
    ),
    _NamedToken(("require", "require statements"), r"(?<![\w.])require\(", SCRIPT),
    _NamedToken(("debugger",), r"^\s*debugger\b", SCRIPT),
    _NamedToken(
        ("default export", "default exports"), r"^\s*export\s+default\b|\bas default\b", SCRIPT
    ),
    _NamedToken(("export default",), r"^\s*export\s+default\b", SCRIPT),
    _NamedToken(
        ("inline styles", "inline style attributes", "inline css"),
        r"\bstyle=(?:[\"']|\{\{)",
        (MARKUP,),
    ),
    _NamedToken(("innerHTML",), r"\.innerHTML\b", SCRIPT),
    _NamedToken(("print", "print statements"), r"(?<![\w.])print\(", ()),
    _NamedToken(
        ("except", "except:", "bare except", "bare except clauses", "bare excepts"),
        r"^\s*except\s*:",
        ("*.py",),
    ),
    _NamedToken(
        ("wildcard imports", "star imports", "wildcard import"),
        r"^\s*from\s+\S+\s+import\s+\*",
        ("*.py",),
    ),
    _NamedToken(("any casts",), r"\bas\s+any\b", TYPED),
    _NamedToken(
        ("console logs", "console.log", "console.log statements", "console.logs"),
        r"(?<![\w$])console\.log\b",
        SCRIPT,
    ),
    _NamedToken(("console statements",), r"(?<![\w$])console\.\w", SCRIPT),
    _NamedToken(("trailing commas",), r",[ \t]*\n\s*[\])}]", SCRIPT),
    _NamedToken(("eslint-disable comments",), r"eslint-disable", SCRIPT),
    _NamedToken(("ts-ignore comments", "@ts-ignore"), r"@ts-ignore\b", TYPED),
    _NamedToken(("mutable default arguments",), r"\bdef [^\n]*=\s*(?:\[\]|\{\})", ("*.py",)),
    _NamedToken(("todo comments", "todos"), r"\bTODO\b", ("*", DOCUMENTS)),
    _NamedToken(
        (
            *("hex colors", "hardcoded hex colors", "hex values", "hex codes", "raw hex values"),
            *("hex/rgb values", "hex or rgb values", "hex color values", "hardcoded hex values"),
        ),
        r"#[0-9a-fA-F]{3,8}\b",
        ("*.{css,scss,ts,tsx,js,jsx,vue,svelte,html}",),
    ),
    _NamedToken(("semicolons", "trailing semicolons"), r";[ \t]*$", SCRIPT),
    _NamedToken(("tabs",), TABS.pattern, TABS.files),
    _NamedToken(("spaces",), SPACES.pattern, SPACES.files),
    _NamedToken(("emojis", "emoji"), f"[{EMOJI_SIGNS}]", ("*",)),
    _NamedToken(("em dashes", "em-dashes", "em dash", "en dash", "en dashes"), "[–—]", ("*",)),
    _NamedToken(("unsafe", "unsafe code"), r"\bunsafe\b", ("*.rs",)),
    _NamedToken(("unwrap",), r"\.unwrap\(\)", ("*.rs",)),
    _NamedToken(("expect",), r"\.expect\(", ("*.rs",)),
    _NamedToken(("panic",), r"(?<![\w.])panic\(", ("*.go",)),
    _NamedToken(("!!",), r"!!(?![\w(!])", ("*.{kt,kts}",)),
    _NamedToken(("!important",), r"!important\b", ()),
    _NamedToken(
        ("relative imports", "relative import paths"),
        r"""(?:\bfrom|\bimport|\b(?:require|import)\()\s*["']\.\.?/|^\s*from\s+\.""",
        (*SCRIPT, *PYTHON),
    ),
    _NamedToken(
        ("commonjs", "commonjs modules", "commonjs syntax", "commonjs require", "common js"),
        r"(?<![\w.])require\(|\bmodule\.exports\b|^\s*exports\.\w",
        SCRIPT,
    ),
    _NamedToken(("inline imports", "local imports"), INLINE_IMPORT, PYTHON),
    _NamedToken(
        ("non-null assertions", "non-null assertion operators"), r"[\w)\]]!(?=[.;,)\[])", TYPED
    ),
    _NamedToken(("@ts-expect-error",), r"@ts-expect-error\b", TYPED),
    _NamedToken(("@ts-nocheck",), r"@ts-nocheck\b", TYPED),
)
# code that only some languages have, and the files of these languages
_TOKEN_LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"as (?:any|unknown|never).*|.*@ts-.*|Record<.*|Array<.*|Promise<.*", TYPED),
    (
        r"console\..*|.*export (?:default|\*).*|React\..*|use[A-Z]\w*(?:\(\))?|window\..*"
        r"|document\..*|localStorage.*|process\.env.*|Math\.random.*|Date\.now.*|new Date.*"
        r"|JSON\..*|dangerouslySetInnerHTML|.*eslint-disable.*|vi\..*|jest\..*|await import\(.*"
        r"|import\(\)|\.then.*|.*=>.*|const \w+|.*===.*",
        SCRIPT,
    ),
    (
        r"(?:List|Dict|Optional|Union|Tuple|Any)(?:\[.*\])?|print\(.*|.*type: ?ignore.*"
        r"|.*noqa.*|os\.path.*|typing\..*|from .* import.*|unittest(?:\..*)?|datetime\..*"
        r"|time\.sleep.*|asyncio\..*|pytest\..*|sys\.path.*|__future__.*|logging\..*|hasattr.*"
        r"|getattr.*|setattr.*|except .*",
        ("*.py",),
    ),
    (r"\.?(?:unwrap|expect)\(.*|(?:panic|println|eprintln|dbg|todo|unimplemented|unreachable)!.*"
     r"|#!?\[.*|std::.*|Box<.*|Rc<.*|Arc<.*", ("*.rs",)),
    (r"fmt\.Print.*|os\.Exit.*|log\.(?:Fatal|Panic|Print).*|interface\{\}|context\.Background.*"
     r"|err\..*|errors\..*|//nolint.*", ("*.go",)),
    (r"System\.out.*|@Autowired|Thread\.sleep.*", ("*.{java,kt}",)),
    (r"Console\.Write.*|#region|\.Result|\.Wait\(\)", ("*.cs",)),
    (r"(?:bg|text|space-[xy]|h|w|p|m)-[\w\[\]-]+", ("*.{tsx,jsx,vue,svelte,html,ts,js}",)),
)  # fmt: skip
# the noun behind a plain word that tells it to be code, and how the word looks in code
_LOOKS = (
    (r"statements?|declarations?|blocks?|loops?", r"^\s*{}\b"),
    (r"decorators?|annotations?", r"@{}\b"),
    (r"functions?|methods?|hooks?|calls?|macros?", r"(?<![\w$]){}!?\("),
)
_MAX_CHARACTERS = 48  # a longer code span is an example
_CALL = re.compile(r"(?P<name>.*\w)\((?P<arguments>[^()]*)\)")
_CONSTANT = re.compile(r"null|None|nil|true|false|True|False|undefined|-?\d+")
# a name that stands for any name: `X`, `Foo`, `MyComponent`
_METAVARIABLE = re.compile(r"(?<![\w$])(?:[A-Z]|Foo|Bar|Baz|My[A-Z]\w*|foo|bar|baz)(?![\w$])")
# code spans that are something else than code
_NO_CODE = re.compile(
    r"\s--?\w|^-"  # options of a command
    r"|^[A-Z][A-Z0-9_]*$"  # constants and environment variables
    r"|^[\w-]+:$|^\w+\.\w+\.[\w.]+$|[$%]"  # keys of settings, and placeholders
    r"|^\W+$|[\"']/[\"']"  # signs alone, and several values in one span
    r"|\.config$|^#\s|^@?[a-z]\w*-[\w-]+$"  # files, headings, names of packages
    r"|-name$|^\w+: ?\w+$"  # settings
)


def named_token(words: str) -> CodeToken | None:
    """The code with a name such as "wildcard imports", in any case of letters; None if there is
    none with that name.
    """
    for named in _TOKENS:
        if words.lower() in map(str.lower, named.names):
            return named.token
    return None


def token_of_kind(word: str, kind: str) -> CodeToken | None:
    """The code that a plain word means before a noun, as in "a `using` statement" or "the `sleep`
    function"; None if the noun does not tell that the word is code.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", word):
        return None
    for kinds, look in _LOOKS:
        if re.fullmatch(kinds, kind, re.I):
            return CodeToken(look.format(word))
    return None


def code_token(text: str) -> CodeToken | None:
    """The code that a code span means; None if it may not be code, or is only an example."""
    for named in _TOKENS:
        if text in named.names:
            return named.token
    text = re.sub(r"=\{\{?(?:\.\.\.|…)?\}\}?$", "={", text)  # `style={{}}`
    text = re.sub(r"\s*=\s*(?:[\"'](?:\.\.\.|…)[\"']|\.\.\.|…)$", " =", text)  # `version = "..."`
    if re.search(r"[\n]|\.\.\.|…", re.sub(r"[(\[<{](?:\.\.\.|…)[)\]>}]", "", text)):
        return None
    files = next((globs for shape, globs in _TOKEN_LANGUAGES if re.fullmatch(shape, text)), ())
    if not _looks_like_code(text, has_language=bool(files)):
        return None
    pattern = _pattern_of(text)
    return CodeToken(pattern, files) if pattern else None


def _looks_like_code(text: str, *, has_language: bool) -> bool:
    """Whether a code span is code rather than a command, a path or a setting."""
    is_code = has_language or re.search(r"[a-z][A-Z]|[.(\[<!@#:=_]|^(?:as|new) \w", text)
    if len(text) > _MAX_CHARACTERS or not is_code or is_command(text) or _NO_CODE.search(text):
        return False
    is_path = path_glob(text) is not None and re.search(r"/|\.[a-z]{2,4}$", text)
    return not is_path or re.match(r"(?:os|console|process|fmt|err|log)\.", text) is not None


def _pattern_of(text: str) -> str | None:
    """The pattern of code, in which a name such as `X` may be any name; None if the code is an
    example such as `fetch('/api/apps')` or `X | Y`.
    """
    if re.fullmatch(r"\w+\.?\[\d+\]", text):
        return None  # `items[0]`
    if element := re.fullmatch(r"<(\w+)(?: ?/)?>", text):
        return rf"<{element[1]}\b"
    if attribute := re.fullmatch(r"#\[(\w+)\]", text):
        return rf"#!?\[{attribute[1]}\b"
    if member := re.fullmatch(r"(.+)\.\*", text):
        return _literal(member[1], r"\.\w+")
    if generic := re.fullmatch(r"(.*\w)([\[<])(?:\.\.\.|…|[A-Za-z, ]*)[\]>]", text):
        return _literal(generic[1], re.escape(generic[2]))
    if call := _CALL.fullmatch(text):
        arguments = _arguments(call["arguments"])
        return None if arguments is None else _literal(call["name"], rf"\({arguments}")
    return _literal(text)


def _arguments(text: str) -> str | None:
    """The pattern of a call's arguments: constants as they are, and anything for names; "" if no
    argument is a constant, and None if one is a string, as the call is an example then.
    """
    arguments = [argument.strip() for argument in text.split(",")]
    if re.search(r"[\"'`]", text):
        return None
    if not any(map(_CONSTANT.fullmatch, arguments)):
        return ""
    values = r",\s*".join(
        re.escape(argument) if _CONSTANT.fullmatch(argument) else r"[^,()\n]+"
        for argument in arguments
    )
    return rf"\s*{values}\s*\)"


def _literal(text: str, end: str = "") -> str | None:
    """The pattern of code as it is written, with any spaces, and any name for names such as `X`;
    None if the code has no other name.

    Args:
        end: the pattern of what follows the code; by default, the end of its last word.
    """
    pieces = _METAVARIABLE.split(text)
    if len(pieces) > 1 and not any(re.search(r"\w", piece) for piece in pieces):
        return None
    body = r"\w+".join(map(_escape, pieces))
    if "." in text:
        body = body.replace(r"\*", r"\w*")
    before = r"(?<![\w$])" if re.match(r"\w", text) else ""
    after = end or (r"(?![\w$])" if re.search(r"\w$", text) else "")
    return f"{before}{body}{after}"


def _escape(text: str) -> str:
    """The pattern of a text, with or without spaces around `=`."""
    return re.sub(r"\\ =(?:\\ )?", r"\\s*=\\s*", re.escape(text)).replace(r"\ ", r"\s+")
