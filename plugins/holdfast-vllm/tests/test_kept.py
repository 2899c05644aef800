"""Keys and values that are kept from step to step: slots, and steps without room for them."""

import random

import torch
from conftest import CHATS, FLOAT32, compare, engine, sampling, span_of
from holdfast_vllm import kept
from holdfast_vllm.kept import Kept, Shelf
from holdfast_vllm.wire import Admitted


def test_rows_come_and_go_and_each_keeps_its_own_tokens():
    """Every slot holds the tokens of its row, or says that it holds none."""
    draw, shelf = random.Random(0), Shelf(tokens=4)
    cache = torch.zeros(64, 1, 16, 4)
    marks, running = {}, []
    for _ in range(200):
        running = [row for row in running if draw.random() < 0.8]
        running += [Admitted((), ((0, 1),), 1) for _ in range(draw.randrange(3))]
        draw.shuffle(running)
        if not running:
            continue
        order = shelf.seat(running)
        assert sorted(order) == list(range(len(running)))
        assert shelf.rows == [running[number] for number in order]
        copies = shelf.copies(0, cache, room=1e9)
        for slot, row in enumerate(shelf.rows):
            if copies.filled[slot]:
                assert (copies.keys[slot] == marks[row]).all()
                assert (copies.values[slot] == -marks[row]).all()
            marks[row] = draw.random()
            copies.keys[slot], copies.values[slot] = marks[row], -marks[row]
            copies.filled[slot] = 4


def test_slots_of_remaining_rows_stay_filled():
    shelf, cache = Shelf(tokens=4), torch.zeros(64, 1, 16, 4)
    rows = [Admitted((), ((0, 1),), 1) for _ in range(4)]
    shelf.seat(rows)
    shelf.copies(0, cache, room=1e9).filled[:] = [4, 4, 4, 4]
    shelf.seat(rows[1:])
    assert shelf.rows == [rows[3], rows[1], rows[2]]
    assert shelf.copies(0, cache, room=1e9).filled[:3] == [4, 4, 4]


def test_shelves_that_a_pass_does_not_use_are_dropped():
    kept_rows = Kept()
    kept_rows.shelf("a", 32), kept_rows.shelf("b", 32)
    kept_rows.retain(["b"])
    assert list(kept_rows.shelves) == ["b"]


def test_without_room_steps_read_the_pages(answer, monkeypatch):
    monkeypatch.setattr(kept, "_SHARE", 0.0)
    wanted = [
        sampling({"holdfast": spec}) for spec in ("boost:factor=4", "pasta:alpha=0.05", "none")
    ]
    for output, messages, params in zip(
        answer(engine(), CHATS, wanted), CHATS, wanted, strict=True
    ):
        spec = params.extra_args["holdfast"]
        assert compare(output, span_of(messages) if spec != "none" else (), spec)[0] < FLOAT32
