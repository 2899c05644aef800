"""Pieces of code as rules files name them, as a pattern and the files that may have them.

    "wildcard imports"  -> named_token   -> r"^\\s*from\\s+\\S+\\s+import\\s+\\*" in *.py
    "`sleep` function"  -> token_of_kind -> r"sleep\\(" in any file
    `os.path`           -> code_token    -> r"os\\.path" in *.py

The files are those of the only language that has such code. What could as well be an English word
is taken for code only beside the name of such a language.
"""

import re
from dataclasses import dataclass

from holdfast.drafting.grammar.commands import is_command
from holdfast.drafting.grammar.forms import EMOJI_SIGNS, one_of
from holdfast.drafting.grammar.named_files import (
    DOCUMENTS,
    MARKUP,
    PYTHON,
    SCRIPT,
    TYPED,
    path_glob,
)


@dataclass(frozen=True)
class CodeToken:
    """A piece of code.

    Args:
        pattern: the regular expression that finds it.
        files: the globs of the files that may have it; () if any may.
    """

    pattern: str
    files: tuple[str, ...] = ()


TABS = CodeToken(r"^ *\t", ("*", "!*.{md,mdx,txt,mk,go,tsv}", "!*Makefile"))
SPACES = CodeToken(r"^\t* {2,}[^ *]", ("*", "!*.{md,mdx,txt,yml,yaml,py}"))
# an import within a block of Python, other than a block at the margin: `if TYPE_CHECKING:`
INLINE_IMPORT = (
    r"^(?<!^(?:if|elif|else|try|except|finally|with)\b[^\n]*:[^\n]*\n(?:[ \t][^\n]*\n|\n){0,60})"
    r"[ \t]+(?:import\s+\w|from\s+\S+\s+import\b)"
)

# --- Code with a name in words

