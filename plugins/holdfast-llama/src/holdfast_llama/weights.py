"""Reads and rewrites attention weights between two nodes of llama.cpp's graph.

Without flash attention, each layer N computes a tensor `kq_soft_max-N` of shape [key, query, head,
stream] (ggml's order, fastest first). llama.cpp invokes the callback after that node and before the
next one reads the tensor, so anything written into it takes effect. A row's weights on the span are
multiplied by one factor per query and head, and its other weights by another factor
(`layer_moves`). This is enough for every method that the steering table can express.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import llama_cpp
import numpy as np

from holdfast.errors import ModelError
from holdfast.methods.compiled import compile_methods, head_tables
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import layer_table
from holdfast_llama.layer_moves import LayerMoves
from holdfast_llama.steered_rows import ColumnRun, ColumnSets, SteeredRow

WEIGHTS_NODE = "kq_soft_max"  # llama.cpp's name of attention weights
# ggml's type numbers
_FLOAT32 = 0
_FLOAT16 = 1
_MAX_PLANS = 16  # plans to keep; each is for a different combination of methods


class _Tensor(ctypes.Structure):
    """`ggml_tensor`, of which type, shape, strides, data, name and sources are read."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * 16),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * 10),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * 64),
    ]


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of ggml, which libllama depends on, with the types of its result and arguments."""
    function = getattr(llama_cpp.llama_cpp._lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


_get_name = _function("ggml_get_name", ctypes.c_char_p, ctypes.c_void_p)
_get_data = _function("ggml_get_data", ctypes.c_void_p, ctypes.c_void_p)
_count_elements = _function("ggml_nelements", ctypes.c_int64, ctypes.c_void_p)
# of a tensor, the host's memory, an offset in the tensor, and a number of bytes
_COPY_ARGUMENTS = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
_copy_to_host = _function("ggml_backend_tensor_get", None, *_COPY_ARGUMENTS)
_copy_from_host = _function("ggml_backend_tensor_set", None, *_COPY_ARGUMENTS)


@dataclass(frozen=True, eq=False)
class _Plan:
    """The changes of weights for rows with these methods.

    Args:
        methods: the methods of each row.
        layers: the moves of each layer; None for a layer where nothing is steered.
    """

    methods: tuple[tuple[ShiftsAttention, ...], ...]
    layers: list[LayerMoves | None]

    @classmethod
    def of(cls, methods: tuple[tuple[ShiftsAttention, ...], ...], layers: int, heads: int) -> _Plan:
        rows = head_tables(map(compile_methods, methods))
        assert rows is not None, "lists that three numbers cannot express are refused earlier"
        tables = (layer_table(rows, layer, heads) for layer in range(layers))
        moves = [LayerMoves.of(table, len(methods), heads) for table in tables]
        return cls(methods, [layer if layer.steered.any() else None for layer in moves])


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Defers SIGINT and SIGTERM until the end of this context.

    An exception that a handler raises inside a callback would be lost in C, and the program would
    continue.
    """
    if threading.current_thread() is not threading.main_thread():  # only it handles signals
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {
        kind: handler
        for kind in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(kind))
    }
    for kind in handlers:
        signal.signal(kind, lambda *details: caught.append(details))
    try:
        yield
    finally:
        for kind, handler in handlers.items():
            signal.signal(kind, handler)
        for kind, frame in caught[:1]:
            handlers[kind](kind, frame)


