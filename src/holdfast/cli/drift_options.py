"""The options of `holdfast drift`, and the settings that they give."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from holdfast.cli.dry_run import add_dry_run
from holdfast.cli.judging import add_judging
from holdfast.cli.options import RunFolder, add_draws, add_model, add_ray, add_report, add_system_as
from holdfast.cli.own_dialogs import add_dialogs
from holdfast.cli.printed import add_details
from holdfast.cli.user_model import add_user_model

if TYPE_CHECKING:
    from holdfast.drift import Settings


def add_options(add) -> None:
    """Adds all of them; `add` is a parser's `add_argument`."""
    add_model(add)
    _add_suite(add)
    _add_length(add)
    add_user(add)
    _add_pairs(add)
    add_probes(add)
    add_draws(add)
    add_running(add)
    add_user_model(add)
    add_context(add)
    add_dialogs(add)
    add_judging(add)
    add_dry_run(add)
    add_report(add)
    add_details(add)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The protocol that the options ask for."""
    from holdfast.drift import Settings
    from holdfast.sampling import Sampling

    return Settings(
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
        context=arguments.context,
        window=arguments.window,
    )


def _add_suite(add) -> None:
    """Adds what is asked, and how replies are scored."""
    add(
        "--suite",
        "starter",
        "system prompts and probes (default: %(default)s); li2024:hub reads the hub, and"
        " ifbench:PATH and multi-if:PATH work as sys-ifeval:PATH does",
        metavar="starter|core|bot|li2024:PATH|sys-ifeval:PATH|FILE.yaml",
    )
    add(
        "--scoring",
        "strict",
        "for li2024: strict corrects the published measures, released keeps them; for"
        " verifiable instructions: loose takes the best of eight readings of a reply",
        choices=("strict", "released", "loose"),
    )
    add("--allow-code", bool, "allow the suite to use Python functions as measures")


def _add_length(add) -> None:
    """Adds how many conversations are held, how long, and with which methods."""
    add("--rounds", 8, "rounds per conversation")
    add("--conversations", 200, "number of conversations")
    add(
        "--method",
        list,
        "none, split-softmax:exponent=0.5, ...; repeat to compare on the same pairs (default:"
        " none)",
        metavar="SPEC",
    )


def add_user(add) -> None:
    """Adds who the user model is."""
    add(
        "--user-prompt",
        "auto",
        "the user model's system prompt: another prompt of the suite, a persona, or none"
        " (default: a persona if there are any, else another prompt if there is one)",
        choices=("auto", "suite", "persona", "empty"),
    )
    add(
        "--persona",
        list,
        "a system prompt of the user model, in place of the suite's personas; repeat for several",
        metavar="TEXT",
    )


def _add_pairs(add) -> None:
    """Adds who talks with whom, and what is asked beside the agent's own probes."""
    add(
        "--pairs",
        "random",
        "how prompts are paired: at random; balanced, so that each prompt is the agent"
        " equally often; or all ordered pairs, prompt after prompt",
        choices=("random", "balanced", "all"),
    )
    add("--no-adoption", bool, "do not ask the agent the probes of the user's prompt")
    add(
        "--baseline",
        bool,
        "also ask the probes without a system prompt, to find rules that are never followed"
        " and those that score as well without it",
    )
    add(
        "--divergence",
        bool,
        "record how far the token distributions of each reply are from those in a fresh"
        " dialog, in nats per token: drift without probes, on local models",
    )


def add_probes(add) -> None:
    """Adds where the prompt stands, and what is asked at every round."""
    add_system_as(add)
    add("--probes-per-round", 1, "per prompt")
    add(
        "--probe-at",
        "in-place",
        "in place of the user's turn, or after a full round",
        choices=("in-place", "after-round"),
    )


def add_running(add, command: str = "drift") -> None:
    """Adds what runs side by side, and where the results of the command go."""
    add("--batch", 48, "conversations that run side by side")
    add_ray(add)
    add(
        "--out",
        str,
        f"the run's folder (default: runs/{command}-MODEL-SUITE-SEED, and the settings that are"
        " not the default)",
        action=RunFolder,
    )


def add_context(add) -> None:
    """Adds what happens in talks that are longer than the model's context."""
    add(
        "--context",
        "stop",
        "when the model's context is full: stop the dialog, cut its oldest rounds, slide"
        " (show only the last --window rounds, from the start), or summarise the older half",
        choices=("stop", "cut", "slide", "summarise"),
    )
    add("--window", int, "with --context slide: how many rounds are shown", metavar="ROUNDS")
