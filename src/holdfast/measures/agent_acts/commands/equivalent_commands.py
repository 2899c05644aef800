"""Other ways to write a command that do the same, or a part of it, which rules may name it by.

For example:

    npm run test       ->  `npm test`
    make -j 8 lint all ->  `make lint`, `make all`
    rm -f -r build     ->  `rm -rf build`, `rm --recursive --force build`
    ri dist            ->  `Remove-Item dist`
"""

from holdfast.measures.agent_acts.commands.option_forms import option_forms
from holdfast.measures.agent_acts.commands.shell_commands import ANY_OPTION, Reading, is_redirection


def equivalents_of(reading: Reading) -> list[Reading]:
    """Returns the other ways to write a command."""
    return [
        *_package_script_forms(reading),
        *_single_targets(reading),
        *option_forms(reading),
        *_cmdlet_forms(reading),
    ]


# --- Scripts of package.json

# scripts that run without `run` too; pnpm and yarn run every other script so, if its name is not
# that of a command of their own
_SCRIPTS_WITHOUT_RUN = ("test", "start", "stop", "restart")
_SHORT_FOR_TEST = ("t", "tst")
_RUN = ("run", "run-script")
_RUN_EVERY_SCRIPT = ("pnpm", "yarn")
_OWN_COMMANDS = frozenset(
    "access add approve-builds audit bin cache cat-file catalog ci completion config constraints"
    " create dedupe deploy deprecate dlx doctor env exec explain explore fetch fund get global help"
    " i import info init install install-test it licenses link list ll ln login logout ls node"
    " outdated owner pack patch patch-commit patch-remove ping pkg plugin policies prefix prune"
    " publish rb rebuild recursive remove rm root sbom search self-update server set setup stage"
    " store tag team un unplug uninstall unlink up update upgrade upgrade-interactive version"
    " versions view whoami why workspace workspaces".split()
)


def _package_script_forms(reading: Reading) -> list[Reading]:
    """Returns the run of a script with `run`, or without it: `npm test` for `npm run test`."""
    program, *rest = reading.words
    if program == "yarn" and rest[:1] == ["workspace"] and len(rest) > 2:
        inner = reading.reduce_to((program, *rest[2:]), *rest[:2])
        return [inner, *_package_script_forms(inner)]
    if program not in ("npm", *_RUN_EVERY_SCRIPT) or not rest:
        return []
    if rest[0] in _SHORT_FOR_TEST:
        return [
            reading.reduce_to((program, "test", *rest[1:])),
            reading.reduce_to((program, "run", "test", *rest[1:])),
        ]
    if rest[0] in _RUN and len(rest) > 1 and _runs_without_run(program, rest[1]):
        return [reading.reduce_to((program, *rest[1:]), rest[0])]
    if _runs_without_run(program, rest[0]):
        return [reading.reduce_to((program, "run", *rest))]
    return []


def _runs_without_run(program: str, script: str) -> bool:
    is_own = script in _OWN_COMMANDS or script in _RUN or script.startswith("-")
    return script in _SCRIPTS_WITHOUT_RUN or (program in _RUN_EVERY_SCRIPT and not is_own)


# --- Targets

# programs that run each of their arguments, and their options that take a value
_MAVEN_VALUED = ("-f", "--file", "-pl", "--projects", "-P", "-s", "-T", "-rf")
_GRADLE_VALUED = ("-p", "--project-dir", "-b", "--build-file", "-x", "--exclude-task", "--tests")
_TARGET_RUNNERS = {
    **dict.fromkeys(("make", "gmake"), ("-C", "-f", "-I", "-j", "-l", "-o", "-W", "--directory")),
    **dict.fromkeys(("mvn", "mvnw"), _MAVEN_VALUED),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE_VALUED),
    "rake": ("-f", "--rakefile"),
}
_OPTIONAL_NUMBER = ("-j", "-l")  # options of make that may stand alone
_MAKE_DRY_RUN = ("-n", "--dry-run", "--just-print")
_MAX_TARGETS = 16


def _single_targets(reading: Reading) -> list[Reading]:
    """Returns the runs of single targets: `make test` for `make -j 8 lint test`."""
    program, *rest = reading.words
    valued = _TARGET_RUNNERS.get(program.rpartition("/")[2])
    if valued is None:
        return []
    options: list[str] = []
    targets: list[str] = []
    before = ""
    for word in rest:
        if is_redirection(word) or len(targets) >= _MAX_TARGETS:
            break
        is_value = before in valued and (before not in _OPTIONAL_NUMBER or word.isdecimal())
        if word.startswith("-"):
            options.append(word)
        elif not is_value and "=" not in word:
            # `gradle :app:test` runs `test`
            targets += [word, word.rpartition(":")[2]] if ":" in word else [word]
        before = word
    if not {*_MAKE_DRY_RUN}.isdisjoint(options):
        return []
    runs = [(program, target) for target in targets if target]
    left_out = (ANY_OPTION, *options) if options else ()
    return [reading.reduce_to(words, *left_out) for words in runs if words != reading.words]


# --- Aliases of PowerShell

# the cmdlets behind aliases that are no programs of Unix
_CMDLETS = {
    **dict.fromkeys(("ri", "del", "erase", "rd"), "Remove-Item"),
    **{"ni": "New-Item", "mi": "Move-Item", "cpi": "Copy-Item", "rni": "Rename-Item"},
    **{"iwr": "Invoke-WebRequest", "irm": "Invoke-RestMethod", "saps": "Start-Process"},
    **{"spps": "Stop-Process", "gci": "Get-ChildItem", "gc": "Get-Content"},
}


def _cmdlet_forms(reading: Reading) -> list[Reading]:
    """Returns the cmdlet for its alias: `Remove-Item dist` for `ri dist`."""
    cmdlet = _CMDLETS.get(reading.words[0].lower())
    return [reading.reduce_to((cmdlet, *reading.words[1:]))] if cmdlet else []
