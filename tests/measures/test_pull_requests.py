"""Rules about pull requests: titles, sections, drafts and bases, by every command and tool."""

import pytest
from agent_turns import UNDECIDED, bash, call, did, judge, ran

from holdfast.measures.turns import AssistantTurn as Turn

BODY = "## Summary\nIt adds up.\n\n**Test plan:**\nNone."
PULL = {
    "name": "pull_request",
    "title": r"^(feat|fix): \S",
    "sections": ["Summary", "## Test plan"],
}
GH = "gh pr create --title 'fix: x'"
GH_API = "gh api repos/o/r/pulls"
DRAFT = {"name": "pull_request", "draft": True}
INTO_DEVELOP = {"name": "pull_request", "base": r"\Adevelop\Z"}
PULLS = [
    (PULL, ran(f"{GH} --body \"$(cat <<'EOF'\n{BODY}\nEOF\n)\""), 1),
    (PULL, ran(f"{GH} -F - <<'EOF'\n{BODY}\nEOF"), 1),
    (PULL, ran(f"{GH} --body-file=- <<'EOF'\n{BODY}\nEOF"), 1),
    (PULL, ran(f"cd app && gh pr create -t 'fix: x' -b '{BODY}' -l bug -d"), 1),
    (PULL, ran(f"cat > b.md <<'EOF'\n{BODY}\nEOF\n{GH} -F b.md"), 1),
    (PULL, did(call("Write", file_path="/tmp/b.md", content=BODY), bash(f"{GH} -F /tmp/b.md")), 1),
    (PULL, did(call("Write", file_path="b.md", content=BODY), bash(f'{GH} -b "$(cat b.md)"')), 1),
    (PULL, Turn("", (bash(f"{GH} -F b.md"),), (call("Write", file_path="b.md", content="x"),)), 0),
    (PULL, ran(f"{GH} --body-file b.md"), UNDECIDED),
    (PULL, ran(f"{GH} --body \"$BODY\""), UNDECIDED),
    (PULL, ran("gh pr create --fill"), UNDECIDED),
    (PULL, ran("gh pr create --title Update --body-file b.md"), 0),  # whatever its body is
    (PULL, ran(f"{GH} --body 'It adds up.'"), 0),
    (PULL, ran(f"{GH} --body '{BODY.replace('Test plan', 'The test plan')}'"), 0),
    (PULL, ran(f"{GH} -b '{BODY}'", f"gh pr create -t Update -b '{BODY}'"), 0.5),
    (PULL, ran("gh pr view --json title", "gh pr list"), None),
    (PULL, ran(f"echo \"{GH}\""), None),
    (PULL, ran(f"glab mr create -t 'fix: x' -d '{BODY}' --yes"), 1),
    (PULL, ran(f"glab mr create -t 'Update' -d '{BODY}'"), 0),
    (PULL, ran(f"{GH_API} -f title='fix: x' -f head=a -f base=b -f body='{BODY}'"), 1),
    (PULL, ran(f"{GH_API} -f title='fix: x' -f head=a -f base=b -f body='x'"), 0),
    (PULL, ran("gh api repos/o/r/pulls"), None),
    (PULL, did(call("mcp__github__create_pull_request", title="fix: x", body=BODY)), 1),
    (PULL, did(call("mcp__github__create_pull_request", title="fix: x")), 0),
    (PULL, did(call("create_merge_request", title="fix: x", description=BODY)), 1),
    (PULL, did(call("mcp__github__create_pull_request_review", body="x")), None),
    (DRAFT, ran(f"{GH} --draft"), 1),
    (DRAFT, ran(f"{GH} -dB main"), 1),
    (DRAFT, ran(GH), 0),
    (DRAFT, ran(f"{GH} -b --draft"), 0),  # the body is "--draft"
    (DRAFT, ran("glab mr create -t 'Draft: x' -d y"), 1),
    (DRAFT, did(call("create_pull_request", title="x", draft=True)), 1),
    (DRAFT, did(call("create_pull_request", title="x", draft=False)), 0),
    ({**DRAFT, "draft": False}, ran(f"{GH} --draft"), 0),
    (INTO_DEVELOP, ran(f"{GH} --base develop"), 1),
    (INTO_DEVELOP, ran(f"{GH} -B main"), 0),
    (INTO_DEVELOP, ran(GH), UNDECIDED),
    (INTO_DEVELOP, did(call("createPullRequest", title="x", base="develop")), 1),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), PULLS)
def test_pull_requests(rule, turn, score):
    assert judge(rule, turn) == score
