"""The kinds and polarities of rules, by which results are grouped.

A model may lose some kinds of rules sooner than others.
"""

from typing import Literal

RuleKind = Literal[
    "closing",
    "opening",
    "length",
    "format",
    "language",
    "identity",
    "forbidden",
    "refusal",
    "secret",
    "address",
    "step-first",
    "conditional",
    "tone",
    "tool-first",
    "command",
    "file",
    "commit",
    "code",
]
Polarity = Literal["requirement", "prohibition", "gate"]

KINDS: dict[RuleKind, str] = {
    "closing": "the words or the kind of sentence that every reply ends with",
    "opening": "the words that every reply begins with",
    "length": "the most words, sentences or items of a reply",
    "format": "JSON, a list, plain text or another layout",
    "language": "the language of the reply, whatever the user writes in",
    "identity": "the name, the company or the role that the bot speaks as",
    "forbidden": "a word or a topic that never occurs",
    "refusal": "what to say to requests outside the bot's scope",
    "secret": "something in the prompt that is not to be passed on",
    "address": "how the user is addressed",
    "step-first": "something to ask for or to do before answering",
    "conditional": "what to say if the user asks a certain thing",
    "tone": "a manner of writing: emojis, exclamation marks, contractions",
    "tool-first": "a tool that is called before certain questions are answered",
    "command": "a shell command that is run, or never run",
    "file": "a file that is left alone",
    "commit": "the message of a commit",
    "code": "what is written into files",
}
POLARITIES: dict[Polarity, str] = {
    "requirement": "something that a reply must have",
    "prohibition": "something that a reply must not have",
    "gate": "something that must happen before an answer is given",
}
