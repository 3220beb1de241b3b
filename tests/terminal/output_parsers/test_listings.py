"""`ls -l`, `ps`, `df` and docker."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from dari.terminal.output_parsers import parse_structured


def run(*command: str, cwd: Path | None = None) -> str:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=cwd, env=environment, check=True, capture_output=True, text=True, timeout=20
    ).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "d"
    root.mkdir()
    (root / "plain.txt").write_text("x" * 5000)
    (root / "two words.txt").write_text("y")
    (root / "-> odd").write_text("z")
    (root / "sub").mkdir()
    (root / "link").symlink_to("two words.txt")
    os.mkfifo(root / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(root / "socket"))
    listener.close()
    return root


@pytest.mark.parametrize(
    "options", ["-l", "-la", "-lh", "-li", "-ls", "-l --time-style=long-iso", "-l --time-style=full-iso", "-lF", "-ln"]
)
def test_what_ls_really_prints_is_read_in_every_form(folder: Path, options: str) -> None:
    parsed = parse_structured(run("ls", *options.split(), cwd=folder), command=f"ls {options}")
    assert parsed.parser == "ls" and parsed.headers is not None and parsed.confidence > 0.9
    rows = [dict(zip(parsed.headers, row, strict=True)) for row in parsed.rows or []]
    kinds = {row["name"].rstrip("/=|"): row["kind"] for row in rows}
    assert (
        kinds.items()
        >= {
            "plain.txt": "file",
            "two words.txt": "file",
            "-> odd": "file",
            "sub": "directory",
            "link": "symlink",
            "pipe": "pipe",
            "socket": "socket",
        }.items()
    )
    link = next(row for row in rows if row["kind"] == "symlink")
    assert link["target"] == "two words.txt"
    plain = next(row for row in rows if row["name"] == "plain.txt")
    assert plain["size"] == ("4.9K" if "h" in options.split(" ")[0] else "5000") and plain["links"] == "1"


def test_names_that_ls_quotes_for_a_terminal_are_plain_again(folder: Path) -> None:
    parsed = parse_structured(run("ls", "-l", "--quoting-style=shell-escape", cwd=folder))
    names = {row[7] for row in parsed.rows or []}
    assert {"two words.txt", "plain.txt", "-> odd"} <= names


def test_several_directories_get_a_column_of_their_own(folder: Path) -> None:
    (folder / "sub" / "inner").write_text("")
    parsed = parse_structured(run("ls", "-lR", cwd=folder))
    assert parsed.headers and parsed.headers[-1] == "directory"
    assert ["inner", "./sub"] in [[row[7], row[-1]] for row in parsed.rows or []]


def test_devices_have_two_numbers_for_a_size() -> None:
    parsed = parse_structured(
        "crw-rw-rw- 1 root root 5,   0 Nov 16 05:10 tty\nbrw-rw---- 1 root disk 254, 0 Nov  6  2024 vda\n"
    )
    assert [(row[0], row[5], row[6]) for row in parsed.rows or []] == [
        ("character_device", "5,   0", "Nov 16 05:10"),
        ("block_device", "254, 0", "Nov  6  2024"),
    ]


@pytest.mark.parametrize(
    "time", ["16. Nov 05:10", "11월 16 05:10", "11月 16 05:10", "2026-11-16 05:10", "16 nov.  2024"]
)
def test_times_of_other_places_are_read(time: str) -> None:
    parsed = parse_structured(f"-rw-r--r--. 1 ada staff 12 {time} 이름 하나.txt\n")
    assert parsed.rows == [["file", "-rw-r--r--.", "1", "ada", "staff", "12", time, "이름 하나.txt", ""]]


def test_a_mac_listing_with_attributes_and_without_a_group_is_read() -> None:
    parsed = parse_structured(
        "total 8\ndrwxr-xr-x@ 5 ada  160 Nov 16 05:10 src\n-rw-r--r--+ 1 ada  1.2K Nov 16 05:10 a\n"
    )
    assert [row[3:6] for row in parsed.rows or []] == [["ada", "", "160"], ["ada", "", "1.2K"]]


@pytest.mark.parametrize("options", ["aux", "-ef", "-eo pid,lstart,comm,args"])
def test_what_ps_really_prints_is_read(options: str) -> None:
    parsed = parse_structured(run("ps", *options.split()), command=f"ps {options}")
    assert parsed.parser == "ps" or "comm" in options
    assert parsed.headers and parsed.rows
    pid = parsed.headers.index("PID")
    mine = [row for row in parsed.rows if row[pid] == str(os.getpid())]
    assert mine and "python" in mine[0][-1]


def test_a_long_date_of_ps_is_one_column() -> None:
    parsed = parse_structured(
        "    PID                  STARTED CMD\n      1 Sun Nov 15 22:11:09 2026 /sbin/init splash\n"
    )
    assert parsed.rows == [["1", "Sun Nov 15 22:11:09 2026", "/sbin/init splash"]]


@pytest.mark.parametrize("options", ["-h", "-k", "-i", "-hT"])
def test_what_df_really_prints_is_read(options: str) -> None:
    parsed = parse_structured(run("df", options, "/"), command=f"df {options}")
    assert parsed.parser == "df" and parsed.headers and parsed.headers[-1] == "Mounted on"
    assert parsed.rows and parsed.rows[0][-1] == "/" and len(parsed.rows[0]) == len(parsed.headers)


def test_a_device_name_that_pushed_its_row_down_or_holds_blanks_is_one_cell() -> None:
    text = (
        "Filesystem            Size  Used Avail Use% Mounted on\n"
        "/dev/mapper/vg0-a_very_long_name\n"
        "                       50G   20G   28G  42% /srv/my data\n"
        "//nas/My Share        1.0T  900G  100G  90% /mnt/nas\n"
        "tmpfs                 2.0G     0  2.0G   0% /run\n"
    )
    parsed = parse_structured(text)
    assert parsed.rows == [
        ["/dev/mapper/vg0-a_very_long_name", "50G", "20G", "28G", "42%", "/srv/my data"],
        ["//nas/My Share", "1.0T", "900G", "100G", "90%", "/mnt/nas"],
        ["tmpfs", "2.0G", "0", "2.0G", "0%", "/run"],
    ]
    assert parsed.lines == [(1, 5)]


def test_df_of_a_mac_has_two_ratios() -> None:
    text = (
        "Filesystem     512-blocks      Used Available Capacity iused      ifree %iused  Mounted on\n"
        "/dev/disk3s1s1  965595304  20012344 402123456     5%  404167 2010617280    0%   /\n"
    )
    parsed = parse_structured(text)
    assert parsed.rows and parsed.rows[0][4:] == ["5%", "404167", "2010617280", "0%", "/"]


DOCKER = """\
CONTAINER ID   IMAGE          COMMAND                  CREATED       STATUS                   PORTS                                       NAMES
3f2a9c1b7d10   nginx:latest   "/docker-entrypoint.…"   2 hours ago   Up 2 hours               0.0.0.0:8080->80/tcp, :::8080->80/tcp       web
9a8b7c6d5e4f   postgres:16    "docker-entrypoint.s…"   3 days ago    Exited (0) 3 hours ago                                               가게-db
"""  # noqa: E501


def test_containers_keep_empty_ports_and_wide_names() -> None:
    parsed = parse_structured(DOCKER)
    assert parsed.parser == "docker_ps"
    assert [row[4:] for row in parsed.rows or []] == [
        ["Up 2 hours", "0.0.0.0:8080->80/tcp, :::8080->80/tcp", "web"],
        ["Exited (0) 3 hours ago", "", "가게-db"],
    ]


def test_a_docker_without_containers_is_a_table_without_rows() -> None:
    parsed = parse_structured(DOCKER.split("\n")[0] + "\n", command="docker ps")
    assert parsed.parser == "docker_ps" and parsed.rows == [] and parsed.notes


def test_a_wrapped_row_is_told_and_not_guessed() -> None:
    parsed = parse_structured(DOCKER + "this line is a piece of another row that was wrapped around\n")
    assert parsed.parser == "docker_ps" and len(parsed.rows or []) == 2 and "wrapped" in parsed.notes[0]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (
            "REPOSITORY   TAG       IMAGE ID       CREATED        SIZE\n"
            "nginx        latest    605c77e624dd   2 years ago    141MB\n",
            ["nginx", "latest", "605c77e624dd", "2 years ago", "141MB"],
        ),
        (
            "IMAGE          ID             DISK USAGE   CONTENT SIZE   EXTRA\n"
            "nginx:latest   605c77e624dd        192MB         68.9MB    U\n",
            ["nginx:latest", "605c77e624dd", "192MB", "68.9MB", "U"],
        ),
    ],
    ids=["classic", "containerd"],
)
def test_images_are_read_in_the_old_and_the_new_form(text: str, row: list[str]) -> None:
    parsed = parse_structured(text, command="docker images")
    assert parsed.parser == "docker_images" and parsed.rows == [row]
