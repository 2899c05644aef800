"""Tells whether a test of constants in a Bash script holds.

For example:

    [ 1 = 2 ]          ->  False
    [[ "a" != "b" ]]   ->  True
    ((1))              ->  True
    [ -n "$A" ]        ->  None: the value of a variable is not known
"""

import operator
import re
from collections.abc import Callable, Mapping

_COMPARISON = re.compile(
    r"""\[?\[\s+(["']?)(?P<left>[\w./-]*)\1\s+(?P<operator>==?|!=|-eq|-ne|-lt|-le|-gt|-ge)"""
    r"""\s+(["']?)(?P<right>[\w./-]*)\4\s+\]?\]"""
)
_ARITHMETIC = re.compile(r"\(\(\s*(?P<number>\d+)\s*\)\)")  # ((1))
# the test of a single text, as in [ -n "" ]
_TEXT = re.compile(r"""\[?\[\s+(?:(?P<option>-[nz])\s+)?(["']?)(?P<text>[\w./]*)\2\s+\]?\]""")
_INTEGER = re.compile(r"-?\d+")
_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}


def holds(test: str) -> bool | None:
    """Returns whether a test of constants holds; None for any other test."""
    if single := _TEXT.fullmatch(test):
        is_empty = not single["text"]
        return is_empty if single["option"] == "-z" else not is_empty
    if arithmetic := _ARITHMETIC.fullmatch(test):
        return int(arithmetic["number"]) != 0
    if comparison := _COMPARISON.fullmatch(test):
        return _compare(comparison["left"], comparison["operator"], comparison["right"])
    return None


def _compare(left: str, sign: str, right: str) -> bool | None:
    if sign == "!=":
        return left != right
    if sign in ("=", "=="):
        return left == right
    if not (_INTEGER.fullmatch(left) and _INTEGER.fullmatch(right)):
        return None
    return _OPERATORS[sign](int(left), int(right))
