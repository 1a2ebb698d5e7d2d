"""Says its arguments, leaves something for exit, and gives a code."""

import atexit
import sys

import tensorflow as tf

atexit.register(print, "at exit")
print(sys.argv, __name__, tf.distribute.get_strategy().num_replicas_in_sync)
if sys.argv[1] == "raise":
    raise ValueError("the script's own mistake")
sys.exit(int(sys.argv[1]))
