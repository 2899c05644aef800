"""The identity of a run: the facts by which a command recognises the folder of its own run."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from holdfast import records
from holdfast.drift.cases import Suite
from holdfast.drift.judges import JudgeName
from holdfast.drift.recorded_dialogs import RecordedDialogs
from holdfast.drift.settings import Cast, Settings
from holdfast.drift.user_scripts import UserTurns
from holdfast.models.offered_steering import same_fingerprint
from holdfast.models.protocol import ChatModel

# A draw depends only on its conversation and round, so a larger run begins like a smaller one, up
# to rounding: the other rows of a batch can change a last digit, and occasionally a token.
COMPATIBILITY = records.Compatibility(
    # "divergence" was a setting before 0.3
    defaults={"settings": {**asdict(Settings()), "divergence": False}},
    joins={
        "model_fingerprint": same_fingerprint,
        "methods": records.union,
        "settings.conversations": max,
    },
    reasons={
        "settings.rounds": (
            "finished dialogs are recorded as text, so they cannot continue with exactly the"
            " tokens of a run with other rounds"
        )
    },
)


def identity_of_model(model: ChatModel) -> dict[str, Any]:
    """The model of a run, and the runtime, on which rounding depends."""
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
    }


def known_identity(
    suite: Suite,
    specs: Iterable[str],
    settings: Mapping[str, Any],
    cast: Cast,
) -> dict[str, Any]:
    """The facts that are known before a model is loaded, as JSON."""
    return {
        "suite": suite.name,
        "suite_fingerprint": suite.fingerprint,
        "methods": list(specs),
        "settings": dict(settings),
        **identity_of_user(cast),
    }


def identity_of_user(cast: Cast) -> dict[str, Any]:
    """The dialogs or the user turns of a run, by name and fingerprint; {} if it has none."""
    files: dict[str, RecordedDialogs | UserTurns | None] = {
        "dialogs": cast.dialogs,
        "user_turns": cast.user_turns,
    }
    return {
        kind: {"name": file.name, "fingerprint": file.fingerprint}
        for kind, file in files.items()
        if file is not None
    }


def identity_of_others(
    user_model: ChatModel | None, judges: Mapping[JudgeName, ChatModel]
) -> dict[str, Any]:
    """The models besides the agent's: the user model and the judges; {} if there are none."""
    identity: dict[str, Any] = {}
    if user_model is not None:
        identity["user_model"] = {
            "name": user_model.name,
            "fingerprint": user_model.fingerprint,
            "runtime": user_model.runtime,
        }
    if judges:
        identity["judges"] = {
            " ".join(filter(None, name)): judge.fingerprint for name, judge in judges.items()
        }
    return identity
