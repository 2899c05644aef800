"""Replicas of a model on the machines of a Ray cluster: one actor per GPU, or per share of the
processors, loads the model itself. This process holds no weights: it hands whole conversations or
batches of samples out, and alone writes records.
"""

from holdfast.integrations.ray.actor import Specification
from holdfast.integrations.ray.connecting import connect
from holdfast.integrations.ray.model import RayModel

__all__ = ["RayModel", "Specification", "connect"]
