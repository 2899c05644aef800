"""Running out of memory costs time, and changes no reply: the batch is halved."""

import asyncio
import itertools
import logging
import re
from dataclasses import replace

import pytest
import torch
from fast_set import only_fast
from tiny import chat, model, scheduler_of

from holdfast import Guidance, Request, Sampling, SplitSoftmax, drift
from holdfast.errors import ModelError
from holdfast.generation import decoder
from holdfast.generation.decoder import Decoder
from holdfast.generation.prefix_cache import PrefixCache
from holdfast.generation.scheduler import Serving
from holdfast.generation.token_requests import RequestState

# Batches of a session

CPU_MESSAGE = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)"
)

FAILURES = (
    RuntimeError(CPU_MESSAGE),
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory."),
)


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


@pytest.mark.parametrize("error", only_fast(FAILURES, FAILURES[0]), ids=("cpu", "python", "cuda"))
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


SHORT = Sampling(max_new_tokens=12)


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


# The scheduler of a server

METHODS = ((), (SplitSoftmax(0.3),), (Guidance(2.0),), (Guidance(1.5),), (), ())


def serving(tiny, limit=0, **how):
    """A scheduler as in a server, and the states of six requests."""
    shared = PrefixCache(limit, saves_pieces=True)
    scheduler = scheduler_of(replace(tiny, batch_size=8), Serving(shared, **how))
    session, sampling = tiny.session(), Sampling(2.0, 1.0, 60)
    states = []
    for n, methods in enumerate(METHODS):
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
