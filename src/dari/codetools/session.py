"""What the tools of one client share: its folders, its environment, and the programs that they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dari.codetools.analyser import Analyser
from dari.codetools.edits.undo import UndoStore
from dari.codetools.engines.locate import EngineProgram
from dari.codetools.workspace import Workspace
from dari.core.context import Context
from dari.process.child import ChildSpec
from dari.process.children import Children
from dari.process.program import NETWORK_NAMES
from dari.process.run import ProgramRun, run_program

if TYPE_CHECKING:
    from dari.codetools.diff.snapshot import Snapshots

MAX_OUTPUT_BYTES = 32 << 20
ENGINE_TIMEOUT_S = 60.0
TOOLCHAIN_NAMES = (
    "CARGO_HOME",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "RUSTUP_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
"""Where Go, Rust and the settings of a person are, for those who moved them."""
FindRoots = Callable[[Context], Awaitable[Sequence[Path]]]
"""The folders that the caller of a tool works in; the first is where relative names begin."""


class CodeSession:
    """One per client: `environ` is the client's, and so are the folders that `find_roots` names."""

    def __init__(
        self,
        find_roots: FindRoots,
        environ: Mapping[str, str],
        children: Children,
        undo: UndoStore | None = None,
        *,
        lasts: bool = False,
    ) -> None:
        """`lasts`: it is a client's connection, not one command; what changed since it began can be asked."""
        self.environ = environ
        self.undo = undo or UndoStore()
        self._find_roots = find_roots
        self._children = children
        self.analyser = Analyser(children)
        self.snapshots: Snapshots | None = None
        if lasts:
            from dari.codetools.diff.snapshot import Snapshots

            self.snapshots = Snapshots(self)

    async def workspace(self, context: Context, root: str | None = None) -> Workspace:
        """The caller's folders; relative names are below `root` where one is given."""
        whole = Workspace(await self._find_roots(context))
        if self.snapshots is not None:
            self.snapshots.begin(whole)
        return whole if root is None else whole.narrow(root)

    async def run(
        self,
        engine: EngineProgram,
        arguments: Sequence[str],
        cwd: Path,
        *,
        stdin: bytes = b"",
        timeout_s: float = ENGINE_TIMEOUT_S,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], bool | None] | None = None,
        is_single: bool = False,
        limits: Mapping[str, int] | None = None,
    ) -> ProgramRun:
        """Run an engine in a folder of the workspace, with next to nothing of the environment.

        `limits` are resource limits by their short names: as, cpu, nofile.
        """
        spec = ChildSpec(
            engine.name,
            (*engine.command, *arguments),
            env={**engine.env, **(env or {})},
            inherit_env=("TMPDIR", *TOOLCHAIN_NAMES, *NETWORK_NAMES),
            environ=self.environ,
            cwd=cwd,
            limits=limits or {},
        )
        return await run_program(
            self._children,
            spec,
            stdin=stdin,
            timeout_s=timeout_s,
            max_output_bytes=max_output_bytes,
            on_output=on_output,
            is_single=is_single,
        )
