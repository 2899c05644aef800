"""What a command says while it runs, and of the figures it made."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path


class Bar:
    """What is done, tokens per second where they are told, and time left; silent where the error output is no terminal."""

    def __init__(self, total: int, unit: str = "round"):
        from tqdm import tqdm

        self.bar = tqdm(total=total, unit=unit, disable=not sys.stderr.isatty(), dynamic_ncols=True)
        self.tokens, self.started = 0, time.monotonic()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def tell(self, line: str) -> None:
        """Prints a line above the bar."""
        self.bar.write(line)

    def __call__(self, done: int, tokens: int = 0) -> None:
        self.tokens += tokens
        if self.tokens:
            self.bar.set_postfix_str(f"{self.tokens / (time.monotonic() - self.started):,.0f} tokens/s", refresh=False)
        self.bar.update(done)


def tell_figures(paths: Iterable[Path]) -> None:
    """Prints where the PNG files among these are."""
    for path in paths:
        if path.suffix == ".png":
            print(f"Figure: {path.resolve()}")
