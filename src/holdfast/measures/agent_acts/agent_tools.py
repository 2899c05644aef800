"""The tools of coding agents: their names, the fields of their calls, and the scripts they run.

    script_of(ToolCall("write_stdin", {"chars": "git push{enter}"}))  ->  "git push\\n"

Agents name the same things differently: a file is `file_path`, `path` or `targetFile`. The measures
look for all names below.
"""

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.measures.agent_acts.scripts.powershell_scripts import bash_of_powershell
from holdfast.measures.turns import ToolCall

# --- Names of tools

# whole words of a tool's name, as in read_file, ReadFile and mcp__files__read
READS = re.compile(
    r"(?:\b|_|(?<=[a-z])(?=[A-Z]))(?i:read|view|open|list|ls|glob|grep|search|find|fetch|get|cat)"
    r"(?![a-z])"
)
REPLACES = re.compile(r"search_(?:and_)?replace", re.IGNORECASE)  # not a search
INSERTS = re.compile(r"insert|append", re.IGNORECASE)
DELETES = re.compile(r"delete|remove|rename|move", re.IGNORECASE)
COMMITS = re.compile(r"(?:\A|_)git_?commit\Z", re.IGNORECASE)
OPENS_PULL_REQUEST = re.compile(
    r"(?:create|open)[_-]?(?:draft[_-]?)?(?:(?:pull|merge)[_-]?request|pr|mr)\Z", re.IGNORECASE
)
ASKS_USER = re.compile(
    r"\A(?:ask_?user\w*|ask_followup_question|request_user_input|question)\Z", re.IGNORECASE
)
SHOWS_PLAN = re.compile(r"\Aexit_?plan_?mode\Z", re.IGNORECASE)  # for the user to approve it
# the operations of the tools str_replace_based_edit_tool and text_editor, in its argument "command"
EDITOR_COMMANDS = ("view", "create", "write", "str_replace", "insert", "undo_edit")

# --- Names of fields, normalised as by `normalised_fields`

PATHS = (
    *("filepath", "path", "filename", "notebookpath", "targetfile", "relativepath"),
    *("absolutepath", "relativeworkspacepath", "file"),
)
WHOLE_TEXTS = ("content", "contents", "filetext", "filecontent", "newsource")
OLD_TEXTS = ("oldstring", "oldstr", "oldtext", "oldcontent", "search", "find", "targetcontent")
NEW_TEXTS = (
    *("newstring", "newstr", "newtext", "newcontent", "replace", "replacement"),
    *("replacementcontent", "inserttext", "newsource", "newcode", "body", "newbody"),
)
EDIT_LISTS = ("edits", "replacements", "replacementchunks", "operations")
PATCHES = ("diff", "patch", "patchtext", "input")
MESSAGES = ("message", "commitmessage")
TITLES = ("title",)
BODIES = ("body", "description")
BASES = ("base", "targetbranch", "baserefname", "basebranch", "targetrefname")
DRAFTS = ("draft", "isdraft")


def normalised_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call by normalised names: lower case, without _ and -."""
    return {re.sub(r"[_-]", "", str(name)).lower(): value for name, value in arguments.items()}


def first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Returns the first of these fields that is a text; None if no field is."""
    texts = (fields.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str)), None)


# --- Scripts that calls run

_SCRIPTS = ("command", "cmd", "script")  # fields, not normalised
_WORKING_FOLDERS = ("workdir", "workingdirectory", "workingdir", "cwd", "dirpath", "directory")
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh")
_POWERSHELL = re.compile("powershell|pwsh", re.IGNORECASE)
# tools that type text into a shell that is open, the fields of the text, and keys in it
_TYPES = re.compile(
    r"(?:\A|_)(?:write_(?:stdin|bash|powershell)|send_keys|send_input|bash_command|bash_session)\Z"
)
_TYPED_TEXTS = ("chars", "input", "keystrokes", "keys")
_KEY = re.compile(r"\{(enter|return|up|down|left|right|backspace|tab|esc)\}", re.IGNORECASE)
_ENTER = ("enter", "return")
_SUBMITS = "type_submit"  # the action of Inspect's `bash_session` that ends the line


def script_of(call: ToolCall) -> str:
    """Returns the shell script that a call runs, as Bash; "" for a tool that runs none.

    Bash(command="ls") -> "ls"; shell(command=["git", "push"]) -> "git push"
    """
    for name in _SCRIPTS:
        value = call.arguments.get(name)
        if (words := _words_in(value)) is not None:
            return shlex.join(words)
        if isinstance(value, str):
            return _script_of_command(value, call)
    return _typed_text(call) if is_typed(call) else ""


def script_as_written(call: ToolCall) -> str:
    """Returns the script that a call runs, for people: that of `bash -lc` without its quotation.

    shell(command=["bash", "-lc", "git commit -m 'a b'"]) -> "git commit -m 'a b'"
    """
    for name in _SCRIPTS:
        match _words_in(call.arguments.get(name)):
            case [shell, "-c" | "-lc", script] if _SHELL.fullmatch(shell):
                return script
    return script_of(call)


def _words_in(value: object) -> list[str] | None:
    """Returns a list of words; None for any other value."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    return None


def _script_of_command(command: str, call: ToolCall) -> str:
    """Returns the script of a call that has it as a text, with its arguments in `args`."""
    if command in EDITOR_COMMANDS:
        command = ""
    arguments = _words_in(call.arguments.get("args"))
    if command and arguments is not None:
        command = shlex.join([command, *arguments])
    return bash_of_powershell(command) if _POWERSHELL.match(call.name) else command


def is_typed(call: ToolCall) -> bool:
    """Whether a call types text into a program that is open."""
    return _TYPES.search(call.name) is not None


def _typed_text(call: ToolCall) -> str:
    """Returns the text that a call types, with line ends for keys such as `{enter}`."""
    typed = first_text(call.arguments, _TYPED_TEXTS) or ""
    end = "\n" if call.arguments.get("action") == _SUBMITS else ""
    return _KEY.sub(lambda key: "\n" if key[1].lower() in _ENTER else "", typed) + end


def working_folder_of(call: ToolCall) -> str:
    """Returns the folder that a call runs its script in; "" if the call names none."""
    folder = first_text(normalised_fields(call.arguments), _WORKING_FOLDERS)
    path = posixpath.normpath(folder.replace("\\", "/")) if folder else "."
    return "" if path == "." else path
