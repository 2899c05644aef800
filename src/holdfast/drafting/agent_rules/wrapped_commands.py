"""Rules against a command that permit it behind a wrapper: "Use `uv run pytest`, not `pytest`"."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.rules_file import Statement
from holdfast.measures.command_wrappers import wrappers_in

_CODE = re.compile(r"`[^`]+`")
# the arguments of measures with commands that are not to be run
_UNWANTED = {"command_not_run": "command", "prefers": "rather_than"}
# what "never bare `python`" leaves open, if the statement names no wrapper
_BARE = re.compile(r"\b(?:bare|plain|raw|directly)\b", re.IGNORECASE)
_ENVIRONMENTS = (
    *("uv run", "poetry run", "pipenv run", "hatch run", "pdm run", "conda run"),
    *("npx", "pnpm exec", "yarn exec", "bundle exec"),
)


def permit_wrapped(drafts: Iterable[Draft], statement: Statement) -> list[Draft]:
    """Returns the rules of a statement, in which an unwanted command is permitted behind each
    wrapper that the statement, or the sentences behind it, name.

    Measures see through wrappers, so `pytest` alone would also forbid `uv run pytest`. They
    also see through folders, so that "Use `bin/rails`, not `rails`" is no rule.
    """
    text = f"{statement.text} {statement.following}"
    return [_permit(draft, text) for draft in drafts if not _differs_by_folder(draft, text)]


def _differs_by_folder(draft: Draft, text: str) -> bool:
    """Whether a text has the forbidden command with the folder of its program as well."""
    if draft.measure.name != "command_not_run" or draft.polarity != "prohibition":
        return False
    pattern = str(draft.measure.arguments["command"])
    codes = [code.strip("`") for code in _CODE.findall(text)]
    return any(
        not re.match(pattern, code) and re.match(pattern, re.sub(r"^\S*/", "", code))
        for code in codes
    )


def _permit(draft: Draft, text: str) -> Draft:
    argument = _UNWANTED.get(draft.measure.name)
    if argument is None or (argument == "command" and draft.polarity != "prohibition"):
        return draft
    pattern = str(draft.measure.arguments[argument])
    wrappers: Sequence[str] = wrappers_in(_without_matches(text, pattern))
    if not wrappers and _BARE.search(text) and " " not in pattern:
        wrappers = _ENVIRONMENTS
    if not wrappers:
        return draft
    names = any_of(re.escape(name).replace("\\ ", " ").replace("\\-", "-") for name in wrappers)
    arguments = {**draft.measure.arguments, argument: rf"(?!{names} ){pattern}"}
    return replace(draft, measure=measure(draft.measure.name, **arguments))


def _without_matches(text: str, pattern: str) -> str:
    """Leaves out the code that is unwanted itself, which may be a wrapper: `npm exec`."""
    return _CODE.sub(lambda code: "" if re.match(pattern, code[0].strip("`")) else code[0], text)
