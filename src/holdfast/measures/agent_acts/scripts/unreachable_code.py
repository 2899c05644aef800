"""Finds the parts of a Bash script that never run: behind a condition that fails, and after `exit`.

    if false; then git push; fi   ->  `git push` never runs
    exit 0; git push              ->  `git push` never runs
    make || exit 1; git push      ->  all of it may run

A condition is decided only if it has no variables, as `false` and `[ 1 = 2 ]` have none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.scripts.constant_tests import holds

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 100  # of statements within statements; deeper ones are taken to run
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_SHELLS = ("bash", "sh", "zsh", "fish")  # `exec zsh` is typed into a shell that goes on as another
# what a script has whose parts may never run, for a quick look
_MAY_LEAVE = re.compile(r"\b(?:exit|return|break|continue|exec|true|false|test)\b|\[ |\(\(|:\s")
# what may end an endless loop
_LEAVES_LOOP = re.compile(r"\b(?:break|return|exit|exec|kill)\b")


class _Leaves(IntEnum):
    """The part that a statement always leaves: a loop, a function, or the shell."""

    NOTHING = 0
    LOOP = 1
    FUNCTION = 2
    SHELL = 3


@dataclass(frozen=True)
class _Outcome:
    """How a statement ends.

    Args:
        succeeds: whether its exit status is 0; None if that is not known.
        leaves: what it always leaves, so that the statements after it do not run.
    """

    succeeds: bool | None = None
    leaves: _Leaves = _Leaves.NOTHING


_UNKNOWN = _Outcome()
_SUCCEEDS = _Outcome(succeeds=True)
_FAILS = _Outcome(succeeds=False)
_EXITS = _Outcome(leaves=_Leaves.SHELL)
_OUTCOMES = {
    **{"true": _SUCCEEDS, ":": _SUCCEEDS, "false": _FAILS},
    **{"exit": _EXITS, "return": _Outcome(leaves=_Leaves.FUNCTION)},
    **dict.fromkeys(("break", "continue"), _Outcome(leaves=_Leaves.LOOP)),
}


def unreachable_nodes(root: "Node", *, returns: bool) -> set[int]:
    """Returns the ids of the statements of a script that never run.

    A script with a syntax error has none, as its parts are not known.

    Args:
        root: of the syntax tree of the script.
        returns: whether a `return` outside of functions ends the script; in a script that Bash
            runs, rather than sources, it fails.
    """
    if root.has_error or not _MAY_LEAVE.search(_text(root)):
        return set()
    analysis = _Analysis(returns=returns)
    for script in _scripts_in(root):
        analysis.run_all(script.children)
    return analysis.unreachable


def _scripts_in(root: "Node") -> list["Node"]:
    """Returns the nodes of a script and of the substitutions in it."""
    scripts = [root]
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.type in _SUBSTITUTIONS:
            scripts.append(node)
    return scripts


class _Analysis:
    """Goes through the statements of a script in the order in which they may run."""

    def __init__(self, *, returns: bool, around: "_Analysis | None" = None) -> None:
        """Begins the analysis of a script, or of a function whose call is in another analysis.

        Args:
            returns: whether `return` ends what is analysed.
            around: the analysis that the call is in; None for a script.
        """
        self.unreachable: set[int] = set()
        self._returns = returns
        # the bodies of functions, by their names
        self._functions: dict[str, Node] = around._functions if around else {}
        # how the functions end, by the ids of their bodies
        self._outcomes: dict[int, _Outcome] = around._outcomes if around else {}
        self._depth: int = around._depth if around else 0
        self._num_loops = 0  # that the statement is in

    def run_all(self, nodes: Sequence["Node"]) -> _Outcome:
        """Runs statements one after the other, up to the first that leaves them."""
        outcome = _SUCCEEDS
        for node in nodes:
            if node.type == "&":  # the statement before runs in a shell of its own
                outcome = _SUCCEEDS
            elif not node.is_named or node.type == "comment":
                continue
            elif outcome.leaves:
                self.unreachable.add(node.id)
            else:
                outcome = self._run(node)
        return outcome

    def _run(self, node: "Node") -> _Outcome:
        if self._depth >= _MAX_DEPTH:
            return _UNKNOWN
        self._depth += 1
        try:
            return self._run_by_type(node)
        finally:
            self._depth -= 1

    def _run_by_type(self, node: "Node") -> _Outcome:
        match node.type:
            case "command":
                return self._run_command(node)
            case "test_command":
                return _Outcome(holds(_text(node)))
            case "negated_command":
                inner = self.run_all(node.named_children)
                is_known = inner.succeeds is not None
                return _Outcome(not inner.succeeds if is_known else None, inner.leaves)
            case "redirected_statement":
                return self._run_redirected(node)
            case "list":
                return self._run_list(node)
            case "pipeline":  # each part runs in a subshell
                outcomes = [self._run(child) for child in node.named_children]
                return _Outcome(outcomes[-1].succeeds if outcomes else None)
            case "subshell":
                self.run_all(node.children)
            case "compound_statement" | "do_group":
                if node.children[0].type == "((":
                    return _Outcome(holds(_text(node)))
                return self.run_all(node.children)
            case "if_statement":
                return self._run_if(node)
            case "while_statement":
                return self._run_while(node)
            case "for_statement" | "c_style_for_statement":
                self._run_loop(node.child_by_field_name("body"))
            case "case_statement":
                return self._run_case(node)
            case "function_definition":
                self._define_function(node)
        return _UNKNOWN

    # Commands

    def _run_command(self, node: "Node") -> _Outcome:
        name = node.child_by_field_name("name")
        words = [_text(word) for word in node.children_by_field_name("argument")]
        program = _text(name) if name is not None else ""
        if body := self._functions.get(program):
            return self._call(body)
        if program == "exec" and words and re.match(r"[\w./]", words[0]):
            return _UNKNOWN if words[0] in _SHELLS else _EXITS
        if program == "test":
            return _Outcome(holds(f"[ {' '.join(words)} ]"))
        outcome = _OUTCOMES.get(program, _UNKNOWN)
        if outcome.leaves is _Leaves.FUNCTION and not self._returns:
            return _FAILS
        return _UNKNOWN if outcome.leaves is _Leaves.LOOP and not self._num_loops else outcome

    def _define_function(self, node: "Node") -> None:
        name, body = (node.child_by_field_name(field) for field in ("name", "body"))
        if name is not None and body is not None:
            self._functions[_text(name)] = body

    def _call(self, body: "Node") -> _Outcome:
        """Runs a function. Its unreachable statements are found when its body is read by itself."""
        if body.id not in self._outcomes:
            self._outcomes[body.id] = _UNKNOWN  # of a function that calls itself
            inner = _Analysis(returns=True, around=self)
            if inner._run(body).leaves is _Leaves.SHELL:
                self._outcomes[body.id] = _EXITS
        return self._outcomes[body.id]

    def _run_redirected(self, node: "Node") -> _Outcome:
        """Runs `make > log`; what succeeds may fail by its redirection."""
        body = node.child_by_field_name("body")
        if body is None:
            return _SUCCEEDS
        inner = self._run(body)
        return _Outcome(False if inner.succeeds is False else None, inner.leaves)

    def _run_list(self, node: "Node") -> _Outcome:
        """Runs `a && b || c`, which the grammar nests: the list `a && b`, `||` and `c`."""
        parts: list[tuple[bool, Node]] = []  # each part, and whether `&&` is before it
        while node.type == "list":
            is_and = any(child.type == "&&" for child in node.children)
            parts.append((is_and, node.named_children[-1]))
            node = node.named_children[0]
        outcome = self._run(node)
        for needs_success, part in reversed(parts):
            if outcome.leaves or outcome.succeeds is (not needs_success):
                self.unreachable.add(part.id)
                continue
            following = self._run(part)
            if outcome.succeeds is not None:
                outcome = following
            elif following.leaves or following.succeeds is (not needs_success):
                outcome = _Outcome(not needs_success)  # as far as the list goes on at all
            else:
                outcome = _UNKNOWN
        return outcome

    # Branches and loops

    def _run_if(self, node: "Node") -> _Outcome:
        outcomes: list[_Outcome] = []  # of the branches that may run
        is_decided = False  # whether one of the branches before runs in any case
        for branch in _branches_of(node):
            if is_decided:
                self._mark([*branch.condition, *branch.statements])
                continue
            test = self.run_all(branch.condition) if branch.condition else _SUCCEEDS
            if test.leaves:
                self._mark(branch.statements)
                outcomes.append(test)
                is_decided = True
            elif test.succeeds is False:
                self._mark(branch.statements)
            else:
                outcomes.append(self.run_all(branch.statements))
                is_decided = test.succeeds is True
        if not is_decided:
            outcomes.append(_SUCCEEDS)
        return _outcome_of_any(outcomes)

    def _run_while(self, node: "Node") -> _Outcome:
        body = node.child_by_field_name("body")
        test = self.run_all(node.children_by_field_name("condition"))
        is_until = node.children[0].type == "until"
        if body is not None and (test.leaves or test.succeeds is is_until):
            self._mark([body])
            return test if test.leaves else _SUCCEEDS
        self._run_loop(body)
        if test.succeeds is None or body is None or _LEAVES_LOOP.search(_text(body)):
            return _UNKNOWN
        return _EXITS  # an endless loop

    def _run_loop(self, body: "Node | None") -> None:
        self._num_loops += 1
        if body is not None:
            self._run(body)
        self._num_loops -= 1

    def _run_case(self, node: "Node") -> _Outcome:
        items = [child for child in node.named_children if child.type == "case_item"]
        outcomes = []
        for item in items:
            patterns = {value.id for value in item.children_by_field_name("value")}
            outcomes.append(self.run_all([n for n in item.children if n.id not in patterns]))
        has_default = any(_text(item).lstrip("( ").startswith("*)") for item in items)
        return _outcome_of_any(outcomes) if has_default else _UNKNOWN

    def _mark(self, nodes: Sequence["Node"]) -> None:
        """Takes note of nodes that never run."""
        self.unreachable.update(node.id for node in nodes if node.is_named)


@dataclass(frozen=True)
class _Branch:
    """A branch of an `if`; `else` has no condition."""

    condition: list["Node"]
    statements: list["Node"]


def _branches_of(node: "Node") -> Iterator[_Branch]:
    """Yields the branches of an `if`."""
    clauses = [child for child in node.children if child.type in ("elif_clause", "else_clause")]
    ids = {clause.id for clause in clauses}
    first = [child for child in node.children if child.id not in ids]
    for children in (first, *(clause.children for clause in clauses)):
        then = next((n for n, child in enumerate(children) if child.type == "then"), 0)
        yield _Branch(children[1:then], children[then + 1 :])


def _outcome_of_any(outcomes: Sequence[_Outcome]) -> _Outcome:
    """Returns the outcome of one of several branches, if it is not known which of them runs."""
    if not outcomes:
        return _UNKNOWN
    statuses = {outcome.succeeds for outcome in outcomes}
    leaves = min(outcome.leaves for outcome in outcomes)
    return _Outcome(statuses.pop() if len(statuses) == 1 else None, leaves)


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")
