"""Paths as rules files write them, and the globs that measures take."""

import re
from collections.abc import Sequence

_SYSTEM_FOLDERS = r"/(?:bin|dev|etc|home|opt|proc|root|sys|tmp|usr|var|Users)"
# a code span such as `.js` means all files with this ending
_ENDINGS = frozenset(
    ".js .jsx .mjs .cjs .ts .tsx .css .scss .less .sass .py .pyc .go .rs .java .kt .rb .php .vue"
    " .svelte .html .md .mdx .sql .sh .log .lock .snap .proto .csv .ipynb .pem .key".split()
)
# names of files and folders without an ending, which hardly mean anything else
_NAMES = frozenset(
    """Makefile Dockerfile Jenkinsfile Procfile Gemfile Rakefile Podfile Brewfile Vagrantfile
    Justfile justfile LICENSE NOTICE CODEOWNERS AUTHORS VERSION BUILD WORKSPACE node_modules vendor
    third_party __pycache__ __snapshots__ __generated__""".split()
)


def glob_argument(globs: Sequence[str]) -> str | list[str]:
    """Globs as a measure takes them: a single one by itself, and several as a list."""
    return globs[0] if len(globs) == 1 else list(globs)


def path_glob(text: str) -> str | None:
    """The glob of the file or folder that a code span names; None if it does not name one clearly.

    A folder stands for all files in it: `vendor/` is `vendor/*`.
    """
    plain = re.sub(r"\{[\w.*/-]+(?:,[\w.*/-]+)+\}", "", text)  # of `*.{ts,tsx}`
    if re.search(r"[\s<>(){}$=;,|'\"]|^[-!]|//|^@|\\|^~|(?:^|/)\.\.(?:/|$)", plain):
        return None  # logs have whole paths, in which `~` and `..` do not occur
    if text in _ENDINGS:
        return f"*{text}"
    if text in ("/bin", "/bin/"):
        return None  # the repository's folder, or the system's
    is_path = "/" in text or text in _NAMES
    if not re.match(rf"{_SYSTEM_FOLDERS}\b", text):
        text = text.removeprefix("./").removeprefix("/")  # `/lib` is a folder of the repository
    has_extension = re.search(r"(?:^|[\w*/.}-])\.(?:[A-Za-z]\w{0,9}|\{[\w,.]+\})$", text)
    if not (is_path or has_extension) or re.fullmatch(r"[*./]*", text):
        return None
    if text.endswith("/"):
        return f"{text}*"
    if text.endswith("/**"):
        return text[:-1]
    last = text.rpartition("/")[2]
    is_hidden = re.fullmatch(r"\.[\w-]+", last)
    may_be_folder = is_path and not has_extension and "*" not in last and not last.isupper()
    if (may_be_folder and not re.search("[a-z]file$", last)) or is_hidden:
        return f"{text}{{,/*}}"  # a folder, or a file without an ending
    return text
