"""The answer to a hook: which rules the model is reminded of, and the words for it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.coding_agents.hook_rules import HookRule

_MAX_REMINDER_CHARACTERS = 9000  # characters of a reminder: agents cut what is longer than 10,000


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a turn broke, and what shows it."""

    rule: HookRule
    evidence: str


@dataclass(frozen=True)
class HookAnswer:
    """The rules that the model is reminded of.

    Args:
        broken: by what the assistant did since the last call of the hook.
        all_rules: those of the suite, if they have left the context; () if they have not.
        problems: sentences about rules that could not be judged, and a state that was not written.
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
        if other_rules:
            which = "The other rules" if self.broken else "The rules"
            lines.append(f"Your context was compacted. {which} still hold:")
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
    """The lines that fit, and how many are left out."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _MAX_REMINDER_CHARACTERS:
            return [*lines[:number], f"(and {len(lines) - number} more lines, left out)"]
    return [*lines]
