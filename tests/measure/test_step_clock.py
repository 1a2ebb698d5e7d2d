"""What the step clock counts, with a clock that is told the time."""

from __future__ import annotations

from tfmulti.measure.step_clock import EpochTimes, StepClock


def run(clock: StepClock, moments: list[float], begins, start, stop, steps):
    moments.append(start)
    clock.start()
    for step, moment in begins:
        moments.append(moment)
        clock.begin(step)
    moments.append(stop)
    return clock.stop(steps)


def new_clock() -> tuple[StepClock, list[float]]:
    moments: list[float] = []
    return StepClock(now_s=lambda: moments[-1]), moments


def test_first_epoch_is_counted_behind_the_first_step():
    clock, moments = new_clock()
    times = run(
        clock, moments, [(0, 1.0), (1, 9.0), (2, 9.5)], 0.0, 10.1, steps=3
    )
    assert times.steps == 2
    assert round(times.duration_s, 9) == 1.1
    assert round(times.step_ms, 6) == 550.0


def test_later_epochs_are_counted_from_their_start():
    clock, moments = new_clock()
    run(clock, moments, [(0, 1.0)], 0.0, 2.0, steps=1)
    times = run(
        clock, moments, [(0, 20.5), (1, 21.0), (2, 22.0)], 20.0, 24.0, steps=3
    )
    assert times == EpochTimes(steps=3, duration_s=4.0, step_ms=1000.0)


def test_one_step_alone_is_not_timed():
    clock, moments = new_clock()
    times = run(clock, moments, [(0, 1.0)], 0.0, 5.0, steps=1)
    assert times == EpochTimes(steps=0, duration_s=0.0, step_ms=None)


def test_the_call_that_finds_the_end_of_data_is_no_step():
    clock, moments = new_clock()
    run(clock, moments, [(0, 1.0)], 0.0, 2.0, steps=1)
    times = run(
        clock, moments, [(0, 10.0), (1, 11.0), (2, 12.0)], 10.0, 12.0, steps=2
    )
    assert times == EpochTimes(steps=2, duration_s=2.0, step_ms=1000.0)


def test_several_steps_in_one_execution_share_its_time():
    clock, moments = new_clock()
    run(clock, moments, [(0, 1.0)], 0.0, 2.0, steps=1)
    times = run(
        clock, moments, [(0, 10.0), (4, 14.0)], 10.0, 20.0, steps=6
    )
    assert times.steps == 6
    assert times.step_ms == (1000.0 + 3000.0) / 2
