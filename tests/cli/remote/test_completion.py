"""Shell completion: answers come from the cache, and nothing is started for them."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.support.remote_command import Shop, shop


async def offered(run: Shop, line: str) -> list[str]:
    done = await run("__complete", line)
    assert (done.code, done.err) == (0, "")
    return [each.split("\t")[0] for each in done.out.splitlines()]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("dari rem", ["remote"]),
        ("crewx ", ["mcp"]),
        ("crewx mcp ", ["remote", "list_tools", "call_tool"]),
        ("dari remote list-t", ["list-tools"]),
        ("crewx mcp remote list-t", ["list-tools"]),
        ("sudo -E /usr/bin/dari remote list-t", ["list-tools"]),
        ("dari remote --log --config x list-t", ["list-tools"]),
        ("dari remote --lo", ["--log"]),
        ("dari remote list-tools --server ", ["shop", "other", "crewx-tools"]),
        ("dari remote list-tools --server=s", ["--server=shop"]),
        ("dari remote list-tools --ref", ["--refresh"]),
        ("dari remote completion ", ["bash", "zsh", "fish"]),
        ("dari remote enable s", ["shop"]),
        ("dari remote daemon st", ["start", "stop", "status"]),
        ("dari remote daemon stop --a", ["--all"]),
        ("dari remote nonsense ", []),
        ("dari proxy ", []),
        ("ls ", []),
        ("", []),
    ],
)
async def test_commands_options_and_servers_are_offered(tmp_path: Path, line: str, expected: list[str]) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True), run.entry("other"))
        assert await offered(run, line) == expected
        assert run.noted() == []


async def test_tools_are_offered_once_they_are_known(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True), run.entry("other"))
        assert await offered(run, "dari remote call-tool ") == ["shop/", "other/", "crewx-tools/"]
        await run("list-tools")
        assert await offered(run, "dari remote call-tool shop/va") == ["shop/variety"]
        assert await offered(run, "dari remote describe shop/va") == ["shop/variety"]
        assert await offered(run, "dari remote call-tool --server shop va") == ["variety"]
        assert await offered(run, "dari remote call-tool oth") == ["other/"]
        assert run.noted("other") == []


async def test_after_a_tool_come_its_own_flags_and_values(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        await run("list-tools")
        line = "dari remote call-tool shop/variety "
        flags = await offered(run, f"{line}--")
        assert flags[:4] == ["--path", "--head", "--ratio", "--follow"] and "--no-follow" in flags
        assert "--raw" in flags
        assert await offered(run, f"{line}--mode ") == ["fast", "slow"]
        assert await offered(run, f"{line}--path 'a b' --mo") == ["--mode"]
        assert await offered(run, "dari remote call-tool variety --he") == ["--head", "--help", "--header"]
        assert await offered(run, f"{line}-- --outp") == ["--output"]


async def test_prompts_and_resources_are_offered(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        await run("prewarm")
        assert await offered(run, "dari remote get-prompt ") == ["shop/review"]
        assert await offered(run, "dari remote read-resource shop://n") == ["shop://note"]


async def test_a_server_that_cannot_be_resolved_offers_nothing_and_does_no_harm(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop"), run.entry("unset", args=["${NOT_SET}"]))
        assert await offered(run, "dari remote call-tool ") == ["shop/", "crewx-tools/"]


async def test_an_unknown_shell_is_refused(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert (await run("completion", "tcsh")).code == 1


async def shell(*command: str, env: dict[str, str] | None = None) -> tuple[str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    return out.decode(), err.decode()


async def script_of(run: Shop, name: str) -> str:
    done = await run("completion", name)
    assert done.code == 0
    (run.root / "script").write_text(done.out)
    return str(run.root / "script")


def program(run: Shop, *answers: str) -> None:
    """A `dari` that notes what it was asked, and answers."""
    (run.root / "bin").mkdir()
    file = run.root / "bin/dari"
    lines = "".join(f"printf '%s\\tmeaning\\n' '{answer}'\n" for answer in answers)
    file.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{run.root}/asked"\n{lines}')
    file.chmod(0o755)


@pytest.mark.parametrize(
    "line, answers, replies",
    [
        ("dari remote call-tool sh", ["shop/say", "shop/variety", "other"], ["shop/say", "shop/variety"]),
        ("dari remote call-tool x --mode=f", ["--mode=fast"], ["fast"]),
        ("dari remote read-resource shop://n", ["shop://note"], ["//note"]),
        ("dari remote call-tool ", ["shop/"], ["shop/"]),
    ],
)
async def test_bash_asks_and_offers_what_fits(
    tmp_path: Path, line: str, answers: list[str], replies: list[str]
) -> None:
    async with shop(tmp_path) as run:
        program(run, *answers)
        script = await script_of(run, "bash")
        source = (
            f"source {script}; complete -p dari crewx; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; "
            f'_dari_remote dari; printf "%s\\n" "${{COMPREPLY[@]}}"'
        )
        environ = {"PATH": f"{run.root}/bin:{os.environ['PATH']}"}
        out, err = await shell("bash", "-c", source, env=environ)
        assert out.splitlines()[2:] == replies and err == ""
        assert (run.root / "asked").read_text().splitlines() == ["remote", "__complete", line]


@pytest.mark.parametrize("name", [name for name in ("bash", "zsh", "fish") if shutil.which(name)])
async def test_a_script_is_what_its_shell_can_read(tmp_path: Path, name: str) -> None:
    async with shop(tmp_path) as run:
        assert await shell(name, "-n", await script_of(run, name)) == ("", "")


@pytest.mark.parametrize(
    "name, asks", [("zsh", '__complete "${(j: :)words[1,CURRENT]}"'), ("fish", "__complete $line")]
)
async def test_other_shells_ask_with_the_line_up_to_the_cursor(tmp_path: Path, name: str, asks: str) -> None:
    async with shop(tmp_path) as run:
        script = Path(await script_of(run, name)).read_text()
        assert asks in script and "crewx" in script and "dari" in script


async def test_what_a_server_wrote_is_one_word_in_bash_and_nothing_in_it_runs(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        program(run, "$(touch ran)", "New York", "a;b")
        script = await script_of(run, "bash")
        source = (
            f"source {script}; COMP_LINE='dari remote call-tool x --mode '; COMP_POINT=${{#COMP_LINE}}; "
            "_dari_remote dari; eval \"printf '%s\\n' ${COMPREPLY[*]}\""
        )
        environ = {"PATH": f"{run.root}/bin:{os.environ['PATH']}"}
        out, err = await shell("bash", "-c", f"cd {run.cwd}; {source}", env=environ)
        assert (out.splitlines(), err) == (["$(touch ran)", "New York", "a;b"], "")
        assert not (run.cwd / "ran").exists()
