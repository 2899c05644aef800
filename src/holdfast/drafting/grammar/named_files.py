"""Globs of the files that a rule names, by a path, by a language, or by their change.

For example:

    path_glob("vendor/")                     -> "vendor/*"
    files_of_language("in Python")           -> ["*.py"]
    files_changed_in("editing `api.proto`")  -> ["api.proto"]
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from holdfast.drafting.grammar.clauses import all_known, names_in
from holdfast.drafting.grammar.forms import CODES
from holdfast.drafting.grammar.instruction_words import GERUNDS, PARTICIPLES

# --- Paths

_SYSTEM_FOLDERS = r"/(?:bin|dev|etc|home|opt|proc|root|sys|tmp|usr|var|Users)"
# a code span such as `.js` means all files with this ending
_ENDINGS = frozenset(
    ".js .jsx .mjs .cjs .ts .tsx .css .scss .less .sass .py .pyc .go .rs .java .kt .rb .php .vue"
    " .svelte .html .md .mdx .sql .sh .log .lock .snap .proto .csv .ipynb .pem .key .swift .dart"
    " .cs .csproj .sln .pbxproj .xib .storyboard .plist .xml .tf .tfstate .ex .exs .svg .png .jpg"
    " .pdf .docx .xlsx .pptx".split()
)
_ENDINGS_OF_FOLDERS = frozenset(".xcodeproj .xcworkspace .xcassets .app .lproj".split())
# names of files and folders without an ending, which hardly mean anything else
_NAMES = frozenset(
    """Makefile Dockerfile Jenkinsfile Procfile Gemfile Rakefile Podfile Brewfile Vagrantfile
    Justfile justfile LICENSE NOTICE CODEOWNERS AUTHORS VERSION BUILD WORKSPACE node_modules vendor
    third_party __pycache__ __snapshots__ __generated__""".split()
)


# of `*.{ts,tsx}`
_LISTED_ENDINGS = re.compile(r"\{[\w.*/-]+(?:,[\w.*/-]+)+\}")
# what no path in a log has; logs have whole paths, in which `~` and `..` do not occur
_NO_PATH = re.compile(r"[\s<>(){}$=;,|'\"]|^[-!]|//|^@|\\|^~|(?:^|/)\.\.(?:/|$)")
_HAS_EXTENSION = re.compile(r"(?:^|[\w*/.}-])\.(?:[A-Za-z]\w{0,9}|\{[\w,.]+\})$")


def path_glob(text: str) -> str | None:
    """The glob of the file or folder that a code span names; None if it does not name one clearly.

    A folder stands for all files in it: `vendor/` is `vendor/*`.
    """
    if _NO_PATH.search(_LISTED_ENDINGS.sub("", text)):
        return None
    if text in _ENDINGS:
        return f"*{text}"
    if text.rstrip("/") in _ENDINGS_OF_FOLDERS:
        return f"*{text.rstrip('/')}/*"
    if text in ("/bin", "/bin/"):
        return None  # the repository's folder, or the system's
    is_path = "/" in text or text in _NAMES
    if not re.match(rf"{_SYSTEM_FOLDERS}\b", text):
        text = text.removeprefix("./").removeprefix("/")  # `/lib` is a folder of the repository
    has_extension = _HAS_EXTENSION.search(text) is not None
    if not (is_path or has_extension) or re.fullmatch(r"[*./]*", text):
        return None
    if text.endswith("/"):
        return f"{text}*"
    if text.endswith("/**"):
        return text[:-1]
    may_be_folder = is_path and not has_extension
    return f"{text}{{,/*}}" if _is_name_of_folder(text, may_be_folder) else text


def _is_name_of_folder(path: str, may_be_folder: bool) -> bool:
    """Whether the last part of a path may be a folder, as well as a file without an ending."""
    last = path.rpartition("/")[2]
    if re.fullmatch(r"\.[\w-]+", last):  # `.github`
        return True
    is_name_of_file = "*" in last or last.isupper() or re.search("[a-z]file$", last) is not None
    return may_be_folder and not is_name_of_file


# file names that people write without backticks, and that are nothing else
_BARE_NAMES = re.compile(
    r"(?<![\w`./@<-])(?:(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:json|toml|ya?ml|lock|cfg|ini|env|sql|proto"
    r"|prisma|csproj|sln|gradle|md|mdx|html|css|scss|py|ts|tsx|jsx|mjs|go|rs|rb|php|sh|config)"
    r"(?![\w`/-]|\.\w)|(?:[\w.-]+/)+(?= (?:folder|directory)\b))"
)


def with_files_as_code(text: str) -> str:
    """A text in which file names without backticks are given some.

    >>> with_files_as_code("Never change global.json or `a.toml`")
    'Never change `global.json` or `a.toml`'
    """
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else _BARE_NAMES.sub(r"`\g<0>`", part) for part in parts
    )


def glob_argument(globs: Sequence[str]) -> str | list[str]:
    """Globs as a measure takes them: a single one by itself, and several as a list."""
    return globs[0] if len(globs) == 1 else list(globs)


# --- Languages

SCRIPT = ("*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,vue,svelte}",)
TYPED = ("*.{ts,tsx,mts,cts,vue,svelte}",)
PYTHON = ("*.py",)
RUST = ("*.rs",)
MARKUP = "*.{html,tsx,jsx,vue,svelte,astro,twig,erb,hbs,liquid,njk,php,cshtml,razor}"
DOCUMENTS = "!*.{md,mdx,txt,rst}"
TESTS = ("*{.test.,.spec.,_test.,_spec.,test_,tests/,test/,__tests__/,Test.,Tests.,Tests/}*",)
# a language or framework as people name it, and the globs of its files
_LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"Type[Ss]cript|TSX?", TYPED),
    (r"React(?: Native)?|Next\.js", SCRIPT),
    (r"Java[Ss]cript|JSX?|Node(?:\.js)?", SCRIPT),
    (r"Python|Django|FastAPI|Flask", PYTHON),
    (r"Rust", RUST),
    (r"Go|Golang", ("*.go",)),
    (r"Kotlin", ("*.{kt,kts}",)),
    (r"Java", ("*.java",)),
    (r"Swift(?:UI)?", ("*.swift",)),
    (r"C#|\.NET", ("*.cs",)),
    (r"F#", ("*.{fs,fsx}",)),
    (r"C\+\+", ("*.{cc,cpp,cxx,h,hh,hpp}",)),
    (r"PHP|Laravel", ("*.php",)),
    (r"Ruby|Rails", ("*.rb",)),
    (r"S?CSS|[Ss]tylesheets?", ("*.{css,scss}",)),
    (r"Tailwind(?: CSS)?", (MARKUP, "*.{css,scss}")),
    (r"HTML", ("*.{html,htm}",)),
    (r"PowerShell", ("*.{ps1,psm1}",)),
    (r"Vue", ("*.vue",)),
    (r"Svelte", ("*.svelte",)),
    (r"SQL", ("*.sql",)),
    (r"[Ss]hell|Bash", ("*.{sh,bash}",)),
    (r"Markdown", ("*.{md,mdx}",)),
    (r"MDX", ("*.mdx",)),
    (r"Dart|Flutter", ("*.dart",)),
    (r"Elixir", ("*.{ex,exs}",)),
    (r"Terraform", ("*.tf",)),
    (r"Protobuf|[Pp]roto", ("*.proto",)),
)


def files_of_language(text: str) -> list[str]:
    """The globs of the languages that a text names; [] if it names none."""
    return list(_globs_of_languages(text))


@lru_cache(maxsize=64)  # the text may be a whole file, and each of its lines asks
def _globs_of_languages(text: str) -> tuple[str, ...]:
    plain = re.sub(r"`[^`]*`", "", text)
    globs: list[str] = []
    for name, files in _LANGUAGES:
        if re.search(rf"(?<![\w/.-])(?:{name})(?![\w/-]|\.\w)", plain):
            globs += [glob for glob in files if glob not in globs]
    return tuple(globs)


def file_endings(globs: Iterable[str]) -> set[str]:
    """The endings of the files that globs such as "*.{ts,tsx}" match."""
    return set(re.findall(r"\w+", " ".join(globs)))


# --- Changes of files

_CHANGE_VERBS = frozenset(
    """change modify edit touch update add create make write alter implement rename remove delete
    complete finish bump generate regenerate refactor move""".split()
)
_FORMS_OF_CHANGE = {
    **{verb: verb for verb in _CHANGE_VERBS},
    **{word: verb for word, verb in GERUNDS.items() if verb in _CHANGE_VERBS},
    **{word: verb for word, verb in PARTICIPLES.items() if verb in _CHANGE_VERBS},
    **{"refactoring": "refactor", "implementing": "implement", "implemented": "implement"},
    **{"wrote": "write", "renaming": "rename", "moving": "move", "altering": "alter"},
}
_NOUNS_OF_CHANGE = frozenset(
    "change changes edit edits modification modifications update updates".split()
)
_SOMEBODY = frozenset("you we i having are have you've you're".split())
# "an agent changes ..."
_AGENT_CHANGES = re.compile(
    r"(?:an?|the|any) (?:AI )?(?:agent|assistant) (?=(?:changes|edits|updates) )",
    re.I,
)
# "`src/` is changed"
_FILES_ARE_CHANGED = re.compile(
    r"(?P<files>.+?) (?:(?:is|are|was|were|has been|have been|gets?) )?"
    r"(?:chang(?:e|es|ed)|modified|edited|updated|touched|added|regenerated)",
    re.I,
)
# "files that you create or modify"
_FILES_YOU_CHANGE = re.compile(
    r"(?P<files>.+?) (?:that )?you (?:[a-z]+ or )?(?:create|modify|change|edit|touch|add|write)",
    re.I,
)
# "changes to `src/`", "Python changes"
_CHANGE_OF = re.compile(
    r"(?:[\w#+-]+ ){0,4}(?:changes?|edits?|modifications?|updates?)"
    r"(?: (?:to|in|of|under|on) (?P<files>.+))?",
    re.I,
)


def files_changed_in(text: str, *, may_be_passive: bool) -> list[str]:
    """The globs of the files that a phrase says are changed; [] if it says something else.

    Args:
        may_be_passive: whether the phrase may be a sentence, such as "`src/` is changed".
    """
    text = text.strip(" ,.")
    if agent := _AGENT_CHANGES.match(text):  # "an agent changes files" as "change files"
        verb, _, rest = text[agent.end() :].partition(" ")
        text = f"{verb.removesuffix('s')} {rest}"
    changed = _words_after_change_verbs(text)
    if changed is not None:
        return files_named_in(changed) if changed else []
    nouns = _CHANGE_OF.fullmatch(text)
    if nouns and nouns["files"]:
        return files_named_in(nouns["files"])
    if nouns and text.lower() not in _NOUNS_OF_CHANGE:
        return files_named_in(text)
    touched = _FILES_YOU_CHANGE.fullmatch(text)
    if touched:
        return files_named_in(touched["files"])
    is_changed = _FILES_ARE_CHANGED.fullmatch(text) if may_be_passive else None
    return files_named_in(is_changed["files"]) if is_changed else []


def _words_after_change_verbs(text: str) -> str | None:
    """The words after the verbs of "you add or edit `src/`"; None if no such verb comes first."""
    words = text.split()
    while words and words[0].lower() in _SOMEBODY:
        words = words[1:]
    verbs = 0
    while verbs < len(words) and _is_change_verb(words[verbs]):
        verbs += 1
    if not verbs or words[verbs - 1].lower() in ("or", "and", "/"):
        return None
    return " ".join(words[verbs:])


def _is_change_verb(word: str) -> bool:
    """Whether a word is a verb of a change, or joins two of them."""
    parts = word.lower().strip(",").split("/")
    return all(part in _FORMS_OF_CHANGE for part in parts) or word.lower() in ("or", "and")


# --- Files that words name: "any file in `src/`"

_CODE_FILES = ("*", "!*.{md,mdx,txt,rst}")
_ANY_CODE = re.compile(
    r"(?:(?:any|every|each|the|your|all|some|new|existing|production|application) )*"
    r"(?:source |production )?(?:code|sources?|source files?|code files?)"
    r"(?: (?:changes?|edits?|files?|in this repo|modifications?|base))?|(?:the )?codebase",
    re.I,
)
_ANY_CHANGE = re.compile(
    r"(?:(?:any|the|your|all|every|each|a|file|making|significant|substantive|substantial|single"
    r"|set of|series of|of) )*"
    r"(?:changes?|files?|edits?|modifications?)"
    r"(?: in (?:this|the) (?:workspace|repo|repository|project|codebase))?",
    re.I,
)
_USUAL_FILES = (
    (
        re.compile(r"(?:(?:any|the|new|project|a) )*(?:dependency|dependencies)(?: versions?)?"),
        ("{package.json,pyproject.toml,Cargo.toml,go.mod,requirements*.txt,Gemfile}",),
    ),
    (re.compile(r"(?:(?:the|any) )*Prisma schema", re.I), ("*schema.prisma",)),
    (
        re.compile(
            r"(?:(?:the|any) )*(?:documentation|docs)(?: (?:changes?|edits?|updates?|files?))?",
            re.I,
        ),
        ("*.{md,mdx,rst,adoc}",),
    ),
    (
        re.compile(r"(?:(?:the|any|a) )*(?:proto|protobuf)(?: files?| definitions?)?", re.I),
        ("*.proto",),
    ),
)
_KIND_OF_FILES = r"(?: (?:files?|folder|directory|schemas?|definitions?|code|source|sources))?"
_CODES_OF_FILES = re.compile(rf"{CODES}{_KIND_OF_FILES}")
_WORDS_BEFORE_FILES = re.compile(
    r"^(?:(?:to|in|of|under|inside|within|any|every|each|the|all|new|a|an|code|files?|anything"
    r"|something|everything|source) )+(?:changes? (?:to|in|under) )?(?:the )?(?=\S)",
    re.I,
)
_THING_IN_FILE = re.compile(  # "*settings in* `settings.py`"
    r"^(?:[\w-]+ ){1,3}(?:in|of|to) (?:the )?(?=`[^`]*\.\w+`$)"
)
# "JavaScript/TypeScript" names two languages, and `a/b` a path
_BETWEEN_FILES = re.compile(r",? or (?:any |the )?|,? and (?:any |the )?|, |(?<=[a-z+#])/(?=[A-Z])")
_BARE_PATH = re.compile(
    r"(?:[\w.@-]+/)+\*{0,2}"
    r"|[\w-]+\.(?:json|toml|ya?ml|proto|prisma|md|mod|sum|lock|rb|py|ts|rs|sql|gradle|xml|graphql)"
)
_ONE_LANGUAGE = re.compile(
    r"\S+(?: (?:code|files?|changes?|sources?|source files?|code changes?))?"
)
_FILES_INSIDE = re.compile(
    r"(?P<what>[A-Z][^`]*?(?:files|code|sources?)) (?:in|under|inside|within) (?:the )?"
    r"`(?P<folder>[^`]+/)`(?: (?:folder|directory))?"
)


def files_named_in(text: str) -> list[str]:
    """The globs of the files that words such as "any file in `src/`" name; [] if the words name
    no files, or may name something else.
    """
    text = text.strip(" ,.")
    if globs := _any_files(text) or _files_inside_folder(text):
        return globs
    plain = _WORDS_BEFORE_FILES.sub("", text) or text
    plain = _THING_IN_FILE.sub("", plain)
    if _CODES_OF_FILES.fullmatch(plain):
        return _files_in_backticks(plain)
    parts = _BETWEEN_FILES.split(plain)
    if len(parts) > 1:
        globs_by_part = [files_named_in(part) for part in parts]
        return [*chain.from_iterable(globs_by_part)] if all(globs_by_part) else []
    if _BARE_PATH.fullmatch(plain):
        glob = path_glob(plain)
        return [glob] if glob else []
    if globs := _any_files(plain):
        return globs
    for names_of_files, usual_globs in _USUAL_FILES:
        if names_of_files.fullmatch(plain):
            return list(usual_globs)
    return files_of_language(plain) if _ONE_LANGUAGE.fullmatch(plain) else []


def _any_files(text: str) -> list[str]:
    """The globs of "any code" and of "any file"; [] for other words."""
    if _ANY_CODE.fullmatch(text):
        return list(_CODE_FILES)
    return ["*"] if _ANY_CHANGE.fullmatch(text) else []


def _files_inside_folder(text: str) -> list[str]:
    """The globs of "TypeScript files in `web/`"; [] for other words."""
    inside = _FILES_INSIDE.fullmatch(text)
    folder = path_glob(inside["folder"]) if inside else None
    if not inside or not folder or not folder.endswith("/*"):
        return []
    globs = files_named_in(inside["what"])
    return [f"{folder[:-1]}{glob}" for glob in globs] if not any("/" in g for g in globs) else []


def _files_in_backticks(text: str) -> list[str]:
    """The globs of "`src/` and `.proto` files"; [] if a name is not clearly that of files."""
    names = [name for name, is_code in names_in(re.sub(r"(?<=`) \w+$", "", text)) if is_code]
    # `.proto` stands for all files with this ending
    return all_known([path_glob(re.sub(r"^(?=\.\w+$)", "*", name)) for name in names])
