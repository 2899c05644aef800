"""Memory kept for dialogs and requests, and that it is freed when they end."""

import gc
import os
import weakref
from collections import Counter
from dataclasses import replace

import pytest
from tiny import chat, model, scheduler_of

from holdfast import Request, Sampling, SplitSoftmax, drift
from holdfast.generation import decoder, memory, transformers_runner
from holdfast.generation.saved_kv import CachedPrefix, SavedLayerKV
from holdfast.generation.token_requests import TokenPrompt, TokenRequest
from holdfast.methods import UNSTEERED, compile_methods, parse
from holdfast.models.session import LocalSession

# Threads

SHORT = Sampling(max_new_tokens=12)


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


# Prefixes


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


# The memory of the process


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