# the names of a piece of code, with "|" between them
_NAMED_TOKENS = {
    "any|any type|any types": CodeToken(r"(?:[:<|&,(=]\s*|\bas\s+)any\b(?!\s*[:(])", TYPED),
    "enum|enums": CodeToken(r"^\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w", TYPED),
    "var|var declarations": CodeToken(r"^\s*(?:export\s+)?var\s+\w|\(var\s+\w", SCRIPT),
    "eval": CodeToken(r"(?<![\w.])eval\(", ("*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,vue,svelte,py}",)),
    "require|require statements": CodeToken(r"(?<![\w.])require\(", SCRIPT),
    "debugger": CodeToken(r"^\s*debugger\b", SCRIPT),
    "default export|default exports": CodeToken(r"^\s*export\s+default\b|\bas default\b", SCRIPT),
    "export default": CodeToken(r"^\s*export\s+default\b", SCRIPT),
    "inline styles|inline style attributes|inline css": CodeToken(
        r"\bstyle=(?:[\"']|\{\{)", (MARKUP,)
    ),
    "innerHTML": CodeToken(r"\.innerHTML\b", SCRIPT),
    "print|print statements": CodeToken(r"(?<![\w.])print\("),
    "except|except:|bare except|bare except clauses|bare excepts": CodeToken(
        r"^\s*except\s*:", ("*.py",)
    ),
    "css modules|css module": CodeToken(r"\.module\.(?:css|scss|sass|less)[\"']"),
    "class components|react class components": CodeToken(
        r"\bclass\s+\w+\s+extends\s+(?:React\.)?(?:Pure)?Component\b", SCRIPT
    ),
    "class declarations": CodeToken(
        r"^\s*(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+\w", SCRIPT
    ),
    "it.only|describe.only|test.only|.only": CodeToken(r"\b(?:it|test|describe)\.only\(", SCRIPT),
    "it.skip|describe.skip|test.skip|.skip": CodeToken(r"\b(?:it|test|describe)\.skip\(", SCRIPT),
    "sleep": CodeToken(r"\bsleep\(|^\s*sleep \d"),
    "as X|as T|as Type|as SomeType|as Foo": CodeToken(
        r"^(?!\s*(?:import|export)\b).*[\w)\]}]\s+as\s+(?!const\b)[A-Z{]\w*", TYPED
    ),
    "block-scoped namespaces": CodeToken(r"^\s*namespace\s+[\w.]+\s*(?:\{|$)", ("*.cs",)),
    (
        "wildcard imports|star imports|wildcard import|import *|from x import *"
        "|from module import *|from foo import *"
    ): CodeToken(r"^\s*from\s+\S+\s+import\s+\*", ("*.py",)),
    "any casts": CodeToken(r"\bas\s+any\b", TYPED),
    "console logs|console.log|console.log statements|console.logs": CodeToken(
        r"(?<![\w$])console\.log\b", SCRIPT
    ),
    "console statements": CodeToken(r"(?<![\w$])console\.\w", SCRIPT),
    "trailing commas": CodeToken(r",[ \t]*\n\s*[\])}]", SCRIPT),
    "eslint-disable comments|eslint-disable directives": CodeToken(r"eslint-disable", SCRIPT),
    "ts-ignore comments|@ts-ignore": CodeToken(r"@ts-ignore\b", TYPED),
    "mutable default arguments": CodeToken(r"\bdef [^\n]*=\s*(?:\[\]|\{\})", ("*.py",)),
    "todo comments|todos": CodeToken(r"\bTODO\b", ("*", DOCUMENTS)),
    "trailing whitespace|trailing spaces|whitespace at the end of lines": CodeToken(
        r"[^ \t\n][ \t]+$", ("*", DOCUMENTS)
    ),
    "empty catch blocks|empty catch|empty catches|empty catch clauses": CodeToken(
        r"\bcatch\b\s*(?:\([^()\n]*\)\s*)?\{\s*\}"
    ),
    "dynamic|dynamic types|dynamic type": CodeToken(
        r"(?<![\w.])dynamic\b(?=[>,?)\]]|\s+\w)", ("*.{dart,cs}",)
    ),
    "dynamic imports|dynamic import": CodeToken(r"(?<![\w.])import\(", SCRIPT),
    "alert|browser alerts": CodeToken(r"(?<![\w.$])(?:window\.)?alert\(", SCRIPT),
    "confirm": CodeToken(r"(?<![\w.$])(?:window\.)?confirm\(", SCRIPT),
    "fetch": CodeToken(r"(?<![\w.$])fetch\(", SCRIPT),
    "prompt": CodeToken(r"(?<![\w.$])(?:window\.)?prompt\(", SCRIPT),
    "f-strings in logging": CodeToken(r"\b_?log(?:ger|ging)?\.\w+\(\s*f[\"']", PYTHON),
    "catching exception": CodeToken(
        r"^\s*except\s+\(?(?:Base)?Exception\b|\bcatch\s*\(\s*(?:System\.)?Exception\b"
    ),
    "barrel files|barrel exports|barrel imports|barrels": CodeToken(
        r"^\s*export\s+(?:type\s+)?(?:\*|\{[^}]*\})\s*from\b", ("index.{ts,tsx,js,jsx,mts,mjs}",)
    ),
    (
        "ansi codes|ansi color codes|ansi escape codes|ansi escapes|raw ansi codes"
        "|hardcoded ansi codes|hardcoded ansi color codes|hardcoded ansi escape codes"
    ): CodeToken(r"(?:\\x1[bB]|\\033|\\u001[bB]|\\e|\x1b)\["),
    "eslint-disable|// eslint-disable|/* eslint-disable */": CodeToken(r"eslint-disable", SCRIPT),
    "// @ts-ignore": CodeToken(r"@ts-ignore\b", TYPED),
    "// @ts-expect-error": CodeToken(r"@ts-expect-error\b", TYPED),
    "# noqa|noqa": CodeToken(r"#\s*noqa\b", PYTHON),
    "# type: ignore|type: ignore": CodeToken(r"#\s*type:\s*ignore\b", PYTHON),
    "# pylint: disable": CodeToken(r"#\s*pylint:\s*disable", PYTHON),
    "# pragma: no cover": CodeToken(r"#\s*pragma:\s*no cover", PYTHON),
    "//nolint|// nolint": CodeToken(r"//\s*nolint\b", ("*.go",)),
    "except: pass|except Exception: pass|silent except": CodeToken(
        r"^\s*except\b[^\n:]*:\s*(?:\n\s*)?pass\b", PYTHON
    ),
    "pipe tables|markdown tables|markdown pipe tables": CodeToken(
        r"^\s*\|.*\|\s*$", ("*.{md,mdx}",)
    ),
    "double hyphens|double dashes": CodeToken(r"[a-z0-9,.;)`\"] -- [A-Za-z`\"(]", ("*.{md,mdx}",)),
    "promise chains|promises chains|.then chains|then chains|promise chaining": CodeToken(
        r"\.then\(", SCRIPT
    ),
    (
        "hardcoded hex|hex literals|hex colors|hardcoded hex colors|hex values|hex codes|"
        "raw hex values|"
        "hex/rgb values|hex or rgb values|hex color values|hardcoded hex values"
    ): CodeToken(r"#[0-9a-fA-F]{3,8}\b", ("*.{css,scss,ts,tsx,js,jsx,vue,svelte,html}",)),
    "hardcoded colors|hardcoded color values|raw colors|raw color values": CodeToken(
        r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(",
        ("*.{css,scss,ts,tsx,js,jsx,vue,svelte,html}",),
    ),
    "nested ternaries|nested ternary operators|nested ternary expressions": CodeToken(
        r"\s\?\s[^?;,{}=]{1,200}\s\?\s", SCRIPT
    ),
    "force unwraps|force-unwraps|force unwrap|force-unwrap|force unwrapping|force-unwrapping": (
        CodeToken(r"[\w)\]]!(?=[.,)\]}]|\s*$)", ("*.swift",))
    ),
    "code comments": CodeToken(r"(?:^|\s)//|/\*|^\s*#\s", ("*", DOCUMENTS)),
    "semicolons|trailing semicolons": CodeToken(r";[ \t]*$", SCRIPT),
    "tabs": TABS,
    "spaces": SPACES,
    "emojis|emoji": CodeToken(f"[{EMOJI_SIGNS}]", ("*",)),
    "em dashes|em-dashes|em dash": CodeToken("—", ("*",)),
    "en dashes|en-dashes|en dash": CodeToken("–", ("*",)),
    "unsafe|unsafe code": CodeToken(r"\bunsafe\b", ("*.rs",)),
    "unwrap": CodeToken(r"\.unwrap\(\)", ("*.rs",)),
    "expect": CodeToken(r"\.expect\(", ("*.rs",)),
    "panic": CodeToken(r"(?<![\w.])panic\(", ("*.go",)),
    "!!": CodeToken(r"!!(?![\w(!])", ("*.{kt,kts}",)),
    "!important": CodeToken(r"!important\b"),
    "relative imports|relative import paths|relative paths|relative ones": CodeToken(
        r"""(?:\bfrom|\bimport|\b(?:require|import)\()\s*["']\.\.?/|^\s*from\s+\.""",
        (*SCRIPT, *PYTHON),
    ),
    "imports from parent folders": CodeToken(
        r"""(?:\bfrom|\bimport|\b(?:require|import)\()\s*["']\.\./""", SCRIPT
    ),
    "constructor injection": CodeToken(
        r"\bconstructor\s*\(\s*(?:private|public|protected|readonly)\s", TYPED
    ),
    "commonjs|commonjs modules|commonjs syntax|commonjs require|common js": CodeToken(
        r"(?<![\w.])require\(|\bmodule\.exports\b|^\s*exports\.\w", SCRIPT
    ),
    "inline imports|local imports": CodeToken(INLINE_IMPORT, PYTHON),
    "non-null assertions|non-null assertion operators": CodeToken(r"[\w)\]]!(?=[.;,)\[])", TYPED),
    "@ts-expect-error": CodeToken(r"@ts-expect-error\b", TYPED),
    "@ts-nocheck": CodeToken(r"@ts-nocheck\b", TYPED),
}


def _by_name() -> dict[str, CodeToken]:
    """The tokens of the table, by each of their names."""
    tokens: dict[str, CodeToken] = {}
    for names, token in _NAMED_TOKENS.items():
        tokens |= dict.fromkeys(names.split("|"), token)
    return tokens


_BY_NAME = _by_name()
_BY_NAME_IN_LOWER_CASE = {name.lower(): token for name, token in _BY_NAME.items()}


def named_token(words: str) -> CodeToken | None:
    """The code with a name such as "wildcard imports", in any case of letters; None if there is
    none with that name.
    """
    return _BY_NAME_IN_LOWER_CASE.get(words.lower())


_MARKER = r"`?(?:TODO|FIXME|XXX|HACK)s?`?"
_MARKERS = re.compile(
    rf"(?P<markers>{_MARKER}(?:(?:, (?:or |and )?| or | and |/){_MARKER})*)"
    r"(?:[ /-](?:style )?(?:comments?|markers?|notes?|tags?|placeholders?))?"
)


def marker_token(words: str) -> CodeToken | None:
    """The comments that "`TODO` or `FIXME` comments" names; None if the words name another thing.

    >>> marker_token("TODO/FIXME comments").pattern
    '\\\\b(?:TODO|FIXME)\\\\b'
    """
    match = _MARKERS.fullmatch(words)
    if match is None:
        return None
    markers = re.findall("TODO|FIXME|XXX|HACK", match["markers"])
    pattern = markers[0] if len(markers) == 1 else one_of(*markers)
    return CodeToken(rf"\b{pattern}\b", ("*", DOCUMENTS))


# --- Code from a plain word and a noun: "a `using` statement", "the `sleep` function"

# the nouns, and how a word before them looks in code
_LOOKS = (
    (r"statements?|declarations?|blocks?|loops?", r"^\s*{}\b"),
    (r"decorators?|annotations?", r"@{}\b"),
    (r"functions?|methods?|hooks?|calls?|macros?", r"(?<![\w$]){}!?\("),
    (r"modifiers?|keywords?", r"(?<![\w$.-]){}\s+\w"),
)


def token_of_kind(word: str, kind: str) -> CodeToken | None:
    """The code that a plain word means before a noun; None if the noun does not show that the word
    is code.

    >>> token_of_kind("sleep", "function")
    CodeToken(pattern='(?<![\\\\w$])sleep!?\\\\(', files=())
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", word):
        return None
    for nouns, look in _LOOKS:
        if re.fullmatch(nouns, kind, re.I):
            return CodeToken(look.format(word))
    return None


# --- Code from a code span: `os.path`, `Record<string, any>`, `fetch(X)`

# code that only some languages have, and the globs of the files of these languages
_CODE_OF_LANGUAGES = (
    (
        one_of(
            r"(?:as|\w+:) (?:any|unknown|never).*",
            ".*@ts-.*",
            "Record<.*",
            "Array<.*",
            "Promise<.*",
        ),
        TYPED,
    ),
    (
        one_of(
            *(r"console\..*", r".*export (?:default|\*).*", r"React\..*", r"use[A-Z]\w*(?:\(\))?"),
            *(r"window\..*", r"document\..*", "localStorage.*", r"process\.env.*", ".*=>.*"),
            *(r"Math\.random.*", r"Date\.now.*", "new Date.*", r"JSON\..*", r"vi\..*", r"jest\..*"),
            *("dangerouslySetInnerHTML", ".*eslint-disable.*", r"await import\(.*", r"import\(\)"),
            *(r"\.then.*", r"const \w+", ".*===.*"),
        ),
        SCRIPT,
    ),
    (
        one_of(
            *(r"(?:List|Dict|Optional|Union|Tuple|Any)(?:\[.*\])?", r"print\(.*", "hasattr.*"),
            *(
                ".*type: ?ignore.*",
                ".*noqa.*",
                r"os\.(?:path|system|popen).*",
                r"typing\..*",
                "from .* import.*",
            ),
            *(r"unittest(?:\..*)?", r"datetime\..*", r"time\.sleep.*", r"asyncio\..*"),
            *(r"pytest\..*", r"sys\.path.*", "__future__.*", r"logging\..*", "getattr.*"),
            *("setattr.*", "except .*", r"subprocess\..*", r"pickle\..*"),
        ),
        PYTHON,
    ),
    (
        one_of(
            *(r"\.?(?:unwrap|expect)\(.*", r"#!?\[.*", "std::.*", "Box<.*", "Rc<.*", "Arc<.*"),
            "(?:panic|println|eprintln|dbg|todo|unimplemented|unreachable)!.*",
        ),
        ("*.rs",),
    ),
    (
        one_of(
            *(r"fmt\.Print.*", r"os\.Exit.*", r"log\.(?:Fatal|Panic|Print).*", r"interface\{\}"),
            *(r"context\.Background.*", r"err\..*", r"errors\..*", "//nolint.*"),
        ),
        ("*.go",),
    ),
    (one_of(r"System\.out.*", "@Autowired", r"Thread\.sleep.*"), ("*.{java,kt}",)),
    (
        r"(?:Get|New|Write|Read|Out|Start|Stop|Invoke|Import|Export|Select|ForEach|Where|Add)"
        r"-[A-Z][a-z]\w+",
        ("*.{ps1,psm1}",),
    ),
    (one_of(r"Console\.Write.*", "#region", r"\.Result", r"\.Wait\(\)"), ("*.{cs,fs,fsx}",)),
    (r"(?:bg|text|space-[xy]|h|w|p|m)-[\w\[\]-]+", ("*.{tsx,jsx,vue,svelte,html,ts,js}",)),
)
_MAX_CHARACTERS = 48  # a longer code span is an example
_CALL = re.compile(r"(?P<name>.*\w!?)\((?P<arguments>[^()]*)\)")
_CONSTANT = re.compile(r"null|None|nil|true|false|True|False|undefined|-?\d+")
_QUOTED_WORD = re.compile(r"[\"'`]([a-z]{4,})[\"'`]")
# a name that stands for any name: `X`, `Foo`, `MyComponent`
_METAVARIABLE = re.compile(r"(?<![\w$])(?:[A-Z]|Foo|Bar|Baz|My[A-Z]\w*|foo|bar|baz)(?![\w$])")
# code spans that are something else than code
_NO_CODE = re.compile(
    r"""
      \s --?\w | ^-                 # options of a command
    | ^[A-Z][A-Z0-9_]*$             # constants and environment variables
    | ^[\w-]+:$ | ^\w+:[ ]?(?!any$)\w+$  # keys of settings, and settings
    | -name$
    | [$%]                          # placeholders
    | ^\W+$                         # signs alone
    | ["']/["']                     # several values in one span
    | \.config$                     # files
    | ^\#\s                         # headings
    | ^@?[a-z]\w*-[\w-]+$           # names of packages
    | \b[a-z]\w?[ ]?=> | \([a-z],    # examples with variables such as `x => x.id`
    | ^(?:fn|func|fun|def|function)\b  # declarations, whose names are examples
    """,
    re.VERBOSE,
)


def code_token(text: str) -> CodeToken | None:
    """The code that a code span means; None if it may not be code, or is only an example."""
    if token := _BY_NAME.get(text):
        return token
    text = re.sub(r"=\{\{?(?:\.\.\.|…)?\}\}?$", "={", text)  # `style={{}}`
    text = re.sub(r"\s*=\s*(?:[\"'](?:\.\.\.|…)[\"']|\.\.\.|…)$", " =", text)  # `version = "..."`
    if re.search(r"[\n]|\.\.\.|…", re.sub(r"[(\[<{](?:\.\.\.|…)[)\]>}]", "", text)):
        return None
    files = next((globs for shape, globs in _CODE_OF_LANGUAGES if re.fullmatch(shape, text)), ())
    if not _looks_like_code(text, has_language=bool(files)):
        return None
    pattern = _pattern_of(text)
    return CodeToken(pattern, files) if pattern else None


def _looks_like_code(text: str, *, has_language: bool) -> bool:
    """Whether a code span is code rather than a command, a path or a setting."""
    is_code = has_language or re.search(
        r"[a-z][A-Z]|[.(\[<!@#:=_]|^(?:as|new|async|using) \w|\w ?\{", text
    )
    if len(text) > _MAX_CHARACTERS or not is_code or is_command(text) or _NO_CODE.search(text):
        return False
    if not has_language and re.fullmatch(r"\w+\.\w+\.[\w.]+", text):
        return False  # a name such as `com.example.app`
    is_path = path_glob(text) is not None and re.search(r"/|\.[a-z]{2,4}$", text)
    if has_language and re.fullmatch(r"\w+\.\w+\.\w+", text):
        return True  # `pytest.mark.skip`
    return not is_path or re.match(r"(?:os|console|process|fmt|err|log)\.", text) is not None


def _pattern_of(text: str) -> str | None:
    """The pattern of code, in which a name such as `X` may be any name; None if the code is an
    example such as `fetch('/api/apps')` or `X | Y`.
    """
    if re.fullmatch(r"\w+\.?\[\d+\]", text):
        return None  # `items[0]`
    if element := re.fullmatch(r"<(\w+)(?: ?/)?>", text):
        return rf"<{element[1]}\b"
    if block := re.fullmatch(r"(.*\w) ?\{(?: |\.\.\.|…| (?:\.\.\.|…) )\}", text):  # `async { }`
        return _literal(block[1], r"\s*\{")
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
    """The pattern of a call's arguments: constants and words in quotes as they are, and anything
    for names; "" if no argument is a constant, and None if one is another string, as the call is an
    example then.
    """
    if word := _QUOTED_WORD.fullmatch(text):
        return rf"\s*[\"'`]{word[1]}[\"'`]"
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
