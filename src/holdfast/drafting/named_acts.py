"""Acts that rules name in words, such as "deploy to production", and the commands that do them."""

from dataclasses import dataclass

from holdfast.drafting.forms import Form, forms, one_of, whole_match


@dataclass(frozen=True)
class Act:
    """An act that a rule may name.

    Args:
        form: the ways to name the act.
        command: the pattern of the commands that do it.
        word: the pattern of a word by which a question refers to it.
    """

    form: Form
    command: str
    word: str


def act_of(text: str) -> Act | None:
    """The act that a text names, as a whole; None if it is not a known act."""
    return next((act for act in ACTS if whole_match([act.form], text)), None)


def _act(example: str, *ways: str, command: str, word: str) -> Act:
    (form,) = forms({example: one_of(*ways)})
    return Act(form, command, word)


_ENDS = r"(?!\S)"
_NEW = r"(?: (?:an?|any|new|the|draft|GitHub))*"
# "push *any changes to git*"
_THINGS = r"(?: (?:any|the|your|new|these|code|files|all|changes?|anything|it|a|an|git|to git))*"
# "push *to the remote*"
_TO = (
    r"(?: (?:to|on|onto) (?:the |a |any )?(?:remote|origin|repo(?:sitory)?|GitHub|branch"
    r"|`?(?:main|master|origin|develop)`?)(?: branch)?)?"
)
_OPENING = one_of(
    *"open opening create creating submit submitting raise raising make making".split(),
    *"publish publishing".split(),
)
_REQUESTS = r"(?:PRs?|pull[ -]requests?|merge requests?)"
_ADDING = one_of(*("add", "adding", "install", "installing", "introduc(?:e|ing)", "chang(?:e|ing)"))
_KINDS_OF_DEPENDENCY = one_of(
    *"third-party npm external production runtime python project major heavy package".split()
)
_DEPENDENCIES = r"(?:dependency|dependencies|packages?|librar(?:y|ies)|modules)"
_INSTALLS = one_of(
    *("npm (?:install|i|add)", "pnpm (?:add|install)", "yarn add", "bun (?:add|install)"),
    *("pip3? install", "uv (?:add|pip install)", "poetry add", "cargo add", "go get"),
    *("gem install", "bundle add", "composer require", "dotnet add"),
)
_DEPLOYS = one_of(
    *("(?:npm|pnpm|yarn|make) (?:run )?deploy", "vercel", "wrangler deploy", "firebase deploy"),
    *("fly deploy", "netlify deploy", "terraform apply", "pulumi up", "cdk deploy"),
    *("az deployment", "kubectl apply", "serverless deploy", "gcloud (?:app|run) deploy"),
)
_PUBLISHES = one_of("(?:npm|pnpm|yarn|bun|cargo|uv|poetry) publish", "twine upload")
ACTS = (
    _act(
        "force-push to the main branch",
        rf"force[ -]?push(?:ing)?{_TO}",
        r"(?:use|using) `?--force`?",
        command=r"git push(?=.* (?:--force\S*|-f)(?!\S))",
        word="force",
    ),
    _act(
        "commit any changes",
        rf"(?:git |auto-?)?commit(?:ting|s)?{_THINGS}",
        r"(?:make|making|create|creating)(?: any| new| a| git)* commits?",
        r"`git commit`",
        r"run(?:ning)? `git commit`",
        command=rf"git commit{_ENDS}",
        word=r"\bcommit",
    ),
    _act(
        "push changes to the remote",
        rf"(?:git |auto-?)?push(?:ing|es)?{_THINGS}{_TO}",
        r"`git push`",
        r"run(?:ning)? `git push`",
        command=rf"git push{_ENDS}",
        word=r"\bpush",
    ),
    _act(
        "pull from the remote",
        r"pull(?:ing)?(?: from (?:the )?remote)?",
        r"`git pull`",
        command=rf"git pull{_ENDS}",
        word=r"\bpull",
    ),
    _act(
        "open new pull requests",
        rf"{_OPENING}{_NEW} {_REQUESTS}",
        r"`gh pr create`",
        command=rf"(?:gh pr create|glab mr create){_ENDS}",
        word=r"\b(?:PRs?|MR|pull|merge) ?",
    ),
    _act(
        "file an issue",
        rf"(?:open|opening|create|creating|file|filing){_NEW} issues?",
        command=rf"gh issue create{_ENDS}",
        word=r"\bissue",
    ),
    _act(
        "comment on GitHub issues",
        r"comment(?:ing)? on (?:an? |any )?(?:GitHub )?(?:issues?|PRs?|pull requests?)",
        command=rf"gh (?:issue|pr) comment{_ENDS}",
        word=r"\bcomment",
    ),
    _act(
        "merge the branch into main",
        rf"merg(?:e|ing){_NEW}(?: PRs?| pull requests?| branch(?:es)?)?"
        r" (?:in)?to `?(?:main|master|develop)`?",
        # `git merge main` brings another branch up to date
        command=(
            rf"(?:git merge(?! (?:origin/)?(?:main|master|develop){_ENDS})|gh pr merge"
            rf"|glab mr merge){_ENDS}"
        ),
        word=r"\bmerg",
    ),
    _act(
        "merge pull requests",
        rf"merg(?:e|ing){_NEW}(?: PRs?| pull requests?| branch(?:es)?)?",
        command=rf"(?:git merge|gh pr merge){_ENDS}",
        word=r"\bmerg",
    ),
    _act(
        "rebase branches",
        r"rebas(?:e|ing)(?: branch(?:es)?)?",
        command=rf"git rebase{_ENDS}",
        word=r"\brebas",
    ),
    _act(
        "amend existing commits",
        r"amend(?:ing)?(?: (?:any |existing )?commits?)?",
        command=r"git commit(?=.* --amend)",
        word=r"\bamend",
    ),
    _act(
        "create, switch, or delete branches",
        r"create(?: or switch|,? switch,? or delete) (?:git )?branches",
        r"(?:switch|change) (?:git )?branches",
        command=rf"git (?:checkout|switch){_ENDS}(?!.* --)",
        word=r"\bbranch",
    ),
    _act(
        "make a new branch",
        rf"(?:create|creating|switch|switching|make|making){_NEW}(?: git)? branch(?:es)?",
        command=r"git (?:checkout -[bB]|switch -[cC]|branch [^-\s])",
        word=r"\bbranch",
    ),
    _act(
        "add third-party dependencies",
        rf"{_ADDING}(?: or (?:use|add|install))?{_NEW}(?: (?:application|project|app)['’]s)?"
        rf"(?: {_KINDS_OF_DEPENDENCY})* {_DEPENDENCIES}",
        command=rf"{_INSTALLS} [^-\s]",
        word=r"\b(?:depend|packag|librar|instal|add)",
    ),
    _act(
        "delete existing files or folders",
        rf"(?:delet(?:e|ing)|remov(?:e|ing)){_NEW}(?: existing)? files?"
        r"(?: or (?:directories|folders))?",
        command=rf"(?:git )?rm{_ENDS}",
        word=r"\b(?:delet|remov)",
    ),
    _act(
        "rewrite history",
        r"rewrit(?:e|ing) (?:the )?(?:git |published )?history",
        command=(
            r"git (?:rebase|filter-branch|filter-repo|commit(?=.* --amend)"
            r"|push(?=.* (?:--force|-f)))"
        ),
        word=r"\b(?:rebas|rewrit|amend|force)",
    ),
    _act(
        "revert commits",
        r"revert(?:ing)?(?: (?:any |other )?(?:commits|changes))?",
        command=rf"git revert{_ENDS}",
        word=r"\brevert",
    ),
    _act(
        "create tags",
        rf"(?:create|creating|push|pushing){_NEW} (?:git )?tags?",
        r"tag releases",
        command=r"git tag (?!-l\b|--list\b)",
        word=r"\btag",
    ),
    _act(
        "deploy anything to production",
        r"deploy(?:ing)?(?: anything| (?:\w+ )?resources| changes)?(?: to (?:prod|production))?",
        command=rf"{_DEPLOYS}{_ENDS}",
        word=r"\bdeploy",
    ),
    _act(
        "publish packages to npm",
        rf"publish(?:ing)?{_NEW}(?: packages?)?(?: to (?:npm|PyPI))?",
        command=rf"{_PUBLISHES}{_ENDS}",
        word=r"\bpublish",
    ),
    _act(
        "cut a release",
        rf"(?:create|creating|cut|cutting|publish|publishing){_NEW} releases?",
        command=rf"gh release create{_ENDS}",
        word=r"\brelease",
    ),
)
