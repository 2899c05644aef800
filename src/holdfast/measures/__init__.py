"""Measures score a reply from 0 (the instruction is broken) to 1 (it is followed).

They are pure, deterministic and offline, and no string makes them raise. `build` makes a measure
from a spec, and `catalogue` lists the built-in ones. Importing this package loads no lexicons or
word lists; these are read when a measure first needs them.
"""

from holdfast.measures import (  # each of these modules registers its measures
    combined,
    commits,
    conduct,
    content,
    counting,
    grammar,
    ifeval,
    judging,
    language,
    layout,
    mentioned_numbers,
    multiple_choice,
    procedure,
    pull_requests,
    released,
    sentiment,
    syllables,
    user_functions,
    written_files,
)
from holdfast.measures.arguments import list_names
from holdfast.measures.measure_specs import Measure, build
from holdfast.measures.registry import catalogue
from holdfast.measures.scores import Score
from holdfast.measures.user_functions import as_measure
