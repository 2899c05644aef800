"""Writes synthetic logs of any size: sessions of Claude Code and Codex, chats, and spans.

Texts are drawn from word lists with a seeded generator; the fields are those that the programs
write (tests/data/logs has one small file of each). About one turn in ten breaks a rule of `RULES`.

    python benchmarks/synthetic_logs.py FOLDER MEGABYTES
"""

from __future__ import annotations

import json
import random
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RULES = r"""
cases:
  - id: shop
    system_prompt: Work on the shop.
    rules:
      - id: no-force-push
        measure: {name: command_not_run, command: 'git push( \S+)* (--force|-f)(?!\S)'}
      - id: migrations
        measure: {name: file_not_touched, path: 'migrations/*'}
      - id: short
        measure: {name: at_most_sentences, count: 6}
      - id: fenced-language
        when: {reply: '```'}
        measure: {regex: '\A((?!```).)*(```\w[^\n]*\n((?!```).)*```((?!```).)*)*\Z', flags: s}
      - id: no-emoji
        measure: {regex: '\A[^\p{Extended_Pictographic}]*\Z'}
"""
TIME = "2026-09-14T10:00:00.000Z"
SYSTEM_PROMPT = "Work on the shop."
_NOUNS = "cart order price test file branch page route query cache index button form user".split()
_VERBS = "checks reads writes returns keeps opens moves sorts counts shows calls".split()
_RESULT_CHARACTERS = 6_000  # of a tool's result, on average
_COMMANDS = (
    *("ls src", "make test", "git status", "rg -n total src | head -40", "git diff --stat"),
    *("python -m pytest tests/test_cart.py -q", "cd app && npm run build", "git push origin main"),
)
_ENDLESS = 1_000_000  # turns, more than any file has
_FORBIDDEN = "git push --force origin main"


