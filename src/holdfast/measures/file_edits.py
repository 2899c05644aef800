"""The changes that a tool call or a shell command makes to files, as far as a log shows them.

    Edit(file_path="a.py", old_string="x = 1", new_string="x = 2")
    -> FileEdit("a.py", added=("x = 2",), removed=("x = 1",))
    rm -r build
    -> FileEdit("build", is_folder=True)

Agents describe a change by the old and the new text, by the whole text, or by a patch in one of
three forms; commands name the files in their arguments and redirections.
"""

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from holdfast.measures.agent_tools import (
    DELETES,
    EDIT_LISTS,
    EDITOR_COMMANDS,
    INSERTS,
    NEW_TEXTS,
    OLD_TEXTS,
    PATCHES,
    PATHS,
    READS,
    REPLACES,
    WHOLE_TEXTS,
    first_text,
    normalised_fields,
)
from holdfast.measures.command_readings import Command
from holdfast.measures.command_wrappers import files_of_find
from holdfast.measures.shell import known_output
from holdfast.measures.turns import ToolCall

# --- A change


@dataclass(frozen=True)
class FileEdit:
    """A change of a file.

    Args:
        path: "" if the log does not show it.
        added: the text that it adds, in pieces of consecutive lines.
        removed: the text that it removes, in such pieces, as far as the log shows it.
        is_whole: whether the added text is then the whole file.
        is_shown: whether the log shows the added text.
        is_folder: whether it may be a folder that is moved or deleted with all its files.
        takes_back: whether it only undoes changes that were not committed, as `git restore` does.
    """

    path: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_whole: bool = False
    is_shown: bool = True
    is_folder: bool = False
    takes_back: bool = False

    @property
    def writes(self) -> bool:
        """Whether it puts text into the file; moving and deleting do not."""
        return bool(self.added) or not self.is_shown


def whole_file_edit(path: str, text: str) -> FileEdit:
    """Returns the edit that writes a file as a whole; of a notebook, the text of its cells."""
    if path.endswith(".ipynb"):
        text = _text_of_notebook(text)
    return FileEdit(path, (text,), is_whole=True)


def _text_of_notebook(text: str) -> str:
    try:
        cells = json.loads(text)["cells"]
        sources = [cell["source"] for cell in cells]
        return "\n\n".join(s if isinstance(s, str) else "".join(s) for s in sources)
    except (ValueError, TypeError, KeyError, RecursionError):
        return text


def replacement_edit(path: str, old: str, new: str) -> FileEdit:
    """Returns the edit that puts a text in place of another.

    Lines that both texts have are neither added nor removed.
    """
    if not old:
        return FileEdit(path, (new,) if new else ())
    before = old.splitlines()
    after = new.splitlines()
    return FileEdit(path, _pieces(after, before), _pieces(before, after))


