"""Files of coding agents: Cline's tasks, VS Code's chats, Cursor's databases, and other formats."""

import json
import sqlite3
import zipfile

import pytest
from log_variations import text

# Cline's tasks


CLINE_ENVIRONMENT = text("<environment_details>\n# Visible files\nprice.md\n</environment_details>")
CLINE_TASK = {"role": "user", "content": [text("<task>\nList it.\n</task>"), CLINE_ENVIRONMENT]}
CLINE_COMMAND = (
    "I will look.\n\n<execute_command>\n<command>ls src</command>\n"
    "<requires_approval>false</requires_approval>\n</execute_command>"
)
CLINE_RESULT = [
    text("[execute_command for 'ls src'] Result:"),
    text("Output:\ncart.py"),
    CLINE_ENVIRONMENT,
]
CLINE_COMPLETION = "<attempt_completion>\n<result>\nOne file.\n</result>\n</attempt_completion>"
CLINE_FEEDBACK = [
    text("[attempt_completion] Result:"),
    text("The user has feedback:\n<feedback>\nAnd the tests?\n</feedback>"),
    CLINE_ENVIRONMENT,
]


def cline_says(words, **fields):
    return {"role": "assistant", "content": [text(words)], **fields}


def user_says_to_cline(*blocks, **fields):
    return {"role": "user", "content": list(blocks), **fields}


# VS Code's chats


def vs_code_request(words, *response, **fields):
    return {"requestId": words, "message": {"text": words}, "response": list(response), **fields}


def vs_code_chat(*requests, **fields):
    return {
        "version": 3,
        "responderUsername": "GitHub Copilot",
        "requests": list(requests),
        **fields,
    }


# Sessions of Copilot CLI and opencode


def copilot_event(number, kind, agent=None, **data):
    of = {"agentId": agent} if agent else {}
    return {
        "type": kind,
        "id": f"e{number}",
        "parentId": None,
        "timestamp": "t",
        "data": data,
        **of,
    }


def opencode_message(number, role, *parts, **info):
    names = {"id": f"msg_{number}", "sessionID": "ses_1", "role": role}
    return {"info": {**names, **info}, "parts": list(parts)}


def opencode_session(*messages, **info):
    return {"info": {"id": "ses_1", **info}, "messages": list(messages)}


OPENCODE_TURN = (
    opencode_message(1, "user", text("Hi.")),
    opencode_message(2, "assistant", text("Hello.")),
)


# aider's histories


AIDER_HISTORY = """
# aider chat started at 2026-09-14 10:00:00

> Aider v0.86.1  

#### /add cart.py  
#### Rename the cart.  
#### Twice.  

I rename it:

```
# a comment
> a quotation
```

> Applied edit to cart.py  
> Commit 1a2b3c4 refactor: rename the cart  

#### /ask Why?  

Because.

> Add file to the chat? (Y)es/(N)o [Yes]: y  
> ^C KeyboardInterrupt  

# aider chat started at 2026-09-15 10:00:00

#### Hi.  

Hello.
"""


# Cursor's databases


def cursor_database(path, rows):
    with sqlite3.connect(path) as database:
        for table in ("ItemTable", "cursorDiskKV"):
            database.execute(f"CREATE TABLE {table} (key TEXT, value BLOB)")
        for key, value in rows.items():
            table = "cursorDiskKV" if ":" in key else "ItemTable"
            value = value if isinstance(value, str) else json.dumps(value)
            database.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, value.encode()))
    database.close()
    return path


# Inspect's logs


def inspect_sample(number, epoch=1, **fields):
    assistant_messages = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": f"Hello {number}."},
    ]
    return {"id": number, "epoch": epoch, "input": "Hi.", "messages": assistant_messages, **fields}


INSPECT_HEADER = {"version": 2, "status": "success", "eval": {"task": "shop"}}


def compress(content):
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor().compress(content)


def inspect_archive(path, zstandard=False):
    """An `.eval` file; with zstandard, as Inspect packs its members."""
    members = {"header.json": INSPECT_HEADER, "samples/1_epoch_1.json": inspect_sample(1)}
    members |= {"samples/1_epoch_2.json": inspect_sample(1, 2), "summaries.json": []}
    with zipfile.ZipFile(path, "w") as file:
        for name, value in members.items():
            content = json.dumps(value).encode()
            file.writestr(name, compress(content) if zstandard else content)
    if zstandard:  # the method in the headers of the members
        content = path.read_bytes()
        for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            parts = content.split(mark)
            at = place - len(mark)
            parts[1:] = [part[:at] + b"\x5d\x00" + part[at + 2 :] for part in parts[1:]]
            content = mark.join(parts)
        path.write_bytes(content)
    return path
