"""`holdfast measures` and `holdfast methods`: what there is, one line each."""

from __future__ import annotations

import argparse

# measures of published benchmarks and studies, by the beginning of their names
PUBLISHED = {
    "ifeval_": "of IFEval and Multi-IF",
    "ifbench_": "of IFBench",
    "released_": "of Li et al. 2024, as their code scores",
}


def add_parser(commands) -> None:
    for name, run, line in (
        ("measures", _measures, "list the measures, and the word lists that they know"),
        ("methods", _methods, "list the steering methods"),
    ):
        command = commands.add_parser(
            name, help=line, description=line.capitalize() + ", one line each."
        )
        command.set_defaults(run=run)


def _measures(arguments: argparse.Namespace) -> None:
    from holdfast import measures
    from holdfast.measures.lexicon import list_names

    rows = measures.catalogue()
    print("For your own prompts:")
    _print([row for row in rows if not row[0].startswith(tuple(PUBLISHED))])
    print(f"\n`words` is a list of words, or the name of one of these: {', '.join(list_names())}")
    for beginning, source in PUBLISHED.items():
        print(f"\n{beginning}..., {source}:")
        _print([row for row in rows if row[0].startswith(beginning)])


def _methods(arguments: argparse.Namespace) -> None:
    from holdfast import methods

    _print([(name, ", ".join(knobs), line) for name, knobs, line in methods.catalogue()])


def _print(rows) -> None:
    heads = [f"{name}({arguments})" if arguments else name for name, arguments, _ in rows]
    width = min(44, max(map(len, heads)))
    for head, (_, _, line) in zip(heads, rows, strict=True):
        print(
            f"{head:<{width}}  {line}" if len(head) <= width else f"{head}\n{'':<{width}}  {line}"
        )
