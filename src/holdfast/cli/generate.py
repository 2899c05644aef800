"""`holdfast generate`: answer one chat."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from holdfast.cli.options import add_model, load_model
from holdfast.errors import UsageError


def add_parser(commands) -> None:
    generate = commands.add_parser(
        "generate", help="answer one chat", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Answers one chat, steered by methods that hold on to its system prompt, or to the parts that are emphasised.",
        epilog="examples:\n  holdfast generate --system \"Reply in French.\" --user \"Do you like the garden?\" --method split-softmax:exponent=0.5\n"
        "  holdfast generate --user \"Anna is a nurse. Name her job in JSON.\" --emphasis \"in JSON\" --method pasta:alpha=0.01,heads=heads.json\n"
        "  holdfast generate --user \"Anna is a nurse. Name her job *in JSON*.\" --marks --method boost:factor=4",
    )
    add = generate.add_argument
    add_model(add)
    add("--system", metavar="TEXT", help="the system prompt (default: none)")
    add("--user", metavar="TEXT", required=True, help="the user's message")
    add("--emphasis", action="append", nargs="+", metavar=("TEXT", "OCCURRENCE"), help="hold on to this text in place of the system prompt; repeatable; its occurrence, from 1, where it is in the chat more than once")
    add("--marks", action="store_true", help="*like this* in a message is emphasis; \\* is an asterisk")
    add("--method", default="none", metavar="SPEC", help="split-softmax:exponent=0.5, ... (default: none)")
    add("--system-as", choices=("role", "first-user"), default="role", help="where the system prompt stands (default: %(default)s)")
    add("--temperature", type=float, default=1.0, help="0 takes the likeliest token (default: %(default)s)")
    add("--top-p", type=float, default=0.9, help="default: %(default)s")
    add("--max-new-tokens", type=int, default=400, help="default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    generate.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import methods
    from holdfast.chat import Request, Sampling

    messages = [{"role": "system", "content": arguments.system}] if arguments.system else []
    messages.append({"role": "user", "content": arguments.user})
    request = Request(
        messages, methods.parse(arguments.method), Sampling(arguments.temperature, arguments.top_p, arguments.max_new_tokens), arguments.seed,
        system_as=arguments.system_as, emphasis=tuple(map(_emphasis, arguments.emphasis or ())), marks=arguments.marks,
    )
    print(load_model(arguments).generate_batch([request])[0].text)


def _emphasis(words: Sequence[str]) -> str | tuple[str, int]:
    """What one --emphasis gives."""
    if len(words) == 1:
        return words[0]
    if len(words) > 2 or not words[1].isdecimal():
        raise UsageError(f"--emphasis takes a text and at most its occurrence, not {' '.join(words)!r}; put the text into quotes, and repeat the option.")
    return words[0], int(words[1])
