"""Reads the rules that a row of a table states, by the headers of its columns.

| Don't use | Use    |          | Area            | Rule      |
| `npm`     | `pnpm` |          | Package manager | pnpm only |

-> RowRule("`npm`", heading="Never use")
                                -> RowRule("pnpm only", label="Package manager")
"""

import re
from collections.abc import Sequence
from typing import NamedTuple


class TableRow(NamedTuple):
    """A row of a table: the header and the cell of each column, without marks."""

    columns: Sequence[str]
    cells: Sequence[str]

    def cells_below(self, header: re.Pattern[str]) -> list[str]:
        """The cells of the columns whose header a pattern matches."""
        pairs = zip(self.columns, self.cells, strict=True)
        return [cell for column, cell in pairs if header.fullmatch(column)]


class RowRule(NamedTuple):
    """A rule of a row, as a sentence below a label or a heading."""

    text: str
    label: str = ""
    heading: str = ""


def rules_of_row(row: TableRow) -> list[RowRule]:
    """The rules of a row that is not the row of headers; [] if it states none."""
    return (
        _forbidden_cells(row)
        or _commands_of_row(row)
        or _case_of_row(row)
        or _labelled_row(row)
        or _orders_of_row(row)
    )


# --- Cells in a column such as "Don't use"

_FORBIDS_CELLS = re.compile(
    r"\W*(?:do not|don['’]t|never|not)(?: (?:use|run|write|do))?(?: this)?\W*"
    r"|\W*(?:forbidden|banned)(?: \w+)?\W*|\W*instead of\W*|\W*anti-?patterns?\W*"
    r"|[^\w\s]*❌[^\w\s]*",
    re.I,
)


def _forbidden_cells(row: TableRow) -> list[RowRule]:
    """The cells in columns such as "Don't use", each as an item below this heading."""
    return [
        RowRule(cell, heading="Never use")
        if cell.startswith("`")
        else RowRule(f"Never {cell[0].lower()}{cell[1:]}")
        for cell in row.cells_below(_FORBIDS_CELLS)
        if "`" in cell
    ]


# --- Commands, and when they are run

_COMMANDS_COLUMN = re.compile(
    r"\W*(?:commands?|run|scripts?|(?:required )?(?:gates?|checks?|commands?|verification"
    r"|validation))\W*",
    re.I,
)
_WHEN_COLUMN = re.compile(
    r"\W*(?:(?:required|run|use|needed) )?when(?: to (?:run|use))?(?: (?:required|it))?\W*", re.I
)
_CHANGED_COLUMN = re.compile(
    r"\W*(?:(?:if|when|after) )?(?:you )?(?:chang|modif|touch|edit)\w*(?: (?:files?|paths?|in))?\W*"
    r"|\W*(?:files?|paths?|areas?) (?:changed|modified|touched|edited)\W*"
    r"|\W*(?:changed? (?:types?|areas?)|types? of changes?|changes?)\W*",
    re.I,
)
_WHEN_CELL = re.compile(
    r"(?:before|after|when(?:ever)?|on)\b|(?P<change>(?:every|any|each)\b)", re.I
)
_CODES = re.compile(r"`[^`]+`(?:(?:,? and |, | \+ )`[^`]+`)*")
_PART_CELL = re.compile(r"[A-Z][\w-]*(?: (?:code|changes|only))*")


def _commands_of_row(row: TableRow) -> list[RowRule]:
    """The order of a row such as "`make test` | before every commit" or "`src/` | `make test`", in
    a table whose headers say that it has commands and when they are run.
    """
    commands = row.cells_below(_COMMANDS_COLUMN)
    whens = row.cells_below(_WHEN_COLUMN)
    changed = row.cells_below(_CHANGED_COLUMN)
    if len(commands) != 1 or len(whens) + len(changed) != 1 or not _CODES.fullmatch(commands[0]):
        return []
    if changed and _PART_CELL.fullmatch(changed[0]):
        return [RowRule(commands[0], label=f"{changed[0].split()[0]} changes")]
    if changed:
        occasion = f"After changing {changed[0]}" if _CODES.fullmatch(changed[0]) else ""
    else:
        when = _WHEN_CELL.match(whens[0])
        is_change = when is not None and when["change"]
        occasion = whens[0] if when else ""
        occasion = f"After {occasion[0].lower()}{occasion[1:]}" if is_change else occasion
    return [RowRule(f"{occasion}, run {commands[0]}")] if occasion else []


