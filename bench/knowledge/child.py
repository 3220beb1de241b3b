"""An engine in a process of its own: it builds its index, then answers rounds of queries, as JSON lines.

`python -m bench.knowledge.<engine>_child FOLDER PASSAGES` prints what building cost, then for each line "COUNT KIND" on
its standard input the times of the first COUNT queries and what they found. Nothing of this file needs more than the
standard library, since the peers run it in their own environments.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bench.knowledge.corpus import CorpusFiles

TOP = 10
Numbers = list[int]
Query = Mapping[str, object]


class Engine(Protocol):
    """`build` returns what it measured; a search takes the number of a query and returns passages, best first."""

    def build(self) -> dict[str, float]: ...

    def searches(self) -> Mapping[str, Callable[[int], Numbers]]: ...


def serve(make: Callable[[CorpusFiles, Sequence[Query]], Engine]) -> None:
    files = CorpusFiles(Path(sys.argv[1]), int(sys.argv[2]))
    queries = [json.loads(line) for line in files.queries.read_text().splitlines()]
    engine = make(files, queries)
    began = time.perf_counter()
    built = engine.build()
    _say({"s": time.perf_counter() - began} | built)
    searches = engine.searches()
    for line in sys.stdin:
        count, kind = line.strip().split(" ", 1)
        search = searches[kind]
        times, cpu_times, found = [], [], []
        for number in range(int(count)):
            started, cpu_started = time.perf_counter(), time.process_time()
            numbers = search(number)
            cpu_times.append((time.process_time() - cpu_started) * 1000)
            times.append((time.perf_counter() - started) * 1000)
            found.append(numbers[:TOP])
        cuts, cpu_ms = statistics.quantiles(times, n=100), statistics.median(cpu_times)
        _say({"p50_ms": statistics.median(times), "p99_ms": cuts[98], "cpu_p50_ms": cpu_ms, "found": found})


def _say(words: Mapping[str, object]) -> None:
    print(json.dumps(words), flush=True)
