"""Measures: from the text of a reply to a number from 0 (instruction broken) to 1 (kept).

They are pure, deterministic and offline, and raise on no string. `build` makes one from a spec,
`catalogue` lists the built-in ones. Importing this package loads no lexicon and no list of words;
they are read when a measure first needs them.
"""

from holdfast.measures import (  # which register their measures
    choice,
    conduct,
    content,
    counting,
    grammar,
    ifeval,
    judging,
    language,
    layout,
    released,
)
from holdfast.measures.arguments import list_names
from holdfast.measures.registry import Measure, Score, as_measure, build, catalogue