def _pieces(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Returns the lines that are not among `others`, joining those that follow each other."""
    left = Counter(others)
    pieces = list[list[str]]()
    is_new = False
    for line in lines:
        if left[line]:
            left[line] -= 1
            is_new = False
            continue
        if not is_new:
            pieces.append([])
        pieces[-1].append(line)
        is_new = True
    return tuple("\n".join(piece) for piece in pieces)


# --- Patches

_CODEX_FILE = re.compile(
    r"\*\*\* (?P<operation>Add|Update|Delete) File: (?P<path>.+)|\*\*\* Move to: (?P<target>.+)"
)
_CODEX_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: ", re.MULTILINE)
_UNIFIED_DIFF = re.compile(r"^@@ -\d", re.MULTILINE)
_RENAMED = re.compile(r"^(?:rename|copy) (?:from|to) (\S.*)$", re.MULTILINE)
_HUNK = re.compile(r"@@ -\d+(?:,(?P<old_lines>\d+))? \+\d+(?:,(?P<new_lines>\d+))? @@")
# the lines with numbers that Cline writes above the text of SEARCH
_LINE_NUMBERS = re.compile(r"\A(?::(?:start|end)_line:.*\n)+-{5,}\n")


def edits_by_patch(text: str, path: str = "") -> list[FileEdit]:
    """Reads the changes in a patch of Codex, in SEARCH and REPLACE blocks, or in a unified diff.

    Args:
        path: of the file, for a patch that does not name it.

    Returns:
        [] if the text has none of these forms.
    """
    if _CODEX_PATCH.search(text):
        return list(_by_codex_patch(text))
    blocks = list(_search_blocks(text))
    if blocks:
        return [replacement_edit(path, _LINE_NUMBERS.sub("", old), new) for old, new in blocks]
    renamed = [FileEdit(name) for name in _RENAMED.findall(text)]
    if _UNIFIED_DIFF.search(text):
        return [*renamed, *_by_unified_diff(text, path)]
    return renamed


def _search_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yields the texts of SEARCH and REPLACE in each complete block."""
    old = list[str]()
    new = list[str]()
    part = list[str]()
    for line in text.splitlines(keepends=True):
        if re.match(r"[-<]{5,} *SEARCH", line):
            old = []
            new = []
            part = old
        elif part is old and re.match(r"={5,}\s*\Z", line):
            part = new
        elif part is new and re.match(r"[+>]{5,} *REPLACE", line):
            yield "".join(old), "".join(new)
            part = []
        else:
            part.append(line)


def _by_codex_patch(text: str) -> Iterator[FileEdit]:
    """Yields the edits of a patch of Codex; a file that is moved has one under each name."""
    edit: FileEdit | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), "*** End Patch"]:
        header = _CODEX_FILE.fullmatch(line.rstrip())
        if header is None and not line.startswith("*** End Patch"):
            lines.append(line)
            continue
        if edit is not None:
            yield _with_lines(edit, lines)
        edit = None
        lines = []
        if header is not None:
            path = header["path"] or header["target"]
            edit = FileEdit(path, is_whole=header["operation"] == "Add")


def _with_lines(edit: FileEdit, lines: Sequence[str]) -> FileEdit:
    """Returns the edit with the lines of its hunks that begin with + and -."""
    return replace(edit, added=_lines_with_sign(lines, "+"), removed=_lines_with_sign(lines, "-"))


def _lines_with_sign(lines: Sequence[str], sign: Literal["+", "-"]) -> tuple[str, ...]:
    """Returns the lines that begin with a sign, joined unless a line without + or - is between."""
    other = "-" if sign == "+" else "+"
    pieces = list[list[str]]()
    follows = False
    for line in lines:
        if line.startswith(sign):
            if not follows:
                pieces.append([])
            pieces[-1].append(line[1:])
            follows = True
        elif not line.startswith(other):
            follows = False
    return tuple("\n".join(piece) for piece in pieces)


def _by_unified_diff(text: str, path: str) -> Iterator[FileEdit]:
    """Yields the edits of a unified diff.

    A hunk is as long as its header says, even if its lines look like the header of a file.
    """
    edit = FileEdit(path)
    lines = list[str]()
    old = 0
    new = 0
    for line in text.split("\n"):
        if old > 0 or new > 0:
            lines.append(line)
            old -= not line.startswith(("+", "\\"))
            new -= not line.startswith(("-", "\\"))
        elif header := _HUNK.match(line):
            old = int(header["old_lines"] or 1)
            new = int(header["new_lines"] or 1)
            lines.append("")  # between hunks
        elif file_header := re.match(r"(?P<side>---|\+\+\+) (?P<name>\S[^\t]*)", line):
            if file_header["side"] == "---" and (lines or edit.path != path):
                yield _with_lines(edit, lines)
                edit = FileEdit(path)
                lines = []
            if (name := _without_prefix(file_header["name"].strip())) != "/dev/null":
                edit = replace(edit, path=name)
            elif file_header["side"] == "---":
                edit = replace(edit, is_whole=True)
    yield _with_lines(edit, lines)


