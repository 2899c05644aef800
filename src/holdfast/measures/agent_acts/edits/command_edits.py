"""The changes of files by shell commands: by their redirections, and by the programs they run.

For example:

    rm -r build
    -> FileEdit("build", is_folder=True)
    echo "x = 2" > a.py
    -> FileEdit("a.py", added=("x = 2",), is_whole=True)
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from holdfast.measures.agent_acts.commands.find_commands import files_of_find
from holdfast.measures.agent_acts.commands.shell_commands import ShellCommand
from holdfast.measures.agent_acts.edits.file_edits import FileEdit, edits_by_patch, hidden_edit
from holdfast.measures.agent_acts.scripts.command_output import known_output

_MOVERS = ("rm", "unlink", "mv", "cp", "touch", "truncate", "chmod", "ln", "install")
_IN_PLACE_EDITORS = ("sed", "gsed", "perl", "ruby", "yq", "awk", "gawk")
_IN_PLACE = re.compile("-[a-z]*i|--in-?place")
_LINE_EDITORS = ("ed", "sponge", "dos2unix", "unix2dos")
_VIMS = ("vim", "vi", "nvim", "ex")
_VALUED_OF_VIM = ("-c", "--cmd", "-S", "-s", "-u", "-U", "-i", "-T")
_SAVES = re.compile(r"(?:\A|[|\s])(?:silent!? )?(?:w|wq|wqa?|x|xa|wa|up|update)!?\s*(?:\||\Z)")
# programs that write into the folder that an option names
_FOLDER_OPTIONS = {
    "tar": ("-C", "--directory"),
    "unzip": ("-d", "--directory"),
    "wget": ("-P", "--directory-prefix"),
}
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


_JOIN_LETTERS = ("curl", "wget")
_CMDLET_VALUES = (
    *("-value", "-encoding", "-destination", "-itemtype", "-name", "-include", "-exclude"),
    *("-filter", "-inputobject", "-newname", "-width"),
)
_PATH = ("-path", "-literalpath", "-filepath")
# commands of PowerShell that change files, and their parameters for these, in lower case
_CMDLETS = {
    **dict.fromkeys(("set-content", "add-content", "clear-content", "out-file"), _PATH),
    **dict.fromkeys(("remove-item", "new-item", "rename-item", "ri", "del", "erase", "rd"), _PATH),
    **dict.fromkeys(("ni", "rni"), _PATH),
    **dict.fromkeys(("copy-item", "cpi"), ("-destination",)),
    **dict.fromkeys(("move-item", "mi"), (*_PATH, "-destination")),
}


def edits_by_command(command: ShellCommand) -> list[FileEdit]:
    """Returns the changes of files by a shell command: by its redirections and its program."""
    if command.is_elsewhere:
        return [hidden_edit(path) for path in command.writes]
    words = command.arguments
    program = words[0]
    operands = [word for word in words[1:] if not word.startswith("-")]
    options = [word for word in words[1:] if word.startswith("-")]
    if program in ("apply_patch", "applypatch", "patch") or words[:2] == ("git", "apply"):
        if not {*_ONLY_CHECKS}.isdisjoint(words):
            return []
        patch = command.input
        if patch is None:
            patch = next((word for word in operands if "\n" in word), "")
        return edits_by_patch(patch) or [hidden_edit("")]
    if words[:2] == ("git", "am") or _edits_unnamed_files(command):
        return [hidden_edit("")]
    output = known_output(words, command.input)
    if command.is_in_group:
        output = command.group_output
    edits = [*command.edits]
    edits += [_output_edit(path, output, appends=command.appends) for path in command.writes]
    if program == "tee":
        appends = _is_among(("-a", "--append"), options)
        edits += [_output_edit(path, command.input, appends=appends) for path in operands]
    elif program in _MOVERS or words[:2] in (("git", "mv"), ("git", "rm")):
        paths = operands[1:] if program == "git" else operands
        if "--cached" in options:  # the file itself stays
            paths = []
        if program in ("cp", "ln", "install"):
            paths = _copies(paths)
        edits += [FileEdit(path, is_folder=_may_be_folder(path, words)) for path in paths]
    else:
        takes_back = _takes_back(words)
        outputs = _outputs(words, operands, options)
        is_git = words[0] == "git"
        edits += [
            FileEdit(
                path,
                is_shown=False,
                takes_back=takes_back,
                is_folder=is_git and "." not in posixpath.basename(path),
            )
            for path in outputs
        ]
        edits += [FileEdit(path, is_folder=True) for path in _changed_folders(words, operands)]
        edits += [FileEdit(path) for path in _manifests(words, operands)]
    return edits


_ONLY_CHECKS = ("--check", "--stat", "--numstat", "--summary", "--dry-run")


def _edits_unnamed_files(command: ShellCommand) -> bool:
    """Whether a command edits files in place that `xargs` names."""
    words = command.innermost
    has_xargs = any(reading.words[0] == "xargs" for reading in command.readings)
    return has_xargs and words[0] in _IN_PLACE_EDITORS and any(map(_IN_PLACE.match, words[1:]))


# --- What programs change besides: the files of packages, and those that they format

# by a program and its subcommand: the files in which it notes packages
_MANIFESTS = {
    **{("npm", n): ("package.json", "package-lock.json") for n in ("uninstall", "remove")},
    **{("npm", n): ("package.json", "package-lock.json") for n in ("install", "i", "add")},
    **{("pnpm", n): ("package.json", "pnpm-lock.yaml") for n in ("add", "remove", "install")},
    **{("yarn", n): ("package.json", "yarn.lock") for n in ("add", "remove")},
    **{("bun", n): ("package.json", "bun.lock") for n in ("add", "remove")},
    **{("poetry", n): ("pyproject.toml", "poetry.lock") for n in ("add", "remove")},
    **{("uv", n): ("pyproject.toml", "uv.lock") for n in ("add", "remove")},
    **{("cargo", n): ("Cargo.toml", "Cargo.lock") for n in ("add", "remove")},
    **{("composer", n): ("composer.json", "composer.lock") for n in ("require", "remove")},
    **{("bundle", n): ("Gemfile", "Gemfile.lock") for n in ("add", "remove")},
    ("go", "get"): ("go.mod", "go.sum"),
    ("npm", "pkg"): ("package.json",),
    ("npm", "version"): ("package.json", "package-lock.json"),
}
_CHANGES_NO_MANIFEST = ("-g", "--global", "--no-save", "--dry-run")


def _manifests(words: Sequence[str], operands: Sequence[str]) -> Sequence[str]:
    """Returns the files in which a package manager notes the packages that a command names."""
    is_known = len(operands) > 1 and {*_CHANGES_NO_MANIFEST}.isdisjoint(words)
    is_known = is_known and tuple(operands[:2]) != ("pkg", "get")
    return _MANIFESTS.get((words[0], operands[0]), ()) if is_known else ()


# by the words that a formatter begins with: the options with which it changes files, if it needs
# one of them
_FORMATTERS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("prettier",): ("--write", "-w"),
    **{(name,): ("--fix",) for name in ("eslint", "stylelint", "oxlint", "standard", "tslint")},
    ("ruff", "check"): ("--fix", "--fix-only"),
    ("ruff", "format"): (),
    **{(name,): () for name in ("black", "isort", "rustfmt", "ktfmt", "swiftformat")},
    **{(name,): ("-i", "--in-place") for name in ("autopep8", "yapf", "clang-format")},
    **{(name,): ("-w",) for name in ("gofmt", "goimports", "gofumpt", "shfmt")},
    **{("biome", name): ("--write", "--apply") for name in ("format", "check", "lint")},
    **{names: () for names in (("dprint", "fmt"), ("terraform", "fmt"), ("cargo", "fmt"))},
    **{names: () for names in (("go", "fmt"), ("cargo", "fix"), ("mix", "format"))},
    **{names: () for names in (("dart", "format"), ("deno", "fmt"), ("php-cs-fixer", "fix"))},
    ("rubocop",): ("-a", "-A", "--autocorrect", "--autocorrect-all"),
    ("ktlint",): ("-F", "--format"),
}
_ONLY_SHOWS = ("--check", "--check-only", "--diff", "-d", "-check", "--list-different", "-l")
# commands of Git that change files which they do not name
_BRING_IN = re.compile(
    r"git (?:reset (?:.* )?--(?:hard|merge|keep)|stash (?:pop|apply)"
    r"|clean (?!.*(?:-n|--dry-run))|cherry-pick|(?:checkout|restore) (?:-- )?\.(?: |\Z))"
)


def side_effects_of(command: ShellCommand) -> list[FileEdit]:
    """Returns the changes of files that are no edits: by a formatter, or by what Git brings in."""
    words = command.arguments
    if command.is_elsewhere:
        return []
    if _BRING_IN.match(" ".join(words)):
        return [FileEdit("")]
    for names, options in _FORMATTERS.items():
        is_used = words[: len(names)] == names and {*_ONLY_SHOWS}.isdisjoint(words)
        if is_used and (not options or not {*options}.isdisjoint(words)):
            return [
                FileEdit(path, is_folder="." not in path.strip("./"))
                for path in [w for w in words[len(names) :] if not w.startswith("-")] or ["."]
            ]
    return []


def _takes_back(words: Sequence[str]) -> bool:
    """Whether a command of Git undoes changes of files that were not committed, and takes no file
    from another commit.
    """
    if words[:2] == ("git", "restore"):
        return not any(re.match("-s|--source", word) for word in words)
    if words[:2] != ("git", "checkout") or "--" not in words:
        return False
    before = [word for word in words[2 : words.index("--")] if not word.startswith("-")]
    return before in ([], ["HEAD"])


def _copies(paths: Sequence[str]) -> list[str]:
    """Returns the files that a copy writes: the last path, or files in it if it is a folder."""
    *sources, target = paths or ("",)
    if target.endswith("/") or len(sources) > 1:
        return [posixpath.join(target, posixpath.basename(source)) for source in sources]
    return [target]


def _changed_folders(words: Sequence[str], operands: Sequence[str]) -> Sequence[str]:
    """Returns the folders in which a program writes or deletes files that it does not name."""
    program = words[0]
    if program == "find" and "-delete" in words:
        return files_of_find(words)
    if program == "rsync":
        return operands[-1:] if len(operands) > 1 and ":" not in operands[-1] else ()
    if program in _FOLDER_OPTIONS and (program != "tar" or _extracts(words)):
        return _named_outputs(words, *_FOLDER_OPTIONS[program])
    return ()


def _outputs(
    words: Sequence[str], operands: Sequence[str], options: Sequence[str]
) -> Sequence[str]:
    """Returns the files that a program writes itself, whose text the log does not show."""
    program = words[0]
    if program in _LINE_EDITORS:
        return operands
    if program in _VIMS:
        return _files_of_vim(words)
    if program == "sd":
        return operands[2:] if {"-p", "--preview"}.isdisjoint(options) else ()
    if cmdlet := _CMDLETS.get(program.lower()):
        return _paths_of_cmdlet(words, cmdlet)
    if program == "dd":
        return [word[3:] for word in operands if word.startswith("of=")]
    if words[:2] == ("git", "cliff"):
        program = "git-cliff"
    if program in _OUTPUT_OPTIONS:
        return _named_outputs(words, *_OUTPUT_OPTIONS[program])
    if words[:2] == ("git", "restore") and not _is_among(("--staged", "-S"), options):
        return operands[1:]
    if words[:2] == ("git", "checkout") and "--" in words:
        return words[words.index("--") + 1 :]
    if program in _IN_PLACE_EDITORS and any(map(_IN_PLACE.match, options)):
        return _files_after_script(words)
    return ()


def _paths_of_cmdlet(words: Sequence[str], parameters: Sequence[str]) -> list[str]:
    """Returns the files that a command of PowerShell changes: the values of these parameters or,
    without them, its first operand.
    """
    named = [value for name, value in pairwise(words) if name.lower() in parameters]
    operands = [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and before.lower() not in _CMDLET_VALUES
    ]
    return named or operands[:1]


def _extracts(words: Sequence[str]) -> bool:
    """Whether `tar` extracts an archive."""
    return "-x" in words or any(re.match("-?[a-zA-Z]*x|--(?:extract|get)", w) for w in words[1:2])


def _named_outputs(words: Sequence[str], short: str, long: str) -> list[str]:
    """Returns the files that an option names, as `-o F`, `-oF`, `--output F` or `--output=F`."""
    joined = re.compile(rf"-[a-zA-Z]*{short[1:]}" if words[0] in _JOIN_LETTERS else short)
    paths = [after for word, after in pairwise(words) if word == long or joined.fullmatch(word)]
    paths += [word[len(short) :] for word in words if re.match(f"{short}[^-]", word)]
    paths += [word.partition("=")[2] for word in words if word.startswith(f"{long}=")]
    return [path for path in paths if path not in ("", "-", "/dev/null")]


def _may_be_folder(path: str, words: Sequence[str]) -> bool:
    """Whether a path that is moved or deleted may be a folder, which goes with all its files."""
    if not {"rm", "mv"} & {*words[:2]} or "--cached" in words:
        return False
    recursive = any(re.match("-[a-zA-Z]*[rR]|--recursive", word) for word in words)
    return recursive or "." not in path.rpartition("/")[2]


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


def _is_among(names: Sequence[str], options: Sequence[str]) -> bool:
    return any(option in names for option in options)


def _output_edit(path: str, text: str | None, *, appends: bool) -> FileEdit:
    """Returns the change of a file that output goes to; None for a text that is not known."""
    added = () if text is None else (text,)
    return FileEdit(path, added, is_whole=not appends, is_shown=text is not None)
