"""The contents of a method file, which `holdfast calibrate` writes."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Interval(BaseModel):
    """A mean over conversations, with the ends of its 95% interval."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


class MethodFile(BaseModel):
    """A method, and what a calibration found out about it; a file by hand has only the method."""

    model_config = ConfigDict(frozen=True)

    method: str  # a spec string
    model: str | None = None
    model_fingerprint: str | None = None
    budget: float | None = None  # points of capability that may be lost
    capability: str | None = None
    prompts: tuple[str, ...] = ()
    stability_none: float | None = None  # without the method
    stability: Interval | None = None
    gain: Interval | None = None  # over no method
    points_lost: Interval | None = None

    def to_json(self) -> dict[str, Any]:
        return self.model_dump()