def _without_prefix(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name


# --- Calls of tools, and shell commands

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
    "shuf": ("-o", "--output"),
    **dict.fromkeys(("git-cliff", "gcc", "g++", "clang", "go", "rustc"), ("-o", "--output")),
}


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


def edits_by_call(call: ToolCall) -> list[FileEdit]:
    """Returns the changes of files by a tool, according to its arguments."""
    operation = call.arguments.get("command")
    reads = READS.search(call.name) and not REPLACES.search(call.name)
    if operation == "view" or (reads and operation not in EDITOR_COMMANDS):
        return []
    return _edits_among(call.name, call.arguments, "")


def _edits_among(tool: str, arguments: Mapping[str, Any], path: str) -> list[FileEdit]:
    """Returns the changes that arguments describe, which may be a list of edits.

    Args:
        path: of the file, for arguments that do not name it.
    """
    fields = normalised_fields(arguments)
    if fields.get("dryrun") is True:
        return []
    if "source" in fields and "destination" in fields and DELETES.search(tool):
        return [FileEdit(str(fields[name])) for name in ("source", "destination")]
    path = first_text(fields, PATHS) or path
    lists = (fields.get(name) for name in EDIT_LISTS)
    entries = next((value for value in lists if isinstance(value, list) and value), ())
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        return [edit for entry in entries for edit in _edits_among(tool, entry, path)]
    texts = (fields.get(name) for name in PATCHES) if path else fields.values()
    patches = [text for text in texts if isinstance(text, str)]
    edits = [edit for text in patches for edit in edits_by_patch(text, path)]
    if edits or not path:
        return edits
    if str(fields.get("editmode") or fields.get("kind")) == "delete" or DELETES.search(tool):
        return [FileEdit(path)]
    return [_edit_of_texts(tool, fields, path)]


def _edit_of_texts(tool: str, fields: Mapping[str, Any], path: str) -> FileEdit:
    """Returns the change of a file by a call that has its old and new text, or the whole text."""
    old = first_text(fields, OLD_TEXTS)
    new = first_text(fields, NEW_TEXTS)
    whole = first_text(fields, WHOLE_TEXTS)
    if INSERTS.search(tool) or fields.get("command") == "insert" or "newsource" in fields:
        text = new if new is not None else whole
        return _unknown_edit(path) if text is None else FileEdit(path, (text,))
    if old is not None or new is not None:
        return replacement_edit(path, old or "", new or "")
    return _unknown_edit(path) if whole is None else whole_file_edit(path, whole)


def _unknown_edit(path: str) -> FileEdit:
    """Returns a change whose text the log does not show."""
    return FileEdit(path, is_shown=False)


def edits_by_command(command: Command) -> list[FileEdit]:
    """Returns the changes of files by a shell command: by its redirections and its program."""
    if command.is_elsewhere:
        return [_unknown_edit(path) for path in command.writes]
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
        return edits_by_patch(patch) or [_unknown_edit("")]
    if words[:2] == ("git", "am") or _edits_unnamed_files(command):
        return [_unknown_edit("")]
    output = known_output(words, command.input)
    if command.is_in_group:
        output = command.group_output
    edits = [_output_edit(path, output, appends=command.appends) for path in command.writes]
    if program == "tee":
        appends = _is_among(("-a", "--append"), options)
        edits += [_output_edit(path, command.input, appends=appends) for path in operands]
    elif program in _MOVERS or words[:2] in (("git", "mv"), ("git", "rm")):
        paths = operands[1:] if program == "git" else operands
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


def _edits_unnamed_files(command: Command) -> bool:
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


def side_effects_of(command: Command) -> list[FileEdit]:
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
    paths = [after for word, after in pairwise(words) if word in (short, long)]
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
