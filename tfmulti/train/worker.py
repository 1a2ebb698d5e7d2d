"""One worker's program: `python -m tfmulti.train.worker`.

The launcher has decided everything and says it in TFMULTI_JOB (what to run)
and TF_CONFIG (where this worker stands). The order below matters: each step
must be done before the next one starts TensorFlow a little further.

    environment   the job is read, the cluster resolved   no TensorFlow yet
    import        its messages on import are kept back
    devices       logical CPUs or GPUs, before any is used
    keras3        what Keras gets wrong under a strategy
    strategy      connects the workers: the first collective
    then          the experiment, or the person's script

Exit codes: 0 done; 2 a mistake that a person can mend, told in one line; 1 an
exception, with its traceback; a script's own.
"""

from __future__ import annotations
