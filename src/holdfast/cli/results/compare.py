"""`holdfast compare`: sets runs side by side, such as those of two models, prompts or versions."""

from pathlib import Path
from typing import Annotated

from holdfast.analysis.run_comparison import compare_folders
from holdfast.cli.shared.command import Arg, Command, Options, file_to_write
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.notes import note
from holdfast.files import short_path, write_whole
from holdfast.report import check_page
from holdfast.report.compare_page import comparison_page, comparison_summary
from holdfast.report.compare_tables import compare_markdown, compare_text

EXAMPLES = """examples:
  holdfast compare runs/old runs/new
  holdfast compare runs/qwen-0.5b runs/smollm2 runs/gemma-3-270m --out models.html
  holdfast compare runs/main runs/branch --markdown > comment.md
`holdfast docs comparing` says what is compared, and which differences count."""


class CompareArguments(Options):
    folders: Annotated[list[Path], Arg("RUN", positional=True, nargs="+", action="store")]
    """the folders of runs of drift or check; the others are compared with the first"""
    markdown: bool = False
    """print Markdown instead, for a comment on a pull request"""
    out: Annotated[Path, Arg("FILE.html", type=file_to_write)] = Path("compare.html")
    """the page"""


def run(arguments: CompareArguments) -> None:
    check_page(arguments.out)
    comparison = compare_folders(arguments.folders)
    page = write_whole(arguments.out, comparison_page(comparison), "another place with --out")
    if arguments.markdown:
        print(compare_markdown(comparison))
    else:
        print(compare_text(comparison))
        print()
    report = f"Report: {short_path(page)}"
    if arguments.markdown:
        note(report)  # standard output has the Markdown alone
    else:
        print(report)
    write_document(comparison_summary(comparison).model_dump(by_alias=True))


COMMAND = Command(
    "compare",
    run,
    CompareArguments,
    description=(
        "Says what differs between runs, what therefore cannot be compared, and how much better or"
        " worse each rule is kept, with intervals. Conversations that began alike are compared in"
        " pairs, others as two samples."
    ),
    examples=EXAMPLES,
)
