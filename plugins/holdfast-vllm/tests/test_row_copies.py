"""Keys and values that are kept from step to step: slots, and steps without room for them."""

import random

import torch
from conftest import CHATS, FLOAT32_TOLERANCE, answer, compare, engine, sampling, span_of
from holdfast_vllm import row_copies
from holdfast_vllm.row_copies import RowCopies, SlotPool
from holdfast_vllm.wire import Admitted


def test_rows_come_and_go_and_each_keeps_its_own_tokens():
    """Every slot holds the tokens of its row, or says that it holds none."""
    draw = random.Random(0)
    pool = SlotPool(tokens=4)
    cache = torch.zeros(64, 1, 16, 4)
    marks = {}
    running = []
    for _ in range(200):
        running = [row for row in running if draw.random() < 0.8]
        running += [Admitted((), ((0, 1),), 1) for _ in range(draw.randrange(3))]
        draw.shuffle(running)
        if not running:
            continue
        order = pool.assign(running)
        assert sorted(order) == list(range(len(running)))
        assert pool.rows == [running[number] for number in order]
        copies = pool.copies(0, cache, room=1e9)
        for slot, row in enumerate(pool.rows):
            if copies.filled[slot]:
                assert (copies.keys[slot] == marks[row]).all()
                assert (copies.values[slot] == -marks[row]).all()
            marks[row] = draw.random()
            copies.keys[slot], copies.values[slot] = marks[row], -marks[row]
            copies.filled[slot] = 4


def test_slots_of_remaining_rows_stay_filled():
    pool = SlotPool(tokens=4)
    cache = torch.zeros(64, 1, 16, 4)
    rows = [Admitted((), ((0, 1),), 1) for _ in range(4)]
    pool.assign(rows)
    pool.copies(0, cache, room=1e9).filled[:] = [4, 4, 4, 4]
    pool.assign(rows[1:])
    assert pool.rows == [rows[3], rows[1], rows[2]]
    assert pool.copies(0, cache, room=1e9).filled[:3] == [4, 4, 4]


def test_pools_that_a_pass_does_not_use_are_dropped():
    copies_of_rows = RowCopies()
    copies_of_rows.pool("a", 32), copies_of_rows.pool("b", 32)
    copies_of_rows.retain(["b"])
    assert list(copies_of_rows.pools) == ["b"]


def test_without_room_steps_read_the_pages(monkeypatch):
    monkeypatch.setattr(row_copies, "_MAX_SHARE", 0.0)
    parameters = [
        sampling({"holdfast": spec}) for spec in ("boost:factor=4", "pasta:alpha=0.05", "none")
    ]
    outputs = answer(engine(), CHATS, parameters)
    for output, messages, params in zip(outputs, CHATS, parameters, strict=True):
        spec = params.extra_args["holdfast"]
        span = span_of(messages) if spec != "none" else ()
        assert compare(output, span, spec).from_holdfast < FLOAT32_TOLERANCE
