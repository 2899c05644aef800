"""Replicas of a model on a Ray cluster, an actor each; this process alone writes records."""

from holdfast.integrations.ray.actor import Specification
from holdfast.integrations.ray.connecting import connect
from holdfast.integrations.ray.model import RayModel
