"""The ranges of keys that a step reads as the span and as the rest."""

import itertools
import random

import torch

from holdfast.attention.key_groups import Extent


def assert_range_has(group, members):
    """All members are inside the range; a pure range contains nothing else."""
    inside = range(0) if group is None else range(group.start, group.stop)
    for row, at in itertools.product(range(len(members)), range(len(members[0]))):
        assert not members[row][at] or at in inside
        assert group is None or not group.pure or at not in inside or members[row][at]


def test_group_ranges_match_a_check_of_every_key():
    rng = random.Random(0)
    for _ in range(3000):
        rows, width = rng.randint(1, 3), rng.randint(1, 6)
        prompt = [rng.randint(max(1, width - 2), width) for _ in range(rows)]
        alike = rng.random() < 0.5
        edges = sorted(rng.sample(range(width + 1), 2))
        span = [
            [
                (edges[0] <= at < edges[1] if alike else rng.random() < 0.5) and at < prompt[row]
                for at in range(width)
            ]
            for row in range(rows)
        ]
        includes = [rng.random() < 0.5 for _ in range(rows)]
        first = rng.randint(0, width - 1)
        last = rng.randint(max(first, width - 1) + 1, width + 3)
        groups = Extent.of(torch.tensor(span), prompt, includes).groups(first, last)
        members = [
            [
                (at < width and span[row][at]) or (includes[row] and at >= prompt[row])
                for at in range(first, last)
            ]
            for row in range(rows)
        ]
        assert_range_has(groups.span, members)
        assert_range_has(groups.rest, [[not line for line in row] for row in members])
        columns = range(first, last)
        assert_range_has(
            groups.prompt_span, [[at < width and line[at] for at in columns] for line in span]
        )
        if groups.never_empty:
            assert all(any(row) and not all(row) for row in members)
