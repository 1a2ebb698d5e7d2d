"""What a set-up will do, before it is bought or rented; no TensorFlow.

    facts.py   GPUs, models and published measurements, as records
    links.py   the all-reduce bandwidth between the GPUs of a set-up
    step.py    the time of a step, by part: compute, exposed all-reduce
    fit.py     what machines reach of their peaks, learnt from measurements

The facts are tables in `tfmulti/hardware/data/`, each row with its source.
"""
