"""What a suite is made of: a system prompt with its probes and its measure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from holdfast.measures import Measure

CATEGORIES = ("pattern", "multiple_choice", "persona", "memorization", "language")


@dataclass(frozen=True)
class Case:
    """A system prompt, and how to tell whether it is still followed.

    Attributes:
        id: unique within its suite.
        category: one of `CATEGORIES` in the shipped suites, any text in a user's own.
        system_prompt: the instruction under test (s_B in Li et al. 2024, section 3.1).
        probes: questions that show whether it is followed (p_B).
        measure: scores a reply to a probe (f_B).
        follows: replies that keep to the prompt; the measure must score them high.
        breaks: replies that do not; the measure must score them low.
    """

    id: str
    category: str
    system_prompt: str
    probes: tuple[str, ...]
    measure: Measure
    follows: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suite:
    """A set of cases and the starters (a_1) that open their conversations.

    Attributes:
        name: shown in tables and records.
        cases: at least one, in the order that the draws of a run refer to.
        starters: at least one.
        notes: what a reader of the results has to know about the suite.
    """

    name: str
    cases: tuple[Case, ...]
    starters: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of everything in the suite that can change a result."""
        content = {
            "starters": self.starters,
            "cases": [[c.id, c.category, c.system_prompt, c.probes, c.measure.spec] for c in self.cases],
        }
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def generic_starters() -> tuple[str, ...]:
    """The starters of a suite that has none of its own; they suit any system prompt."""
    text = (files("holdfast") / "assets" / "suites" / "starters.txt").read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
