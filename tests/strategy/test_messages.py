"""Real exceptions of typical misuse become one message with the remedy."""

from __future__ import annotations

import pytest

from tfmulti.errors import UsageError


@pytest.fixture(scope="module")
def strategy(devices):
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(devices[:2])


@pytest.fixture
def everywhere(strategy):
    import tensorflow as tf

    tf.distribute.experimental_set_strategy(strategy)
    yield strategy
    tf.distribute.experimental_set_strategy(None)


def explain_text(text: str) -> UsageError | None:
    from tfmulti.strategy import explain_text as explained

    return explained(text)


def _message(program) -> UsageError:
    from tfmulti.strategy import explain

    with pytest.raises(Exception) as caught:  # noqa: B017, PT011
        program()
    message = explain(caught.value)
    assert message is not None, caught.value
    return message


def _model():
    import keras

    return keras.Sequential(
        [keras.layers.Input((3,)), keras.layers.Dense(1, name="head")]
    )


def _step(model, optimizer):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones([4, 3])))
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_without_strategy_run(everywhere, compiled):
    import keras
    import tensorflow as tf

    model, optimizer = _model(), keras.optimizers.SGD()

    def step():
        _step(model, optimizer)

    message = _message(tf.function(step) if compiled else step)
    assert "outside strategy.run" in message.received
    assert "strategy.run(step" in message.remedy


def test_an_optimizer_made_outside_the_scope(strategy):
    import keras
    import tensorflow as tf

    with strategy.scope():
        model = _model()
    optimizer = keras.optimizers.Adam()
    message = _message(
        lambda: tf.function(
            lambda: strategy.run(lambda: _step(model, optimizer))
        )()
    )
    assert "an optimizer" in message.received
    assert "strategy.scope()" in message.remedy


def test_a_model_made_outside_the_scope(strategy):
    import keras
    import tensorflow as tf

    model = _model()
    with strategy.scope():
        optimizer = keras.optimizers.SGD()
    message = _message(
        lambda: tf.function(
            lambda: strategy.run(lambda: _step(model, optimizer))
        )()
    )
    assert "a model made outside" in message.received


def test_a_variable_of_a_model_made_outside_is_named(strategy):
    import keras

    model = _model()

    def build():
        with strategy.scope():
            keras.optimizers.Adam().build(model.trainable_variables)

    message = _message(build)
    assert "head/kernel" in message.received


def test_a_second_strategy(everywhere):
    import tensorflow as tf

    def nest():
        with tf.distribute.OneDeviceStrategy("CPU:0").scope():
            pass

    message = _message(nest)
    assert "OneDeviceStrategy" in message.received
    assert "MirroredStrategy" in message.received
    assert "once" in message.remedy


def test_a_multi_worker_strategy_that_comes_too_late(devices, monkeypatch):
    import tensorflow as tf

    tf.config.list_logical_devices()
    monkeypatch.setenv(
        "TF_CONFIG",
        '{"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]},'
        ' "task": {"type": "worker", "index": 0}}',
    )
    message = _message(tf.distribute.MultiWorkerMirroredStrategy)
    assert "top of the program" in message.remedy


def test_run_inside_run(strategy):
    message = _message(lambda: strategy.run(lambda: strategy.run(lambda: 1)))
    assert "Move that call out" in message.remedy


def test_next_inside_run(strategy):
    import tensorflow as tf

    data = strategy.experimental_distribute_dataset(
        tf.data.Dataset.range(8).batch(2)
    )
    batches = iter(data)
    message = _message(lambda: strategy.run(lambda: next(batches)))
    assert "next(iterator)" in message.remedy


# As two workers of TensorFlow 2.21 said it.
ABORTED = "InvalidArgumentError: Collective ops is aborted by: "


def test_workers_whose_models_differ_in_shape():
    told = explain_text(
        f"{ABORTED}Shape mismatch in the collective instance 102. Op at device "
        "/job:worker/replica:0/task:0/device:CPU:0 expected shape [4,3] but "
        "another member in the group expected shape [4,4]. This is likely ..."
    )
    assert told is not None
    assert "of shape [4,3] on one worker, [4,4] on another" in str(told)
    assert "same model" in str(told)


@pytest.mark.parametrize(
    "cause",
    [
        "recvmsg:Connection reset by peer\nAdditional GRPC error information",
        "Socket closed",
        "failed to connect to all addresses; last error: UNKNOWN",
    ],
)
def test_a_worker_that_has_left_in_the_middle(cause):
    told = explain_text(f"{ABORTED}{cause}")
    assert told is not None
    assert "a worker that has left" in str(told)


def test_an_error_of_ours_is_its_own_message():
    from tfmulti.strategy import explain

    error = UsageError(received="a", allowed="b", remedy="c")
    assert explain(error) is error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("shapes (3,) and (4,) do not match"),
        AttributeError("'NoneType' object has no attribute 'shape'"),
        RuntimeError("CUDA out of memory"),
        AssertionError(),
    ],
)
def test_other_errors_stay_as_they_are(error):
    from tfmulti.strategy import explain

    assert explain(error) is None


# As TensorFlow 2.21 words them.
SHAPES = (
    "tensorflow.python.framework.errors_impl.InvalidArgumentError: "
    "{{function_node __wrapped__CollectiveBcastSend}} Collective ops is "
    "aborted by: Shape mismatch in the collective instance 102. Op at device "
    "/job:worker/replica:0/task:0/device:CPU:0 expected shape [4,2] but "
    "another member in the group expected shape [4,3]. This is likely due to"
)
DAMAGED = (
    "InvalidArgumentError: Graph execution error:\n\nDetected at node "
    "cond/Assert/Assert defined at (most recent call last):\nassertion "
    "failed: [These examples are missing, damaged or of an unknown format:] "
    "[/data/7.png]\n\t [[{{node cond/Assert/Assert}}]]"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SHAPES, ("[4,2] on one worker", "[4,3] on another")),
        (DAMAGED, ("unknown format: /data/7.png;", "leave them out")),
    ],
)
def test_what_tensorflow_says_of_other_mistakes(text, words):
    from tfmulti.strategy.messages import explain_text

    message = str(explain_text(text))
    assert "\n" not in message
    for word in words:
        assert word in message
