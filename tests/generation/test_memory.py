"""Memory use follows what is live, and running out costs time, not the run."""

import asyncio
import gc
import itertools
import logging
import mmap
import os
import re
import sys
import weakref
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fast_set import only_fast
from tiny import chat, model, scheduler_of, tokenizer
from transformers.cache_utils import DynamicLayer

from holdfast import Guidance, Request, Sampling, SplitSoftmax, drift
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.generation import decoder, key_layers, mapped_memory, memory, transformers_runner
from holdfast.generation.decoder import Decoder
from holdfast.generation.prefix_cache import PrefixCache
from holdfast.generation.saved_kv import CachedPrefix, SavedLayerKV
from holdfast.generation.scheduler import Serving
from holdfast.generation.slots import SlotCache
from holdfast.generation.token_requests import RequestState, TokenPrompt, TokenRequest
from holdfast.methods import UNSTEERED, compile_methods, parse
from holdfast.models.session import LocalSession

CPU_MESSAGE = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)"
)
SHORT = Sampling(max_new_tokens=12)
ERRORS = (RuntimeError(CPU_MESSAGE), MemoryError(), torch.OutOfMemoryError("CUDA out of memory."))
WAYS = ((), (SplitSoftmax(0.3),), (Guidance(2.0),), (Guidance(1.5),), (), ())


def kv_cache(tokens, value=0.0):
    """Two layers of one head of size 2."""
    layer = torch.full((1, tokens, 2), value), torch.full((1, tokens, 2), -value)
    return SavedLayerKV(tokens, (layer, layer), ({}, {}))


def kv_layer(tokens, value):
    """One layer of one head of size 2."""
    layer = torch.full((1, tokens, 2), value), torch.full((1, tokens, 2), -value)
    return SavedLayerKV(tokens, (layer,), ({},))


def size(slots):
    """Rows and columns of the store."""
    return slots.layers[0].store[0].shape[0], slots.layers[0].store[0].shape[2]


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


def test_threads_of_conversations_that_are_over_are_freed(monkeypatch, tmp_path):
    sizes, forget = [], LocalSession.forget

    def watch(self, thread):
        forget(self, thread)
        sizes.append(len(self.threads))

    monkeypatch.setattr(LocalSession, "forget", watch)
    settings = drift.Settings(rounds=2, conversations=3, sampling=SHORT)
    drift.run(model(), drift.load_suite("starter"), tmp_path, settings)
    assert len(sizes) == 6 and sizes[-1] == 0 and sizes == sorted(sizes, reverse=True)


def test_a_forgotten_thread_begins_anew():
    session, talk = model().session(), chat("be nice", "hello")
    request = Request(talk, sampling=SHORT, thread="t", keep=True)
    first = session.generate_batch([request])[0]
    session.forget("t")
    session.forget("never heard of")
    second = session.generate_batch([request])[0]
    assert second.token_ids == first.token_ids and second.forwarded == first.forwarded


def test_a_running_row_does_not_keep_an_earlier_state_of_its_dialog():
    """Its keys and values are in the row's slot by then."""
    session, talk = model().session(), chat("be nice", "hello")
    first = session.generate_batch([Request(talk, sampling=SHORT, thread="t", keep=True)])[0]
    earlier = weakref.ref(session.threads.use("t")[0].kv)
    longer = (*talk, *chat("", "", first.text, "and then?")[1:])
    rendered = session.render(Request(longer, sampling=SHORT, thread="t"))
    assert rendered.token_request.prompts[0].cached
    row = session.stepped.submit(rendered)
    session.forget("t")
    assert earlier() is not None
    session.stepped.step()
    gc.collect()
    assert earlier() is None and not row.done and row.cached
    session.stepped.cancel(row)


