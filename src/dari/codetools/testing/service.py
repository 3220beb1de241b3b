"""Run tests: what was named, or what touches what was named, by the project's own frameworks."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dari.codetools.session import CodeSession
from dari.codetools.testing.frameworks import choose_framework, run_framework
from dari.codetools.testing.projects import FRAMEWORK_LANGUAGES, ProjectTargets, find_others, group_targets
from dari.codetools.testing.report import TEARDOWN, ChosenTest, ChosenTests, RunLog, TestReport
from dari.codetools.testing.request import Framework, RunRequest, Target, from_id, split_targets
from dari.codetools.testing.stacks import blame_running
from dari.codetools.testing.touching.choice import find_named_tests, find_touching
from dari.codetools.workspace import Workspace
from dari.errors import InvalidInput
from dari.paths import home, private_dir, read_regular, write_private
from dari.struct_types import ready

MAX_CHOSEN_SHOWN = 20
OnProgress = Callable[[int, int | None, str], None]


class RunOptions(Struct, frozen=True):
    """The arguments of the tool, whole; defaults are declared there."""

    targets: Sequence[str]
    framework: Framework | None
    keyword: str
    fail_fast: bool
    timeout_s: float
    last_failed: bool
    touching: Sequence[str]
    max_failures: int
    max_tokens: int
    env: Mapping[str, str]


async def run_tests(
    session: CodeSession,
    workspace: Workspace,
    options: RunOptions,
    on_progress: OnProgress,
    last_failed: LastFailed | None = None,
) -> TestReport:
    """Cancelling ends everything that was started; at the time limit the result has what was run until then."""
    if "\0" in options.keyword:
        raise InvalidInput(
            f"keyword must have no NUL character, got {options.keyword!r}", "name a part of a test's name"
        )
    store = last_failed or LastFailed()
    log = RunLog(on_progress)
    deadline = asyncio.get_running_loop().time() + options.timeout_s
    choice = await _choose(workspace, options, log)
    if choice is None:
        return log.report(max_failures=0, max_tokens=0)
    targets, chosen = choice
    names: list[str] = []
    versions: list[str] = []
    groups = group_targets(workspace, targets, options.framework and FRAMEWORK_LANGUAGES[options.framework])
    is_open = not options.targets and not options.touching and options.framework is None
    others = [os.path.relpath(one, workspace.base) for one in find_others(workspace, groups)] if is_open else []
    if others:
        log.note(f"not run: {', '.join(others[:10])} with tests of another framework; name one as a target")
    for group in groups:
        left_s = deadline - asyncio.get_running_loop().time()
        if log.stopped is not None or left_s <= 0:
            log.stopped = log.stopped or "timed_out"
            log.note(f"not begun: the tests in {group.project}")
            continue
        request = await _request(session, workspace, options, group, left_s, store, log)
        before_failed, before_passed = set(log.failures), set(log.passed_ids)
        await run_framework(request, log)
        if log.stopped == "timed_out":
            blame_running(request, log)
        names.append(log.framework)
        versions.append(log.version)
        failed, passed = set(log.failures) - before_failed, log.passed_ids - before_passed
        store.update(
            request.project, request.framework, _relative(request, log, failed), _relative(request, log, passed)
        )
    log.framework = ", ".join(dict.fromkeys(names))
    log.version = ", ".join(dict.fromkeys(filter(None, versions)))
    report = log.report(max_failures=options.max_failures, max_tokens=options.max_tokens)
    return report if not chosen else _with_chosen(report, chosen)


async def _choose(
    workspace: Workspace, options: RunOptions, log: RunLog
) -> tuple[list[Target], list[ChosenTest]] | None:
    """Targets that are symbols stand for the tests of that name, else for the tests that touch them. None: no test."""
    targets, symbols = split_targets(workspace, options.targets)
    touching = list(options.touching)
    named: list[Target] = []
    for symbol in symbols:
        tests = await asyncio.to_thread(find_named_tests, workspace, symbol)
        named += tests
        touching += [] if tests else [symbol]
    if not touching:
        return [*targets, *named], []
    choice = await find_touching(workspace, touching)
    for note in choice.notes:
        log.note(note)
    if choice.is_all:
        return [*targets, *named], []
    if not choice.targets and not named:
        return None
    kept = [one for one in choice.targets if _is_within(one, targets)]
    if not kept:
        log.note("none of the tests that touch it is among the targets: all targets ran")
        return [*targets, *named], []
    shown = [why for one, why in zip(choice.targets, choice.chosen, strict=True) if one in kept]
    return [*kept, *named], shown


async def _request(
    session: CodeSession,
    workspace: Workspace,
    options: RunOptions,
    group: ProjectTargets,
    timeout_s: float,
    store: LastFailed,
    log: RunLog,
) -> RunRequest:
    framework = await choose_framework(session, workspace, group, options.framework)
    request = RunRequest(
        session=session,
        workspace=workspace,
        framework=framework,
        project=group.project,
        timeout_s=timeout_s,
        targets=group.targets,
        keyword=options.keyword,
        fail_fast=options.fail_fast,
        env=options.env,
    )
    if not options.last_failed:
        return request
    found = (from_id(group.project, one) for one in sorted(store.read(group.project, framework)))
    again = tuple(one for one in found if one is not None and _is_within(one, group.targets))
    if not again:
        log.note(f"no failure of {framework} is recorded here: everything that was named ran")
        return request
    return replace(request, targets=again, may_be_gone=True)


def _is_within(test: Target, targets: Sequence[Target]) -> bool:
    return not targets or any(
        (one.path == test.path and one.test in ("", test.test)) or one.path in test.path.parents for one in targets
    )


def _relative(request: RunRequest, log: RunLog, ids: set[str]) -> list[str]:
    """Ids of tests, and of files that could not be loaded, with their path relative to the project: any root of the
    workspace reads them."""
    found = []
    for one in ids:
        one = one if one in log.seen_ids else one.removesuffix(TEARDOWN)
        path, separator, test = one.partition("::")
        absolute = os.path.join(request.workspace.base, path)
        if one in log.seen_ids if separator else os.path.isfile(absolute):
            relative = Path(os.path.relpath(absolute, request.project)).as_posix()
            found.append(f"{relative}{separator}{test}")
    return found


def _with_chosen(report: TestReport, chosen: list[ChosenTest]) -> TestReport:
    shown = chosen[:MAX_CHOSEN_SHOWN]
    more = [f"{len(chosen) - len(shown)} more tests were chosen"] if len(chosen) > len(shown) else []
    by_reason: dict[str, list[str]] = {}
    for one in shown:
        by_reason.setdefault(one.why, []).append(one.target)
    grouped = [ChosenTests(why, targets) for why, targets in by_reason.items()]
    return replace(report, chosen=grouped, notes=[*report.notes, *more])


MAX_IDS = 5000
_MAX_BYTES = 4 << 20


class FailedIds(Struct, frozen=True):
    project: str
    ids: list[str]


class LastFailed:
    """One file per project and framework. `folder` is made with the first failure."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def read(self, project: Path, framework: str) -> frozenset[str]:
        """Nothing where nothing failed, and where the file cannot be read."""
        try:
            found = msgspec.json.decode(read_regular(self._file(project, framework), _MAX_BYTES), type=ready(FailedIds))
        except (OSError, msgspec.DecodeError):
            return frozenset()
        return frozenset(found.ids)

    def update(self, project: Path, framework: str, failed: Iterable[str], passed: Iterable[str]) -> None:
        """Those that failed are added, those that passed are taken out, the others stay: a run may be of a part."""
        before, gone, new = self.read(project, framework), frozenset(passed), frozenset(failed)
        # A file that could not be loaded is done with once a test of it ran.
        loaded = {one.partition("::")[0] for one in (*gone, *new) if "::" in one}
        after = (before - gone - loaded) | new
        if after == before:
            return
        path = self._file(project, framework)
        if not after:
            path.unlink(missing_ok=True)
            return
        private_dir(path.parent)
        write_private(path, msgspec.json.encode(FailedIds(str(project), sorted(after)[:MAX_IDS])))

    def _file(self, project: Path, framework: str) -> Path:
        digest = hashlib.sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        folder = self._folder or home() / "codetools" / "tests"
        return folder / f"{digest}-{framework}.json"
