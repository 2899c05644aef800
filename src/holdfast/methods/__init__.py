"""Steering methods. The names imported here are the interface; importing them imports no torch.

From a spec string to what the engine reads:

spec               `read_methods` and `parse`: texts <-> methods; sweep, for several values
parameters         declares the parameters of a method's class, and checks their values
heads              sets of heads and of layers; head_specs reads them, head_rankings ranks heads
fitted             what a method learned from a model; method_file reads methods from files
compiled           `CompiledMethods`: what methods change, and what they need
kinds              the kinds of method, and one table of what each kind needs of a model
protocols          the functions that a method of each kind has
table              three numbers per head, which define what most attention methods do

The methods, which method_classes lists and all_methods describes:

attention          split-softmax, PASTA, boost and spotlight
hold               a minimum mass for each head, from a rehearsed reply
contrast           guidance and others that read a second chat
keys               SEKA and PRISM-Delta; residual, capping and vectors
repetition         the prompt again before user messages; reminder, a short note
repair             hides or marks replies that broke a rule; retry draws them again; exchanges
                   splits a chat for both
"""

from holdfast.methods.all_methods import METHODS_OUTSIDE_MODELS, catalogue, schema
from holdfast.methods.compiled import UNSTEERED, CompiledMethods, compile_methods
from holdfast.methods.fitted import Fitted, FittedOn, write_fitted
from holdfast.methods.head_rankings import Ranking, intersection, union
from holdfast.methods.head_specs import read_heads, write_heads
from holdfast.methods.heads import HeadSet, Shape
from holdfast.methods.hold import Floors
from holdfast.methods.kinds import Ability, MethodKind
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