class TextSource:
    """Draws the texts of logs: sentences, replies, commands, results of tools, and ids."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        lines = [f"    {self.sentence()}  # {number}" for number in range(4_000)]
        self.listing = "\n".join(lines)  # from which results are cut

    def sentence(self) -> str:
        draw = self.random.choice
        return f"The {draw(_NOUNS)} {draw(_VERBS)} the {draw(_NOUNS)} of the {draw(_NOUNS)}."

    def question(self) -> str:
        return f"Please look at the {self.random.choice(_NOUNS)}. {self.sentence()}"

    def reply(self) -> str:
        """One in ten is too long; some have code, or an emoji, which a rule forbids."""
        count = 9 if self.random.random() < 0.1 else self.random.randint(1, 5)
        text = " ".join(self.sentence() for _ in range(count))
        if self.random.random() < 0.2:
            text += f"\n```python\n{self.result()[:300]}\n```"
        return text + (" 🎉" if self.random.random() < 0.03 else "")

    def command(self) -> str:
        return _FORBIDDEN if self.random.random() < 0.01 else self.random.choice(_COMMANDS)

    def result(self) -> str:
        """A part of a file, as a tool shows it."""
        size = int(self.random.expovariate(1 / _RESULT_CHARACTERS))
        start = self.random.randrange(len(self.listing))
        return self.listing[start : start + size]

    def id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))


def claude_code(texts: TextSource, turns: int) -> Iterator[dict[str, Any]]:
    """A session: questions, commands with their output, and answers, an event per block."""
    session = texts.id()
    last_event: str | None = None

    def event(role: str, content: Any, **fields: Any) -> dict[str, Any]:
        """A message after the last event."""
        nonlocal last_event
        event_before = last_event
        last_event = texts.id()
        message = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 12, "output_tokens": 90}
            message |= {"id": f"msg_{texts.id()}", "model": "claude-sonnet-4-5", "usage": usage}
        return {
            "parentUuid": event_before,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ada/shop",
            "sessionId": session,
            "version": "2.0.60",
            "gitBranch": "main",
            "type": role,
            "message": message,
            "uuid": last_event,
            "timestamp": TIME,
            **fields,
        }

    for _ in range(turns):
        yield event("user", texts.question())
        for _ in range(texts.random.randint(1, 8)):
            call = f"toolu_{texts.id()}"
            arguments = {"command": texts.command()}
            use = {"type": "tool_use", "id": call, "name": "Bash", "input": arguments}
            yield event("assistant", [use])
            output = texts.result()
            result = {"type": "tool_result", "tool_use_id": call, "content": output}
            details = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            yield event("user", [result], toolUseResult=details)
        yield event("assistant", [{"type": "text", "text": texts.reply()}])


def codex(texts: TextSource, turns: int) -> Iterator[dict[str, Any]]:
    """A rollout: items of the Responses API, and events that repeat the messages."""

    def line(event: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": TIME, "type": event, "payload": payload}

    yield line("session_meta", id=texts.id(), cwd="/home/ada/shop", instructions=SYSTEM_PROMPT)
    for _ in range(turns):
        question = texts.question()
        content = [{"type": "input_text", "text": question}]
        yield line("response_item", type="message", role="user", content=content)
        yield line("event_msg", type="user_message", message=question, kind="plain")
        for _ in range(texts.random.randint(1, 8)):
            call = f"call_{texts.id()}"
            arguments = json.dumps({"command": ["bash", "-lc", texts.command()]})
            item = {"type": "function_call", "name": "shell", "call_id": call}
            yield line("response_item", **item, arguments=arguments)
            output = json.dumps({"output": texts.result(), "metadata": {"exit_code": 0}})
            yield line("response_item", type="function_call_output", call_id=call, output=output)
        reply = texts.reply()
        content = [{"type": "output_text", "text": reply}]
        yield line("response_item", type="message", role="assistant", content=content)
        yield line("event_msg", type="agent_message", message=reply)


def openai(texts: TextSource, turns: int) -> Iterator[dict[str, Any]]:
    """A chat, on one line."""
    messages = [{"role": "system", "content": SYSTEM_PROMPT}]
    for _ in range(turns):
        messages.append({"role": "user", "content": texts.question()})
        messages.append({"role": "assistant", "content": texts.reply()})
    yield {"messages": messages}


def otel(texts: TextSource, turns: int) -> Iterator[dict[str, Any]]:
    """A span for each call of a model, each with the whole dialog so far."""
    session = texts.id()
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        parts = [{"type": "text", "content": texts.question()}]
        messages.append({"role": "user", "parts": parts})
        answer = {"role": "assistant", "parts": [{"type": "text", "content": texts.reply()}]}
        instructions = [{"type": "text", "content": SYSTEM_PROMPT}]
        yield {
            "name": "chat gpt-5-mini",
            "context": {"trace_id": f"0x{texts.random.getrandbits(128):032x}", "span_id": "0x10"},
            "start_time": f"2026-09-14T10:{turn:02d}:00Z",
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.conversation.id": session,
                "gen_ai.system_instructions": json.dumps(instructions),
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.output.messages": json.dumps([{**answer, "finish_reason": "stop"}]),
            },
        }
        messages.append(answer)


@dataclass(frozen=True)
class LogFormat:
    """How logs of a format are written."""

    lines_of: Callable[[TextSource, int], Iterator[dict[str, Any]]]  # of a session of so many turns
    min_turns: int
    max_turns: int
    max_bytes: float  # of a file
    one_per_file: bool  # whether a file is one session


FORMATS = {
    "claude-code": LogFormat(claude_code, 20, 120, 8e6, one_per_file=True),
    "codex": LogFormat(codex, 20, 120, 8e6, one_per_file=True),
    "openai": LogFormat(openai, 2, 10, 128e6, one_per_file=False),
    "otel": LogFormat(otel, 2, 10, 64e6, one_per_file=False),
}


def write_file(path: Path, name: str, size: float, seed: int) -> int:
    """Writes sessions of random length until a file has `size` bytes; returns its bytes.

    A coding agent's file has one session, which may end before `size` bytes.

    Args:
        name: of the format, one of `FORMATS`.
    """
    log_format = FORMATS[name]
    texts = TextSource(seed)
    written = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            turns = texts.random.randint(log_format.min_turns, log_format.max_turns)
            for value in log_format.lines_of(texts, turns):
                written += file.write(json.dumps(value) + "\n")  # ASCII: characters are bytes
            if log_format.one_per_file:
                break
    return written


def write_session(path: Path, name: str, size: float, seed: int) -> None:
    """Writes a single session that continues until the file has `size` bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for value in FORMATS[name].lines_of(TextSource(seed), _ENDLESS):
            written += file.write(json.dumps(value) + "\n")
            if written >= size:
                break


def write_mixed(folder: Path, size: float, seed: int = 0) -> int:
    """Writes about `size` bytes of logs into a folder, a quarter in each format."""
    total = 0
    for number, (name, log_format) in enumerate(FORMATS.items()):
        written = 0
        count = 0
        while written < size / 4:
            path = folder / name / f"{count:05d}.jsonl"
            limit = min(log_format.max_bytes, size / 4 - written)
            written += write_file(path, name, limit, seed + 10_000 * number + count)
            count += 1
        total += written
    return total


if __name__ == "__main__":
    _, folder, megabytes = sys.argv
    print(f"{write_mixed(Path(folder), float(megabytes) * 1e6):,} bytes")
