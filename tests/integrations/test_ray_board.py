"""Who does which unit, without Ray: nothing is lost or doubled, whoever goes away when."""

from __future__ import annotations

import random

import pytest

from holdfast.integrations.ray.board import Board


@pytest.mark.parametrize("seed", range(40))
def test_every_unit_is_over_once_whoever_goes_away(seed):
    draw = random.Random(seed)
    units, killers = range(draw.randint(1, 60)), set(draw.sample(range(60), draw.randint(0, 3)))
    board, done, given_up, deaths = Board(units, draw.randint(1, 8)), [], [], 0
    actors, has, newest = [0, 1, 2], {}, 2
    while not board.finished:
        actor = draw.choice(actors)
        has.setdefault(actor, []).extend(board.give(actor, 3))
        assert board.has(actor) == bool(has[actor])
        if not has[actor]:
            continue
        unit = draw.choice(has[actor])
        if unit in killers or (deaths < 30 and draw.random() < 0.05):
            deaths += 1
            given_up += board.gone(actor)
            del has[actor]
            newest += 1
            actors[actors.index(actor)] = newest
        else:
            has[actor].remove(unit)
            board.over(actor, unit)
            done.append(unit)
    assert sorted(done + given_up) == list(units)
    assert set(given_up) >= killers & set(units)


def test_units_that_do_no_harm_are_not_given_up_for_one_that_does():
    board, done, given_up = Board(range(20), 20), [], []
    for actor in range(30):
        if board.finished:
            break
        while has := sorted(board.give(actor, 1)):
            if 7 in has:
                given_up += board.gone(actor)
                break
            for unit in has:
                board.over(actor, unit)
            done += has
    assert given_up == [7] and sorted(done) == [unit for unit in range(20) if unit != 7]


def test_what_is_left_is_shared_evenly():
    board = Board(range(10), 24)
    assert [len(board.give(actor, 2)) for actor in (0, 1, 0, 1)] == [5, 5, 0, 0]
    few = Board(range(100), 16)
    assert len(few.give(0, 2)) == 18  # two more wait there for what is over


def test_nothing_is_begun_after_an_error():
    board = Board(range(10), 2)
    board.give(0, 2)
    first = board.give(1, 2)
    board.stop(0)
    assert not board.finished and board.give(1, 2) == []
    for unit in first:
        board.over(1, unit)
    assert board.finished
