"""The time of `holdfast try`: conversations in groups that fill it, and a late group that shrinks.

The clock stands still until a test sets it, so that all times are exact.
"""

import pytest
from clock import Clock

from holdfast.cli.measure import first_run
from holdfast.cli.measure.time_box import ConversationGroup, Deadlines, TimeBox
from holdfast.cli.shared.progress_bar import Bar

# Groups that fill the time


def groups_of(box, clock, missing, seconds_each):
    sizes = []
    for group in box.groups(missing):
        sizes.append(len(group))
        clock.now += seconds_each * len(group)
    return sizes


def test_groups_fill_the_time_and_stop_with_it():
    clock = Clock()
    box = TimeBox(100, 4, clock=clock)
    assert groups_of(box, clock, range(40), seconds_each=10) == [4, 6]
    assert clock.now == 100


def test_groups_end_with_the_conversations():
    clock = Clock()
    box = TimeBox(100, 4, clock=clock)
    assert groups_of(box, clock, range(7), seconds_each=1) == [4, 3]


def test_a_smaller_group_is_not_expected_to_take_proportionally_less():
    clock = Clock()
    box = TimeBox(100, 2, clock=clock)
    assert groups_of(box, clock, range(40), seconds_each=30) == [2]  # 40 seconds are left, after 60


def test_the_first_group_runs_even_if_it_takes_longer_than_the_time():
    clock = Clock()
    assert groups_of(TimeBox(10, 2, clock=clock), clock, range(40), seconds_each=60) == [2]


def test_no_group_follows_a_first_one_that_took_the_time_but_not_as_long_as_expected():
    clock = Clock()
    box = TimeBox(100, 1, expected=5000, clock=clock)
    assert groups_of(box, clock, range(40), seconds_each=500) == [1]


# A group that is late

DEADLINES = Deadlines(100, 150, 200)


def group_after(seconds_per_round, *, rounds=4, count=8):
    """A group that should end after 100 seconds, once it has had one reply per round and
    conversation; each round takes so long, and of two, the second half as many conversations.
    """
    clock = Clock()
    with Bar(count * rounds) as bar:
        numbers = range(10, 10 + count)
        group = ConversationGroup(numbers, rounds, bar, DEADLINES, clock=clock)
        for seconds in seconds_per_round:
            clock.now += seconds
            for _ in range(group.size):
                group(1)
    return group, bar


def stops(group):
    return [number for number in group.numbers if group.should_stop(number)]


def test_a_group_in_time_stops_no_conversation():
    group, bar = group_after([20, 20, 25, 25])
    assert stops(group) == [] and bar.done == bar.total == 32


def test_a_late_group_gets_smaller_after_a_round_and_again_if_that_is_not_enough():
    group, bar = group_after([40])  # about 40 per round and more, with 60 seconds left
    assert 2 <= group.size <= 4
    assert stops(group) == list(range(10 + group.size, 18))
    assert bar.total == 8 + 3 * group.size
    later, _ = group_after([40, 40])
    assert 1 <= later.size < group.size


def test_a_group_is_halved_if_a_round_is_overdue_and_again_after_as_long():
    clock = Clock()
    with Bar(32) as bar:
        group = ConversationGroup(range(8), 4, bar, DEADLINES, clock=clock)
        sizes = []
        for clock.now in (47, 48, 90, 97):  # the first round should take 19 seconds
            group.should_stop(0)
            sizes.append(group.size)
    assert sizes == [8, 4, 4, 2]


def test_the_first_replies_of_a_round_tell_nothing_of_its_pace():
    clock = Clock()
    with Bar(32) as bar:
        group = ConversationGroup(range(8), 4, bar, DEADLINES, clock=clock)
        clock.now = 20
        for _ in range(7):
            group(1)
    assert group.size == 8


def test_the_last_conversation_goes_on_until_well_after_the_time():
    group, _ = group_after([90])
    assert stops(group) == list(range(11, 18))
    group.clock.now = 149
    assert stops(group) == list(range(11, 18))
    group.clock.now = 151
    assert stops(group) == list(range(10, 18))


def test_after_the_time_conversations_go_on_only_until_the_first_has_ended(capsys):
    clock = Clock()
    ended = []
    with Bar(32) as bar:
        group = ConversationGroup(
            range(8), 4, bar, Deadlines(100, 115, 165), lambda: bool(ended), clock
        )
        group.size = 1
        clock.now = 116
        assert stops(group) == list(range(1, 8))
        assert "no conversation has ended" in capsys.readouterr().err
        ended.append(0)
        assert stops(group) == list(range(8))
        ended.clear()
        clock.now = 166
        assert stops(group) == list(range(8))


# The time that is left after loading


@pytest.mark.parametrize("spent", [0, 10, 40, 69])
def test_loading_conversations_and_results_fit_into_the_time(spent, capsys):
    seconds = first_run._seconds_to_converse(120, spent)
    box = TimeBox(seconds, 1, clock=Clock())
    give_up = box.deadlines.give_up
    assert give_up > 40 and spent + give_up <= 120 - 10 + 1e-6
    assert not capsys.readouterr().err


def test_a_load_that_takes_most_of_the_time_is_reported(capsys):
    seconds = first_run._seconds_to_converse(120, 100)
    assert TimeBox(seconds, 1, clock=Clock()).deadlines.give_up == pytest.approx(40)
    assert "took 2 minutes; the conversations get 40 seconds" in capsys.readouterr().err
