"""The sub-commands of `./dev`. Each first makes the machine ready for itself."""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from devtools import (
    bench,
    clients,
    coverage,
    environment,
    llm,
    models,
    node,
    packages,
    postgres,
    servers,
    stages,
    system,
)
from devtools.stages import Outcome, Stage
from devtools.workspace import ROOT, VENV, VENV_PYTHON, SetupError, in_ci, say

HELP = """\
usage: ./dev <command>

  up [args]            run the hub: `dari up [args]` (try: ./dev up --help)
  test [pytest args]   prove it: lint, types, import contracts, every test with conformance
  coverage [args]      every test under coverage.py; fails below the branch coverage that pyproject.toml asks for
  prepare              only install the system packages that `test` wants (as root on Debian), for a run without root
  lint [--fix]         the checks of `test` without the tests; --fix formats and repairs first
  conformance [args]   the official MCP suite alone (try: server, client, --gateway stdio)
  conformance terminal [probes|differential|fuzz|suites]
                       the terminal's engines: probes, beside @xterm/headless, fuzz, outside suites (--dir PATH)
  bench [part] [args]  measure against peers, in one run, as ratios (default part: core)
  console-shots [dir]  pictures of every page of the console, both themes and languages (default .dev/console-shots)

Nothing has to be installed first: Python 3.11 with pip is enough. A command makes .venv, installs the
versions in constraints.txt with uv (pip where uv cannot), and fetches what it needs into .dev: uv itself, for
`test` and `conformance` the npm packages they run, for `test` other people's MCP servers, clients and sources of
packages, for `up` and `test` the default models of the knowledge base. It installs again when pyproject.toml or
constraints.txt changed.
`bench` wants wrk, nginx or tmux, `test` wants curl, chromium and openssl: installed where it is root on Debian.

  ./dev test tests/rpc -k framing   one part of the tests, after the lint
  ./dev test --no-lint -x           stop at the first failing test
  rm -rf .venv .dev                 start from nothing

Tests find node in DARI_NODE, the npm packages in DARI_NPM_DIR, other people's servers in DARI_SERVERS_DIR, their
clients in DARI_CLIENTS_DIR, models in DARI_MODELS_DIR, a language model in DARI_LLM_DIR, PostgreSQL in
DARI_POSTGRES_DIR, sources of Python packages in DARI_PACKAGES_DIR. Where they cannot be had, DARI_NO_NODE=1,
DARI_NO_SERVERS=1, DARI_NO_CLIENTS=1, DARI_NO_MODELS=1, DARI_NO_LLM=1, DARI_NO_POSTGRES=1 and DARI_NO_PACKAGES=1 make
the tests that need them skip; with CI=true that fails the run.
A test whose program (curl, chromium, openssl) is missing skips too, and fails with CI=true. A failed test has failed:
nothing is tried twice, except that with CI=true one single failed test is asked once more, alone and loudly.
"""

CHECKS = ROOT / "tools" / "checks"
TESTS_FAILED = 1
# Debian's packages: clients that the proxy is tried with, what the terminal is tried with, engines of the code tools.
PROGRAMS = ("curl", "chromium", "openssl", "zsh", "fish", "dash", "vim", "less", "htop", "tmux", "cargo", "rustfmt")
KOREAN_FONT = "/usr/share/fonts/truetype/nanum/NanumGothic.ttf"
# A compiler for the shim of tmux; namespaces around other servers; a redirect in a namespace of its own; Java, which
# reads no proxy variables, for `dari proxy run`.
FILES = {
    "/usr/bin/javac": "default-jdk-headless",
    "/usr/bin/cc": "gcc",
    "/usr/include/stdio.h": "libc6-dev",
    "/usr/bin/bwrap": "bubblewrap",
    "/usr/sbin/iptables": "iptables",
    "/usr/sbin/ip": "iproute2",
    # Pictures and scanned pages in the knowledge base.
    "/usr/bin/tesseract": "tesseract-ocr",
    "/usr/share/tesseract-ocr/5/tessdata/kor.traineddata": "tesseract-ocr-kor",
    KOREAN_FONT: "fonts-nanum",
    # Engines of the code tools.
    "/usr/bin/gofmt": "golang-go",
    "/usr/bin/shellcheck": "shellcheck",
}


def main() -> int:
    command, *arguments = sys.argv[1:] or ["--help"]
    try:
        match command:
            case "up":
                environment.ensure(environment.RUN)
                _become([_program("dari"), "up", *arguments], _with_models(_child_environment()))
            case "test":
                return _test(arguments)
            case "coverage":
                return _cover(arguments)
            case "prepare":
                return 1 if _ensure_system() else 0
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
            case "console-shots":
                environment.ensure(environment.WORK)
                system.ensure_programs("chromium")
                system.ensure_files({KOREAN_FONT: FILES[KOREAN_FONT]})
                _become_module("tests.console.shots", arguments, _child_environment())
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
    missing = _ensure_system()
    outcomes, env = _ensure_extras()
    if "--no-lint" not in arguments:
        outcomes += stages.run_quietly(_lint_stages())
    chosen = [argument for argument in arguments if argument != "--no-lint"]
    # A choice of tests runs in one process, where --pdb and -x behave as expected.
    spread = chosen or _on_all_cores()
    pytest = (str(VENV_PYTHON), "-m", "pytest")
    tests = stages.run_openly(Stage("tests", (*pytest, *spread)), env)
    if tests.code == TESTS_FAILED and not chosen and in_ci():
        tests = ask_once_more(tests, pytest, env)
    outcomes.append(tests)
    if missing:
        _shout(
            f"NOT INSTALLED, AND NOT TRIED: {', '.join(missing)}\n"
            "the tests that need them were skipped; install them with your system's package manager, or run as root"
        )
    print("\n" + "\n".join(outcome.line() for outcome in outcomes))
    return stages.verdict(outcomes)


