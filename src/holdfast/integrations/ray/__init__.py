"""Replicas of a model as actors of a Ray cluster; only the local process writes records."""

from holdfast.integrations.ray.actor import Specification
from holdfast.integrations.ray.cluster import connect
from holdfast.integrations.ray.ray_model import RayModel
