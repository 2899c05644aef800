"""`holdfast drift`: measure drift in self-chats."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.options import (
    add_model,
    add_report,
    command_line,
    is_url,
    load_model,
    page_option,
    page_path,
)
from holdfast.cli.progress import Bar
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.drift import Settings, Suite

EXAMPLES = """examples:
  holdfast drift                               the model in the package on its own prompts
  holdfast drift --method none --method split-softmax:exponent=0.5 --out runs/fix
  holdfast drift --model meta-llama/Llama-3.2-1B-Instruct --suite core --rounds 8
  holdfast drift --model http://localhost:8000/v1 --endpoint-model my-model --suite core
  holdfast drift --suite li2024:hundred_system_prompts.py --scoring released
  holdfast drift --suite my_bot.yaml --persona "You are Ada, hungry and in a hurry."

Repeating a command resumes it; with more --conversations or another --method it extends the run.
Methods are listed by `holdfast methods`, measures by `holdfast measures`."""


def add_parser(commands) -> None:
    drift = commands.add_parser(
        "drift",
        help="measure drift in self-chats",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Two copies of a model talk under different system prompts; at every round a probe"
            " asks, and a measure scores, whether the agent still follows its own (stability) or"
            " follows the other's (adoption). Li et al. 2024, Figure 3."
        ),
    )
    add = drift.add_argument
    add_model(add)
    add(
        "--suite",
        default="starter",
        metavar="starter|core|li2024:PATH|FILE.yaml",
        help="system prompts and probes (default: %(default)s); li2024:hub reads the hub",
    )
    add(
        "--scoring",
        choices=("strict", "released"),
        default="strict",
        help="of li2024: mended, or as published (default: %(default)s)",
    )
    add("--allow-code", action="store_true", help="let the suite name Python functions as measures")
    add("--rounds", type=int, default=8, help="default: %(default)s")
    add("--conversations", type=int, default=200, help="default: %(default)s")
    add(
        "--method",
        action="append",
        metavar="SPEC",
        help=(
            "none, split-softmax:exponent=0.5, ...; repeat to compare on the same pairs (default:"
            " none)"
        ),
    )
    add(
        "--user-prompt",
        choices=("auto", "suite", "persona", "empty"),
        default="auto",
        help=(
            "of the user model: another prompt of the suite, a persona, or none (default: personas "
            "where there are any, else the suite where it has two prompts)"
        ),
    )
    add(
        "--persona",
        action="append",
        metavar="TEXT",
        help=(
            "a system prompt of the user model, in place of the suite's personas; repeat for"
            " several"
        ),
    )
    add(
        "--pairs",
        choices=("random", "balanced", "all"),
        default="random",
        help=(
            "drawn; all ordered pairs, each prompt the agent equally often from the start; or all, "
            "prompt after prompt (default: %(default)s)"
        ),
    )
    add(
        "--baseline",
        action="store_true",
        help=(
            "ask the probes without a system prompt too, which shows the measures that tell nothing"
        ),
    )
    add(
        "--system-as",
        choices=("role", "first-user"),
        default="role",
        help="where the system prompt stands (default: %(default)s)",
    )
    add("--probes-per-round", type=int, default=1, help="default: %(default)s")
    add(
        "--probe-at",
        choices=("in-place", "after-round"),
        default="in-place",
        help="of the user's turn, or after a full round (default: %(default)s)",
    )
    add("--no-adoption", action="store_true", help="do not ask the user's probes")
    add("--temperature", type=float, default=1.0, help="default: %(default)s")
    add("--top-p", type=float, default=0.9, help="default: %(default)s")
    add("--max-new-tokens", type=int, default=400, help="per reply (default: %(default)s)")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--batch", type=int, default=48, help="conversations side by side (default: %(default)s)")
    add(
        "--replicas",
        type=int,
        metavar="N",
        help=(
            "processes that conversations are shared out to (default: of a small model on the CPU,"
            " as many as there are processors, with at least 8 conversations each; else 1)"
        ),
    )
    add(
        "--out",
        type=Path,
        help=(
            "the run's folder (default: runs/drift-MODEL-SUITE-SEED, and what differs from the"
            " defaults)"
        ),
    )
    add_report(add)
    drift.set_defaults(run=run, default=drift.get_default)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import drift, methods, report
    from holdfast.analysis.endings import count_endings
    from holdfast.report.sentences import ending_lines
    from holdfast.sampling import Sampling

    settings = drift.Settings(
        rounds=arguments.rounds,
        conversations=arguments.conversations,
        seed=arguments.seed,
        sampling=Sampling(arguments.temperature, arguments.top_p, arguments.max_new_tokens),
        user_prompt=arguments.user_prompt,
        system_as=arguments.system_as,
        probes_per_round=arguments.probes_per_round,
        probe_at=arguments.probe_at,
        adoption=not arguments.no_adoption,
        pairs=arguments.pairs,
        batch=arguments.batch,
    )
    chosen = [methods.parse(spec) for spec in arguments.method or ["none"]]
    # an endpoint says its model's name, after which the folder is called; a local model loads last
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    out = arguments.out or Path("runs") / _folder_name(arguments)
    page = page_path(arguments, out)
    suite = drift.load_suite(
        arguments.suite, scoring=arguments.scoring, allow_code=arguments.allow_code
    )
    suite, settings = _with_user_model(suite, settings, arguments.persona)
    model = endpoint or load_model(arguments)
    _tell_foreign_files(arguments.method or (), model)
    arguments.on_interrupt = (
        f"Finished conversations are kept in {out}; repeat the command to go on."
    )
    title = _title(suite, settings, len(chosen))
    with Bar(len(chosen) * settings.conversations * settings.rounds, title=title) as bar:
        run = drift.run(
            model,
            suite,
            out,
            settings,
            chosen,
            command=command_line(),
            progress=bar,
            replicas=arguments.replicas,
        )
    if arguments.baseline:
        with Bar(settings.conversations, "probe") as bar:
            drift.ask_baseline(model, suite, out, settings, command=command_line(), progress=bar)
    print(report.table(run))
    for what, line in ending_lines(count_endings(run.records)):
        print(f"{what[0].upper()}{what[1:]}: {line}.")
    print(_tokens_line(run.records))
    report.write_summary(out)
    print(f"Report: {report.write([out], page, page_option(arguments)).resolve()}")


def _with_user_model(
    suite: Suite, settings: Settings, personas: Sequence[str] | None
) -> tuple[Suite, Settings]:
    """The suite with the personas of the command line; the settings with who the user model is."""
    from holdfast.drift.cases import personas_of
    from holdfast.drift.pairing import user_prompt_of

    if personas is not None:
        if settings.user_prompt not in ("auto", "persona"):
            raise UsageError(
                "--persona says who the user model is, and so does --user-prompt "
                f"{settings.user_prompt}; give one of the two."
            )
        if not all(text.strip() for text in personas):
            raise UsageError(
                "--persona '' is empty; write who the user model is, or --user-prompt empty for "
                "none."
            )
        suite = dataclasses.replace(suite, personas=personas_of(personas))
    source = user_prompt_of(suite, settings)
    if (settings.user_prompt, source) == ("auto", "empty"):
        print(
            f"holdfast: the suite {suite.name!r} has one system prompt, so the user model talks "
            "without any; say who it is with --persona.",
            file=sys.stderr,
        )
    pairs = len(suite.cases) * (len(suite.cases) - 1)
    if (settings.pairs, source) == ("all", "suite") and settings.conversations % pairs:
        print(
            f"holdfast: --pairs all goes through {pairs:,} pairs prompt after prompt, of which "
            f"{settings.conversations} conversations are no whole number of rounds; "
            "--pairs balanced gives every prompt its share.",
            file=sys.stderr,
        )
    return suite, dataclasses.replace(settings, user_prompt=source)


def _title(suite: Suite, settings: Settings, methods: int) -> str:
    """How much there is to do."""
    from holdfast.drift.pairing import draw_pairing

    asked = sum(len(draw_pairing(suite, settings, n).asked) for n in range(settings.conversations))
    turns = settings.conversations * (2 * settings.rounds - 1)  # the starter is given
    replies = methods * (turns + settings.rounds * asked)
    times = f" with each of {methods} methods" if methods > 1 else ""
    return (
        f"{settings.conversations} conversations of {settings.rounds} rounds{times}: {replies:,} "
        f"replies of at most {settings.sampling.max_new_tokens} tokens"
    )


# what a run can be extended by, what its folder is named after anyhow, and what changes no result
_UNNAMED = {
    "command",
    "run",
    "default",
    "on_interrupt",
    "model",
    "endpoint_model",
    "suite",
    "seed",
    "conversations",
    "method",
    "out",
    "report",
    "allow_code",
    "trust_remote_code",
    "api_key_env",
    "concurrency",
    "timeout",
    "requests_per_minute",
    "batch_size",
    "replicas",
}


def _folder_name(arguments: argparse.Namespace) -> str:
    """Named after the model, the suite, the seed, and every setting that is not the default."""
    names = [arguments.endpoint_model or arguments.model, arguments.suite, str(arguments.seed)]
    parts = [_plain(name.split("/")[-1]) for name in names]
    for option, value in vars(arguments).items():
        if option not in _UNNAMED and value != arguments.default(option):
            text = (
                ""
                if value is True
                else _plain("_".join(map(str, value)) if isinstance(value, list) else str(value))
            )
            if len(text) > 20:  # a file's name has an end; a persona may not
                text = hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:8]
            parts.append(f"{option}_{text}".rstrip("_"))
    return "drift-" + "-".join(parts)


def _plain(text: str) -> str:
    return "".join(ch if ch.isalnum() or ch == "." else "_" for ch in text)


def _tokens_line(records: list[dict]) -> str:
    forwarded, least, seconds = (
        sum(values)
        for values in zip(
            *((r["tokens"]["forwarded"], r["tokens"]["least"], r["seconds"]) for r in records),
            strict=True,
        )
    )
    ratio = f", {forwarded / least:.3f} times the least possible" if least else ""
    return f"{forwarded:,} tokens forwarded{ratio}, in {seconds:,.0f} s."


def _tell_foreign_files(specs: Sequence[str], model) -> None:
    """Says where a method file was calibrated on another model."""
    from holdfast import methods

    for spec in filter(methods.is_file, specs):
        made_for = methods.read_method_file(spec.strip()).get("model_fingerprint")
        if made_for not in (None, model.fingerprint):
            print(
                f"holdfast: {spec} was calibrated on another model than {model.name}; calibrate"
                " again for this one.",
                file=sys.stderr,
            )