def _cover(arguments: list[str]) -> int:
    """A command of its own: the tracer costs a run about half as much again, which `test` should not pay each time."""
    environment.ensure(environment.WORK)
    _ensure_system()
    outcomes, env = _ensure_extras()
    outcomes += coverage.run(arguments or _on_all_cores(), env, is_whole=not arguments)
    return stages.verdict(outcomes)


def _on_all_cores() -> list[str]:
    """Two tests more than there are cores: most wait for a process now and then.

    A worker that dies fails the run: with another in its place pytest-xdist 3.8 would wait for it for ever.
    """
    return ["-n", str((os.cpu_count() or 1) + 2), "--dist", "loadgroup", "--max-worker-restart=0"]


def _ensure_system() -> list[str]:
    """The Debian packages that could not be installed."""
    # Half of Chromium's time goes into windows that nobody sees; not every release of Debian has it without them.
    system.ensure_programs("chromium-headless-shell")
    return system.ensure_programs(*PROGRAMS) + system.ensure_files(FILES)


@dataclass(frozen=True, slots=True)
class Extra:
    """Something from a registry that only some tests need; without it they skip, and a run in CI fails."""

    name: str
    ensure: Callable[[], dict[str, str]]
    switch: str
    missing: str


def _with_models(env: dict[str, str]) -> dict[str, str]:
    """The knowledge base works without a model, by words alone; that is said loudly."""
    try:
        models.ensure()
    except SetupError as error:
        _shout(f"NO MODEL OF EMBEDDINGS: kebab searches by words alone\n{error}")
        return env
    return {"KEBAB_EMBEDDING_MODELS_DIR": str(models.FOLDER), **env}


def _with_node() -> dict[str, str]:
    return {"DARI_NODE": str(node.ensure()), "DARI_NPM_DIR": str(node.NPM_DIR)}


EXTRAS = (
    Extra(
        "node",
        _with_node,
        "DARI_NO_NODE",
        "NODE IS MISSING: conformance, Inspector, SDK, undici and ws tests are skipped",
    ),
    Extra(
        "servers",
        servers.ensure,
        "DARI_NO_SERVERS",
        "OTHER PEOPLE'S MCP SERVERS ARE MISSING: the bridge is not tried with them",
    ),
    Extra(
        "clients",
        clients.ensure,
        "DARI_NO_CLIENTS",
        "OTHER PEOPLE'S MCP CLIENTS ARE MISSING: our errors are not read with them",
    ),
    Extra(
        "models",
        models.ensure,
        "DARI_NO_MODELS",
        "THE MODELS OF EMBEDDINGS ARE MISSING: search by meaning is not tried",
    ),
    Extra(
        "language model",
        llm.ensure,
        "DARI_NO_LLM",
        "THE LANGUAGE MODEL IS MISSING: answers that a model writes are not tried with a real one",
    ),
    Extra(
        "postgres",
        postgres.ensure,
        "DARI_NO_POSTGRES",
        "POSTGRESQL IS MISSING: the knowledge base is not tried in a server",
    ),
    Extra(
        "packages",
        packages.ensure,
        "DARI_NO_PACKAGES",
        "OTHER PEOPLE'S PACKAGES ARE MISSING: renames are not tried on real code",
    ),
)


def _ensure_extras() -> tuple[list[Outcome], dict[str, str]]:
    """What failed in CI, and the environment that tells tests where the rest is."""
    env = _child_environment()
    return [outcome for extra in EXTRAS for outcome in _ensure_extra(extra, env)], env


def _ensure_extra(extra: Extra, env: dict[str, str]) -> list[Outcome]:
    """Install it and say in `env` where it is; a failed outcome where CI cannot do without."""
    started = time.monotonic()
    try:
        env |= extra.ensure()
    except SetupError as error:
        _shout(f"{extra.missing}\n{error}")
        env[extra.switch] = "1"
        if in_ci():
            return [Outcome(extra.name, 1, time.monotonic() - started)]
    return []


def ask_once_more(first: Outcome, pytest: tuple[str, ...], env: dict[str, str], root: Path = ROOT) -> Outcome:
    """In CI one single failed test is asked once more, alone and loudly; two failures fail the run."""
    failed = _read_failed_tests(root)
    if len(failed) != 1:
        return first
    again = stages.run_openly(Stage("failed, alone", (*pytest, *failed)), env)
    if again.ok:
        _shout(f"FAILED BESIDE OTHERS, PASSED ALONE: {failed[0]}\nthis is a race, in the product until shown otherwise")
    return Outcome(first.stage, again.code, first.seconds + again.seconds)


def _read_failed_tests(root: Path) -> list[str]:
    """What pytest recorded as failed: no file where every test passed and the run failed all the same."""
    try:
        recorded = json.loads((root / ".pytest_cache" / "v" / "cache" / "lastfailed").read_text())
    except FileNotFoundError:
        return []
    return [re.sub(r"@[^@\[\]:]*$", "", name) for name in recorded]  # without the group that it ran in


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
