"""Reads the pull requests that an agent opens, with `gh`, `glab` or a tool.

For example:

    gh pr create --title "fix: total" --draft
    -> PullRequest(title="fix: total", body=None, draft=True, base=None)
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.agent_tools import (
    BASES,
    BODIES,
    DRAFTS,
    OPENS_PULL_REQUEST,
    TITLES,
    first_text,
    normalised_fields,
)
from holdfast.measures.agent_acts.commands.command_options import options_of
from holdfast.measures.agent_acts.written_texts import WrittenTexts, text_of_argument, text_of_file
from holdfast.measures.turns import AssistantTurn, ToolCall

# options with a value, and the letter of each; "" for none
_GH_OPTIONS = {
    "--title": "t",
    "--body": "b",
    "--body-file": "F",
    "--base": "B",
    "--head": "H",
    "--assignee": "a",
    "--label": "l",
    "--milestone": "m",
    "--project": "p",
    "--reviewer": "r",
    "--template": "T",
    "--repo": "R",
    "--recover": "",
}
_GH_FLAGS = {"--draft": "d", "--fill": "f", "--web": "w"}
_GLAB_OPTIONS = {
    "--title": "t",
    "--description": "d",
    "--target-branch": "b",
    "--source-branch": "s",
    "--assignee": "a",
    "--label": "l",
    "--milestone": "m",
    "--reviewer": "",
    "--repo": "R",
    "--head": "H",
    "--related-issue": "i",
}
_GLAB_FLAGS = {"--fill": "f", "--yes": "y", "--web": "w"}
_API_OPTIONS = {"--raw-field": "f", "--field": "F", "--method": "X", "--header": "H"}
_API_PATH = re.compile(r"repos/[^/]+/[^/]+/pulls\Z")  # repos/acme/shop/pulls
_DRAFT_TITLE = re.compile(r"\s*(\[draft\]|\(draft\)|draft:)", re.IGNORECASE)  # "Draft: fix"


@dataclass(frozen=True)
class PullRequest:
    """A pull request that an agent opens; None for a part that the log does not show."""

    title: str | None
    body: str | None
    draft: bool
    base: str | None


def pull_requests_in(turn: AssistantTurn) -> Iterator[PullRequest]:
    """Yields the pull requests that a turn opens."""
    texts = WrittenTexts(turn.earlier)
    for action in actions_of(turn.calls):
        if action.tool_call is None:
            request = _read_command(action, texts)
        else:
            request = _read_tool_call(action.tool_call)
        if request is not None:
            yield request
        texts.note(action.edits)


def _read_command(action: Action, texts: WrittenTexts) -> PullRequest | None:
    """Returns the pull request that a command opens; None if it opens none."""
    words = action.command.arguments
    if words[:3] in (("gh", "pr", "create"), ("gh", "pr", "new")):
        return _read_gh(action, texts)
    if words[:3] in (("glab", "mr", "create"), ("glab", "mr", "new")):
        return _read_glab(action, texts)
    if words[:2] == ("gh", "api"):
        return _read_gh_api(words)
    return None


def _read_gh(action: Action, texts: WrittenTexts) -> PullRequest:
    options = options_of(action.command.arguments[3:], _GH_OPTIONS, _GH_FLAGS)
    body = text_of_argument(options.last("--body"), texts)
    if (file := options.last("--body-file")) is not None:
        body = text_of_file(file, action, texts)
    return PullRequest(
        title=text_of_argument(options.last("--title"), texts),
        body=body,
        draft="--draft" in options.flags,
        base=options.last("--base"),
    )


def _read_glab(action: Action, texts: WrittenTexts) -> PullRequest:
    options = options_of(action.command.arguments[3:], _GLAB_OPTIONS, _GLAB_FLAGS)
    title = text_of_argument(options.last("--title"), texts)
    body = text_of_argument(options.last("--description"), texts)
    if body == "-":  # glab opens an editor
        body = None
    return PullRequest(
        title=title,
        body=body,
        draft=bool(options.flags & {"--draft", "--wip"}) or _is_draft_title(title),
        base=options.last("--target-branch"),
    )


def _read_gh_api(words: Sequence[str]) -> PullRequest | None:
    """Returns the pull request that `gh api` opens; None for any other call of the API."""
    options = options_of(words[2:], _API_OPTIONS)
    fields = options.values.get("--raw-field", []) + options.values.get("--field", [])
    values: dict[str, str] = {}
    for field in fields:
        name, _, value = field.partition("=")
        values[name] = value
    path = next(iter(options.rest), "")
    if not _API_PATH.search(path) or "head" not in values:
        return None
    body = values.get("body", "")
    return PullRequest(
        title=values.get("title"),
        body=None if body.startswith("@") else body,  # @ names a file
        draft=values.get("draft") == "true",
        base=values.get("base"),
    )


def _read_tool_call(call: ToolCall) -> PullRequest | None:
    """Returns the pull request that a tool opens; None for any other tool."""
    if not OPENS_PULL_REQUEST.search(call.name):
        return None
    fields = normalised_fields(call.arguments)
    title = first_text(fields, TITLES)
    return PullRequest(
        title=title,
        body=first_text(fields, BODIES) or "",
        draft=any(fields.get(name) is True for name in DRAFTS) or _is_draft_title(title),
        base=first_text(fields, BASES),
    )


def _is_draft_title(title: str | None) -> bool:
    """Whether a title marks a draft, as GitLab reads it."""
    return bool(title and _DRAFT_TITLE.match(title))
