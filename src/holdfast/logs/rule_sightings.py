"""Where a transcript states a rule, and where a turn breaks it.

For example:

    system     "Never push."     a sighting of the rule
    assistant  `git push`        the breach
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from holdfast.drift.cases import Rule
from holdfast.logs.context import Contexts
from holdfast.logs.dialogs import LoggedTurn
from holdfast.logs.unrecorded_prompts import WITHOUT_PROMPTS
from holdfast.measures.measure_specs import Measure
from holdfast.measures.wording.rule_statements import find_statement
from holdfast.measures.wording.rule_text import RuleText
from holdfast.measures.wording.sentences import Passage, read_sentences
from holdfast.transcripts.transcript import Event, EventKind, Transcript

_MAX_CALLS_TRIED = 50  # each is scored with all calls before it, which takes long in long turns
# the name of a text file, such as AGENTS.md
_DOCUMENT = re.compile(r"\.(?:md|mdx|mdc|markdown|txt|rst|adoc)\b|\.(?:cursor|windsurf|cline)rules")


@dataclass(frozen=True)
class Sighting:
    """A passage of an event that states a rule, or orders something else.

    Args:
        position: the position of the event on the path.
    """

    position: int
    passage: Passage

    def is_after(self, other: "Sighting") -> bool:
        return (self.position, self.passage.index) > (other.position, other.passage.index)


class SearchedTranscript:
    """A transcript in which rules are searched for."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.path = transcript.path
        self.contexts = Contexts(self.path)

    @cached_property
    def prompts(self) -> list[int]:
        """The positions of the system prompts."""
        return [position for position, event in enumerate(self.path) if event.is_prompt]

    def shows_prompts(self, position: int) -> bool:
        """Whether the transcript shows everything that the model was sent up to an event: it has a
        system prompt, its format leaves none out, and the dialog begins with it.
        """
        if self.transcript.format in WITHOUT_PROMPTS or self.transcript.lacks_beginning:
            return False
        return any(self.path[n].text.strip() for n in self.prompts if n < position)

    @cached_property
    def files(self) -> list[str]:
        """For each event, the arguments of the call whose result it is; "" for other events."""
        calls: dict[str, str] = {}
        last = ""
        files = []
        for event in self.path:
            if event.call is not None:
                last = " ".join(map(str, event.call.arguments.values()))
                calls[event.call.id] = last
            is_result = event.kind is EventKind.TOOL_RESULT
            files.append(calls.get(event.call_id, last) if is_result else "")
        return files

    def is_document(self, position: int) -> bool:
        """Whether an event is the content of a text file, by the name of the file."""
        return bool(_DOCUMENT.search(self.files[position]))

    def sightings(self, text: RuleText, rule: Rule) -> list[Sighting]:
        """Where the transcript states a rule. The assistant and tools' output state it only if
        they repeat its text word for word.
        """
        sightings: list[Sighting] = []
        for position, event in enumerate(self.path):
            if not event.text or event.kind is EventKind.ERROR:
                continue
            is_output = event.kind is EventKind.TOOL_RESULT and not self.is_document(position)
            exactly = is_output or event.is_by_assistant
            passages = [text.find_in(event.text, exactly)]
            if not exactly:
                passages.append(find_statement(event.text, rule.measure))
            if event.is_prompt:
                passages.append(_recalled_in(event.text, rule.recalled))
            stating = [passage for passage in passages if passage is not None]
            if stating:
                last = max(stating, key=lambda passage: passage.index)
                sightings.append(Sighting(position, last))
        return sightings


def _recalled_in(prompt: str, recalled: Measure | None) -> Passage | None:
    """The last sentence of a prompt that states a rule, by the measure `recalled` of the rule; None
    if the prompt does not state it, and an empty passage if only the prompt as a whole does.
    """
    if recalled is None or recalled.judged or not recalled.score(prompt).keeps_rule:
        return None
    sentences = [s for s in read_sentences(prompt) if recalled.score(s.text).keeps_rule]
    return sentences[-1].quoted() if sentences else Passage("", 0)


def breach_position(measure: Measure, turn: LoggedTurn, path: Sequence[Event]) -> int:
    """The position of the tool call with which a turn broke a rule, or of the turn's last event if
    no call broke it by itself.
    """
    breaking = breaking_call(measure, turn, path)
    return turn.positions[-1] if breaking is None else breaking


def call_of_whole_turn(measure: Measure, turn: LoggedTurn, path: Sequence[Event]) -> int | None:
    """The position of the tool call since which a turn breaks a rule that only whole turns decide,
    such as the change of a file after which no test ran; None if it is not among the last calls,
    or if the turn would break the rule without calls too.
    """
    if not measure.of_turn:
        return None
    ran = [n for n in turn.positions if n not in turn.refused and path[n].call is not None]
    calls = turn.done.calls
    if len(ran) != len(calls):
        return None
    for count in range(len(calls) - 1, max(-1, len(calls) - 1 - _MAX_CALLS_TRIED), -1):
        score = measure.score_turn(replace(turn.done, calls=calls[:count]))
        if score is None or score.keeps_rule:
            return ran[count]
    return None


def breaking_call(measure: Measure, turn: LoggedTurn, path: Sequence[Event]) -> int | None:
    """The position of the first tool call after which the calls of a turn break a rule; None if
    they never do, so that the turn broke it as a whole or with its text.
    """
    if not measure.of_turn:
        return None

    def is_broken(count: int) -> bool:
        """Whether the first events of the turn break the rule."""
        ran = [position for position in turn.positions[:count] if position not in turn.refused]
        calls = tuple(call for position in ran if (call := path[position].call) is not None)
        score = measure.score_so_far(replace(turn.done, text="", calls=calls))
        return score is not None and not score.keeps_rule

    count = len(turn.positions)
    if not is_broken(count):
        return None
    # a rule that is broken stays broken, so the first event that breaks it can be bisected
    return turn.positions[bisect_left(range(1, count), True, key=is_broken)]
