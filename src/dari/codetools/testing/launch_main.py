"""Between us and a test run. Stand-alone: stdlib only. `launch_main.py SECONDS merge|apart PROGRAM ARGUMENTS…`

A test that kills its parent kills this process and not the server; a crash leaves no core file in the repository; and
when the time is over the test process is asked for its stack before the whole tree is killed.
"""

import os
import resource
import signal
import sys


def main() -> None:
    seconds, streams, *command = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    child = os.fork()
    if child == 0:
        if streams == "merge":
            os.dup2(1, 2)
        try:
            os.execve(command[0], command, os.environ)
        except OSError as error:
            os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    number = getattr(signal, "SIGRTMIN", 0) and signal.SIGRTMIN + 13
    if number:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, number))
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
    # stdin, stdout and stderr are the test run's alone: their ends are its ends.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0 and -status not in (signal.SIGSTOP, signal.SIGTSTP):
        signal.setitimer(signal.ITIMER_REAL, 0)
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
