"""Words such as "push" are orders, or only nouns: in messages of the user, and in causes."""

import time

import pytest
from agent_turns import UNDECIDED, bash, judge

from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn
from holdfast.measures.user_orders import is_ordered
from holdfast.measures.wording.act_nouns import without_nouns
from holdfast.measures.wording.breaking_orders import breaking_orders

# what a rule's `ordered` pattern may be: the word for an act, in every form
PUSH = r"(?i)\bpush"
COMMIT = r"(?i)\bcommit"
MERGE = r"(?i)\bmerg"
PULL_REQUEST = r"(?i)\b(?:PRs?|MR|pull|merge) ?"
RELEASE = r"(?i)\brelease"
DEPLOY = r"(?i)\bdeploy"
TEST = r"(?i)\btest"
TAG = r"(?i)\btag"
REBASE = r"(?i)\brebas"
PUBLISH = r"(?i)\bpublish"
# a dependency, a package, to install, or "add `zod`" at the end
DEPENDENCY = r"(?i)\b(?:depend|packag|librar|instal|add(?:ing)? `?[a-z]+`?$)"
BRANCH = r"(?i)\bbranch"

# sentences in which the word for an act names a thing, or an act that was done
NOUNS = [
    (PUSH, "Fix the push notifications."),
    (PUSH, "The push notifications do not arrive on iOS."),
    (PUSH, "Add push support to the service worker."),
    (PUSH, "The last push was rejected."),
    (PUSH, "Look at push.py, the retry is wrong."),
    (PUSH, "Rename array.push() in the helper."),
    (PUSH, "git push fails with a 403 here."),
    (PUSH, "The push button is too small."),
    (PUSH, "Document the pre-push hook."),
    (PUSH, "Fix the git push error handling."),
    (COMMIT, "The commit message is wrong."),
    (COMMIT, "Explain the last commit."),
    (COMMIT, "This commit broke the login."),
    (COMMIT, "The pre-commit hook is slow."),
    (COMMIT, "Show me the commit history of this file."),
    (COMMIT, "The first two commits look good."),
    (COMMIT, "Print the commit hash in the footer."),
    (COMMIT, "My last commit removed the index."),
    (MERGE, "There are merge conflicts in app.ts."),
    (MERGE, "Resolve the merge conflicts."),
    (MERGE, "The merge sort is unstable."),
    (MERGE, "The merge queue is stuck again."),
    (MERGE, "Write tests for merge_intervals()."),
    (PULL_REQUEST, "Fix the PR description."),
    (PULL_REQUEST, "Review the pull request of Anna."),
    (PULL_REQUEST, "The PR has three comments."),
    (RELEASE, "Update the release notes."),
    (RELEASE, "The release date on the page is wrong."),
    (RELEASE, "The last release was broken."),
    (DEPLOY, "The deploy script fails on macOS."),
    (DEPLOY, "Fix the deploy workflow."),
    (DEPLOY, "The deployment took ten minutes."),
    (TEST, "The test run took long."),
    (TEST, "The test data is out of date."),
    (TAG, "The tag names are wrong in the cloud."),
    (REBASE, "The rebase went wrong yesterday."),
    (PUBLISH, "The publish button does nothing."),
    (DEPENDENCY, "The dependency is out of date."),
    (DEPENDENCY, "Explain the package layout."),
    (BRANCH, "The branch name is too long."),
]

ORDERS = [
    (PUSH, "Push it."),
    (PUSH, "Fix the push notifications and push it."),
    (PUSH, "Push the changes to main."),
    (PUSH, "Do the push, please."),
    (PUSH, "Go ahead with the push."),
    (PUSH, "Commit/push it."),
    (PUSH, "Please force-push the branch."),
    (PUSH, "git push origin main"),
    (COMMIT, "Make a commit."),
    (COMMIT, "Fix the commit message, then commit."),
    (COMMIT, "Commit config changes only."),
    (COMMIT, "Put the right number into the last commit."),
    (MERGE, "Resolve the merge conflicts and merge it."),
    (MERGE, "You can merge PR 12."),
    (PULL_REQUEST, "Open a draft PR."),
    (PULL_REQUEST, "Open a merge request."),
    (MERGE, "Merge commits of the branch into main."),
    (TEST, "Build it and test the release."),
    (PULL_REQUEST, "Fix the title and open a pull request."),
    (RELEASE, "Cut a release."),
    (DEPLOY, "Deploy functions to production."),
    (TAG, "Tag it as v1.2.0."),
    (PUBLISH, "Publish the package."),
    (DEPENDENCY, "Add a dependency on zod."),
    (BRANCH, "Create a branch for it."),
]


