"""Tool calls of coding agents, and turns that consist of them."""

from holdfast.measures.turns import AssistantTurn, ToolCall


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command})


def write(path: str, content: str = "x\n") -> ToolCall:
    return ToolCall("Write", {"file_path": path, "content": content})


def edit(path: str, old: str = "a", new: str = "b") -> ToolCall:
    return ToolCall("Edit", {"file_path": path, "old_string": old, "new_string": new})


def ran(*commands: str) -> AssistantTurn:
    """A turn that runs commands."""
    return AssistantTurn("", tuple(map(bash, commands)))


def wrote(path: str, content: str = "x = 1", *commands: str) -> AssistantTurn:
    """A turn that writes a file, and then runs commands."""
    return AssistantTurn("", (write(path, content), *map(bash, commands)))


def asked(user: str, *commands: str) -> AssistantTurn:
    """A turn that runs commands after these words of the user."""
    return AssistantTurn("", tuple(map(bash, commands)), user=user)


def said(text: str) -> AssistantTurn:
    """A turn with a text alone."""
    return AssistantTurn(text)
