"""Real child processes: output, failures, signals, and nothing left over.

Workers here are small Python programs. Every wait has a deadline, and every
test ends by making sure that the processes it caused are gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.launch.drive import plan_of
from tfmulti.launch import run

pytestmark = pytest.mark.workers

DEADLINE_S = 20.0

SLEEP = "import time; time.sleep(300)"
# Workers start with Ctrl-C held back, and say when they are ready for it.
READY = (
    "from tfmulti.launch.child import unblock_interrupts; import signal\n"
    "unblock_interrupts({})\n"
)
STUBBORN = (
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready')\n"
    "time.sleep(300)"
)
TELL_PID = "import os; open({!r} + os.environ['WORKER'], 'w').write("
TELL_PID += "str(os.getpid()));"


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_for(condition, what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.02)


class Together:
    """Runs programs as workers of one job, in this process."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.shown: list[bytes] = []
        self.said: list[str] = []

    def __call__(self, *programs: str, grace_s: float = 5.0) -> int:
        return run(
            plan_of(programs, str(self.folder)),
            env=os.environ,
            show=self.shown.append,
            say=self.said.append,
            grace_s=grace_s,
        )

    def log(self, index: int) -> bytes:
        return (self.folder / "logs" / f"worker-{index}.log").read_bytes()


@pytest.fixture
def together(tmp_path) -> Together:
    return Together(tmp_path)


@pytest.fixture
def drive(tmp_path):
    """Starts a launcher in a process of its own; gives it, and its pids."""
    started: list[subprocess.Popen] = []

    def start(*programs: str, logs: bool = True, **more) -> subprocess.Popen:
        tell = TELL_PID.format(f"{tmp_path}/pid-")
        asked = {
            "programs": [f"{tell}\n{program}" for program in programs],
            "logs": str(tmp_path) if logs else None,
            **more,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.launch.drive", json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    def pids(count: int) -> list[int]:
        files = [tmp_path / f"pid-{index}" for index in range(count)]
        wait_for(
            lambda: all(f.exists() and f.read_text() for f in files),
            "workers that have started",
        )
        return [int(file.read_text()) for file in files]

    yield start, pids
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()
    for file in tmp_path.glob("pid-*"):
        pid = int(file.read_text())
        with contextlib.suppress(ProcessLookupError):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_output_is_prefixed_and_kept(together):
    program = (
        "import os, sys\n"
        "print('hello', os.environ['WORKER'])\n"
        "sys.stdout.write('10%\\r100%\\r\\n')\n"
        "print('problem', file=sys.stderr)\n"
        "sys.stdout.write('no end')"
    )
    assert together(program, program) == 0
    for index in (0, 1):
        prefix = b"[worker %d] " % index
        mine = [line for line in together.shown if line.startswith(prefix)]
        assert [line.removeprefix(prefix) for line in mine] == [
            b"hello %d\n" % index,
            b"100%\n",
            b"problem\n",
            b"no end\n",
        ]
        assert together.log(index) == (
            b"hello %d\n10%%\r100%%\r\nproblem\nno end" % index
        )
    assert together.said == []


def test_much_output_of_a_worker_that_ends_at_once_is_whole(together):
    big = "print(('x' * 99 + '\\n') * 20000, end='')"
    assert together(big, "") == 0
    assert together.log(0) == (b"x" * 99 + b"\n") * 20000
    assert sum(b"[worker 0]" in line for line in together.shown) == 20000


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("raise SystemExit(3)", 3, "exit code 3"),
        ("raise ValueError('bad luck')", 1, "exit code 1"),
        ("import os; os.kill(os.getpid(), 9)", 137, "killed by SIGKILL"),
        ("import os; os.kill(os.getpid(), 11)", 139, "killed by SIGSEGV"),
    ],
)
def test_one_failure_ends_the_job_and_is_named(together, program, code, words):
    begun = time.monotonic()
    assert together(SLEEP, program, SLEEP) == code
    assert time.monotonic() - begun < DEADLINE_S
    assert together.said[0].startswith("worker 1 failed first: " + words)
    assert str(together.folder) in together.said[0]


def test_a_failure_is_told_once_with_its_last_line(together):
    program = "for i in range(100): print('line', i)\nraise ValueError('why')"
    assert together(SLEEP, program) == 1
    (said,) = together.said
    assert "Its last line is 'ValueError: why'" in said
    assert "\n" not in said and "line 99" not in said


def test_a_failure_without_a_word_is_told_as_that(together):
    assert together(SLEEP, "raise SystemExit(3)") == 3
    assert "It wrote nothing" in together.said[0]


def test_who_left_before_a_failure_is_named(together):
    late = "import time; time.sleep(1); raise SystemExit(4)"
    assert together("", late) == 4
    assert together.said[0].startswith("worker 1 failed first")
    assert together.said[1].startswith("worker 0 had ended before by itself")


def test_who_left_long_ago_is_named_once_while_the_others_wait(tmp_path):
    said: list[str] = []
    hours = iter(range(0, 10**6, 3600))
    program = "import time; time.sleep(1)"
    code = run(
        plan_of(["", program, program], str(tmp_path)),
        env=os.environ,
        show=lambda line: None,
        say=said.append,
        clock=lambda: float(next(hours)),
    )
    assert code == 0 and len(said) <= 3  # a late starter may be gone too
    assert "worker 0 has ended by itself (exit code 0)" in said[0]
    assert "in vain" in said[0]


