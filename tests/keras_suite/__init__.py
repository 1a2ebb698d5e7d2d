"""Keras's own tests, with the layer applied.

    python -m tests.keras_suite                       all modes, all suites
    python -m tests.keras_suite --mode layer --only 'callbacks/*'
    python -m tests.keras_suite --json results.json

Keras ships its tests inside the installed package (`keras/src/**/*_test.py`).
They run here in these modes, each suite in a process of its own:

    stock           Keras as it is
    layer           `tfmulti.keras3` applied for a strategy that is built, but
                    models are made outside of it: every test must end as in
                    stock
    mirrored        (trainers, callbacks) the whole test runs under a strategy
                    of two replicas, as `python -m tfmulti.run` would run it
    stock_mirrored  (not by default) the same strategy, without the layer: what
                    of the differences is Keras's own

The command prints a table of both, and every test whose outcome is not that
of stock with the cause that `differences.py` gives; it fails where a cause is
missing, or where a listed difference does not occur any more. All of it takes
about half an hour on two cores, so that CI runs a part of it only
(`test_keras_suite.py`).

    files.py        which files there are, suite by suite
    absent.py       packages that are not installed, and the tests they leave
                    out
    plugin.py       pytest's side: puts a mode in force, writes outcomes
    runner.py       starts the processes, with a deadline for everything
    comparison.py   outcomes of a mode against those of stock
    differences.py  the known differences, by cause
"""