# --- The case of names: "Classes | PascalCase"

_NAMED_COLUMN = re.compile(
    r"\W*(?:elements?|kinds?|types?|items?|what|entit(?:y|ies)|constructs?|identifiers?|names?"
    r"|things?|categor(?:y|ies)|targets?)\W*",
    re.I,
)
_CASE_COLUMN = re.compile(
    r"\W*(?:naming )?(?:conventions?|cases?|styles?|formats?|naming|patterns?)\W*", re.I
)
_CASE_CELL = re.compile(r"`?[\w-]+[ _-]?case`?", re.I)


def _case_of_row(row: TableRow) -> list[RowRule]:
    """The rule of a row such as "Classes | PascalCase", below "Element | Convention"."""
    names = row.cells_below(_NAMED_COLUMN)
    cases = row.cells_below(_CASE_COLUMN)
    if len(names) != 1 or len(cases) != 1 or not _CASE_CELL.fullmatch(cases[0]):
        return []
    return [RowRule(cases[0], label=names[0])]


# --- Two columns, whose rows are labelled sentences: "Package manager | pnpm only"

_SUBJECT_COLUMN = re.compile(
    r"\W*(?:areas?|aspects?|topics?|items?|categor(?:y|ies)|settings?|concerns?|subjects?|contexts?"
    r"|scopes?|what|things?|tools?|elements?|types?|rules?)?\W*",
    re.I,
)
_SAYS_COLUMN = re.compile(
    r"\W*(?:(?:our|required) )?(?:values?|choices?|conventions?|rules?|standards?"
    r"|technolog(?:y|ies)|tools?|languages?|requirements?|styles?|formats?|settings?|details?"
    r"|decisions?"
    r"|polic(?:y|ies)|guidelines?|descriptions?)\W*",
    re.I,
)
_SUBJECT_OF_ROW = re.compile(
    r"(?:the )?(?:package manager|commits?|commit (?:messages?|style|format)|communication"
    r"|conversation|repl(?:y|ies)|responses?|indent(?:ation)?|line (?:length|width)"
    r"|branch(?:es| names?| naming)|(?:file|folder|directory) (?:names?|naming)|files|folders"
    r"|director(?:y|ies)|(?:environment|env) variables|PRs?|pull requests?|PR titles?"
    r"|imports|exports)(?: with (?:the )?users?)?",
    re.I,
)


def _labelled_row(row: TableRow) -> list[RowRule]:
    """The rule of a row such as "Package manager | pnpm only", as of "Package manager: pnpm only",
    if rules are often stated about its subject.
    """
    if len(row.cells) != 2:
        return []
    subject_column, rule_column = row.columns
    if not _SUBJECT_COLUMN.fullmatch(subject_column) or not _SAYS_COLUMN.fullmatch(rule_column):
        return []
    subject, text = row.cells
    if not _SUBJECT_OF_ROW.fullmatch(subject) or not text:
        return []
    return [RowRule(text, label=subject)]


# --- Orders in any other column

_FORBIDS_IN_CELL = re.compile(r"\b(?:never|do not|don['’]t)\b|\bno `", re.I)


def _orders_of_row(row: TableRow) -> list[RowRule]:
    """The cells that forbid something, "always use `a`, never `b`", below what the first cell says
    that they are about.
    """
    cells = row.cells
    if len(cells) < 2:
        return []
    is_numbered = cells[0].isdecimal() and len(cells) > 2
    label = cells[1] if is_numbered else cells[0]
    return [
        RowRule(cell, label=label.strip("`"))
        for cell in cells[1:]
        if "`" in cell and _FORBIDS_IN_CELL.search(cell)
    ]
