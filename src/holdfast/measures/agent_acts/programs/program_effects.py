"""The effects of a program, as far as its text shows them.

For example:

    os.system("git push"); os.remove("a.txt")
    -> ProgramEffects(scripts=["git push"], edits=[FileEdit("a.txt", ...)])
"""

from dataclasses import dataclass, field

from holdfast.measures.agent_acts.edits.file_edits import FileEdit


@dataclass
class ProgramEffects:
    """The commands that a program runs and the files that it writes.

    Args:
        scripts: the shell commands that it runs.
        edits: the files that it writes, moves or deletes, some of them as globs.
    """

    scripts: list[str] = field(default_factory=list)
    edits: list[FileEdit] = field(default_factory=list)
