"""N replicas give what one device gives: a table of programs.

    python -m tests.equivalence --topology mirrored2,workers2x1 --only 'loss*'

    programs/       small Keras programs, one function each
    program.py      what a program is, where it runs, what it leaves
    worker.py       a process that runs programs in sequence
    runner.py       starts such processes and waits for them
    comparison.py   the largest relative difference of two results

Every program runs on one device, by Keras's own code in a process in which
nothing is replaced, and then under each topology. What it leaves (weights,
optimizer state, logs, predictions) must be equal.
"""
