"""Quoted lines and blocks of output in a user's message, which are no orders of the user's."""

import time

import pytest

from holdfast.logs.quoted_lines import without_quoted_lines


@pytest.mark.parametrize(
    ("message", "is_kept"),
    [
        ("Run this:\n```\ngit push --force\n```", True),
        ("Run this:\n\n~~~sh\ngit push --force\n~~~", True),
        ("It printed:\n```\nPlease git push --force\n```\nFix the test.", False),
        ("> please git push --force\nFix the test.", False),
        pytest.param("Fix the test.\n```\nplease git push --force", True, id="unclosed block"),
    ],
)
def test_a_block_of_output_is_left_out_unless_the_user_orders_to_run_it(message, is_kept):
    assert ("git push" in without_quoted_lines(message)) is is_kept


@pytest.mark.parametrize("line", ["a", "```a\n", "run "])
def test_blocks_are_found_in_a_time_in_proportion_to_the_length_of_a_message(line):
    long_message = line * (500_000 // len(line))
    start = time.process_time()
    without_quoted_lines(long_message)
    assert time.process_time() - start < 5
