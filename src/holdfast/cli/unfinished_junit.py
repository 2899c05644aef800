"""Marks the file of --junit as having no verdict, until its command has one."""

from collections.abc import Sequence

_WITH_VERDICTS = ("check", "logs")  # the commands that write JUnit XML


def write_no_verdict(words: Sequence[str], why: str) -> None:
    """Writes the file of --junit, if it is given, so that no verdict of an earlier run stays there.

    Args:
        words: the command line, which may be malformed.
        why: why there is no verdict.
    """
    if words[0] not in _WITH_VERDICTS or "--dry-run" in words:
        return
    paths = [
        word.partition("=")[2] or after
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if word == "--junit" or word.startswith("--junit=")
    ]
    if not paths or not paths[-1] or paths[-1].startswith("--"):
        return
    from holdfast.report.junit import write_unfinished  # takes a while to import

    write_unfinished(words[0], paths[-1], why)
