"""Method files, which `holdfast calibrate` writes: a method, and how it did in the calibration."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.errors import UsageError
from holdfast.methods.all_methods import BY_NAME


class Interval(BaseModel):
    """A mean over conversations, with the ends of its 95% interval."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


class MethodFile(BaseModel):
    """A method and the results of its calibration, which a file written by a user may lack."""

    model_config = ConfigDict(frozen=True)

    method: str  # a spec string
    model: str | None = None
    model_fingerprint: str | None = None
    budget: float | None = None  # how many points of capability the method may cost
    capability: str | None = None  # the test of capability
    prompts: tuple[str, ...] = ()
    stability_none: float | None = None  # without the method
    stability: Interval | None = None  # with the method
    gain: Interval | None = None  # in stability
    points_lost: Interval | None = None  # of capability

    def to_json(self) -> dict[str, Any]:
        return self.model_dump()


def is_file(spec: str) -> bool:
    """Whether a spec string names a method file."""
    return spec.strip().endswith(".json") and spec.partition(":")[0].strip() not in BY_NAME


def read_method_file(path: Path | str) -> MethodFile:
    """Reads a method file; raises a `UsageError` if it cannot be read, or is not one."""
    content = _read_json(path)
    method = content.get("method") if isinstance(content, dict) else None
    if not isinstance(method, str) or is_file(method):
        raise UsageError(
            f'The method file {path} has {method!r} for its method; write {{"method":'
            ' "split-softmax:exponent=0.5"}.',
            option="method",
            value=method,
        )
    try:
        return MethodFile.model_validate(content)
    except ValidationError as error:
        field = ".".join(map(str, error.errors()[0]["loc"]))
        raise UsageError(
            f"The method file {path} has a {field!r} that `holdfast calibrate` cannot have written;"
            " correct it, or leave it out.",
            option="method",
            value=str(path),
        ) from error


def _read_json(path: Path | str) -> Any:
    """Reads the JSON of a method file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        calibrated = Path(path).with_name("summary.json")
        if isinstance(error, FileNotFoundError) and calibrated.is_file():
            raise UsageError(
                f"There is no method file {path}: `holdfast calibrate` finished in"
                f" {calibrated.parent} and recommended nothing, or had no --budget. Its report.html"
                " says why; give a method such as boost:factor=2, or repeat the calibration with"
                " --budget POINTS, more conversations or other --sweep settings."
            ) from error
        raise UsageError(
            f"The method file {path} cannot be read ({error.strerror}); check the path.",
            option="method",
            value=str(path),
        ) from error
    except ValueError as error:
        raise UsageError(
            f"The method file {path} is not JSON ({error}); write it with `holdfast calibrate"
            " --budget`.",
            option="method",
            value=str(path),
        ) from error