@pytest.mark.parametrize(
    ("count", "is_small", "releases"),
    [
        (3, False, []),
        (4, False, ["closed"]),
        (6, False, ["prefilled", "closed"]),
        (6, True, []),
    ],
    ids=["little", "four slots closed", "600 tokens prefilled", "a small model"],
)
def test_freed_memory_is_given_back_when_there_may_be_much(monkeypatch, count, is_small, releases):
    monkeypatch.setattr(transformers_runner, "is_small", lambda model: is_small)
    scheduler, given_back = scheduler_of(replace(model(), stop_ids=frozenset())), []
    monkeypatch.setattr(
        decoder,
        "release_freed_memory",
        lambda: given_back.append("prefilled" if len(scheduler.decoder) else "closed"),
    )
    prompt = TokenPrompt(tuple(range(6, 106)), (False,) * 100)
    for seed in range(count):
        scheduler.submit(TokenRequest((prompt,), sampling=Sampling(1.0, 1.0, 3), seed=seed))
    while len(scheduler):
        scheduler.step()
    assert given_back == releases


def test_a_waiting_row_reads_the_keys_that_its_dialog_has_by_then():
    """So the earlier state of the dialog, which these begin with, takes no memory beside them."""
    replies = []
    for goes_on in (False, True):
        session, talk = model(dtype="float64").session(), chat("be nice", "hello")
        first = session.generate_batch([Request(talk, sampling=SHORT, thread="t", keep=True)])[0]
        earlier = weakref.ref(session.threads.use("t")[0].kv)
        probe, later = (
            Request((*talk, *chat("", "", first.text, question)[1:]), sampling=SHORT, thread="t")
            for question in ("what was that?", "and then?")
        )
        rendered = session.render(probe)
        if goes_on:
            session.generate_batch([replace(later, keep=True)])
            gc.collect()
            assert earlier() is None
        assert rendered.token_request.prompts[0].cached > first.cached
        row = session.stepped.submit(rendered)
        while not row.done:
            session.stepped.step()
        replies.append((row.stop_reason, row.token_ids, row.cached, row.forwarded))
    assert replies[0] == replies[1] and replies[0][2] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"token_ids": (1, 2, 9, 4)},
        {"span": (True, False, False, False)},
        {"pass_methods": compile_methods(parse("boost:factor=2"))},
        {"kv": None},
        {"kv": SavedLayerKV(4, (), (), min_prefix_len=4)},
        {"kv": SavedLayerKV(2, (), ())},
        {"kv": SavedLayerKV(4, (), (), rotary_lengths=range(9))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_prefix_grows_only_into_one_that_begins_with_a_copy_of_its_keys(change):
    span = (True, True, False, False)
    prefix = CachedPrefix((1, 2, 3), span[:3], UNSTEERED, SavedLayerKV(3, (), ()))
    longer = CachedPrefix((1, 2, 3, 4), span, UNSTEERED, SavedLayerKV(4, (), ()), "text")
    other = replace(longer, **change)
    assert not prefix.is_continued_by(other)
    assert prefix.is_continued_by(longer) and prefix.token_ids == (1, 2, 3)
    prefix.become(longer)
    assert vars(prefix) == vars(longer)


@pytest.fixture
def scarce_memory(monkeypatch):
    """Makes memory run out beyond a number of rows; returns the rows of each try."""
    tries, prefill, decode = [], Decoder.prefill, Decoder.decode

    def limit(rows, error):
        def check(count):
            tries.append(count)
            if count > rows:
                raise error

        def scarce_decode(self):
            check(len(self))
            return decode(self)

        def scarce_prefill(self, rows):
            check(len(self) + len(rows))
            return prefill(self, rows)

        monkeypatch.setattr(Decoder, "decode", scarce_decode)
        monkeypatch.setattr(Decoder, "prefill", scarce_prefill)
        return tries

    return limit


@pytest.mark.parametrize("error", only_fast(ERRORS, ERRORS[0]), ids=("cpu", "python", "cuda"))
def test_running_out_of_memory_halves_the_batch_and_changes_no_reply(scarce_memory, error, caplog):
    tiny, replies = model(), {}

    def request_of(n, depth):
        options = {"seed": 10 * n + depth, "keep": depth == 0, "thread": (n, depth)}
        methods, sampling = (Guidance(2.0),) * (n == 3), Sampling(max_new_tokens=4 + 3 * n)
        return Request(chat("be nice", "hello " * (n + depth + 1)), methods, sampling, **options)

    async def dialog(engine, n):
        for depth in range(3):
            replies[n, depth] = await engine.generate(request_of(n, depth))

    async def all_dialogs():
        async with tiny.session() as engine:
            await asyncio.gather(*(dialog(engine, n) for n in range(6)))

    places = itertools.product(range(6), range(3))
    alone = {place: tiny.generate_batch([request_of(*place)])[0] for place in places}
    tries = scarce_memory(3, error)
    with caplog.at_level(logging.WARNING, "holdfast"):
        asyncio.run(all_dialogs())
    assert replies.keys() == alone.keys()
    for place, reply in replies.items():
        assert reply.token_ids == alone[place].token_ids
        assert reply.forwarded == alone[place].forwarded
    assert max(tries) > 3 and "6 chats of tiny" in caplog.text
    assert "3 at a time" in caplog.text


@pytest.mark.slow
def test_a_run_whose_memory_ran_out_says_so_on_its_page(scarce_memory, tmp_path):
    from holdfast import report

    settings = drift.Settings(rounds=2, conversations=4, sampling=SHORT)
    plain = drift.run(model(), drift.load_suite("starter"), tmp_path / "plain", settings)
    scarce_memory(3, MemoryError())
    run = drift.run(model(), drift.load_suite("starter"), tmp_path / "scarce", settings)
    assert [record.rows_at_most for record in run.records] == [2] * 4
    assert not any(record.rows_at_most for record in plain.records)
    for data, is_reported in ((run, True), (plain, False)):
        report.write([data.folder], tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text()
        assert ("memory ran out" in text) is is_reported
        assert (re.search("4 conversations .*2 sequences", text) is not None) is is_reported


def test_running_out_with_a_single_chat_is_explained_in_one_sentence(scarce_memory):
    scarce_memory(0, RuntimeError(CPU_MESSAGE))
    message = r"single chat of tiny llama.*batch_size below 192.*shorter chat"
    with pytest.raises(ModelError, match=message):
        model().generate(chat("be nice", "hello"), sampling=SHORT)


def test_scoring_continues_with_half_of_the_batch(monkeypatch):
    from holdfast.generation import reply_scoring

    tiny, sizes, groups = model(), [], reply_scoring._split_into_passes
    requests = [Request(chat("be nice", "hello " * n)) for n in range(1, 7)]
    outcome = tiny.session().score_batch(requests, [["bread", "rain"]] * 6)
    expected = [score.log_probabilities for score in outcome]

    def scarce_groups(sequences, batch_size, limit):
        for group in groups(sequences, batch_size, limit):
            sizes.append(len(group))
            if len(group) > 3:
                raise RuntimeError(CPU_MESSAGE)
            yield group

    monkeypatch.setattr(reply_scoring, "_split_into_passes", scarce_groups)
    scores = tiny.session().score_batch(requests, [["bread", "rain"]] * 6)
    for outcome, values in zip(scores, expected, strict=True):
        assert outcome.log_probabilities == pytest.approx(values, abs=1e-4)
    assert sizes[0] > 3 and sizes[-1] <= 3
    monkeypatch.setattr(
        reply_scoring, "_split_into_passes", lambda *_: (_ for _ in ()).throw(MemoryError())
    )
    with pytest.raises(ModelError, match="single chat"):
        tiny.session().score_batch(requests[:1], [["bread"]])


def test_an_error_names_the_request_it_is_about():
    tiny, good = model(), Request(chat("be nice", "hello"), sampling=SHORT)
    refuses = "{% for m in messages if 'x' in m['content'] %}{{ raise_exception('no x') }}"
    refuses += "{% endfor %}"
    fussy = replace(tiny, tokenizer=tokenizer(refuses + tokenizer().chat_template))
    with pytest.raises(PromptError, match=r"^Request 2 .*no x"):
        fussy.generate_batch([good, Request(chat("be nice", "x")), good])
    with pytest.raises(PromptError, match=r"^Request 3 .*\d+ tokens"):
        tiny.generate_batch([good, good, Request(chat("be nice", "hello " * 600))])
    with pytest.raises(PromptError, match=r"\d+ tokens"):
        tiny.generate(chat("be nice", "hello " * 600))
    with pytest.raises(PromptError, match=r"^Request 2 .*\d+ tokens"):
        tiny.session().score_batch([good, Request(chat("s", "bread " * 600))], [["bread"]] * 2)
    guided_twice = Request(chat("be nice", "hello"), (Guidance(2.0), Guidance(3.0)))
    with pytest.raises(UsageError, match=r"^Request 1 of 2: guidance"):
        tiny.generate_batch([guided_twice, good])


def test_an_error_of_a_dialog_names_the_conversation(tmp_path):
    refuses = "{% if messages|length > 3 %}{{ raise_exception('too many') }}{% endif %}"
    fussy = replace(model(), tokenizer=tokenizer(refuses + tokenizer().chat_template))
    settings = drift.Settings(rounds=3, conversations=2, sampling=SHORT)
    with pytest.raises(PromptError, match=r"^Conversation \d, round 2 .*many"):
        drift.run(fussy, drift.load_suite("starter"), tmp_path, settings)


def serving(tiny, limit=0, **how):
    """A scheduler as in a server, and the states of six requests."""
    shared = PrefixCache(limit, saves_pieces=True)
    scheduler = scheduler_of(replace(tiny, batch_size=8), Serving(shared, **how))
    session, sampling = tiny.session(), Sampling(2.0, 1.0, 60)
    states = []
    for n, methods in enumerate(WAYS):
        talk = chat("be nice", "hello " * (n + 1))
        request = session.render(Request(talk, methods, sampling, seed=n)).token_request
        states.append(scheduler.submit(replace(request, shares_kv=True)))
    return scheduler, states


def fail_once(monkeypatch, at):
    """Makes memory run out in these decoder steps."""
    step, steps = Decoder.decode, []

    def fail(self):
        steps.append(len(self))
        if len(steps) in at:
            raise MemoryError
        return step(self)

    monkeypatch.setattr(Decoder, "decode", fail)


def test_the_youngest_rows_wait_and_the_limit_grows_back(monkeypatch):
    tiny = replace(model(dtype="float64"), stop_ids=frozenset())
    plain, expected = serving(tiny)
    while len(plain):
        plain.step()
    fail_once(monkeypatch, at=(10,))
    scheduler, handles = serving(tiny, regrow_steps=8)
    token_counts, limits, waiting_seeds = [0] * 6, [], []
    while len(scheduler):
        scheduler.step()
        limits.append(scheduler.max_sequences)
        if scheduler.halvings:
            waiting_seeds.append([state.request.seed for state in scheduler.running])
        for n, handle in enumerate(handles):
            assert len(handle.token_ids) >= token_counts[n]
            token_counts[n] = len(handle.token_ids)
    assert scheduler.halvings == [3] and waiting_seeds[:2] == [[], [0, 1]]
    assert min(limits) == 3 and limits[-1] == 8
    for handle, alone in zip(handles, expected, strict=True):
        assert handle.stop_reason == alone.stop_reason and handle.token_ids == alone.token_ids
    assert handles[0].token_ids and min(token_counts) == 60


@pytest.mark.parametrize(("owner", "name"), [(decoder, "draw_or_error"), (RequestState, "finish")])
def test_what_a_failed_step_has_added_to_a_row_is_taken_back(monkeypatch, owner, name):
    tiny = replace(model(dtype="float64"), stop_ids=frozenset())

    def finished():
        scheduler, session = scheduler_of(tiny), tiny.session()
        requests = [
            Request(chat("be nice", "hello"), (), Sampling(2.0, 1.0, 8), seed=n, trace=True)
            for n in range(3)
        ]
        rendered = [session.render(request, 2) for request in requests]
        states = [scheduler.submit(request.token_request) for request in rendered]
        while len(scheduler):
            scheduler.step()
        return scheduler, states

    _, expected = finished()
    function, calls = getattr(owner, name), []

    def fails_once(*arguments):
        calls.append(arguments)
        if len(calls) == 2:  # after masses were added, or the last token
            raise MemoryError
        return function(*arguments)

    monkeypatch.setattr(owner, name, fails_once)
    scheduler, rows = finished()
    assert scheduler.halvings == [1]
    for row, alone in zip(rows, expected, strict=True):
        assert row.stop_reason == "length" and row.token_ids == alone.token_ids
        assert len(row.token_ids) == 8
        assert torch.allclose(row.trace.mass, alone.trace.mass, atol=1e-6)
        values = [value.drawn for value in row.log_probabilities]
        assert values == pytest.approx([value.drawn for value in alone.log_probabilities])


def test_shared_prefixes_are_dropped_before_rows_are(monkeypatch):
    tiny = model(dtype="float64")
    fail_once(monkeypatch, at=(3, 6))
    scheduler, handles = serving(tiny, limit=10**9)
    sizes, limits = [], []
    while len(scheduler):
        scheduler.step()
        sizes.append(scheduler.prefix_cache.size)
        limits.append(scheduler.max_sequences)
    assert 0 in sizes and limits[sizes.index(0)] == 8  # first failure; the second halves the limit
    assert scheduler.halvings == [3]
    assert all(handle.stop_reason and handle.token_ids for handle in handles)


def test_memory_that_never_suffices_ends_every_row_with_an_error(monkeypatch):
    def fail(self):
        raise MemoryError

    monkeypatch.setattr(Decoder, "decode", fail)
    scheduler, handles = serving(replace(model(), stop_ids=frozenset()), limit=10**9)
    for _ in range(200):
        if len(scheduler):
            scheduler.step()
    assert len(scheduler) == 0
    for handle in handles:
        with pytest.raises(ModelError, match="single chat"):
            handle.require_reply()


@pytest.mark.slow
def test_a_server_keeps_nothing_of_requests_that_have_ended():
    tiny = replace(model(), prefix_memory=100_000)
    session = tiny.session(long_lived=True)

    def count_after_48_requests(first):
        """The tensors and the request states that are left after requests, eight at a time."""
        for begin in range(first, first + 48, 8):
            batch = []
            for n in range(begin, begin + 8):
                methods, sampling = (SplitSoftmax(0.1 + n % 10 / 100),), Sampling(max_new_tokens=6)
                talk = chat("be nice", f"{n} " * 9)
                batch.append(Request(talk, methods, sampling, seed=n, trace=n % 2 == 0))
            rows = [
                session.stepped.submit(session.render(request, top_logprobs=2)) for request in batch
            ]
            session.stepped.cancel(rows[3])
            while not all(row.done for row in rows):
                session.stepped.step()
        gc.collect()
        kinds = Counter(type(item).__name__ for item in gc.get_objects())
        return kinds["Tensor"], sum(kinds[name] for name in ("RequestState", "RenderedRequest"))

    gc.collect()  # other tests may have left rows
    names = [type(item).__name__ for item in gc.get_objects()]
    before = sum(name in ("RequestState", "RenderedRequest") for name in names)
    count_after_48_requests(0)
    counts = [count_after_48_requests(50 * n) for n in range(1, 6)]
    assert session.stepped.scheduler.prefix_cache.size <= 100_000 and not session.stepped.open
    tensors, rows = zip(*counts, strict=True)
    assert max(tensors[2:]) <= 1.1 * max(tensors[:2]) and max(rows) <= before + 16


@pytest.mark.parametrize(("limit", "expected"), [("4000\n", 4000), ("max\n", None), (None, None)])
def test_a_container_may_use_less_than_the_machine_has(monkeypatch, tmp_path, limit, expected):
    path = tmp_path / "memory.max"
    if limit is not None:
        path.write_text(limit)
    monkeypatch.setattr(memory, "_CGROUP_LIMITS", (path,))
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory.memory_of_this_process() == (expected or machine)
