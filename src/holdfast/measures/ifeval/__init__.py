"""The verifiable instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911, Table 1): all 25.

Each is a measure of its own that scores 0 or 1. Its name is the published id in our spelling:
`keywords:existence` is `ifeval_keywords_existence`, and its arguments have their published names.
What each accepts follows the published checkers, whose text was read and not copied; where ours
differ on purpose, the function says so (docs/suites.md has the differences, counted).
"""

from holdfast.measures.ifeval import (  # noqa: F401  importing a themed file registers its measures
    contents,
    formats,
    keywords,
    lengths,
    wholes,
)
