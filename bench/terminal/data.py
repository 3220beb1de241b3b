"""What is printed at terminals: log lines, coloured output, full-screen programs, CJK. The same bytes in every run."""

import random
from collections.abc import Callable
from pathlib import Path

COLS, ROWS = 120, 40
PANE_COLS, PANE_ROWS = 200, 50  # what cruxd gives a first pane
BLOCK_BYTES = 1 << 20
SIZES_MB = {"plain": 8, "colour": 8, "full-screen": 6, "CJK": 6}
_WORDS = (
    *("request", "response", "cache", "miss", "hit", "worker", "queue", "retry", "timeout", "connected", "closed"),
    *("index", "segment", "replica", "shard", "commit", "rollback", "token", "session", "user", "item", "order"),
    *("invoice", "payment", "gateway", "upstream", "latency", "bytes", "flushed", "compacted"),
)
_KOREAN = (
    *("터미널", "화면을", "읽고", "명령을", "실행한", "다음", "결과를", "돌려줍니다"),
    *("측정값은", "매번", "같은", "조건에서", "얻습니다"),
)
_JAPANESE = "端末の画面を読み取り、コマンドを実行して結果を返します。計測は毎回同じ条件で行います。"
_CHINESE = "读取终端画面，执行命令并返回结果。每次测量都在相同的条件下进行。"
_EMOJI = ("😀", "🚀", "✅", "👩‍💻", "👨‍👩‍👧", "🇰🇷", "👍🏽", "⚠️")
_OFF, _GREP = "\x1b[0m", "\x1b[m\x1b[K"


def write_files(folder: Path) -> dict[str, Path]:
    """One file for each kind, with the line ends of files: the kernel's terminal makes CR LF of them."""
    paths = {}
    for kind, size_mb in SIZES_MB.items():
        paths[kind] = folder / f"{kind}.txt"
        paths[kind].write_bytes(_block(kind) * size_mb)
    return paths


def on_the_wire(data: bytes) -> bytes:
    """What a terminal gets to see when a program prints this."""
    return data.replace(b"\n", b"\r\n")


def colour_lines(count: int) -> bytes:
    chance = random.Random(10_000)
    return "".join(_colour(chance) for _ in range(count)).encode()


def _block(kind: str) -> bytes:
    chance, write = random.Random(kind), _WRITERS[kind]
    parts, size = list[bytes](), 0
    while size < BLOCK_BYTES:
        parts.append(write(chance).encode())
        size += len(parts[-1])
    return b"".join(parts)


def _plain(chance: random.Random) -> str:
    words = " ".join(chance.choices(_WORDS, k=chance.randint(3, 10)))
    minute, second = chance.randrange(60), chance.random() * 60
    return f"2026-11-16T07:{minute:02d}:{second:06.3f} INFO [w{chance.randrange(64)}] {words}\n"


def _colour(chance: random.Random) -> str:
    """One line as `ls -l --color`, `grep --color`, pytest, cargo and git print them."""
    one, two, three = chance.choices(_WORDS, k=3)
    number = chance.randrange(100_000)
    at = f"{number:8d} Nov 16 07:{number % 60:02d}"
    colon = f"\x1b[36m\x1b[K:{_GREP}"
    return chance.choice(
        (
            f"-rw-r--r--  1 user user {at} {one}_{two}.txt\n",
            f"drwxr-xr-x  2 user user {at} {_OFF}\x1b[01;34m{one}.{two}{_OFF}\n",
            f"-rwxr-xr-x  1 user user {at} \x1b[01;32m{one}-{three}{_OFF}\n",
            f"\x1b[35m\x1b[Ksrc/{one}/{two}.py{_GREP}{colon}\x1b[32m\x1b[K{number % 999}{_GREP}{colon}"
            f"    return self.\x1b[01;31m\x1b[K{three}{_GREP}({one}, {two})\n",
            f"tests/{one}/test_{two}.py::test_{three} \x1b[32mPASSED{_OFF}\x1b[32m    [ {number % 100:2d}%]{_OFF}\n",
            f"{_OFF}\x1b[1m\x1b[38;5;9merror{_OFF}{_OFF}\x1b[1m: cannot find value `{one}` in this scope{_OFF}\n",
            f"  {_OFF}\x1b[1m\x1b[38;5;12m--> {_OFF}{_OFF}src/{two}.rs:{number % 400}:{number % 80}{_OFF}\n",
            f"\x1b[33m{number:07x}\x1b[m \x1b[38;2;120;180;{number % 256}m{one}\x1b[39m: {two} {three} and {one}\n",
        )
    )


def _full_screen(chance: random.Random) -> str:
    """A frame of a process viewer, then an editor's scrolling and typing; no line ends."""
    parts = ["\x1b[?25l\x1b[H"]
    for core in range(4):
        used = chance.randint(3, 40)
        bar = f"\x1b[32m{'|' * used}\x1b[31m{'|' * chance.randint(0, 8)}\x1b[30m{' ' * (40 - used)}"
        parts.append(f"\x1b[{core + 1};3H\x1b[36m{core}\x1b[1m[{bar}{used * 2:4d}%{_OFF}]\x1b[K")
    parts.append("\x1b[6;1H\x1b[30;42m    PID USER      PRI  NI  VIRT   RES S CPU% MEM%   TIME+  Command\x1b[K\x1b[m")
    for row in range(7, ROWS):
        one, two = chance.choices(_WORDS, k=2)
        pid = chance.randrange(100_000)
        style = "\x1b[30;46m" if row == 7 + pid % 30 else ""
        parts.append(
            f"\x1b[{row};1H{style}{pid:7d} user       20   0 \x1b[36m{pid % 900:4d}M\x1b[39m {pid % 90:4d}M S "
            f"\x1b[1m{pid % 100:4.1f}{_OFF}  0.{pid % 10}  0:0{pid % 10}.{pid % 100:02d} "
            f"/usr/bin/\x1b[1;32m{one}{_OFF} --{two}\x1b[K"
        )
    parts.append(f"\x1b[2;{ROWS - 1}r\x1b[{ROWS - 1};1H\x1bD{' '.join(chance.choices(_WORDS, k=8))}\x1b[r")
    parts.append(f"\x1b[10;1H\x1b[L\x1b[{ROWS};1H\x1b[7m-- INSERT --{_OFF}\x1b[{ROWS};80H{chance.randrange(999)}\x1b[K")
    parts += [f"\x1b[12;{col + 10}H{letter}" for col, letter in enumerate(chance.choice(_WORDS))]
    return "".join([*parts, "\x1b[?25h"])


def _cjk(chance: random.Random) -> str:
    at = chance.randrange(20)
    words = " ".join(chance.choices(_KOREAN, k=4))
    return f"{words} {_JAPANESE[at : at + 12]} {_CHINESE[at // 2 : at // 2 + 10]} {chance.choice(_EMOJI)} {at}\n"


_WRITERS: dict[str, Callable[[random.Random], str]] = {
    "plain": _plain,
    "colour": _colour,
    "full-screen": _full_screen,
    "CJK": _cjk,
}
