"""Which commits an agent made, with which files, and on which branch.

    git switch -c fix; git add a.py; git commit -m "fix: b"
    -> Commit(CommitMessage("fix: b"), CommitFiles(("a.py",))) on the branch `fix`

agent_commits        the commits of a turn: messages and files
commit_actions       which actions are commits
staging_commands     what each command of Git does to the staged files
staged_files         the files that are staged, and those changed since the last commit
git_commands         a command of Git with its options and paths; pathspecs, paths as Git names them
git_branches         what commands and their output say about branches
branch_tracker       the branch before each action of a script
checked_out_branch   the branch before each call of a dialog
"""
