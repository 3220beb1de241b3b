"""The sub-commands of `./dev`. Each first makes the machine ready for itself."""

import json
import os
import re
import sys
import time
from typing import NoReturn

from devtools import bench, environment, node, servers, stages, system
from devtools.stages import Outcome, Stage
from devtools.workspace import ROOT, VENV, VENV_PYTHON, SetupError, in_ci, say

HELP = """\
usage: ./dev <command>

  up [args]            run the hub: `dari up [args]` (try: ./dev up --help)
  test [pytest args]   prove it: lint, types, import contracts, every test with conformance
  lint [--fix]         the checks of `test` without the tests; --fix formats and repairs first
  conformance [args]   the official MCP suite alone (try: server, client, --gateway stdio)
  conformance terminal [probes|differential|fuzz|suites]
                       the terminal's engines: probes, beside @xterm/headless, fuzz, outside suites (--dir PATH)
  bench [part] [args]  measure against peers, in one run, as ratios (default part: core)

Nothing has to be installed first: Python 3.11 with pip is enough. A command makes .venv, installs the
versions in constraints.txt with uv (pip where uv cannot), and fetches what it needs into .dev: uv itself, for
`test` and `conformance` the npm packages they run, for `test` other people's MCP servers. It installs again
when pyproject.toml or constraints.txt changed. `bench` wants wrk, nginx or tmux, `test` wants curl, chromium and
openssl: installed where it is root on Debian.

  ./dev test tests/rpc -k framing   one part of the tests, after the lint
  ./dev test --no-lint -x           stop at the first failing test
  rm -rf .venv .dev                 start from nothing

Tests find node in DARI_NODE, the npm packages in DARI_NPM_DIR, other people's servers in DARI_SERVERS_DIR.
Where they cannot be had, DARI_NO_NODE=1 and DARI_NO_SERVERS=1 make the tests that need them skip; with CI=true
that fails the run. A test whose program (curl, chromium, openssl) is missing skips too, and fails with CI=true.
"""

CHECKS = ROOT / "tools" / "checks"
TESTS_FAILED = 1
FEW = 5
"""So many failures may be the machine's; more are the code's."""


def main() -> int:
    command, *arguments = sys.argv[1:] or ["--help"]
    try:
        match command:
            case "up":
                environment.ensure(environment.RUN)
                _become([_program("dari"), "up", *arguments], _child_environment())
            case "test":
                return _test(arguments)
            case "lint":
                return _lint(arguments)
            case "conformance":
                environment.ensure(environment.WORK)
                module, rest = "tests.conformance.run", arguments
                if arguments[:1] == ["terminal"]:
                    module, rest = "tests.terminal.conformance.run", arguments[1:]
                _become_module(module, rest, {**_child_environment(), **_with_node()})
            case "bench":
                environment.ensure(environment.WORK)
                part, *rest = arguments or ["core"]
                _become_module(f"bench.{part}", rest, {**_child_environment(), **bench.prepare(part)})
            case "-h" | "--help" | "help":
                print(HELP, end="")
                return 0
            case _:
                raise SetupError(f"there is no command {command!r}\nhint: ./dev --help lists them")
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _lint(arguments: list[str]) -> int:
    if arguments not in ([], ["--fix"]):
        raise SetupError(f"lint takes no {arguments}\nhint: ./dev lint or ./dev lint --fix")
    environment.ensure(environment.WORK)
    if arguments:
        ruff = Stage("ruff", (_program("ruff"), "check", "--fix", "--quiet", "--exit-zero"))
        stages.run_openly(ruff, _child_environment())
        stages.run_openly(Stage("format", (_program("ruff"), "format", "--quiet")), _child_environment())
    return stages.verdict(stages.run_quietly(_lint_stages()))


