"""Rules about what is written into files: "never use `any`", "use `pathlib` instead of `os.path`".

The files are those of the language that the line or its heading names, or that alone has what is
forbidden; a token that could as well be an English word needs such a language.
"""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import CODE, all_known
from holdfast.drafting.commands import any_of, is_command, path_glob
from holdfast.drafting.drafts import Draft
from holdfast.drafting.instructions import WRITE, Instruction, Modality, compared, instruction_of
from holdfast.drafting.rules_file import Statement

_SCRIPT = ("*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,vue,svelte}",)
_TYPED = ("*.{ts,tsx,mts,cts,vue,svelte}",)
_BY_NAME: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"Type[Ss]cript|TSX?|React(?: Native)?|Next\.js", _TYPED),
    (r"Java[Ss]cript|JSX?|Node(?:\.js)?", _SCRIPT),
    (r"Python|Django|FastAPI|Flask", ("*.py",)),
    (r"Rust", ("*.rs",)),
    (r"Go|Golang", ("*.go",)),
    (r"Kotlin", ("*.{kt,kts}",)),
    (r"Java", ("*.java",)),
    (r"Swift(?:UI)?", ("*.swift",)),
    (r"C#|\.NET", ("*.cs",)),
    (r"C\+\+", ("*.{cc,cpp,cxx,h,hh,hpp}",)),
    (r"PHP|Laravel", ("*.php",)),
    (r"Ruby|Rails", ("*.rb",)),
    (r"S?CSS|Tailwind(?: CSS)?|[Ss]tylesheets?", ("*.{css,scss}",)),
    (r"Vue", ("*.vue",)),
    (r"Svelte", ("*.svelte",)),
    (r"SQL", ("*.sql",)),
    (r"[Ss]hell|Bash", ("*.{sh,bash}",)),
    (r"Markdown", ("*.{md,mdx}",)),
    (r"Dart|Flutter", ("*.dart",)),
    (r"Elixir", ("*.{ex,exs}",)),
    (r"Terraform", ("*.tf",)),
    (r"Protobuf|[Pp]roto", ("*.proto",)),
)
_DOCUMENTS = ("!*.{md,mdx,txt,rst}",)
_TESTS = ("*{.test.,.spec.,_test.,test_,tests/,test/,__tests__/}*",)

