"""Each rewording brings its example into the words that the grammar knows."""

import pytest

from holdfast.drafting.grammar.usual_words import REWORDINGS, in_usual_words


@pytest.mark.parametrize("rewording", REWORDINGS, ids=[each.example for each in REWORDINGS])
def test_an_example_is_rewritten(rewording):
    assert rewording.pattern.search(rewording.example)
    assert in_usual_words(rewording.example) == rewording.rewritten
