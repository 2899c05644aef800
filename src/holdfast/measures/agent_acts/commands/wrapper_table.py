"""A table of the programs that run the command in their arguments, by name and subcommand.

For example:

    ("timeout",)        ->  Wrapper(("-s", "-k", ...), num_arguments=1): timeout -s KILL 60 COMMAND
    ("docker", "exec")  ->  Wrapper(("-e", "--env", ...), num_arguments=1): docker exec web COMMAND
    ("dotenv",)         ->  Wrapper(marks=("--",), needs_mark=True): dotenv -e .env -- COMMAND
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.measures.agent_acts.commands.inner_scripts import SUDO_VALUED
from holdfast.measures.agent_acts.commands.wrapper_options import KUBECTL_VALUED

DASHES = ("--",)


@dataclass(frozen=True)
class Wrapper:
    """How a program, or one of its subcommands, takes the command that it runs.

    Args:
        valued_options: its options that take a value.
        num_arguments: how many of its own arguments come before the command.
        marks: the command begins after the first of these words.
        needs_mark: whether it runs no command without one.
        has_version: whether the command may end in a version, as in `npx eslint@9`.
        flags: its options without a value, if all others take one; () if these are not listed.
        paired_options: its options that take two values.
    """

    valued_options: Sequence[str] = ()
    num_arguments: int = 0
    marks: Sequence[str] = ()
    needs_mark: bool = False
    has_version: bool = False
    flags: Sequence[str] = ()
    paired_options: Sequence[str] = ()


_CONTAINER_EXEC = Wrapper(
    ("-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir", "--index", "--detach-keys"),
    num_arguments=1,
)
# almost all options of `docker run` take a value, so that those without one are listed
CONTAINER_RUN = Wrapper(
    num_arguments=1,
    flags=(
        *("-d", "--detach", "-i", "--interactive", "-t", "--tty", "-P", "--publish-all", "-q"),
        *("--rm", "--init", "--privileged", "--quiet", "--read-only", "--no-healthcheck"),
        *("--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--replace", "--rmi"),
        # of compose and podman
        *("-T", "--no-TTY", "--build", "--no-deps", "--service-ports", "--use-aliases", "--no-tty"),
        *("--remove-orphans", "--quiet-pull", "--quiet-build", "--no-hosts", "--no-hostname"),
    ),
)
# kubectl exec web -c app -- COMMAND
_IN_POD = Wrapper(
    (*KUBECTL_VALUED, "-c", "--container", "-f", "--filename"), num_arguments=1, marks=DASHES
)
# lxc exec web -- COMMAND
_IN_MACHINE = Wrapper(
    ("--cwd", "--env", "--user", "--group", "--mode", "-d", "--working-directory"),
    num_arguments=1,
    marks=DASHES,
)
# poetry run COMMAND
_IN_PROJECT = Wrapper(("-n", "--name", "-p", "--prefix", "--cwd", "-e", "--environment"))
UV_RUN = Wrapper(
    (
        *("--with", "--with-editable", "--with-requirements", "--extra", "--group", "--only-group"),
        *("--no-group", "--no-extra", "--env-file", "-p", "--python", "--package", "--project"),
        *("--directory", "--index", "--default-index", "--from", "-w", "-i", "--index-url"),
        *("--extra-index-url", "-f", "--find-links", "-P", "--upgrade-package", "-C"),
        *("--upgrade-group", "--resolution", "--prerelease", "--fork-strategy", "--exclude-newer"),
        *("--exclude-newer-package", "--index-strategy", "--keyring-provider", "--link-mode"),
        *("--config-setting", "--config-settings", "--config-settings-package", "--cache-dir"),
        *("--no-build-isolation-package", "--no-build-package", "--no-binary-package"),
        *("--refresh-package", "--reinstall-package", "--no-sources-package", "--config-file"),
        *("--no-editable-package", "--allow-insecure-host", "--color", "--python-platform"),
        *("-c", "--constraints", "-b", "--build-constraints", "--overrides", "--torch-backend"),
    ),
    has_version=True,
)
# npx -p eslint COMMAND
_NPX_LIKE = Wrapper(("-p", "--package", "-w", "--workspace"), has_version=True)
# chamber exec production -- COMMAND
_AFTER_DASHES = Wrapper(marks=DASHES, needs_mark=True)
# nix develop --command COMMAND
_IN_NIX = Wrapper(marks=("-c", "--command"), needs_mark=True)
# programs without options that take a value
_WITHOUT_OPTIONS = (
    "nohup setsid command builtin chronic unbuffer caffeinate busybox . source coproc cross-env"
    " entr flatpak-spawn corepack winpty proxychains proxychains4 firejail dbus-run-session"
    " torsocks lima arch"
).split()

_Table = Mapping[tuple[str, ...], Wrapper]  # by the name of the program and its subcommands
# programs that start another here: as another user, for a time, again and again
_STARTERS: _Table = {
    ("sudo",): Wrapper(SUDO_VALUED),
    ("doas",): Wrapper(("-u", "-C")),
    ("env",): Wrapper(("-u", "-C", "--unset", "--chdir")),
    ("timeout",): Wrapper(("-s", "-k", "--signal", "--kill-after"), num_arguments=1),
    ("gtimeout",): Wrapper(("-s", "-k", "--signal", "--kill-after"), num_arguments=1),
    ("xargs",): Wrapper(
        (
            *("-I", "-n", "-P", "-L", "-d", "-E", "-a", "-s", "--max-args", "--max-procs"),
            *("--delimiter", "--arg-file", "--max-chars", "--process-slot-var"),
        )
    ),
    ("nice",): Wrapper(("-n", "--adjustment")),
    ("ionice",): Wrapper(("-c", "-n", "--class", "--classdata")),
    ("stdbuf",): Wrapper(("-i", "-o", "-e", "--input", "--output", "--error")),
    ("time",): Wrapper(("-f", "-o", "--format", "--output")),
    ("strace",): Wrapper(("-e", "-o", "-p", "-s")),
    ("flock",): Wrapper(("-w", "-E", "--timeout"), num_arguments=1),
    ("script",): Wrapper(("-t", "-T", "-I", "-O", "-B", "-m", "-E", "-o"), num_arguments=1),
    ("runuser",): Wrapper(("-u", "--user", "-g", "--group", "-G", "--supp-group")),
    ("unshare",): Wrapper(("-S", "--setuid", "-G", "--setgid", "-R", "--root", "-w", "--wd")),
    ("xvfb-run",): Wrapper(("-e", "-f", "-n", "-p", "-s", "-w", "--server-args")),
    ("gosu",): Wrapper(num_arguments=1),
    ("chroot",): Wrapper(num_arguments=1),
    ("taskset",): Wrapper(num_arguments=1),
    ("exec",): Wrapper(("-a",)),
    **{(name,): Wrapper() for name in _WITHOUT_OPTIONS},
    **{(name,): Wrapper(num_arguments=1) for name in ("faketime", "envchain", "su-exec")},
    ("bwrap",): Wrapper(
        (
            *("--chdir", "--dir", "--dev", "--proc", "--tmpfs", "--mqueue", "--unsetenv"),
            *("--uid", "--gid", "--hostname", "--perms", "--size", "--lock-file", "--sync-fd"),
            *("--remount-ro", "--args", "--argv0", "--seccomp", "--add-seccomp-fd", "--userns"),
            *("--userns2", "--pidns", "--info-fd", "--json-status-fd", "--block-fd"),
            *("--userns-block-fd", "--exec-label", "--file-label", "--cap-add", "--cap-drop"),
            *("--overlay-src", "--tmp-overlay", "--ro-overlay"),
        ),
        paired_options=(
            *("--bind", "--bind-try", "--dev-bind", "--dev-bind-try", "--ro-bind"),
            *("--ro-bind-try", "--bind-fd", "--ro-bind-fd", "--symlink", "--setenv", "--file"),
            *("--bind-data", "--ro-bind-data", "--chmod"),
        ),
    ),
    ("setpriv",): Wrapper(("--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set")),
    ("nsenter",): Wrapper(("-t", "--target", "-S", "--setuid", "-G", "--setgid")),
    ("numactl",): Wrapper(("-N", "-m", "-C", "-i", "-p", "--cpunodebind", "--membind")),
    ("cpulimit",): Wrapper(("-l", "--limit", "-p", "--pid", "-e", "--exe", "-c", "--cpu")),
    ("ltrace",): Wrapper(("-e", "-o", "-p", "-s", "-n", "-l")),
    ("perf", "stat"): Wrapper(("-e", "--event", "-o", "--output", "-r", "--repeat", "-x")),
    ("systemd-inhibit",): Wrapper(("--what", "--who", "--why", "--mode")),
    **{names: Wrapper() for names in (("rtk", "proxy"), ("rtk",))},
    ("screen",): Wrapper(("-S", "-t", "-h", "-c", "-T", "-s")),
    ("retry",): Wrapper(("-t", "--times", "-d", "--delay", "-m")),
    ("watchexec",): Wrapper(
        ("-e", "--exts", "-w", "--watch", "-i", "--ignore", "-f", "--filter", "-d", "--debounce")
    ),
    ("systemd-run",): Wrapper(("-p", "--property", "-u", "--unit", "-E", "--setenv", "-M")),
    ("git", "bisect", "run"): Wrapper(),
    **{names: Wrapper() for names in (("mr", "run"), ("meta", "exec"), ("dagger", "run"))},
    **{(name, "exec"): _AFTER_DASHES for name in ("lerna", "nx", "chamber")},
    ("jj", "util", "exec"): _AFTER_DASHES,
}
# programs that run another in a container, a pod, a machine or a shell of its own
_ENVIRONMENTS: _Table = {
    **{
        (name, "exec"): _CONTAINER_EXEC
        for name in ("docker", "podman", "nerdctl", "docker-compose")
    },
    **{(name, "run"): CONTAINER_RUN for name in ("docker", "podman", "nerdctl", "docker-compose")},
    **{(name, "compose", "exec"): _CONTAINER_EXEC for name in ("docker", "podman", "nerdctl")},
    **{(name, "compose", "run"): CONTAINER_RUN for name in ("docker", "podman", "nerdctl")},
    ("docker", "container", "exec"): _CONTAINER_EXEC,
    ("docker", "container", "run"): CONTAINER_RUN,
    **{(name, "exec"): _IN_POD for name in ("kubectl", "oc")},
    **{("kubectl", name): _AFTER_DASHES for name in ("run", "debug")},
    **{(name, "exec"): _IN_MACHINE for name in ("lxc", "incus", "multipass")},
    ("wsl",): Wrapper(("-d", "--distribution", "-u", "--user", "--cd")),
    ("heroku", "run"): Wrapper(("-a", "--app", "-r", "--remote", "-s", "--size")),
    ("ddev", "exec"): Wrapper(("-s", "--service", "-d", "--dir")),
    ("devcontainer", "exec"): Wrapper(
        (
            *("--workspace-folder", "--container-id", "--id-label", "--config", "--remote-env"),
            *("--docker-path", "--override-config", "--log-level", "--user-data-folder"),
        )
    ),
    ("guix", "shell"): _AFTER_DASHES,
    ("gh", "codespace", "ssh"): _AFTER_DASHES,
    **{
        (name, "shell"): Wrapper(("--workdir", "-E", "--setenv"), num_arguments=1)
        for name in ("limactl", "machinectl")
    },
    ("toolbox", "run"): Wrapper(("-c", "--container", "-d", "--distro", "-r", "--release")),
    **{names: _AFTER_DASHES for names in (("colima", "ssh"), ("distrobox", "enter"))},
    ("railway", "run"): Wrapper(("-s", "--service", "-e", "--environment")),
}
# programs that run another with the packages or the secrets of a project
_PROJECTS: _Table = {
    ("uv", "run"): UV_RUN,
    ("uv", "tool", "run"): UV_RUN,
    ("uvx",): UV_RUN,
    ("pipx", "run"): Wrapper(("--spec", "--python", "--pip-args"), has_version=True),
    ("dotenv",): _AFTER_DASHES,
    **{(name, "run"): _IN_PROJECT for name in ("poetry", "pipenv", "hatch", "pdm", "rye", "pixi")},
    **{(name, "run"): _IN_PROJECT for name in ("conda", "mamba", "micromamba", "devbox")},
    **{(name,): _NPX_LIKE for name in ("npx", "bunx", "pnpx")},
    **{(name, "exec"): _NPX_LIKE for name in ("npm", "pnpm", "yarn")},
    **{(name, "dlx"): _NPX_LIKE for name in ("pnpm", "yarn")},
    **{(name, "x"): _NPX_LIKE for name in ("npm", "bun")},
    **{(name, "exec"): Wrapper() for name in ("bundle", "rbenv", "pyenv", "asdf")},
    **{(name, "exec"): Wrapper(num_arguments=1) for name in ("direnv", "nvm")},
    ("fnm", "exec"): Wrapper(("--using",)),
    ("volta", "run"): Wrapper(("--node", "--npm", "--pnpm", "--yarn")),
    ("mise", "exec"): _AFTER_DASHES,
    ("mise", "x"): _AFTER_DASHES,
    ("aws-vault", "exec"): Wrapper(("-d", "--duration", "--region"), num_arguments=1, marks=DASHES),
    **{(name, "run"): _AFTER_DASHES for name in ("op", "doppler", "infisical", "dotenvx")},
    ("devenv", "shell"): Wrapper(),
    ("flox", "activate"): _AFTER_DASHES,
    ("nix", "develop"): _IN_NIX,
    ("nix", "shell"): _IN_NIX,
}
WRAPPERS: _Table = {**_STARTERS, **_ENVIRONMENTS, **_PROJECTS}