@pytest.mark.parametrize(("act", "message"), NOUNS)
def test_a_noun_orders_no_act(act, message):
    assert is_ordered(act, message) is False


@pytest.mark.parametrize(("act", "message"), ORDERS)
def test_a_verb_orders_the_act(act, message):
    assert is_ordered(act, message) is True


@pytest.mark.parametrize(
    "message",
    ["After the push, tell me.", "Cancel the push.", "Now the push.", "The push is fine."],
)
def test_a_noun_that_takes_the_act_for_granted_is_not_decided(message):
    assert is_ordered(PUSH, message) is None


ASKS_BEFORE_PUSH = {
    "name": "asks_before",
    "command": "git push",
    "asking": r"\bpush",
    "ordered": r"\bpush",
}
# what the assistant said, what the user said then, and whether a push has the user's approval
ANSWERS = [
    ("Shall I push now? I also fixed the docs. OK?", "yes", 1),
    ("Shall I push now?\n\nI also fixed the docs. OK?", "yes", 1),
    ("Want me to push to main?\n\nThe docs are done as well. Does that sound good?", "yes", 1),
    ("I will push to main next. Sounds good?", "yes", 1),
    ("Shall I push now? I also fixed the docs. OK?", "no", 0),
    ("Shall I push? Shall I use the branch of the ticket?", "yes", 1),
    ("Should I push or wait?", "yes", UNDECIDED),
    ("Should I push or wait?", "no", 0),
    ("Should I push or wait?", "push", 1),
    ("Should I push to main or to a branch?", "yes", 1),
    ("Should I push or not?", "yes", 1),
    ("I did not push yet. I fixed the docs. OK?", "no", 0),
    ("I did not push yet. I fixed the docs. OK?", "yes", UNDECIDED),
    ("I am about to push. Is the title right?", "yes", UNDECIDED),
    ("I won't push anything. Is the title fine?", "yes", 0),
    ("I pushed the first part. Shall I fix the docs?", "yes", 0),
    ("Shall I fix the push notifications?", "yes", 0),
    ("May I push?\n\nBy the way, which port do you use?", "8080", 0),
    ("Done.", "Fix the push notifications.", 0),
    ("Done.", "The commit message is wrong.", 0),
    ("Shall I push it?", "Yes. The push notifications work.", 1),
]


@pytest.mark.parametrize(("previous", "user", "expected"), ANSWERS)
def test_an_answer_is_to_the_question_that_names_the_act(previous, user, expected):
    turn = AssistantTurn("", (bash("git push"),), user=user, previous=previous)
    assert judge(ASKS_BEFORE_PUSH, turn) == expected


@pytest.mark.parametrize(
    ("message", "is_order"),
    [
        ("Fix the push notifications.", False),
        ("Publish the post and fix the push notifications.", True),
        ("Push it.", True),
        ("Fix the last push.", False),
        ("Go ahead with the push.", True),
    ],
)
def test_an_order_against_a_rule_names_its_act(message, is_order):
    measure = build({"name": "command_not_run", "command": "git push"})
    assert any(breaking_orders(message, measure)) is is_order


def test_the_nouns_of_a_clause_are_left_out():
    assert without_nouns("fix the push notifications and push it") == (
        "fix the notifications and push it"
    )


@pytest.mark.parametrize(
    ("act", "message", "is_order"),
    [
        (COMMIT, "Commit messages.py and utils.py.", True),
        (PUSH, "Rebase/push when it is green.", True),
        (COMMIT, "Split it into two commits.", True),
        (COMMIT, "Write a commit.", True),
        (COMMIT, "Revert the last commit.", None),
        (COMMIT, "Squash the commits.", None),
        (DEPLOY, "Run the deploy.", True),
        (DEPLOY, "Run the deploy script.", True),
        (DEPLOY, "Start the deploy pipeline.", True),
        (DEPLOY, "Run the app and fix the deploy script.", False),
        (PUSH, "I want this pushed.", True),
        (PUSH, "This pushed image is broken.", False),
        (PULL_REQUEST, "Can you PR this?", True),
        (PULL_REQUEST, "PR please", True),
        (PULL_REQUEST, "Let's get a PR up.", True),
    ],
)
def test_an_order_may_name_its_act_with_a_noun(act, message, is_order):
    assert is_ordered(act, message) is is_order


def test_a_long_message_without_sentences_takes_time_in_proportion_to_its_length():
    start = time.monotonic()
    is_ordered(PUSH, "the push " * 2_000)
    assert time.monotonic() - start < 5
