"""A plugin of pytest for runs on several workers (`--dist loadgroup`): what may take longest begins first.

A worker that is given a long test last works on while the others have ended. How long a test may take is what its marks
say: a time limit of its own above the usual one, the installed commands, servers. pytest-xdist goes by the number of
tests of a group alone, which puts a single test of two minutes behind 18,000 of a few milliseconds.

Tests that share a fixture of their file (a daemon, mostly) are a group: else each worker makes one of its own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

USUAL_TIMEOUT_S = 90
PROCESS_WEIGHT = 10


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    return OrderedScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In every worker alike: the order of collection is the order of work. Groups stay together."""
    if not config.getoption("loadgroup", False):
        return
    weights: Counter[str] = Counter()
    groups: dict[str, str] = {}
    first: dict[str, int] = {}
    for number, item in enumerate(items):
        group = group_of(item)
        if not group and shares_fixture(item):
            group = item.path.relative_to(config.rootpath).as_posix()
        if group and not item.nodeid.endswith(f"@{group}"):
            # pytest-xdist 3.8 writes it where pytest 9.2 does not look any more.
            item._id = type(item._id).parse(f"{item.nodeid}@{group}")  # type: ignore[attr-defined]
        groups[item.nodeid] = group = group or item.nodeid
        weights[group] += weight_of(item)
        first.setdefault(group, number)
    items.sort(key=lambda item: (-weights[groups[item.nodeid]], first[groups[item.nodeid]]))


def group_of(item: pytest.Item) -> str:
    return "_".join(sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")}))


def shares_fixture(item: pytest.Item) -> bool:
    """Whether a fixture that it uses is made once for a file or a folder."""
    known = getattr(item, "_fixtureinfo", None)
    found = known.name2fixturedefs.values() if known is not None else ()
    return any(made[-1].scope in ("class", "module", "package") for made in found)


def weight_of(item: pytest.Item) -> int:
    """About how long it may take, in no unit; a test in memory is 1."""
    limit = item.get_closest_marker("timeout")
    if limit is not None and limit.args and limit.args[0] > USUAL_TIMEOUT_S:
        return int(limit.args[0])
    is_process = any(item.get_closest_marker(name) for name in ("e2e", "local_mcp"))
    return PROCESS_WEIGHT if is_process else 1


class OrderedScheduling(LoadGroupScheduling):
    """In the order of collection. The one of pytest-xdist looks through all the tests for each, and through all that
    a worker has done after each: half a minute of a whole run."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)
        self._numbers: dict[str, int] = {}

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        unit = self.assigned_work[node][scope]
        unit[nodeid] = True
        if all(unit.values()):
            del self.assigned_work[node][scope]
        self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._numbers:
            self._numbers = {nodeid: number for number, nodeid in enumerate(self.registered_collections[node])}
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._numbers[nodeid] for nodeid, is_done in unit.items() if not is_done])