# tokens that only some languages have, with the patterns of those that are also words
_TOKENS: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("any", "any type", "any types"), r"(?:[:<|&,(=]\s*|\bas\s+)any\b(?!\s*[:(])", _TYPED),
    (("as",), r"\bas\s+(?!const\b)[\w{<]", _TYPED),
    (("!",), r"[\w)\]]!(?=[.;,)\[])", _TYPED),
    (("enum", "enums"), r"^\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w", _TYPED),
    (("namespace",), r"^\s*(?:export\s+)?(?:declare\s+)?namespace\s+\w", _TYPED),
    (("var", "var declarations"), r"^\s*(?:export\s+)?var\s+\w|\(var\s+\w", _SCRIPT),
    (("eval",), r"(?<![\w.])eval\(", ("*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,vue,svelte,py}",)),
    (("require", "require statements"), r"(?<![\w.])require\(", _SCRIPT),
    (("alert",), r"(?<![\w.])alert\(", _SCRIPT),
    (("debugger",), r"^\s*debugger\b", _SCRIPT),
    (("default export", "default exports"), r"^\s*export\s+default\b|\bas default\b", _SCRIPT),
    (("export default",), r"^\s*export\s+default\b", _SCRIPT),
    (("==",), r"(?<![=!<>])==(?!=)", _SCRIPT),
    (("inline styles",), r"\bstyle=\{", _SCRIPT),
    (
        ("class components", "class-based components"),
        r"\bextends\s+(?:React\.)?(?:Pure)?Component\b",
        _SCRIPT,
    ),
    (("innerHTML",), r"\.innerHTML\b", _SCRIPT),
    (("print", "print statements"), r"(?<![\w.])print\(", ("*.py",)),
    (
        ("except", "except:", "bare except", "bare except clauses", "bare excepts"),
        r"^\s*except\s*:",
        ("*.py",),
    ),
    (
        ("wildcard imports", "star imports", "wildcard import"),
        r"^\s*from\s+\S+\s+import\s+\*",
        ("*.py",),
    ),
    (("any casts",), r"\bas\s+any\b", _TYPED),
    (
        ("console logs", "console.log", "console.log statements", "console.logs"),
        r"(?<![\w$])console\.log\b",
        _SCRIPT,
    ),
    (("eslint-disable comments",), r"eslint-disable", _SCRIPT),
    (("ts-ignore comments", "@ts-ignore"), r"@ts-ignore\b", _TYPED),
    (("mutable default arguments",), r"\bdef [^\n]*=\s*(?:\[\]|\{\})", ("*.py",)),
    (("todo comments", "todos"), r"\bTODO\b", ("*", *_DOCUMENTS)),
    (("hex colors",), r"#[0-9a-fA-F]{3,8}\b", ("*.{css,scss,ts,tsx,js,jsx,vue,svelte,html}",)),
    (("hardcoded hex colors",), r"#[0-9a-fA-F]{3,8}\b", ("*.{css,scss,ts,tsx,js,jsx,vue,svelte}",)),
    (("inline css",), r"\bstyle=[\"'{]", ("*.{html,tsx,jsx,vue,svelte}",)),
    (("semicolons", "trailing semicolons"), r";[ \t]*$", _SCRIPT),
    (("tabs",), r"^ *\t", ("*", "!*.{md,mdx,txt,mk,go,tsv}", "!*Makefile")),
    (("spaces",), r"^\t* {2,}[^ *]", ("*", "!*.{md,mdx,txt,yml,yaml,py}")),
    (("emojis", "emoji"), r"\p{Extended_Pictographic}", ("*",)),
    (("async",), r"\basync\b", _SCRIPT),
    (("await",), r"\bawait\b", _SCRIPT),
    (("try",), r"\btry\s*\{", _SCRIPT),
    (("catch",), r"\bcatch\s*[({]", _SCRIPT),
    (("unsafe", "unsafe code"), r"\bunsafe\b", ("*.rs",)),
    (("unwrap",), r"\.unwrap\(\)", ("*.rs",)),
    (("expect",), r"\.expect\(", ("*.rs",)),
    (("panic",), r"(?<![\w.])panic\(", ("*.go",)),
    (("!!",), r"!!(?![\w(!])", ("*.{kt,kts}",)),
    (("!important",), r"!important\b", ()),
    (("@ts-expect-error",), r"@ts-expect-error\b", _TYPED),
    (("@ts-nocheck",), r"@ts-nocheck\b", _TYPED),
)
_TOKEN_LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"as (?:any|unknown|never).*|.*@ts-.*|Record<.*|Array<.*|Promise<.*", _TYPED),
    (
        r"console\..*|.*export (?:default|\*).*|React\..*|use[A-Z]\w*(?:\(\))?|window\..*"
        r"|document\..*|localStorage.*|process\.env.*|Math\.random.*|Date\.now.*|new Date.*"
        r"|JSON\..*|dangerouslySetInnerHTML|.*eslint-disable.*|vi\..*|jest\..*|await import\(.*"
        r"|import\(\)|\.then.*|.*=>.*|const \w+|.*===.*",
        _SCRIPT,
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


_WORDS = ("semicolons", "tabs", "spaces", "enums", "emojis", "emoji", "todos", "console.log",
          "console.logs", "innerhtml")  # fmt: skip


def files_of_language(text: str) -> list[str]:
    """The globs of the languages that a text names; none if it names none."""
    plain = re.sub(r"`[^`]*`", "", text)
    globs: list[str] = []
    for name, files in _BY_NAME:
        if re.search(rf"(?<![\w/.-])(?:{name})(?![\w/-]|\.\w)", plain):
            globs += [glob for glob in files if glob not in globs]
    return globs


def token_pattern(token: str) -> tuple[str, list[str]] | None:
    """The pattern of a piece of code and the files that may have it; [] for all of them."""
    for names, pattern, files in _TOKENS:
        if token in names:
            return pattern, list(files)
    if re.search(r"[\n]|\.\.\.|…", re.sub(r"[(\[<{](?:\.\.\.|…)[)\]>}]", "", token)):
        return None
    is_code = re.search(r"[a-z][A-Z]|[.(\[<!@#:=_]|^(?:as|new) \w", token)
    files = next((f for shape, f in _TOKEN_LANGUAGES if re.fullmatch(shape, token)), ())
    if (
        len(token) > 48
        or re.match(r"#\s|[a-z]\w*-[\w-]+$", token)
        or not (is_code or files)
        or is_command(token)
        or re.search(r"-name$|^\w+: ?\w+$", token)
        or re.search(r"\s--?\w|^-|^[A-Z][A-Z0-9_]*$|^[\w-]+:$|^\w+\.\w+\.[\w.]+$|[$%]", token)
        or (path_glob(token) is not None and re.search(r"/|\.[a-z]{2,4}$", token)
            and not re.match(r"(?:os|console|process|fmt|err|log)\.", token))
    ):  # fmt: skip
        return None
    return _literal(token), list(files)


def _literal(token: str) -> str:
    """A token as a pattern: what stands for arguments may be anything."""
    if element := re.fullmatch(r"<(\w+)(?: ?/)?>", token):
        return rf"<{element[1]}\b"
    if attribute := re.fullmatch(r"#\[(\w+)\]", token):
        return rf"#!?\[{attribute[1]}\b"
    opened = re.fullmatch(r"(.+?)(?:\((?:\.\.\.|…)?\)|(\[|<)(?:\.\.\.|…|[A-Za-z, ]+)[\]>])", token)
    end = ""
    if opened and re.search(r"\w$", opened[1]):
        token, end = opened[1], r"\(" if opened[2] is None else re.escape(opened[2])
    starred = re.fullmatch(r"(.+)\.\*", token)
    if starred:
        token, end = starred[1], r"\.\w+"
    body = re.escape(token).replace(r"\ ", r"\s+").replace(r"\*", r"\w*" if "." in token else r"\*")
    before = r"(?<![\w$])" if re.match(r"\w", token) else ""
    after = end or (r"(?![\w$])" if re.search(r"\w$", token) else "")
    return f"{before}{body}{after}"


_NOUNS = (
    r"types?|casts?|casting|calls?|statements?|assertions?|comments?|imports?|exports?|blocks?"
    r"|hooks?|keyword|declarations?|clauses?|loops?|directives?|annotations?|classes|macro"
    r"|functions?|methods?|API|fields?|syntax|operator|suppressions?|attributes?|utilities"
)
_KIND = r"deprecated |raw |bare |global |plain |direct |legacy |native "
_IN_CODE = re.compile(
    r"(?:this |the |our |any |all |new |your )*(?:(?:repo|repository|project|codebase)"
    r"|(?:TypeScript |production |application |app |source |committed |library )?code(?:base)?"
    r"|source files?|tests or production code|production code or tests)",
    re.I,
)


def code_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use `any`; use `pathlib` instead of `os.path`."""
    instruction = instruction_of(clause, prohibits)
    if re.fullmatch(r"(?:always )?(?:(?:use |only )*named exports(?: only)?)", clause, re.I):
        if prohibits:
            return None
        return _drafts([(r"^\s*export\s+default\b", list(_SCRIPT))], [], statement)
    if instruction is None or not instruction.does(WRITE):
        return None
    places = ("in", "inside", "within", "outside", "outside of")
    if instruction.modality is Modality.NEVER:
        purpose = instruction.tail("for")
        for_types = purpose and re.fullmatch(r"type[- ](?:casting|casts?|assertions?)", purpose)
        narrowing: tuple[str, ...] = ("for",) if for_types else ()
        silences = r"(?:silence|suppress|bypass|work around|get around|hide|satisfy) .*"
        if re.fullmatch(silences, instruction.tail("to") or "", re.I):
            narrowing += ("to",)
        if not instruction.has_only(*places, "except", *narrowing) or compared(instruction):
            return None
        objects = instruction.object or (instruction.tail("to") or "")
    elif instruction.modality is Modality.MUST and (objects := compared(instruction) or ""):
        against = ("instead of", "in place of", "rather than", "not", "never", "over")
        named = [word for word, _ in instruction.tails]
        if (
            not instruction.does(("use", "call", "import"))
            or not instruction.has_only(*places, *against, "from")
            or "to" in named
            or sum(word in against for word in named) > max(1, clause.count("`") // 4)
            or objects.startswith("`.")
        ):
            return None
    else:
        return None
    pairs = re.findall(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})", clause)
    if _is_scoped(statement) or ("call" in instruction.verbs and "(" not in objects + clause):
        return None  # a name alone may be that of a tool
    found = _tokens(", ".join(pairs) if len(pairs) > 1 else objects)
    files = _files(instruction, statement)
    if found is None or files is None:
        return None
    return _drafts(found, files, statement)


def _is_scoped(statement: Statement) -> bool:
    """Whether the label of a sentence limits it: "Absolute-positioned tooltips: never use ..."."""
    words = statement.label.split()
    general = (
        r"code|style|types?|rules?|imports?|exports?|typescript|python|strict|no|not|never|use"
    )
    return len(words) > 1 and not re.search(rf"\b(?:{general})\b", statement.label, re.I)


def _tokens(objects: str) -> list[tuple[str, list[str]]] | None:
    """The patterns of a list of code; None if something in it may be none."""
    plain = re.sub(r"^(?:bare|raw|plain|direct|global|the|TypeScript(?:'s)?|explicit|native) ",
                   "", objects, flags=re.I)  # fmt: skip
    named = re.fullmatch(rf"[a-z ]+ \(({CODE}(?:(?:, | or | and ){CODE})*)\)", plain)
    plain = named[1] if named else re.sub(r"^[A-Z][\w.]+(?:['’]s)? (?=`)", "", plain)
    listed = re.fullmatch(
        rf"({CODE}(?:(?:, (?:or |and |nor |no |never )*| or | and | nor |/| /"
        rf" )(?:{_KIND})?{CODE})*)"
        rf"(?: (?:{_NOUNS}))*(?:,? (?:or|nor) (?:[a-z]+[ -]?){{1,4}})?",
        re.sub(rf"^(?:{_KIND})", "", plain, flags=re.I),
        re.I,
    )
    if listed is None:
        bare = re.sub(r"`", "", plain).lower()
        bare = re.sub(r"^typescript ", "", bare)
        if " " not in bare and bare not in _WORDS:
            return None
        for names, pattern, files in _TOKENS:
            if bare in map(str.lower, names):
                return [(pattern, list(files))]
        return None
    patterns = [token_pattern(token) for token in re.findall("`([^`]+)`", listed[1])]
    return all_known(patterns)


def _files(instruction: Instruction, statement: Statement) -> list[str] | None:
    """The globs that a circumstance names; [] without one, None for one that is no set of files."""
    globs: list[str] = []
    before = ""
    for word, place in instruction.tails:
        excepted, before = before == "except", word
        if excepted and re.fullmatch(r"(?:the )?(?:unit )?tests?(?: files?| code)?", place):
            globs += [f"!{glob}" for glob in _TESTS]
        elif (excepted or word == "except") and place:
            return None
        elif word in ("in", "inside", "within"):
            paths = [path_glob(name) for name in re.findall("`([^`]+)`", place)]
            if re.fullmatch(r"(?:`[^`]+`(?:,? (?:and|or) |, )?)+(?: files?| code)?", place) and all(
                paths
            ):
                globs += [path for path in paths if path]
            elif re.fullmatch(r"(?:the |any |all )?(?:unit )?tests?(?: files?| code)?", place):
                globs += _TESTS
            elif not _IN_CODE.fullmatch(place) and not re.fullmatch(
                r"(?:code|comments?|docs|documentation|commits?|commit messages|logs)"
                r"(?:(?:, |,? or |,? and )(?:code|comments?|docs|documentation|commits?|commit"
                r" messages"
                r"|logs))*",
                place,
            ):
                named = files_of_language(place)
                if not named or len(place.split()) > 3:
                    return None
                globs += named
        elif word.startswith("outside"):
            paths = [path_glob(name) for name in re.findall("`([^`]+)`", place)]
            if not paths or not all(paths):
                return None
            globs += [f"!{path}" for path in paths]
    return globs


def _drafts(
    tokens: Sequence[tuple[str, list[str]]], files: Sequence[str], statement: Statement
) -> list[Draft] | None:
    about = " ".join((statement.text, statement.label, *statement.under))
    by_files: dict[tuple[str, ...], list[str]] = {}
    for pattern, own in tokens:
        included = [glob for glob in files if not glob.startswith("!")]
        excluded = [glob for glob in files if glob.startswith("!")]
        globs = included or own or files_of_language(about) or ["*", *_DOCUMENTS]
        by_files.setdefault((*globs, *excluded), []).append(pattern)
    return [
        Draft(
            "code",
            "prohibition",
            {
                "name": "code_not_written",
                "pattern": any_of(patterns),
                "files": globs[0] if len(globs) == 1 else list(globs),
            },
        )
        for globs, patterns in by_files.items()
    ]


def line_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Lines have at most 100 characters."""
    counted = r"(?P<count>\d{2,3})(?: characters| chars| columns)?(?: max(?:imum)?)?"
    forms = (
        rf"(?:keep |limit )?(?:all )?(?:code )?lines? (?:must |should )?(?:be |to |are )?"
        rf"(?:at most|under|below|≤|<=|within|to|max(?:imum)?|no longer than|up to) {counted}",
        rf"(?:use |keep )?(?:a )?(?:max(?:imum)? )?line (?:length|width)"
        rf"(?: (?:is|of|limit|limit of|at|to|max))*[: ]+(?:≤ ?)?{counted}",
        rf"{counted}(?:-character|-char)? (?:max(?:imum)? )?line (?:length|limit|width)",
    )
    text = re.sub(r"[`*]", "", clause)
    match = next(filter(None, (re.fullmatch(form, text, re.I) for form in forms)), None)
    if match is None and re.fullmatch(r"(?:max(?:imum)? )?line (?:length|width)", statement.label,
                                      re.I):  # fmt: skip
        match = re.fullmatch(rf"(?:max(?:imum)? |≤ ?|under |up to )?{counted}", text, re.I)
    about = " ".join((clause, statement.label, *statement.under))
    if match is None or prohibits or re.search(r"commit|subject|body", about, re.I):
        return None
    files = files_of_language(about) or ["*", *_DOCUMENTS]
    spec = {
        "name": "code_not_written",
        "pattern": rf"^.{{{int(match['count']) + 1},}}$",
        "files": files[0] if len(files) == 1 else files,
    }
    return [Draft("code", "requirement", spec)]


def file_begins(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Every Python file begins with `from __future__ import annotations`."""
    match = re.fullmatch(
        r"(?:all|every|each)(?: new)? (?P<what>[\w#+.` ]+?|`[^`]+`)(?: source)? (?:files?|modules?)"
        r" (?:must |should )?(?:start|begin|have|include|starts|begins)s?"
        r"(?: with)? `(?P<code>[^`]+)`(?: at the top| (?:on|as) the first line| header)?",
        clause,
        re.I,
    ) or re.fullmatch(
        r"(?:use|add|include|put) `(?P<code>[^`]+)` (?:at the top of|in|to|as the first line of)"
        r" (?:all|every|each)(?: new)? (?P<what>[\w#+. ]+?) (?:files?|modules?)",
        clause,
        re.I,
    )
    files = files_of_language(match["what"]) if match else []
    if match is None or not files or prohibits or re.search(r"\.\.\.|…|<", match["code"]):
        return None
    spec = {
        "name": "code_written",
        "pattern": re.escape(match["code"]).replace(r"\ ", " "),
        "files": files[0] if len(files) == 1 else files,
        "whole": True,
    }
    return [Draft("code", "requirement", spec)]
