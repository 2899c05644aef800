"""The globs of files by their language, as rules files name it."""

import re

SCRIPT = ("*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,vue,svelte}",)
TYPED = ("*.{ts,tsx,mts,cts,vue,svelte}",)
PYTHON = ("*.py",)
MARKUP = "*.{html,tsx,jsx,vue,svelte,astro,twig,erb,hbs,liquid,njk,php,cshtml,razor}"
DOCUMENTS = "!*.{md,mdx,txt,rst}"
# a language or framework as people name it, and the globs of its files
_LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"Type[Ss]cript|TSX?|React(?: Native)?|Next\.js", TYPED),
    (r"Java[Ss]cript|JSX?|Node(?:\.js)?", SCRIPT),
    (r"Python|Django|FastAPI|Flask", PYTHON),
    (r"Rust", ("*.rs",)),
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
    (r"Dart|Flutter", ("*.dart",)),
    (r"Elixir", ("*.{ex,exs}",)),
    (r"Terraform", ("*.tf",)),
    (r"Protobuf|[Pp]roto", ("*.proto",)),
)
TESTS = ("*{.test.,.spec.,_test.,_spec.,test_,tests/,test/,__tests__/,Test.,Tests.,Tests/}*",)


def files_of_language(text: str) -> list[str]:
    """The globs of the languages that a text names; [] if it names none."""
    plain = re.sub(r"`[^`]*`", "", text)
    globs: list[str] = []
    for name, files in _LANGUAGES:
        if re.search(rf"(?<![\w/.-])(?:{name})(?![\w/-]|\.\w)", plain):
            globs += [glob for glob in files if glob not in globs]
    return globs
