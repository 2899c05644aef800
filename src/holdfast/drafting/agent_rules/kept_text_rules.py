"""Rules that some text stays where it is.

Preserve the `// BEGIN` and `// END` markers. -> text_kept(pattern="// BEGIN|// END")
"""

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import ADVERBS, CODES, forms, literal, whole_match

_MARKERS = r"(?:markers?|marker comments?|comments?|directives?|pragmas?|delimiters?)"
_KEPT = forms(
    {
        "Preserve the `// BEGIN` and `// END` markers": (
            rf"{ADVERBS}(?:preserve|retain) (?:the |all |any |existing )*(?P<codes>{CODES})"
            rf" {_MARKERS}(?: (?:in place|intact|as is|unchanged))?(?:,? and [^`]+)?"
        ),
        "Keep the `// BEGIN` markers in place": (
            rf"{ADVERBS}(?:keep|leave) (?:the |all |any |existing )*(?P<codes>{CODES})"
            rf" {_MARKERS} (?:in place|intact|as is|unchanged|alone|untouched|where they are)"
        ),
    }
)
_MIN_CHARACTERS = 5  # of a marker; a shorter one may stand for others


def kept_text_rule(clause: Clause) -> list[Draft]:
    """Reads "preserve the `// BEGIN` and `// END` markers"."""
    match = None if clause.is_prohibited else whole_match(_KEPT, clause.text)
    codes = codes_in(match["codes"]) if match else []
    if not codes or any(len(code) < _MIN_CHARACTERS or "..." in code for code in codes):
        return []
    pattern = any_of(map(literal, codes))
    return [Draft("code", "requirement", measure("text_kept", pattern=pattern))]
