"""The plans of `holdfast reproduce`: what the figures and tables of a paper come to."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.cli.dry_run import Part
from holdfast.cli.dry_run.talks import Talks, plan_talks

if TYPE_CHECKING:
    from holdfast.reproduce.li2024 import Setup as Li2024
    from holdfast.reproduce.zhang2024 import Setup as Zhang2024


def plan_li2024(arguments: argparse.Namespace, setup: Li2024) -> None:
    """Holds the first conversations of Figure 3, and says what all figures come to."""
    from holdfast import drift
    from holdfast.methods import parse_sweep
    from holdfast.reproduce.li2024 import check
    from holdfast.reproduce.li2024.methods import plan_of
    from holdfast.study import calibrate
    from holdfast.study.capability import load_capability

    check(setup)
    scale = setup.scale
    chats = drift.Settings(rounds=scale.rounds, conversations=scale.conversations, seed=setup.seed)
    plain = replace(chats, adoption=False)
    suite, plan = plan_of(setup)
    methods = 1 + sum(len(parse_sweep(sweep).settings) for sweep in scale.sweeps)
    traced = replace(plain, conversations=scale.traced)
    models = 1 if setup.base is None else 2  # Figure 8 traces the base
    more = [_talks("Figures 4 and 8: conversations", setup.suite, traced, models)]
    if scale.sweeps:
        settings = calibrate.settings_for(suite, plan)
        more.append(_talks("Figures 5 and 6: conversations", suite, settings, methods))
        capability = load_capability(setup.capability, scale.questions, setup.seed)
        questions = methods * len(capability.items)
        more.append(Part("Figures 5 and 6: questions", questions, questions, questions))
    more.append(_talks("Figure 9: conversations", setup.suite, plain, 2))
    talks = Talks(setup.model, setup.suite, setup.out / "figure-3", chats, [()])
    plan_talks(arguments, talks, more)


def _talks(what: str, suite, settings, times: int) -> Part:
    """Conversations that are held so many times over, with methods, places or models."""
    from holdfast.drift.counting import count_replies

    count = times * settings.conversations
    replies = count_replies(suite, settings, None, range(settings.conversations))
    return Part(what, count, count, times * replies)


def plan_zhang2024(setup: Zhang2024) -> None:
    """Says what the profiles come to, by the speed of a small piece of each, and the answers of
    Table 1; those of the other tables depend on the rankings.
    """
    from holdfast import tasks
    from holdfast.reproduce.zhang2024 import check
    from holdfast.reproduce.zhang2024.study import STEERED, Study
    from holdfast.study.profiling import estimate

    check(setup)
    study = Study(setup)
    for name in setup.tasks:
        samples, plan = study.profiling_of(name)
        print(f"profile {name}: {estimate(setup.model, samples, plan)}")
    scale, count = setup.scale, len(setup.tasks)
    ways = len(tasks.BASELINES) - 1 + scale.draws + STEERED
    print(
        f"Table 1: {count} tasks of {scale.tested:,} test samples, each asked in at most {ways}"
        f" ways: {count * scale.tested * ways:,} answers."
    )
    print(
        "The other tables ask for further answers, how many depends on the rankings; nothing of"
        " this plan was recorded."
    )
