"""Questions that an agent asks with Claude Code's tool, and the results with their answers."""

CLOSING = " You can now continue with the user's answers in mind."


def ask(*questions: str) -> dict:
    """The arguments of a call that asks these questions."""
    return {"questions": [{"question": question, "header": "Next"} for question in questions]}


def answered(**answers: str) -> str:
    """The result of the call; the names stand for the questions A? and B?."""
    pairs = (f'"{name}?"="{answer}"' for name, answer in answers.items())
    return f"User has answered your questions: {', '.join(pairs)}.{CLOSING}"
