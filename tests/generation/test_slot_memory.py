"""The store of a batch's keys and values takes memory only for the rows that are in it."""

import mmap
import re
import sys
from pathlib import Path

import pytest
import torch
from transformers.cache_utils import DynamicLayer

from holdfast.generation import key_layers, mapped_memory
from holdfast.generation.saved_kv import SavedLayerKV
from holdfast.generation.slots import SlotCache


def kv_cache(tokens, value=0.0):
    """Two layers of one head of size 2."""
    layer = torch.full((1, tokens, 2), value), torch.full((1, tokens, 2), -value)
    return SavedLayerKV(tokens, (layer, layer), ({}, {}))


def size(slots):
    """Rows and columns of the store."""
    return slots.layers[0].store[0].shape[0], slots.layers[0].store[0].shape[2]


# Rows that join and leave


def allow_mapping(monkeypatch, allowed):
    """Decides whether stores are mapped, as on Linux, or plain, as on a GPU."""
    monkeypatch.setattr(mapped_memory, "can_map", lambda device: allowed)
    monkeypatch.setattr(key_layers, "can_map", lambda device: allowed)


def test_a_row_that_leaves_gives_its_memory_back(monkeypatch):
    allow_mapping(monkeypatch, False)
    slots = SlotCache([DynamicLayer()] * 2, torch.device("cpu"))
    slots.expect(32, 5000)
    for row in range(32):
        slots.open(kv_cache(4000 if row == 0 else 10 + row, float(row)))
    assert size(slots) == (32, 4128)
    slots.close(0)
    slots.shrink()
    assert size(slots)[1] < 200  # room for the longest row left
    while len(slots.lengths) > 1:
        slots.close(len(slots.lengths) - 1)
        slots.shrink()
    assert size(slots)[0] < 4
    assert torch.equal(slots.copy_kv(0).layers[1][1], kv_cache(41, 31.0).layers[1][1])
    slots.close(0)
    slots.shrink()
    assert slots.layers[0].store[0].numel() == 0
    slots.open(kv_cache(3, 7.0))
    assert torch.equal(slots.copy_kv(0).layers[0][0], kv_cache(3, 7.0).layers[0][0])


@pytest.mark.parametrize("mapped", [False, *([True] if sys.platform == "linux" else [])])
def test_rows_keep_their_tokens_when_a_store_grows(monkeypatch, mapped):
    allow_mapping(monkeypatch, mapped)
    slots = SlotCache([DynamicLayer()] * 2, torch.device("cpu"))
    for row, tokens in enumerate((10, 300, 20_000, 3, 40)):
        slots.open(kv_cache(tokens, float(row)))
        for slot in range(row + 1):
            before = slots.copy_kv(slot)
            expected = kv_cache(before.tokens, float(slot))
            assert torch.equal(before.layers[1][0], expected.layers[1][0])


def kv_layer(tokens, value):
    """One layer of one head of size 2."""
    layer = torch.full((1, tokens, 2), value), torch.full((1, tokens, 2), -value)
    return SavedLayerKV(tokens, (layer,), ({},))


def test_tokens_of_an_unfinished_pass_survive_growth():
    slots = SlotCache([DynamicLayer()], torch.device("cpu"))
    slots.open(kv_layer(2, 1.0))
    new = torch.full((1, 1, 3, 2), 5.0)
    with slots.writing([0], [2], [5]):
        slots.layers[0].update(new, -new)
    slots.open(kv_layer(30_000, 2.0))  # before the pass is committed
    slots.commit([0], [5])
    keys, values = slots.copy_kv(0).layers[0]
    assert keys[0, :, 0].tolist() == [1, 1, 5, 5, 5] and torch.equal(keys, -values)


# Mapped memory


def pages_with_memory(tensors):
    """The number of pages with memory of their own in the mappings of tensors, which may be one."""
    total = 0
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if mapping := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
            first, last = (int(address, 16) for address in mapping.groups())
            inside = any(first <= tensor.data_ptr() < last for tensor in tensors)
        elif inside and line.startswith("Anonymous:"):
            total += int(line.split()[1]) * 1024 // mmap.PAGESIZE
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_a_mapped_store_takes_memory_only_for_the_tokens_of_its_rows():
    slots = SlotCache([DynamicLayer()] * 2, torch.device("cpu"))
    head = torch.ones(1, 4096, 64)  # 16 tokens of a head are a page
    for row, tokens in enumerate((4096, 160, 320)):
        layer = head[:, :tokens] * (row + 1), head[:, :tokens] * -(row + 1)
        slots.open(SavedLayerKV(tokens, (layer, layer), ({}, {})))
    stores = [store for layer in slots.layers for store in layer.store]
    assert len(stores) == 4

    # at most one page more per row, since rows do not begin with a page
    assert 4 * 286 <= pages_with_memory(stores) <= 4 * (286 + 3)
    assert all(store.shape[2] >= 2 * 4096 for store in stores)
    assert stores[0].sum() > 0  # reading takes none
    assert 4 * 286 <= pages_with_memory(stores) <= 4 * (286 + 3)
    slots.close(0)  # the last row takes its place
    assert 4 * 30 <= pages_with_memory(stores) <= 4 * (30 + 4)
    copy = slots.copy_kv(0).layers[1]
    assert torch.equal(copy[0], head[:, :320] * 3) and torch.equal(copy[1], head[:, :320] * -3)
    slots.close(1)
    slots.close(0)
    assert pages_with_memory(stores) <= 4 * 2


def test_a_store_that_cannot_be_mapped_is_a_plain_one(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    slots = SlotCache([DynamicLayer()] * 2, torch.device("cpu"))
    slots.open(kv_cache(3, 7.0))
    slots.open(kv_cache(5, 8.0))
    slots.close(0)
    assert torch.equal(slots.copy_kv(0).layers[0][0], kv_cache(5, 8.0).layers[0][0])


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_memory_is_mapped_by_kernels_without_huge_pages(monkeypatch):
    monkeypatch.setattr(mmap, "MADV_NOHUGEPAGE", 9999)  # such a kernel does not know the advice
    mapped = mapped_memory.map_zeros(torch.ones(1, dtype=torch.bfloat16), (3, 5000))
    mapped[1:] = 1
    mapped_memory.discard_pages(mapped[1])
    assert mapped[0].sum() == 0 and mapped[1].sum() < 5000 and mapped[2].sum() == 5000


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_no_columns_are_spare_where_unwritten_memory_counts(monkeypatch, tmp_path):
    """This holds under `ulimit -v`, and where the system promises no more memory than it has."""
    resource = pytest.importorskip("resource")
    limits: dict[int, int] = {}
    overcommit = tmp_path / "overcommit_memory"
    counts = mapped_memory._counts_what_is_mapped.__wrapped__  # which keeps no result
    monkeypatch.setattr(mapped_memory, "_counts_what_is_mapped", counts)
    monkeypatch.setattr(mapped_memory, "_OVERCOMMIT", overcommit)
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (limits.get(kind, resource.RLIM_INFINITY),) * 2
    )

    def columns():
        slots = SlotCache([DynamicLayer()] * 2, torch.device("cpu"))
        slots.open(kv_cache(1000))
        return size(slots)[1]

    assert columns() >= 4000  # the file does not exist, as on other systems with Linux's interface
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limits = {kind: 2**40}
        assert columns() <= 1000 + key_layers.SPARE_COLUMNS
    limits = {}
    for mode, is_mapped in (("0\n", True), ("1\n", True), ("2\n", False)):
        overcommit.write_text(mode)
        assert (columns() >= 4000) is is_mapped
