"""Measures map the text of a reply to a number from 0 (instruction broken) to 1 (followed).

They are pure, deterministic and offline, and no string makes them raise. `build` makes one from a
spec, `catalogue` lists the built-in ones. Importing this package does not load lexicons or word
lists; they are read when a measure first needs them.
"""

from holdfast.measures import (  # these register their measures
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
