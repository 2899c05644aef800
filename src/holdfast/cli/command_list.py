"""The commands, by the groups of `holdfast --help`.

Each group has a folder beside this file: the commands under "Look up" are in `look_up`. A command's
module is imported only when the command is typed, as importing all of them takes a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from holdfast.cli.shared.command import Command


class Entry(NamedTuple):
    """A command in the list that `holdfast --help` prints."""

    module: str  # below `holdfast.cli`; its `COMMAND` is the command
    summary: str


GROUPS = {
    "Measure": {
        "try": Entry("measure.first_run", "measure a model, or your own bot, for two minutes"),
        "drift": Entry("measure.drift", "measure how a model drifts from its system prompts"),
        "check": Entry("measure.check", "test whether system prompts hold, for CI"),
    },
    "Logs": {
        "suite": Entry("logs.suite", "draft a suite from a rules file, or test a suite's measures"),
        "logs": Entry("logs.logs", "score logs of real dialogs by the rules of their prompts"),
        "remind": Entry("logs.remind", "remind a coding agent of the rules that it just broke"),
    },
    "Results": {
        "report": Entry("results.report", "write one page about one or more runs"),
        "compare": Entry("results.compare", "compare runs of two models, prompts or versions"),
        "map": Entry("results.map", "see which kinds of rules are kept, and which are lost"),
        "export": Entry("results.export", "write a run as a table, for other tools"),
        "join": Entry("results.join", "join the shards of a run in one folder"),
    },
    "Explain": {
        "precedent": Entry(
            "explain.precedent",
            "see whether a model follows its system prompt or its own earlier replies",
        ),
        "trace": Entry("explain.trace", "see how attention to the prompt decays"),
        "geometry": Entry(
            "explain.geometry", "see how a model's hidden states spread as a dialog grows"
        ),
    },
    "Fix": {
        "calibrate": Entry(
            "fix.calibrate", "measure the gain and the cost of each fix, and recommend one"
        ),
        "profile": Entry("fix.profile", "find the attention heads that are worth steering"),
        "fit": Entry("fix.fit", "learn from examples the directions that some methods need"),
    },
    "Serve": {
        "serve": Entry(
            "serve.serve", "serve a model to OpenAI's clients, with steering per request"
        ),
        "proxy": Entry(
            "serve.proxy",
            "forward a client's requests to its server, add reminders, score replies",
        ),
        "chat": Entry("serve.chat", "talk with a model in the terminal"),
        "generate": Entry("serve.generate", "answer one chat"),
    },
    "Papers": {
        "reproduce": Entry(
            "papers.reproduce", "reproduce a paper's figures on your model, and judge its claims"
        ),
        "tasks": Entry(
            "papers.tasks", "run the benchmark tasks of the PASTA paper, with prompts or steering"
        ),
        "lm-eval": Entry("papers.lm_eval", "run lm-evaluation-harness, with --model holdfast"),
    },
    "Look up": {
        "methods": Entry("look_up.methods", "list the steering methods"),
        "measures": Entry(
            "look_up.measures", "list the measures, and the word lists that they know"
        ),
        "docs": Entry("look_up.docs", "read the documentation, in the terminal or in a browser"),
        "completion": Entry(
            "look_up.completion", "print a script that completes commands in a shell"
        ),
    },
}
ENTRIES = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def command_named(name: str) -> Command[Any]:
    """Imports a command by the name that is typed."""
    module = import_module(f"holdfast.cli.{ENTRIES[name].module}")
    command: Command[Any] = module.COMMAND
    return command


def list_of_commands() -> str:
    """The commands by group, each with its summary, one per line."""
    width = max(len(name) for name in ENTRIES)
    lines: list[str] = []
    for group, entries in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<{width}}  {entry.summary}" for name, entry in entries.items()]
    return "\n".join(lines[1:])
