"""The file that --junit names, as long as its command has no verdict."""

from collections.abc import Sequence

_WITH_VERDICTS = ("check", "logs")  # the commands that write JUnit XML


def write_no_verdict(words: Sequence[str], why: str) -> None:
    """Writes the file that --junit names, if it is given, so that no earlier run's stays there."""
    paths = [
        word.partition("=")[2] or after
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if word == "--junit" or word.startswith("--junit=")
    ]
    named = bool(paths) and bool(paths[-1]) and not paths[-1].startswith("--")
    if words[0] not in _WITH_VERDICTS or not named or "--dry-run" in words:
        return
    from holdfast.report.junit import write_unfinished  # takes a while to import

    write_unfinished(words[0], paths[-1], why)
