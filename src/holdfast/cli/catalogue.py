"""`holdfast measures` and `holdfast methods`: what there is, one line each."""

from __future__ import annotations

import argparse


def add_parser(commands) -> None:
    for name, run, line in (
        ("measures", _measures, "list the measures"),
        ("methods", _methods, "list the steering methods"),
    ):
        command = commands.add_parser(
            name, help=line, description=line.capitalize() + ", one line each."
        )
        command.set_defaults(run=run)


def _measures(arguments: argparse.Namespace) -> None:
    from holdfast import measures

    _print(measures.catalogue())


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
