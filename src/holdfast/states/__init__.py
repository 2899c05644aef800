"""Edits what a forward pass computes besides attention: keys and values before rotation, and
hidden states after a layer.

A pass without such methods registers no hook. Keys are edited in the pass that computes them, so
the edited keys are cached, and can be reused only under the same methods.
"""

from __future__ import annotations

from holdfast.states.edits import EditGroup
from holdfast.states.hooks import edit_states, watch_states
from holdfast.states.requirements import abilities, check_states
from holdfast.states.sites import Site, Sites, sites_of

__all__ = [
    "EditGroup",
    "Site",
    "Sites",
    "abilities",
    "check_states",
    "edit_states",
    "sites_of",
    "watch_states",
]
