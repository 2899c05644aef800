"""The default model: how it drifts, how long its replies are, how well it follows instructions at
first, and what makes it drift.
"""

from __future__ import annotations

from collections.abc import Callable

from tabled.reading import FIX, ROOT, difference, markdown, read

WEAK = 0.7  # mean score below which a family of instructions is named as weak


def drift_table() -> str:
    """Stability, adoption and mass in the first and the last round, one column per seed."""
    record = read("default_model")
    seeds = record["seeds"]
    count = next(iter(seeds.values()))["none"]["conversations"]

    def row(name: str, cell: Callable[[dict], str]) -> list[str]:
        return [name, *(cell(result) for result in seeds.values())]

    rows = [
        ["round 1 to round 8", *(f"seed {seed}" for seed in seeds)],
        row("stability", lambda seed: ends(seed["none"]["stability"])),
        row("drop", lambda seed: difference(seed["none"]["stability_change"])),
        row("stability, user model unprompted", lambda seed: ends(seed["control"]["stability"])),
        row(
            "drop, user model unprompted",
            lambda seed: difference(seed["control"]["stability_change"]),
        ),
        row("adoption", lambda seed: ends(seed["none"]["adoption"])),
        row("change of adoption", lambda seed: difference(seed["none"]["adoption_change"])),
        row("mass on the prompt", lambda seed: ends(seed["none"]["mass"])),
        row(f"stability with `{FIX}`", lambda seed: ends(seed[FIX]["stability"])),
        row(
            "fix minus none, rounds 5 to 8",
            lambda seed: difference(seed["fix_minus_none_late_rounds"]["stability"]),
        ),
        row(
            "round 1, phrases seen / unseen in training",
            lambda seed: (
                f"{seed['none']['round_1_phrase_seen']['mean']:.3f} /"
                f" {seed['none']['round_1_phrase_unseen']['mean']:.3f}"
            ),
        ),
    ]
    changes = record["all_seeds"]
    return "\n".join(
        [
            f"`python benchmarks/default_model.py`: {count} conversations of 8 rounds between"
            " held-out prompts, temperature 1.0, top-p 0.9; paired by conversation, 95% bootstrap"
            " intervals. Target: round-1 stability 0.93, and a drop whose interval excludes 0.",
            "",
            *markdown(rows),
            "",
            f"Over all {count * len(seeds)} conversations stability changes by"
            f" {difference(changes['stability'])} and adoption by"
            f" {difference(changes['adoption'])}.",
        ]
    )


def ends(by_round: list[dict]) -> str:
    """The means of the first and the last round: "0.938 to 0.751"."""
    return f"{by_round[0]['mean']:.3f} to {by_round[-1]['mean']:.3f}"


def lengths_table() -> str:
    """How long the default model's replies are, and which are the longest."""
    seeds = read("default_model")["seeds"]

    def row(name: str, cell: Callable[[dict], str]) -> list[str]:
        return [name, *(cell(result["lengths"]) for result in seeds.values())]

    rows = [
        ["replies in free self-chat", *(f"seed {seed}" for seed in seeds)],
        row("replies", lambda lengths: f"{lengths['replies']:,}"),
        row("that ran on to the limit of 400 tokens", lambda lengths: str(lengths["reached"])),
        row("median length in tokens", lambda lengths: f"{lengths['median']:.0f}"),
        row("99.9th percentile", lambda lengths: f"{lengths['99.9th percentile']:.0f}"),
    ]
    longest = [
        f"- seed {seed}, conversation {reply['conversation']}, round {reply['round']},"
        f" {reply['tokens']} tokens: “{' '.join(reply['text'].split())[:160]}…”"
        for seed, result in seeds.items()
        for reply in result["lengths"]["longest"][:2]
    ]
    return "\n".join([*markdown(rows), "", "The longest:", "", *longest])


def following_line() -> str:
    """How well held-out instructions are followed in round 1, from the output of
    training/evaluate.py.
    """
    lines = (ROOT / "training" / "evaluation.txt").read_text().splitlines()
    # each line has a mean score and what it is of: "0.375  json (16)"
    scores = {name: float(score) for score, name in (line.split("  ", 1) for line in lines)}

    def score(beginning: str) -> str:
        return f"{next(scores[name] for name in scores if name.startswith(beginning)):.3f}"

    families = [
        (value, name.split(" (")[0])
        for name, value in scores.items()
        if "(" in name and "phrase" not in name
    ]
    weak = ", ".join(name.replace("_", " ") for value, name in sorted(families) if value < WEAK)
    return (
        "By `python training/evaluate.py` (`training/evaluation.txt`), held-out instructions are"
        f" followed in round 1 with a mean score of {score('mean')}, {score('phrase seen')} where"
        f" the phrase was seen in training and {score('phrase unseen')} where it was not; the"
        f" families below {WEAK:g} are {weak}. After three rounds of talk, open knowledge questions"
        f" are answered right {score('knowledge, open')} of the time, and questions with four"
        f" choices {score('knowledge, choices')} (chance: 0.25)."
    )


def ablation_table() -> str:
    """The two models that differ in only one ingredient of their training."""
    record = read("ablation")
    models = record["models"]
    changes = record["second_minus_first"]
    count = next(iter(models.values()))["conversations"]

    def row(name: str, cell: Callable[[dict], str]) -> list[str]:
        return [name, *(cell(result) for result in models.values())]

    command = (
        f"`python benchmarks/ablation.py`, {count} conversations of 8 rounds, seed {record['seed']}"
    )
    rows = [
        [command, *(name.replace("-", " ") for name in models)],
        row("stability, round 1 to round 8", lambda model: ends(model["stability"])),
        row("change", lambda model: difference(model["stability_change"])),
        row("adoption, round 1 to round 8", lambda model: ends(model["adoption"])),
        row("change", lambda model: difference(model["adoption_change"])),
        row("mass on the prompt", lambda model: ends(model["mass"])),
    ]
    return "\n".join(
        [
            *markdown(rows),
            "",
            f"Second minus first, change of stability {difference(changes['stability'])},"
            f" change of adoption {difference(changes['adoption'])}.",
        ]
    )
