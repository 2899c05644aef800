"""Steering methods. The names imported here are the interface; importing them imports no torch."""

from holdfast.methods.all_methods import METHODS_OUTSIDE_MODELS, catalogue, schema
from holdfast.methods.attention import Boost, Pasta, SplitSoftmax, Spotlight
from holdfast.methods.compiled import UNSTEERED, CompiledMethods, compile_methods
from holdfast.methods.contrast import AdaCad, Anchoring, Guidance, PromptStrength
from holdfast.methods.fitted import Fitted, FittedOn, write_fitted
from holdfast.methods.given_methods import Methods, read_methods
from holdfast.methods.head_files import read_heads, write_heads
from holdfast.methods.heads import HeadSet, Ranking, Shape, intersection, union
from holdfast.methods.hold import Floors, Hold
from holdfast.methods.keys import Prism, Seka
from holdfast.methods.kinds import Ability, Kind
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
from holdfast.methods.reminder import Reminder
from holdfast.methods.repair import Repair
from holdfast.methods.repetition import Repetition
from holdfast.methods.residual import Capping, Vector
from holdfast.methods.retry import CheckAndRetry
from holdfast.methods.spec import parse, spec_of
from holdfast.methods.sweep import Sweep, parse_sweep
