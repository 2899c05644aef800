"""How many rules `suite init` drafts rightly, and how many of the decidable lines it finds."""

from __future__ import annotations

from tabled.reading import markdown, read

# A row for each of these groups of files, the latest first; "{files}" is how many they are.
_ROWS = {
    "drawn_last": "{files} of the last draw, in any language, a quarter of them prompts of bots",
    "drawn_later": "{files} drawn by their commits before",
    "drawn_after": "{files} drawn at random before, after the errors in the next row were mended",
    "drawn_before": "{files} drawn at random before",
    "with_blocks": "{files} before",
    "with_one_grammar": "{files} before, labelled without knowing the drafter",
}
_FORMS = {
    "prohibition": "prohibitions",
    "requirement": "requirements",
    "gate": "ask before an act",
    "reply": "rules about replies",
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
            *markdown(_rows_by_form(groups["drawn_last"]["by_form"])),
            "",
            _after_mending(),
            "",
            "Files were labelled by hand before they were drafted; a line is decidable if a measure"
            " can decide it, and found if it became a right rule. The labels of the fifth row and"
            " the last leave out lines that a measure could decide. 95% intervals in brackets"
            " ([record](RESULTS/suite_init.json),"
            " [labels](ROOT/benchmarks/suite_init_labels.json)).",
        ]
    )


def _rows_by_form(forms: dict) -> list[list[str]]:
    """The rows of the last draw, by the form of the rules."""
    rows = [["last draw", "drafted rules that are right", "decidable lines found"]]
    for name, words in _FORMS.items():
        rows.append([words, _share(forms[name]["precision"]), _share(forms[name]["recall"])])
    return rows


def _after_mending() -> str:
    """The sentence on what the present version drafts from the files of the last draw."""
    now = read("suite_init")["now"]["twenty-seventh"]
    return (
        "All rows are of the version that first drafted their files. On those of the last draw, the"
        f" present version drafts {now['precision']['of']} rules, of which"
        f" {now['precision']['count']} are right, and finds {now['recall']['count']} of"
        f" {now['recall']['of']} lines; its wrong drafts were mended, so this says little about"
        " other files."
    )


def _share(share: dict) -> str:
    """A share with its interval: "12 of 16 (0.75 [0.48, 0.93])"."""
    if share["low"] is None:  # of a single rule
        return f"{share['count']} of {share['of']}"
    interval = f"[{share['low']:.2f}, {share['high']:.2f}]"
    return f"{share['count']} of {share['of']} ({share['share']:.2f} {interval})"


def _range(shares: list[dict]) -> str:
    """The lowest and the highest of several shares: "0.70 to 0.91"."""
    values = [share["share"] for share in shares]
    return f"{min(values):.2f} to {max(values):.2f}"