def test_who_ignores_the_request_to_end_is_killed(together):
    wait = "import time; time.sleep(1); raise SystemExit(5)"
    begun = time.monotonic()
    assert together(STUBBORN, wait, grace_s=0.5) == 5
    assert 1.4 < time.monotonic() - begun < DEADLINE_S


def test_who_is_asked_to_end_may_finish(together):
    program = (
        "import signal, time\n"
        "def end(*_):\n"
        "    print('saved')\n"
        "    raise SystemExit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "time.sleep(300)"
    )
    wait = "import time; time.sleep(1); raise SystemExit(5)"
    assert together(program, wait) == 5
    assert b"saved\n" in together.log(0)


def test_helpers_of_a_worker_end_with_it(together, tmp_path):
    program = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(300)'])\n"
        f"open({str(tmp_path / 'helper')!r}, 'w').write(str(p.pid))\n"
    )
    assert together(program, "") == 0
    helper = int((tmp_path / "helper").read_text())
    wait_for(lambda: not alive(helper), "the helper's end")


def test_workers_read_nothing(together):
    assert together("import sys; assert sys.stdin.read() == ''", "") == 0


def test_a_worker_that_cannot_start_leaves_no_other(tmp_path):
    """The second start fails: the first worker must not stay."""
    started: list[subprocess.Popen] = []

    def popen(*words, **more):
        if started:
            raise OSError("no more processes")
        started.append(subprocess.Popen(*words, **more))
        return started[0]

    with pytest.raises(OSError, match="no more"):
        run(plan_of([SLEEP, SLEEP], str(tmp_path)), env=os.environ,
            popen=popen)
    assert started[0].returncode == -signal.SIGKILL


def test_an_exception_while_watching_leaves_no_worker(tmp_path):
    pids = []

    def show(line):
        pids.append(int(line.rpartition(b" ")[2]))
        raise BrokenPipeError

    program = "import os, time; print(os.getpid()); time.sleep(300)"
    with pytest.raises(BrokenPipeError):
        run(plan_of([program, program], str(tmp_path)), env=os.environ,
            show=show)
    assert pids and not any(map(alive, pids))


def test_signal_handlers_are_given_back(together):
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    together("", "")
    after = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    assert before == after


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_all_workers(drive, signum):
    start, pids = drive
    program = READY.format("signal.SIG_DFL") + SLEEP
    launcher = start(program, program)
    workers = pids(2)
    launcher.send_signal(signum)
    _, err = launcher.communicate(timeout=DEADLINE_S)
    assert launcher.returncode == 128 + signum
    words = {signal.SIGINT: b"interrupted", signal.SIGTERM: b"told to end"}
    assert err == words[signum] + b"\n"
    assert not any(map(alive, workers))


def test_a_second_signal_kills(drive):
    start, pids = drive
    launcher = start(STUBBORN, STUBBORN, grace_s=300.0)
    workers = pids(2)
    for _ in range(2):
        assert b"ready" in launcher.stdout.readline()
    launcher.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert all(map(alive, workers))
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(DEADLINE_S) == 128 + signal.SIGTERM
    assert not any(map(alive, workers))


@pytest.mark.parametrize("count", [1, 2])
def test_workers_die_with_a_launcher_that_is_killed(drive, count):
    start, pids = drive
    launcher = start(*[STUBBORN] * count, logs=count > 1)
    workers = pids(count)
    launcher.kill()
    launcher.wait(DEADLINE_S)
    wait_for(lambda: not any(map(alive, workers)), "the workers' end")


@pytest.mark.parametrize(
    ("program", "code"),
    [("", 0), ("raise SystemExit(7)", 7),
     ("import os; os.kill(os.getpid(), 15)", 143)],
)
def test_alone_the_code_is_the_workers(drive, program, code):
    start, _ = drive
    assert start(program, logs=False).wait(DEADLINE_S) == code


def test_alone_input_and_output_are_the_persons(drive):
    start, _ = drive
    launcher = start(
        "import sys; print(input()); print('bad', file=sys.stderr)",
        logs=False,
    )
    out, err = launcher.communicate(b"typed\n", timeout=DEADLINE_S)
    assert (out, err) == (b"typed\n", b"bad\n")


def test_alone_an_interrupt_may_be_used_by_the_program(drive):
    start, pids = drive
    launcher = start(
        READY.format("signal.default_int_handler")
        + "import time\n"
        "try:\n"
        "    print('ready'); time.sleep(300)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(1); print('evaluated')",
        logs=False,
        grace_s=0.1,
    )
    pids(1)
    assert launcher.stdout.readline() == b"ready\n"
    launcher.send_signal(signal.SIGINT)
    out, _ = launcher.communicate(timeout=DEADLINE_S)
    assert (out, launcher.returncode) == (b"evaluated\n", 0)


def test_alone_a_request_to_end_is_passed_on(drive):
    start, pids = drive
    launcher = start(SLEEP, logs=False)
    (worker,) = pids(1)
    launcher.terminate()
    assert launcher.wait(DEADLINE_S) == 128 + signal.SIGTERM
    assert not alive(worker)
