"""Edits of what a forward pass computes besides attention: keys and values before rotation, hidden
states behind a layer, attention outputs.

    sites.py    where they are made in a model, found by its modules' interface
    checks.py   whether a model has what a method was fitted on
    edits.py    what is to be edited in one pass, row by row
    hooks.py    a pass with its edits, and what goes into attention and comes out of it

A pass without such methods registers no hook. Keys are edited in the pass that computes them, so
what is cached is edited, and serves under the same methods alone.
"""

from __future__ import annotations

from holdfast.states.checks import abilities, check_states
from holdfast.states.edits import EditGroup, Edits
from holdfast.states.hooks import around_attention, edited, watched
from holdfast.states.sites import Site, Sites, attention_modules, sites_of

__all__ = [
    "EditGroup",
    "Edits",
    "Site",
    "Sites",
    "abilities",
    "around_attention",
    "attention_modules",
    "check_states",
    "edited",
    "sites_of",
    "watched",
]
