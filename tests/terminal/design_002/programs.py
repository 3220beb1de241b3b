"""The programs that the examples of the design run, as far as their output goes."""

from __future__ import annotations

DOCKER = """#!/bin/sh
cat <<'END'
CONTAINER ID   IMAGE          STATUS       PORTS
abc123         nginx:latest   Up 2 hours   80/tcp
def456         postgres:16    Up 5 hours   5432/tcp
END
"""
CARGO = """#!/bin/sh
if [ "$1" = run ]; then
  echo "   Compiling backend v0.1.0"; touch backend.up; echo "Listening on 0.0.0.0:8080"
  trap 'exit 0' INT TERM
  while :; do sleep 0.05; done
fi
if [ "$2" = --test ]; then
  [ -e backend.up ] && [ -e frontend.up ] && echo "test result: ok. 1 passed" && exit 0
  exit 101
fi
echo; echo "running 17 tests"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo "test test_$n ... ok"; done
cat <<'END'
test test_pane_creation ... FAILED
test test_resize ... FAILED

failures:

---- test_pane_creation stdout ----
thread 'test_pane_creation' panicked at src/pane.rs:10:5:
assertion failed: pane.is_open()

---- test_resize stdout ----
thread 'test_resize' panicked at src/pane.rs:20:5:
assertion `left == right` failed
  left: 80
 right: 81


failures:
    test_pane_creation
    test_resize

test result: FAILED. 15 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `--lib`
END
exit 101
"""
NPM = """#!/bin/sh
[ -e backend.up ] || exit 9
touch frontend.up; echo "  VITE v5.0.0  ready in 120 ms"
while :; do sleep 0.05; done
"""
RUSTC = r"""#!/bin/sh
echo 'error[E0308]: mismatched types'
exit 1
"""
TUI = '''#!/usr/bin/env python3
"""A menu on the whole screen: arrows move, Enter chooses, as curses draws it."""
import curses


def main(screen):
    curses.curs_set(0)
    chosen, names = 0, ["alpha", "beta", "gamma"]
    while True:
        screen.erase()
        screen.addstr(0, 2, "MENU", curses.A_BOLD)
        for row, name in enumerate(names):
            screen.addstr(2 + row, 4, ("> " if row == chosen else "  ") + name)
        screen.refresh()
        key = screen.getch()
        if key == curses.KEY_DOWN:
            chosen = (chosen + 1) % len(names)
        elif key in (10, 13, curses.KEY_ENTER):
            return names[chosen]


print("chosen", curses.wrapper(main))
'''
RAW_KEYS = '''#!/usr/bin/env python3
"""So many bytes of what is typed, as they come."""
import os, sys, tty

tty.setraw(0)
os.write(2, b"ready\\r\\n")
left = int(sys.argv[1])
while left:
    data = os.read(0, left)
    os.write(1, data)
    left -= len(data)
os.system("stty sane")
'''
PROGRAMS = {"docker": DOCKER, "cargo": CARGO, "npm": NPM, "rustc": RUSTC, "menu": TUI, "rawkeys": RAW_KEYS}
