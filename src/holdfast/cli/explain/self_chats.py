"""The options of `trace` and `geometry`, which read the attention or the states of self-chats."""

from pathlib import Path

from holdfast.cli.shared import options
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.validation.ranges import whole_number


class SelfChatOptions(
    options.SuiteOptions,
    options.ModelOptions,
    options.ConversationsOptions,
    options.RoundsOptions,
    options.DrawOptions,
    options.RunOptions,
    options.ReportOptions,
):
    """The options of self-chats whose attention or hidden states are read."""


def folder_of(command: str, arguments: SelfChatOptions) -> Path:
    """The folder of the run."""
    model = model_of(arguments)
    return arguments.out or run_folder(command, model, arguments.suite, seed=arguments.seed)


def check_counts(command: str, arguments: SelfChatOptions) -> None:
    """Refuses impossible counts in the name of the command, where `Settings` would say "drift"."""
    whole_number(command, "rounds", arguments.rounds, 1)
    whole_number(command, "conversations", arguments.conversations, 1)
