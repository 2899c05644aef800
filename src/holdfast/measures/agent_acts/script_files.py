"""The texts of files that calls wrote, for the scripts that run these files.

For example:

    Write("s.sh", "git push"), then Bash("bash s.sh")           ->  s.sh: "git push"
    Write("Makefile", "all:\\n\\tgit push"), then Bash("make")    ->  Makefile: "all:\\n\\tgit push"
"""

import posixpath
import re
from collections.abc import Mapping, Sequence

from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.path_names import is_absolute
from holdfast.measures.agent_acts.working_folders import with_folder

# a file that a command runs: "bash a.sh", "python -u a.py", "./a.sh"
_RUN_FILE = re.compile(
    r"(?:^|[\s;&|(\"'])(?:(?:(?:ba|z|da|k|fi)?sh|source|\.|python[\d.]*|node|bun|deno run|ruby|perl"
    r"|php|pwsh)(?:\s+-\S+)*\s+(?P<file>[\w./~-]+)|(?P<path>(?:\.{1,2}|/tmp)/[\w./-]+))",
    re.MULTILINE,
)
# the files in which the targets are that these programs run, or how their names end
_TARGET_FILES = {
    **dict.fromkeys(("make", "just"), ("Makefile", "makefile", "justfile", "Justfile", ".mk")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
}
_MAX_FILES = 200


def files_run_by(script: str) -> frozenset[str]:
    """Returns the names of the files that a script may run, or how these end."""
    files = (match["file"] or match["path"] for match in _RUN_FILE.finditer(script))
    names = {posixpath.basename(file) for file in files} - {""}
    return frozenset(names.union(_target_files_of(script)))


def _target_files_of(script: str) -> list[str]:
    """Returns the files whose targets a script may run, or how their names end."""
    return [file for name, files in _TARGET_FILES.items() if name in script for file in files]


class ScriptFiles:
    """The texts of the files that were written last, as far as they are shown as a whole.

    Args:
        texts: those known so far, by the paths of the files.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self.texts = dict(texts or {})

    def note(self, edits: Sequence[FileEdit], folder: str) -> None:
        """Takes note of changes of files.

        Args:
            folder: the one that paths begin from; "" if it is not known.
        """
        for edit in edits:
            path = with_folder(edit, folder if folder.startswith("/") else "").path
            before = self.texts.pop(path, None)
            if edit.is_whole and edit.is_shown and edit.added:
                self.texts[path] = "\n".join(edit.added)
            elif before is not None and edit.is_shown and edit.added and not edit.removed:
                self.texts[path] = "\n".join([before, *edit.added])
            elif before is not None and len(edit.removed) == len(edit.added) == 1:
                self.texts[path] = before.replace(edit.removed[0], edit.added[0], 1)
            if len(self.texts) > _MAX_FILES:
                del self.texts[next(iter(self.texts))]

    def named_in(self, script: str, start: str) -> tuple[tuple[str, str], ...]:
        """Returns the files with their texts that a script names, or whose targets it may run.

        Args:
            start: the folder that the script begins in; if it is relative, so are the paths to it.
        """
        if not self.texts:
            return ()
        ends = tuple(_target_files_of(script))
        is_relative = bool(start) and not is_absolute(start)
        return tuple(
            (_relative_to(start, path) if is_relative else path, text)
            for path, text in self.texts.items()
            if posixpath.basename(path) in script or path.endswith(ends)
        )


def _relative_to(start: str, path: str) -> str:
    return path if is_absolute(path) else posixpath.relpath(path, start)
