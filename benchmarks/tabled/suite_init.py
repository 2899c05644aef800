"""How many rules `suite init` drafts rightly, and how many of the decidable lines it finds."""

from __future__ import annotations

from tabled.reading import markdown, read

# A row for each of these groups of files, the latest first; "{files}" is how many they are.
_ROWS = {
    "drawn_later": "{files} drawn by their commits, after the errors in the next rows were mended",
    "drawn_after": "{files} drawn at random before, after the errors in the next row were mended",
    "drawn_before": "{files} drawn at random before",
    "with_blocks": "{files} before",
    "with_one_grammar": "{files} before, labelled without knowing the drafter",
}
# The last row has the range over these groups.
_EARLIER = (
    "with_more_kinds",
    "with_never",
    "with_forms",
    "with_lists",
    "with_the_grammar",
    "before_the_grammar",  # an earlier version with fewer measures
)


def suite_init_table() -> str:
    """How many drafted rules were right at first sight, and how many lines were found."""
    groups = read("suite_init")["at_first_sight"]
    rows = [["files", "drafted rules that are right", "decidable lines found"]]
    for name, words in _ROWS.items():
        group = groups[name]
        files = words.format(files=group["files"])
        rows.append([files, _share(group["precision"]), _share(group["recall"])])
    earlier = [groups[name] for name in _EARLIER]
    rows.append(
        [
            f"{len(earlier)} earlier groups, {sum(group['files'] for group in earlier)} files",
            _range([group["precision"] for group in earlier]),
            _range([group["recall"] for group in earlier]),
        ]
    )
    return "\n".join(
        [
            *markdown(rows),
            "",
            "Files were labelled by hand before they were drafted; a line is decidable if a measure"
            " can decide it, and found if it became a right rule. The labels of the fourth row and"
            " the last leave out lines that a measure could decide. 95% intervals in brackets"
            " ([record](RESULTS/suite_init.json),"
            " [labels](ROOT/benchmarks/suite_init_labels.json)).",
        ]
    )


def _share(share: dict) -> str:
    """A share with its interval: "12 of 16 (0.75 [0.48, 0.93])"."""
    interval = f"[{share['low']:.2f}, {share['high']:.2f}]"
    return f"{share['count']} of {share['of']} ({share['share']:.2f} {interval})"


def _range(shares: list[dict]) -> str:
    """The lowest and the highest of several shares: "0.70 to 0.91"."""
    values = [share["share"] for share in shares]
    return f"{min(values):.2f} to {max(values):.2f}"
