"""Which actor runs which unit: none is lost or run twice, whichever actors are lost."""

import random

import pytest

from holdfast.integrations.ray.actor import Shares


@pytest.mark.parametrize("seed", range(40))
def test_every_unit_is_done_or_given_up_exactly_once(seed):
    draw = random.Random(seed)
    units, killers = range(draw.randint(1, 60)), set(draw.sample(range(60), draw.randint(0, 3)))
    together = draw.randint(1, 8)
    shares, done, given_up, accidents = Shares(units, together, 3), [], [], 0
    actors = [[], [], []]
    while shares or any(actors):
        number = draw.randrange(3)
        if not actors[number]:
            actors[number] = shares.next()
            continue
        unit = draw.choice(actors[number][:together])
        accident = accidents < 30 and draw.random() < 0.05
        accidents += accident
        if unit in killers or accident:
            given_up += shares.lose(actors[number])
            actors[number] = []
        else:
            actors[number].remove(unit)
            done.append(unit)
    assert sorted(done + given_up) == list(units)
    assert set(given_up) >= killers & set(units)


def test_harmless_units_are_not_given_up_with_one_that_kills_its_actor():
    shares, done, given_up = Shares(range(20), 20, 1), [], []
    while shares:
        share = shares.next()
        if 7 in share:
            given_up += shares.lose(share)
        else:
            done += share
    assert given_up == [7] and sorted(done) == [unit for unit in range(20) if unit != 7]


def test_shares_shrink_to_what_an_actor_runs_at_once():
    shares = Shares(range(100), 8, 2)
    sizes = [len(shares.next()) for _ in range(9)]
    assert sizes == [25, 19, 14, 11, 8, 8, 8, 4, 3] and not shares
    few = Shares(range(10), 12, 2)
    assert [len(few.next()) for _ in range(3)] == [6, 4, 0]
