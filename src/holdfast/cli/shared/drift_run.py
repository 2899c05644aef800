"""The conversations that a command runs, or estimates under `--dry-run`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast import drift
from holdfast.cli.shared.output import command_line
from holdfast.cli.shared.progress_bar import Bar
from holdfast.drift import Cast, Running, Settings, Suite
from holdfast.drift.progress import Progress
from holdfast.drift.shards import WHOLE_RUN, Shard
from holdfast.methods import Method
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of
from holdfast.records import Run


@dataclass(frozen=True)
class DriftRun:
    """The conversations of a command, as arguments of `drift.run`."""

    model: ChatModel
    suite: Suite
    out: Path
    settings: Settings
    methods: Sequence[Sequence[Method]]
    cast: Cast
    command: str = ""  # recorded as the command that makes the run; "": the one that was typed
    shard: Shard = WHOLE_RUN

    @property
    def numbers(self) -> list[int]:
        """The numbers of the shard's conversations."""
        return self.shard.numbers(self.settings.conversations)

    def converse(self, progress: Progress) -> Run:
        """Runs and records the missing conversations."""
        return self._run(self.methods, self.numbers, self._running(progress))

    def converse_some(
        self,
        methods: Sequence[Method],
        numbers: Sequence[int],
        progress: Progress,
        should_stop: Callable[[int], bool],
    ) -> Run:
        """Runs and records some conversations under one steering; see `Running.should_stop`."""
        running = replace(self._running(progress), should_stop=should_stop)
        return self._run([methods], numbers, running)

    def ask_baseline(self) -> None:
        """Asks the probes of `--baseline`, with a bar."""
        count = self.settings.conversations
        title = f"baseline: probes of {count_of(count, 'conversation')}, without the system prompt"
        with Bar(count, "conversation", title) as bar:
            running = self._running(bar)
            drift.ask_baseline(
                self.model, self.suite, self.out, self.settings, cast=self.cast, running=running
            )

    def _run(
        self, methods: Sequence[Sequence[Method]], numbers: Sequence[int], running: Running
    ) -> Run:
        return drift.run(
            self.model,
            self.suite,
            self.out,
            self.settings,
            methods,
            cast=self.cast,
            running=running,
            batches=lambda: [numbers],
        )

    def _running(self, progress: Progress) -> Running:
        return Running(progress=progress, command=self.command or command_line())
