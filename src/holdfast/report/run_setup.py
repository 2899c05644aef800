"""How a drift run was made, and the commands that continue from it.

For example:

    holdfast drift --model smollm2 --conversations 8
    -> RunSetup.extended_to(20):   holdfast drift --model smollm2 --conversations 20
       RunSetup.check():           holdfast check starter --model smollm2 --min-stability 0.9
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.drift_results import DriftResults
from holdfast.models.model_names import is_served, is_url
from holdfast.records import command_of
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.manifest import typed_command
from holdfast.records.typed_options import change_options, option_in, options_in, split_command
from holdfast.report.fixes_to_try import first_fix, fixes_to_compare

_MODEL_OPTIONS = (
    "--model",
    "--endpoint-model",
    "--api-key-env",
    "--chat-template",
    "--device",
    "--device-map",
    "--dtype",
    "--trust-remote-code",
)
_DIALOG_OPTIONS = ("--user-turns", "--system-as", "--temperature", "--top-p", "--max-new-tokens")
_DEFAULT_ROUNDS = 8  # of `holdfast drift` and `holdfast calibrate`


@dataclass(frozen=True)
class RunSetup:
    """The setup of a drift run.

    Attributes:
        command: the command line as it was typed; "" for a run of the Python API.
        model: the options that load the model: ("--model", "smollm2").
        suite: the suite as `--suite` takes it.
        chats: the options that make the conversations of another command like this run's.
        rounds: the number of rounds of the first series.
        replayed: whether the conversations are replays of recorded dialogs.
        endpoint: whether another program runs the model, so that Holdfast cannot serve it.
        url: the address of an endpoint; "" if the model is not given by a URL.
        first_fix: the fix to try first; None if none is known to help.
        sweeps: the settings that a search for the best fix compares; () for the defaults of
            `holdfast calibrate`.
    """

    command: str
    model: tuple[str, ...]
    suite: str
    chats: tuple[str, ...]
    rounds: int
    replayed: bool
    endpoint: bool
    url: str
    first_fix: str | None
    sweeps: tuple[str, ...]

    @property
    def shard(self) -> str:
        """Which shard of a larger run this is, such as "1/4"; "" for a whole run."""
        return option_in(split_command(self.command), "--shard")

    def extended_to(self, conversations: int) -> str:
        """The command that extends the run to this many conversations."""
        return change_options(shlex.split(self.command), {"--conversations": str(conversations)})

    def compared_with(self, fix: str) -> str:
        """The command that adds the same conversations with a fix to the run."""
        without = change_options(shlex.split(self.command), {"--method": "none"})
        return f"{without} --method {shlex.quote(fix)}"

    def calibrate(self, sweeps: Sequence[str]) -> str:
        """The command that measures what fixes gain and cost in conversations like this run's."""
        words = ["calibrate", *self.model, "--suite", self.suite, *self.chats]
        if self.rounds != _DEFAULT_ROUNDS:
            words += ("--rounds", str(self.rounds))
        if self.rounds < 3:
            words += ("--ask-at", str(self.rounds + 1))
        for sweep in sweeps:
            words += ("--sweep", sweep)
        return _holdfast(*words)

    def check(self) -> str:
        """The command that holds the prompts to a bar in conversations like this run's."""
        return _holdfast("check", self.suite, *self.model, *self.chats, "--min-stability", "0.9")

    def serve(self, *options: str) -> str:
        """The command that serves the model."""
        return _holdfast("serve", *self.model, *options)

    def proxy(self, fix: str) -> str:
        """The command that starts a proxy with a fix in front of the server of the model."""
        upstream = self.url or "http://localhost:8000/v1"
        return _holdfast("proxy", "--upstream", upstream, "--suite", self.suite, "--method", fix)


def _holdfast(*words: str) -> str:
    return shlex.join(["holdfast", *words])


def setup_of(results: DriftResults) -> RunSetup:
    """The setup of a run, from its manifest."""
    manifest = results.run.manifest
    command = command_of(manifest)
    words = split_command(command)
    model = option_in(words, "--model")
    endpoint = is_served(model)
    return RunSetup(
        command=command if typed_command(command) == "drift" else "",
        model=options_in(words, _MODEL_OPTIONS),
        suite=option_in(words, "--suite") or "starter",
        chats=options_in(words, _DIALOG_OPTIONS),
        rounds=results.series[0].rounds,
        replayed=results.run.identity_as(ConversationsIdentity).dialogs is not None,
        endpoint=endpoint,
        url=model.split(",")[0] if is_url(model) else "",
        first_fix=first_fix(manifest, endpoint=endpoint),
        sweeps=fixes_to_compare(manifest, endpoint=endpoint),
    )
