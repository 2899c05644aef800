"""The files that a program changes by its arguments, whose new text the log does not show.

For example:

    sed -i s/a/b/ a.py         ->  files: a.py
    curl -o data.json URL      ->  files: data.json
    tar -xf a.tgz -C vendor    ->  folders: vendor
    npm install left-pad       ->  manifests: package.json, package-lock.json
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from holdfast.measures.agent_acts.commands.find_commands import files_of_find


def operands_of(words: Sequence[str]) -> list[str]:
    """Returns the words after the program that are no options."""
    return [word for word in words[1:] if not word.startswith("-")]


# --- Files

_IN_PLACE_EDITORS = ("sed", "gsed", "perl", "ruby", "yq", "awk", "gawk")
_IN_PLACE = re.compile("-[a-z]*i|--in-?place")  # "-i", "-pi", "--in-place"
_LINE_EDITORS = ("ed", "sponge", "dos2unix", "unix2dos")
# programs that write to the file that an option names
_OUTPUT_OPTIONS = {
    "sort": ("-o", "--output"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "pandoc": ("-o", "--output"),
    "jupytext": ("-o", "--output"),
    "shuf": ("-o", "--output"),
    **dict.fromkeys(("git-cliff", "gcc", "g++", "clang", "go", "rustc"), ("-o", "--output")),
}
_JOIN_LETTERS = ("curl", "wget")  # whose option may end joined letters: `curl -sSLo FILE`
_NO_FILES = ("", "-", "/dev/null")


def files_written_by(words: Sequence[str]) -> Sequence[str]:
    """Returns the files that a program writes itself, and not by a redirection of its output."""
    program = words[0]
    operands = operands_of(words)
    if program in _LINE_EDITORS:
        return operands
    if program in _VIMS:
        return _files_of_vim(words)
    if program == "sd":
        return operands[2:] if {"-p", "--preview"}.isdisjoint(words) else ()
    if parameters := _CMDLETS.get(program.lower()):
        return _files_of_cmdlet(words, parameters)
    if program == "dd":
        return [word.removeprefix("of=") for word in operands if word.startswith("of=")]
    if words[:2] == ("git", "cliff"):
        program = "git-cliff"
    if program in _OUTPUT_OPTIONS:
        return _named_by_option(words, *_OUTPUT_OPTIONS[program])
    if words[:2] == ("git", "restore") and {"--staged", "-S"}.isdisjoint(words):
        return operands[1:]
    if words[:2] == ("git", "checkout") and "--" in words:
        return words[words.index("--") + 1 :]
    return _files_after_script(words) if edits_in_place(words) else ()


def edits_in_place(words: Sequence[str]) -> bool:
    """Whether a command edits files in place, as `sed -i` does."""
    return words[0] in _IN_PLACE_EDITORS and any(map(_IN_PLACE.match, words[1:]))


def _files_after_script(words: Sequence[str]) -> list[str]:
    """Returns the files among the arguments of sed and perl.

    The first argument is the script, unless an option such as `-e` has it.
    """
    paths: list[str] = []
    has_script = False
    is_script = False  # whether this word is the value of an option such as `-e`
    for word in words[1:]:
        if is_script:
            has_script = True
            is_script = False
        elif word.startswith("-"):
            is_script = re.fullmatch(r"-[a-zA-Z0-9]*[ef]|--expression|--file", word) is not None
        elif word:
            paths.append(word)
    return paths if has_script else paths[1:]


def _named_by_option(words: Sequence[str], short: str, long: str) -> list[str]:
    """Returns the files that an option names, as `-o F`, `-oF`, `--output F` or `--output=F`."""
    joined = re.compile(rf"-[a-zA-Z]*{short[1:]}" if words[0] in _JOIN_LETTERS else short)
    paths = [after for word, after in pairwise(words) if word == long or joined.fullmatch(word)]
    paths += [word[len(short) :] for word in words if re.match(f"{short}[^-]", word)]
    paths += [word.partition("=")[2] for word in words if word.startswith(f"{long}=")]
    return [path for path in paths if path not in _NO_FILES]


# --- Files that Vim saves

_VIMS = ("vim", "vi", "nvim", "ex")
_VALUED_OF_VIM = ("-c", "--cmd", "-S", "-s", "-u", "-U", "-i", "-T")
# a command of Vim that saves: "wq", "%s/a/b/ | w"
_SAVES = re.compile(r"(?:\A|[|\s])(?:silent!? )?(?:w|wq|wqa?|x|xa|wa|up|update)!?\s*(?:\||\Z)")


def _files_of_vim(words: Sequence[str]) -> list[str]:
    """Returns the files that Vim edits and saves, according to its commands."""
    commands = [after for word, after in pairwise(words) if word in ("-c", "--cmd")]
    commands += [word[1:] for word in words if word.startswith("+")]
    if not any(map(_SAVES.search, commands)):
        return []
    return [
        word
        for before, word in pairwise(words)
        if not word.startswith(("-", "+")) and before not in _VALUED_OF_VIM
    ]


# --- Files that cmdlets of PowerShell change

_PATH = ("-path", "-literalpath", "-filepath")
# the cmdlets and their parameters for files, in lower case
_CMDLETS = {
    **dict.fromkeys(("set-content", "add-content", "clear-content", "out-file"), _PATH),
    **dict.fromkeys(("remove-item", "new-item", "rename-item", "ri", "del", "erase", "rd"), _PATH),
    **dict.fromkeys(("ni", "rni"), _PATH),
    **dict.fromkeys(("copy-item", "cpi"), ("-destination",)),
    **dict.fromkeys(("move-item", "mi"), (*_PATH, "-destination")),
}
_VALUED_PARAMETERS = (
    *("-value", "-encoding", "-destination", "-itemtype", "-name", "-include", "-exclude"),
    *("-filter", "-inputobject", "-newname", "-width"),
)


def _files_of_cmdlet(words: Sequence[str], parameters: Sequence[str]) -> list[str]:
    """Returns the files that a cmdlet changes.

    They are the values of these parameters or, without them, its first operand.
    """
    named = [value for name, value in pairwise(words) if name.lower() in parameters]
    operands = [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and before.lower() not in _VALUED_PARAMETERS
    ]
    return named or operands[:1]


# --- Folders

# programs that write into the folder that an option names
_FOLDER_OPTIONS = {
    "tar": ("-C", "--directory"),
    "unzip": ("-d", "--directory"),
    "wget": ("-P", "--directory-prefix"),
}


def folders_written_by(words: Sequence[str]) -> Sequence[str]:
    """Returns the folders in which a program writes or deletes files that it does not name."""
    program = words[0]
    operands = operands_of(words)
    if program == "find" and "-delete" in words:
        return files_of_find(words)
    if program == "rsync":
        is_local = len(operands) > 1 and ":" not in operands[-1]
        return operands[-1:] if is_local else ()
    if program in _FOLDER_OPTIONS and (program != "tar" or _extracts(words)):
        return _named_by_option(words, *_FOLDER_OPTIONS[program])
    return ()


def _extracts(words: Sequence[str]) -> bool:
    """Whether `tar` extracts an archive."""
    # options may be joined, and without a dash: "tar xzf a.tgz"
    first = words[1] if len(words) > 1 else ""
    return "-x" in words or re.match("-?[a-zA-Z]*x|--(?:extract|get)", first) is not None


# --- The files in which package managers note packages

# by the program and its subcommand
_MANIFESTS = {
    ("npm", "install"): ("package.json", "package-lock.json"),
    ("npm", "i"): ("package.json", "package-lock.json"),
    ("npm", "add"): ("package.json", "package-lock.json"),
    ("npm", "uninstall"): ("package.json", "package-lock.json"),
    ("npm", "remove"): ("package.json", "package-lock.json"),
    ("npm", "version"): ("package.json", "package-lock.json"),
    ("npm", "pkg"): ("package.json",),
    ("pnpm", "add"): ("package.json", "pnpm-lock.yaml"),
    ("pnpm", "remove"): ("package.json", "pnpm-lock.yaml"),
    ("pnpm", "install"): ("package.json", "pnpm-lock.yaml"),
    ("yarn", "add"): ("package.json", "yarn.lock"),
    ("yarn", "remove"): ("package.json", "yarn.lock"),
    ("bun", "add"): ("package.json", "bun.lock"),
    ("bun", "remove"): ("package.json", "bun.lock"),
    ("poetry", "add"): ("pyproject.toml", "poetry.lock"),
    ("poetry", "remove"): ("pyproject.toml", "poetry.lock"),
    ("uv", "add"): ("pyproject.toml", "uv.lock"),
    ("uv", "remove"): ("pyproject.toml", "uv.lock"),
    ("cargo", "add"): ("Cargo.toml", "Cargo.lock"),
    ("cargo", "remove"): ("Cargo.toml", "Cargo.lock"),
    ("composer", "require"): ("composer.json", "composer.lock"),
    ("composer", "remove"): ("composer.json", "composer.lock"),
    ("bundle", "add"): ("Gemfile", "Gemfile.lock"),
    ("bundle", "remove"): ("Gemfile", "Gemfile.lock"),
    ("go", "get"): ("go.mod", "go.sum"),
}
_CHANGES_NO_MANIFEST = frozenset(("-g", "--global", "--no-save", "--dry-run"))


def manifests_changed_by(words: Sequence[str]) -> Sequence[str]:
    """Returns the files in which a package manager notes the packages that a command names."""
    operands = operands_of(words)
    names_packages = len(operands) > 1 and operands[:2] != ["pkg", "get"]
    if not names_packages or not _CHANGES_NO_MANIFEST.isdisjoint(words):
        return ()
    return _MANIFESTS.get((words[0], operands[0]), ())