class AttentionWeights:
    """The callback of a context, and the state of the current pass.

    Args:
        layers, heads: the number of layers, and of heads in each.
        on_host: whether llama.cpp computes in host memory, so that the weights can be rewritten in
            place; otherwise they are copied to the host and back.

    Attributes:
        mass, uniform: the mass in the latest pass, float32 [row, layer, head] and [row, layer], as
            in an `AttentionTrace` of one token; NaN in layers whose weights were not read.
    """

    def __init__(self, layers: int, heads: int, *, on_host: bool = True):
        self.layers = layers
        self.heads = heads
        self.on_host = on_host
        # an attribute, as it must live as long as the context
        self.callback = llama_cpp.ggml_backend_sched_eval_callback(self._on_node)
        self.mass = np.empty((0, layers, heads))
        self.uniform = np.empty((0, layers))
        self._names = {f"{WEIGHTS_NODE}-{layer}".encode(): layer for layer in range(layers)}
        self._plans: list[_Plan] = []
        self._rows: Sequence[SteeredRow] = ()
        self._ends: Sequence[int] = ()
        self._last: Sequence[int] = ()
        self._traced = False
        self._runs: list[list[ColumnRun]] = []
        self._wanted: dict[bytes, int] = {}
        self._reached: set[int] = set()
        self._uniform: dict[int, np.ndarray] = {}  # by the address of the mask
        self._columns: ColumnSets | None = None
        self._error: BaseException | None = None

    def begin(
        self, rows: Sequence[SteeredRow], ends: Sequence[int], last: Sequence[int] | None = None
    ) -> None:
        """Begins a pass.

        Args:
            rows: the rows, in the order of their streams; each forwards the same number of tokens.
            ends: the number of tokens of each row after the pass, without padding.
            last: per row, the index of the last token of the pass that is not padding; None if no
                row is padded.
        """
        self._rows = rows
        self._ends = ends
        self._last = [-1] * len(rows) if last is None else last
        self._error = None
        self._reached = set()
        self._uniform = {}
        self._columns = None
        self._traced = any(row.trace for row in rows)
        self._plan = self._plan_of(tuple(row.methods for row in rows))
        layers = self._plan.layers
        self._wanted = {
            name: layer
            for name, layer in self._names.items()
            if self._traced or layers[layer] is not None
        }
        self._runs = [row.runs_until(end) for row, end in zip(rows, ends, strict=True)]
        self.mass = np.full((len(rows), self.layers, self.heads), np.nan, np.float32)
        self.uniform = np.full((len(rows), self.layers), np.nan, np.float32)

    def finish(self) -> None:
        """Ends the pass.

        Raises:
            Exception: any error raised in the callback, where llama.cpp only stops the pass.
            ModelError: a layer that was to be steered or traced did not compute its weights.
        """
        error = self._error
        self._error = None
        self.abandon()
        if error is not None:
            raise error
        if missed := sorted(set(self._wanted.values()) - self._reached):
            raise ModelError(
                f"Layers {', '.join(map(str, missed))} of {self.layers} computed no {WEIGHTS_NODE},"
                " so their attention cannot be steered or traced in llama.cpp; use another model,"
                " or leave llama: out to run it in Holdfast's own engine."
            )

    def abandon(self) -> None:
        """Ends a pass that failed."""
        self._rows = ()

    def _on_node(self, tensor: int, asks: bool, _: Any) -> bool:
        """Receives llama.cpp's callback.

        It is called twice: to ask whether we want a tensor, and after that tensor was computed. If
        we want none, whole graphs run without interruption.
        """
        if not self._wanted:  # reading the names of all nodes would take 1% of a step
            return False
        layer = self._wanted.get(_get_name(tensor)) if self._rows else None
        if asks or layer is None:
            return layer is not None
        try:
            self._rewrite(tensor, layer)
        except BaseException as error:  # exceptions cannot pass through C
            self._error = error
        return self._error is None

    def _plan_of(self, methods: tuple[tuple[ShiftsAttention, ...], ...]) -> _Plan:
        """Returns the plan for rows with these methods; the latest plans are kept."""
        for plan in self._plans:
            if plan.methods == methods:
                return plan
        self._plans = [*self._plans[1 - _MAX_PLANS :], _Plan.of(methods, self.layers, self.heads)]
        return self._plans[-1]

    def _rewrite(self, address: int, layer: int) -> None:
        """Moves and traces the weights of a layer, which its tensor at `address` has."""
        tensor = _Tensor.from_address(address)
        weights = self._read(tensor, address)
        heads = weights.shape[1]
        width = weights.shape[3]
        if heads != self.heads:
            raise ModelError(
                f"Layer {layer} has {heads} heads but the first layer has {self.heads}, which"
                " holdfast-llama cannot steer; use another model, or leave llama: out to run it in"
                " Holdfast's own engine."
            )
        if self._columns is None or self._columns.width != width:
            self._columns = ColumnSets(self._rows, self._ends, width)
        uniform = self._uniform_mass(tensor, self._columns)
        moves = self._plan.layers[layer]
        rows = np.arange(len(weights))
        if moves is None:  # only the last query is traced
            last = weights[rows, :, self._last]
            self.mass[:, layer] = self._columns.masses(last[:, :, None]).traced[..., 0]
        else:
            span, rest, traced = self._columns.masses(weights)
            if tensor.src[2]:  # an attention sink: one more score in the softmax, part of the rest
                rest = np.maximum(1 - span, rest)
            factors = self._steer(weights, span, rest, moves)
            if not self.on_host:
                _copy_from_host(address, weights.ctypes.data, 0, weights.nbytes)
            if self._traced:
                self.mass[:, layer] = (traced * factors)[rows, :, self._last]
        self.uniform[:, layer] = uniform
        self._reached.add(layer)

    def _steer(
        self, weights: np.ndarray, mass: np.ndarray, rest: np.ndarray, moves: LayerMoves
    ) -> np.ndarray:
        """Rewrites the weights; returns the factors for the span, [row, head, query]."""
        factors = moves.factors(mass, rest)
        for row, steered in enumerate(moves.steered[..., 0]):
            heads: list[Any] = [slice(None)] if steered.all() else [*np.flatnonzero(steered)]
            for head in heads:
                for start, stop, in_span in self._runs[row]:
                    factor = factors.span if in_span else factors.rest
                    weights[row, head, :, start:stop] *= factor[row, head, :, None]
        return factors.span

    def _read(self, tensor: _Tensor, address: int) -> np.ndarray:
        """Reads the weights, float32 [row, head, query, column]; a view if they are on the host.

        Raises:
            ModelError: the tensor does not have the expected layout.
        """
        width, queries, heads, streams = tensor.ne
        has_layout = (
            tensor.data == _get_data(address)
            and tensor.name == _get_name(address)
            and width * queries * heads * streams == _count_elements(address)
        )
        if not has_layout or tensor.type != _FLOAT32:
            raise ModelError(
                f"{WEIGHTS_NODE} has a memory layout that holdfast-llama does not know; install a"
                " llama-cpp-python that it was tested with."
            )
        if streams != len(self._rows):
            raise ModelError(
                f"llama.cpp forwards {streams} streams for {len(self._rows)} rows; this is a bug in"
                " holdfast-llama, please report it."
            )
        shape = streams, heads, queries, width
        if self.on_host:
            memory = (ctypes.c_float * _count_elements(address)).from_address(tensor.data)
            return np.frombuffer(memory, np.float32).reshape(shape)
        weights = np.empty(shape, np.float32)
        _copy_to_host(address, weights.ctypes.data, 0, weights.nbytes)
        return weights

    def _uniform_mass(self, tensor: _Tensor, columns: ColumnSets) -> np.ndarray:
        """Returns the traced mass under uniform attention at the last query, float32 [row].

        Raises:
            ModelError: the query does not see the row's latest tokens, in order.
        """
        address = tensor.src[1]
        if address not in self._uniform:
            visible = self._visible(tensor, columns.width).astype(np.float32)
            traced = columns.masses(visible[:, None, None]).traced[:, 0, 0]
            self._uniform[address] = traced / visible.sum(1)
        return self._uniform[address]

    def _visible(self, tensor: _Tensor, width: int) -> np.ndarray:
        """Returns the columns that the last query of each row sees, bool [row, column].

        Raises:
            ModelError: they are not the row's latest tokens, in order.
        """
        visible: np.ndarray = self._read_last_masks(tensor, width) > -np.inf
        for row_visible, end in zip(visible, self._ends, strict=True):
            columns = np.flatnonzero(row_visible)
            if not len(columns) or columns[-1] != end - 1 or len(columns) != end - columns[0]:
                raise ModelError(
                    f"llama.cpp does not keep {end} tokens in the order of their positions; this is"
                    " a bug in holdfast-llama, please report it."
                )
        return visible

    def _read_last_masks(self, tensor: _Tensor, width: int) -> np.ndarray:
        """Reads the attention mask of the last query of each row, [row, column].

        Raises:
            ModelError: the mask does not have the expected layout.
        """
        address = tensor.src[1]
        mask = _Tensor.from_address(address)
        dtypes = {_FLOAT32: np.float32, _FLOAT16: np.float16}
        if mask.type not in dtypes or mask.ne[0] != width or mask.ne[3] != len(self._rows):
            raise ModelError(
                f"The attention mask of {WEIGHTS_NODE} has a form that holdfast-llama does not"
                " know; install a llama-cpp-python that it was tested with."
            )
        masks = np.empty((len(self._rows), width), dtypes[mask.type])
        for row, (row_mask, last) in enumerate(zip(masks, self._last, strict=True)):
            offset = row * mask.nb[3] + (last % tensor.ne[1]) * mask.nb[1]
            _copy_to_host(address, row_mask.ctypes.data, offset, row_mask.nbytes)
        return masks
