"""The sessions and subagents in a file of Claude Code's, each a tree of lines.

Each line names its parent. Rewinding, or editing a question, begins another branch; the branch of
the last message is the active one. For example, the user edited a question:

    user 1 -> assistant 2 -> user 3 -> assistant 4
                          -> user 5 -> assistant 6    -> active={1, 2, 5, 6}, abandoned: 3, 4
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from holdfast.plurals import count_of
from holdfast.transcripts.reader import Unread, file_of, position_of
from holdfast.transcripts.readers.claude_code.session_lines import SessionLine
from holdfast.transcripts.transcript import Event, Transcript, branched_transcript, path_to


@dataclass(frozen=True)
class SessionTree:
    """The lines of a session or a subagent.

    Args:
        source: the file, and the session in it.
        lines: in the order of the file.
        parents: the id of the line before each.
        active: the ids of the lines on the active path.
    """

    source: str
    lines: Sequence[SessionLine]
    parents: Mapping[str, str | None]
    active: Set[str]
    is_of_subagent: bool = False

    @property
    def path(self) -> list[SessionLine]:
        """The lines of the active path, each after the line that it names as its parent."""
        path: dict[str, SessionLine] = {}
        waiting: dict[str, list[SessionLine]] = {}  # by the parent, which is later in the file
        later = {line.id for line in self.lines if line.id in self.active}
        for line in self.lines:
            if line.parent in later and line.parent != line.id:
                waiting.setdefault(str(line.parent), []).append(line)
                continue
            ready = [line] if line.id in later else []
            while ready:
                first = ready.pop(0)
                path[first.id] = first
                later.discard(first.id)
                ready += waiting.pop(first.id, [])
        in_circles = [line for line in self.lines if line.id in later]
        return [*path.values(), *in_circles]

    @property
    def abandoned(self) -> list[SessionLine]:
        """The lines that are not on the active path."""
        return [line for line in self.lines if line.id not in self.active]

    def branches_left_out(self) -> Iterator[Unread]:
        """Yields a note on the messages that are on abandoned branches, if there are any."""
        if messages := [line for line in self.abandoned if line.is_message]:
            count = count_of(len(messages), "message")
            yield Unread(
                f"{self.source}: left out {count} of abandoned branches (rewound or retracted, or"
                f" the question was edited), from {position_of(messages[0].source)} on"
            )

    def transcript(self, nodes: Mapping[str, Sequence[Event]]) -> Transcript:
        """Returns the transcript, given the events of each line."""
        order = [line.id for line in self.path]
        transcript = branched_transcript(self.source, nodes, self.parents, order)
        return replace(transcript, is_of_subagent=self.is_of_subagent)


def session_trees(lines: Sequence[SessionLine]) -> Iterator[SessionTree]:
    """Finds the sessions in a file, and their subagents."""
    sessions: list[SessionLine] = []  # a resumed session may continue under another id
    unnamed_subagents: dict[str, list[SessionLine]] = {}  # by session
    named_subagents: dict[tuple[str, str], list[SessionLine]] = {}
    for line in lines:
        if line.agent:
            named_subagents.setdefault((line.agent, line.session), []).append(line)
        elif line.is_of_sidechain:
            unnamed_subagents.setdefault(line.session, []).append(line)
        else:
            sessions.append(line)
    yield from _sessions(sessions)
    for session, agent_lines in unnamed_subagents.items():  # each subagent begins a tree
        trees = _trees(agent_lines, _parents_of(agent_lines))
        trees = [tree for tree in trees if _has_message(tree)]
        for number, tree in enumerate(trees, start=1):
            count = f" {number}" if len(trees) > 1 else ""
            yield _subagent(f"session {session} sidechain{count}", tree)
    for (agent, session), agent_lines in named_subagents.items():
        if _has_message(agent_lines):
            yield _subagent(f"session {session} {agent}", agent_lines)


def _has_message(lines: Sequence[SessionLine]) -> bool:
    return any(line.is_message for line in lines)


def _subagent(name: str, lines: Sequence[SessionLine]) -> SessionTree:
    """Makes the tree of a subagent, all of which is active, as no user rewinds it."""
    source = f"{file_of(lines[0].source)}, {name}"
    line_ids = _without_retracted({line.id for line in lines}, lines)
    return SessionTree(source, lines, _parents_of(lines), line_ids, is_of_subagent=True)


def _sessions(lines: Sequence[SessionLine]) -> Iterator[SessionTree]:
    """Finds the sessions; a file has several if it was joined, or its context was cleared."""
    parents = _parents_of(lines)
    by_session: dict[tuple[str, int], list[SessionLine]] = {}
    cleared = 0
    for tree in _trees(lines, parents):
        if by_session and tree[0].clears_context:
            cleared += 1
        last = next((line for line in reversed(tree) if line.is_message), None)
        if last is not None:
            by_session.setdefault((last.session, cleared), []).extend(tree)
    order = {line.id: number for number, line in enumerate(lines)}
    for (session, number), unordered in by_session.items():
        ordered = sorted(unordered, key=lambda line: order[line.id])
        count = f", cleared {number}" if number else ""
        source = f"{file_of(ordered[0].source)}, session {session}{count}"
        yield SessionTree(source, ordered, parents, _active(ordered, parents))


def _parents_of(lines: Sequence[SessionLine]) -> dict[str, str | None]:
    """Returns the parent of each line; for a parent that is not in the file, the line before it."""
    ids = {line.id for line in lines}
    names_parents = any(line.parent for line in lines) or not any(
        line.is_root for line in lines if line.kind == "assistant"
    )
    parents: dict[str, str | None] = {}
    before: dict[str, str] = {}  # the id of the last line of each session so far
    for line in lines:
        parent = line.parent
        begins = names_parents and line.is_root and not (line.is_boundary or line.is_summary)
        if not begins and parent not in ids:
            parent = before.get(line.session)
        parents[line.id] = parent
        before[line.session] = line.id
    for line in lines:
        _put_after_summary(line, parents)
    return parents


def _put_after_summary(boundary: SessionLine, parents: dict[str, str | None]) -> None:
    """Puts the lines that a compaction kept unchanged after its summary.

    The session continues from the last of these lines. Without this, the boundary and the summary
    would not be on the path to the last message.
    """
    if not boundary.compaction:
        return
    head, anchor, tail = (boundary.preserved(name) for name in ("head", "anchor", "tail"))
    if not {head, anchor, tail} <= parents.keys() or head not in path_to(tail, parents):
        return
    for child, parent in parents.items():
        if parent == anchor:
            parents[child] = tail
    parents[boundary.id] = parents[head]
    parents[head] = anchor


def _trees(
    lines: Sequence[SessionLine], parents: Mapping[str, str | None]
) -> list[list[SessionLine]]:
    """Groups lines by their root, in the order of the file."""
    roots: dict[str, str] = {}
    trees: dict[str, list[SessionLine]] = {}
    for line in lines:
        climb: dict[str, None] = {}  # from the line up to the first line whose root is known
        above: str | None = line.id
        while above is not None and above in parents and not (above in roots or above in climb):
            climb[above] = None
            above = parents[above]
        root = roots.get(above or "") or next(reversed(climb))
        roots.update(dict.fromkeys(climb, root))
        trees.setdefault(root, []).append(line)
    return list(trees.values())


def _active(lines: Sequence[SessionLine], parents: Mapping[str, str | None]) -> set[str]:
    """Returns the ids on the path to the last message, and on the branches of parallel calls."""
    last = next(line for line in reversed(lines) if line.is_message)
    answers = {line.parent: line for line in lines if line.is_message}
    followed_ids = {last.id}
    # a message may be written before its parent
    while (answer := answers.get(last.id)) and answer.id not in followed_ids:
        last = answer
        followed_ids.add(last.id)
    active = _with_parallel_calls(set(path_to(last.id, parents)), lines)
    return _without_retracted(active, lines)


def _with_parallel_calls(path_ids: set[str], lines: Sequence[SessionLine]) -> set[str]:
    """Adds the ids of all blocks of the replies on a path, and of the results of their calls.

    Tools that are called at the same time make branches as well.
    """
    active = path_ids
    before = 0
    while len(active) != before:
        before = len(active)
        on_path = [line for line in lines if line.id in active]
        replies = {line.reply_id for line in on_path} - {""}
        calls = set[str]().union(*(line.ids_in("tool_use", "id") for line in on_path))
        active = active | {
            line.id
            for line in lines
            if line.reply_id in replies or line.ids_in("tool_result", "tool_use_id") & calls
        }
    return active


def _without_retracted(ids: set[str], lines: Sequence[SessionLine]) -> set[str]:
    """Removes the ids of replies that were replaced or retracted."""
    return ids.difference(*(line.retracted_ids for line in lines))
