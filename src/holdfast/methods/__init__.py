"""Steering methods. The names imported here are the interface; importing them imports no torch."""

from holdfast.methods.all_methods import METHODS_OUTSIDE_MODELS, catalogue, schema
from holdfast.methods.compiled import UNSTEERED, CompiledMethods, compile_methods
from holdfast.methods.fitted import Fitted, FittedOn, write_fitted
from holdfast.methods.heads import (
    HeadSet,
    Ranking,
    Shape,
    intersection,
    read_heads,
    union,
    write_heads,
)
from holdfast.methods.hold import Floors
from holdfast.methods.kinds import Ability, Kind
from holdfast.methods.method_classes import *  # noqa: F403
from holdfast.methods.method_file import is_file, read_method_file
from holdfast.methods.protocols import (
    EditsHidden,
    EditsKeys,
    EditsLogits,
    EditsMessages,
    Method,
    NeedsRehearsal,
    ShiftsAttention,
)
from holdfast.methods.spec import Methods, parse, read_methods, spec_of
from holdfast.methods.sweep import Sweep, parse_sweep
