"""The answer to a hook: the rules that the model is reminded of, and the words for it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.coding_agents.hook_rules import HookRule

# Claude Code cuts a reminder after 10,000 characters, Codex after 10,000 bytes of UTF-8
_MAX_REMINDER_BYTES = 9000


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a turn broke, and the evidence of it."""

    rule: HookRule
    evidence: str


@dataclass(frozen=True)
class HookAnswer:
    """The rules of which the model is reminded.

    Args:
        event: the name of the hook's event, which the output repeats.
        broken: the rules that the assistant broke since the last call of the hook.
        all_rules: all rules of the suite, if they have left the context; () if they have not.
        problems: sentences for the user, about rules that could not be judged and the like.
    """

    event: str
    broken: tuple[BrokenRule, ...] = ()
    all_rules: tuple[HookRule, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words for the model; "" if there is nothing to say."""
        lines: list[str] = []
        if self.broken:
            lines.append("You have just broken these rules; keep them from here on:")
            lines += [f"- {item.rule.text} ({item.evidence})" for item in self.broken]
        broken_ids = {item.rule.id for item in self.broken}
        other_rules = [rule for rule in self.all_rules if rule.id not in broken_ids]
        if other_rules and self.broken:
            lines.append("Your context was compacted. The other rules still hold:")
        elif other_rules:
            lines.append("Your context was compacted. The rules still hold:")
        lines += [f"- {rule.text}" for rule in other_rules]
        return "\n".join(_lines_that_fit(lines))

    @property
    def output(self) -> str:
        """The JSON that the hook prints, which Claude Code, Codex and Gemini CLI read alike."""
        if not self.text:
            return ""
        answer = {"hookEventName": self.event, "additionalContext": self.text}
        return json.dumps({"hookSpecificOutput": answer})


def _lines_that_fit(lines: Sequence[str]) -> list[str]:
    """As many lines as fit, and a line that says how many are left out."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line.encode("utf-8", "replace")) + 1
        if size > _MAX_REMINDER_BYTES:
            return [*lines[:number], f"(and {len(lines) - number} more lines, left out)"]
    return [*lines]