def _test(arguments: list[str]) -> int:
    environment.ensure(environment.WORK)
    system.ensure_programs("curl", "chromium", "openssl")  # clients that the proxy is tried with
    system.ensure_programs("zsh", "fish", "dash", "vim", "less", "htop", "tmux")  # what the terminal is tried with
    # Namespaces around other people's servers; a redirect in a namespace of its own.
    system.ensure_files({"/usr/bin/bwrap": "bubblewrap", "/usr/sbin/iptables": "iptables", "/usr/sbin/ip": "iproute2"})
    outcomes = []
    env = _child_environment()
    started = time.monotonic()
    try:
        env |= _with_node()
    except SetupError as error:
        _shout(f"NODE IS MISSING: conformance, Inspector, undici and ws tests are skipped\n{error}")
        env["DARI_NO_NODE"] = "1"
        if in_ci():
            outcomes.append(Outcome("node", 1, time.monotonic() - started))
    started = time.monotonic()
    try:
        env |= servers.ensure()
    except SetupError as error:
        _shout(f"OTHER PEOPLE'S MCP SERVERS ARE MISSING: the bridge is not tried with them\n{error}")
        env["DARI_NO_SERVERS"] = "1"
        if in_ci():
            outcomes.append(Outcome("servers", 1, time.monotonic() - started))
    if "--no-lint" not in arguments:
        outcomes += stages.run_quietly(_lint_stages())
    chosen = [argument for argument in arguments if argument != "--no-lint"]
    # Everything: on all cores, and one test more, as most wait for a process now and then. A choice: in one process,
    # where --pdb and -x behave as expected.
    spread = chosen or ["-n", str((os.cpu_count() or 1) + 1), "--dist", "loadgroup"]
    pytest = (str(VENV_PYTHON), "-m", "pytest")
    tests = stages.run_openly(Stage("tests", (*pytest, *spread)), env)
    if tests.code == TESTS_FAILED and not chosen:
        tests = _again_alone(tests, pytest, env)
    outcomes.append(tests)
    print("\n" + "\n".join(outcome.line() for outcome in outcomes))
    return stages.verdict(outcomes)


def _again_alone(first: Outcome, pytest: tuple[str, ...], env: dict[str, str]) -> Outcome:
    """The tests that failed, once more and one after another: on a busy machine a deadline passes by itself.

    Nothing is hidden: what passes only now is named, and a test that fails twice, or many that fail, fail the run.
    """
    recorded = json.loads((ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed").read_text())
    failed = [re.sub(r"@[^@\[\]:]*$", "", name) for name in recorded]  # without the group that it ran in
    if not 0 < len(failed) <= FEW:
        return first
    again = stages.run_openly(Stage("failed, alone", (*pytest, *failed)), env)
    if again.ok:
        _shout("FAILED BESIDE OTHERS, PASSED ALONE: look at what these wait for\n" + "\n".join(failed))
    return Outcome(first.stage, again.code, first.seconds + again.seconds)


def _lint_stages() -> list[Stage]:
    python = str(VENV_PYTHON)
    return [
        Stage("ruff check", (_program("ruff"), "check", "--quiet", "--output-format", "concise")),
        Stage("ruff format", (_program("ruff"), "format", "--check", "--output-format", "concise")),
        Stage("mypy", (_program("mypy"), "--no-error-summary")),
        Stage("import layers", (_program("lint-imports"), "--no-logo")),
        Stage("file size", (python, str(CHECKS / "file_size.py")), has_notes=True),
        Stage("import budget", (python, str(CHECKS / "import_budget.py"))),
        Stage("portable text", (python, str(CHECKS / "portable_text.py"))),
    ]


def _program(name: str) -> str:
    return str(VENV / "bin" / name)


def _child_environment() -> dict[str, str]:
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    env = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV)}
    # Tests start hundreds of processes: without bytecode every one of them would compile all it imports.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def _with_node() -> dict[str, str]:
    return {"DARI_NODE": str(node.ensure()), "DARI_NPM_DIR": str(node.NPM_DIR)}


def _become_module(module: str, arguments: list[str], env: dict[str, str]) -> NoReturn:
    os.chdir(ROOT)
    _become([str(VENV_PYTHON), "-m", module, *arguments], env)


def _become(command: list[str], env: dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], command, env)


def _shout(text: str) -> None:
    bar = "!" * 72
    print(f"{bar}\n{text}\n{bar}", file=sys.stderr, flush=True)
