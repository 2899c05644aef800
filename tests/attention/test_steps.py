"""The overhead of a decode step: it waits for no device and copies no keys."""

import sys
from pathlib import Path

import pytest
import torch
from attention_by_papers import EVERYWHERE, KEEP, MIXED, SCALE, SPLIT, SPOT, Layer
from fast_set import only_fast
from open_models import hugging_face, prompts
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache, StaticCache

import holdfast
from holdfast import Pasta
from holdfast.attention import BatchSteering, holdfast_attention, steer_pass
from holdfast.methods import compile_methods

# Waiting

# Operations and tensor methods that make the host wait for a GPU. A tensor made from a list
# ("lift_fresh") is copied to the device from memory that is not pinned, which waits too.
WAIT_AS_OPERATIONS = (
    "_local_scalar_dense",
    "nonzero",
    "is_nonzero",
    "equal",
    "masked_select",
    "lift_fresh",
)

PACKAGE = str(Path(holdfast.__file__).parent)


def line_of_the_package() -> str | None:
    """The line of this package's own code that called; None if a library that it uses called."""
    frame = sys._getframe(2)
    while frame is not None and ("/torch/" in frame.f_code.co_filename or __file__ in str(frame)):
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(PACKAGE):
        return None
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


class WaitingOperations(TorchDispatchMode):
    """Notes the operations that wait for the device."""

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.split(".")[0]
        indexes = args[1] if name in ("index", "index_put", "index_put_") else ()
        by_a_mask = any(index is not None and index.dtype == torch.bool for index in indexes)
        if name in WAIT_AS_OPERATIONS or by_a_mask:
            self.waits.append((name, line_of_the_package()))
        return function(*args, **(kwargs or {}))


WAIT_AS_METHODS = {
    "tolist",
    "cpu",
    "numpy",
    "item",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
}


class WaitingMethods(TorchFunctionMode):
    """Notes the tensor methods that wait for the device."""

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in WAIT_AS_METHODS:
            self.waits.append((function.__name__, line_of_the_package()))
        return function(*args, **(kwargs or {}))


def waits_of(run):
    """The lines of this package's own code that would have waited for a device."""
    waits = []
    with WaitingOperations(waits), WaitingMethods(waits):
        run()
    return [wait for wait in waits if wait[1] is not None]


@pytest.mark.parametrize("cached", ["dynamic", "static"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("trace", only_fast([False, True], True))
@torch.inference_mode()
def test_a_step_after_the_first_waits_for_no_device(cached, padded, trace):
    model, (ids, mask, span) = hugging_face(num_hidden_layers=4), prompts()
    mask = mask if padded else torch.ones_like(mask)
    rows = [[list(rows[0]), list(rows[1])] for rows in EVERYWHERE + MIXED]
    for methods in rows:
        static = StaticCache(model.config, max_cache_len=40)
        cache = DynamicCache(config=model.config) if cached == "dynamic" else static
        with holdfast.steering(model, span, methods, trace=trace):
            visible, waits = mask, []
            model(ids, attention_mask=visible, past_key_values=cache)
            for step in range(4):
                visible = torch.cat([visible, torch.ones_like(visible[:, :1])], 1)

                def run(visible=visible, cache=cache):
                    model(ids[:, :1], attention_mask=visible, past_key_values=cache)

                waits += waits_of(run) if step else (run() or [])
        assert waits == [], methods


@torch.inference_mode()
def test_steering_that_is_kept_between_steps_waits_for_no_device():
    """The rows stay the same, as they often do in a decode loop; slots are padded on the right."""
    torch.manual_seed(0)
    for rows in EVERYWHERE + MIXED:
        span = torch.zeros(3, 9, dtype=torch.bool)
        span[:, 2:6] = True
        compiled = list(map(compile_methods, rows))
        steering = BatchSteering(span, compiled, prompt_columns=[9, 8, 7], covers_pass=False)
        for step, keys in enumerate((12, 13, 14)):
            q, k = torch.randn(3, 4, 1, 16), torch.randn(3, 2, keys, 16)
            v, lengths = torch.randn_like(k), torch.tensor([keys, keys - 1, keys - 2])
            visible = (torch.arange(keys) < lengths[:, None])[:, None, None]

            def run(q=q, k=k, v=v, visible=visible, steering=steering):
                with steer_pass(steering):
                    return holdfast_attention(Layer(), q, k, v, visible, scaling=0.25)[0]

            waits = waits_of(run)
            assert not step or waits == []
            wider = torch.nn.functional.pad(span, (0, keys - 9))
            fresh = BatchSteering(wider, compiled, prompt_columns=[9, 8, 7])
            assert torch.equal(run(), run(steering=fresh))


# Copies


def place_of(tensor):
    return tensor.untyped_storage().data_ptr()


class Storages(TorchDispatchMode):
    """The largest new storage that any operation allocates, in float32 numbers."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        known_places = {place_of(arg) for arg in args if isinstance(arg, torch.Tensor)}
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor) and place_of(tensor) not in known_places:
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // 4)
        return result


@pytest.mark.parametrize("queries", [1, 8])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "methods", [[SPLIT], [KEEP], [SCALE], [Pasta(0.1, {(0, 1), (0, 2), (0, 7)})], [KEEP, SPOT]]
)
@torch.inference_mode()
def test_shared_keys_and_values_are_never_repeated(queries, masked, methods):
    """8 heads share one key head: a copy for each would be 8 times as large as the keys."""
    keys, size = 1024, 64
    key = torch.randn(1, 1, keys, size)
    value, query = torch.randn_like(key), torch.randn(1, 8, queries, size)
    span = torch.zeros(1, keys, dtype=torch.bool)
    span[:, 8:72] = True
    mask = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)[None, None]
    mask = mask if masked or queries > 1 else None
    layer = Layer(1)
    layer.num_key_value_groups = 8
    storages = Storages()
    for prompt in (keys, 512):
        steering = BatchSteering(
            span, [compile_methods(methods)], trace=True, prompt_columns=[prompt]
        )
        with steer_pass(steering), storages:
            holdfast_attention(layer, query, key, value, mask, scaling=0.1)
    assert 8 * queries * keys <= key.numel()  # nor masks of all heads
    assert storages.largest <= key.numel()
