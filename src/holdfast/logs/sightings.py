"""Where a transcript states a rule, and which of its events are text files that were read."""

import re
from dataclasses import dataclass
from functools import cached_property

from holdfast.drift.cases import Rule
from holdfast.logs.context import WITHOUT_PROMPTS, Contexts
from holdfast.measures.measure_specs import Measure
from holdfast.measures.orders import Passage, passage_of, read_sentences
from holdfast.measures.rule_statements import find_statement
from holdfast.measures.rule_text import RuleText
from holdfast.transcripts.transcript import Kind, Transcript

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
        system prompt, and its format leaves none out.
        """
        if self.transcript.format in WITHOUT_PROMPTS:
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
            is_result = event.kind is Kind.TOOL_RESULT
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
            if not event.text or event.kind is Kind.ERROR:
                continue
            is_output = event.kind is Kind.TOOL_RESULT and not self.is_document(position)
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
    return passage_of(sentences[-1]) if sentences else Passage("", 0)
