"""The changes of files that commands make by the way, which are no edits by the agent.

For example:

    prettier --write src    ->  FileEdit("src", is_folder=True): a formatter
    git stash pop           ->  FileEdit(""): Git brings in changes of files that it does not name
"""

import re
from collections.abc import Mapping, Sequence

from holdfast.measures.agent_acts.commands.shell_commands import ShellCommand
from holdfast.measures.agent_acts.edits.file_edits import FileEdit

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
# options with which a formatter changes nothing
_ONLY_SHOWS = ("--check", "--check-only", "--diff", "-d", "-check", "--list-different", "-l")
# commands of Git that change files which they do not name, such as "git reset --hard"
_BRING_IN = re.compile(
    r"git (?:reset (?:.* )?--(?:hard|merge|keep)|stash (?:pop|apply)"
    r"|clean (?!.*(?:-n|--dry-run))|cherry-pick|(?:checkout|restore) (?:-- )?\.(?: |\Z))"
)


def side_effects_of(command: ShellCommand) -> list[FileEdit]:
    """Returns the changes of files by a formatter, or by what Git brings in."""
    words = command.arguments
    if command.is_elsewhere:
        return []
    if _BRING_IN.match(" ".join(words)):
        return [FileEdit("")]
    for names, options in _FORMATTERS.items():
        is_used = words[: len(names)] == names and {*_ONLY_SHOWS}.isdisjoint(words)
        if is_used and (not options or not {*options}.isdisjoint(words)):
            paths = [word for word in words[len(names) :] if not word.startswith("-")] or ["."]
            return [FileEdit(path, is_folder="." not in path.strip("./")) for path in paths]
    return []
