"""TF_CONFIG is read as TensorFlow reads it, and refused in words."""

from __future__ import annotations

import json

import pytest

from tfmulti.cluster import Cluster, from_tf_config, on_this_host, resolve
from tfmulti.errors import UsageError

TWO = {"worker": ["a:1", "b:2"]}


def read(document: object) -> Cluster | None:
    return from_tf_config({"TF_CONFIG": json.dumps(document)})


@pytest.mark.parametrize("env", [{}, {"TF_CONFIG": ""}, {"TF_CONFIG": " \n"}])
def test_unset_or_empty_names_no_cluster(env):
    assert from_tf_config(env) is None
    assert resolve(env) is None


@pytest.mark.parametrize("index", [0, 1])
def test_plain_workers(index):
    cluster = read(
        {"cluster": TWO, "task": {"type": "worker", "index": index}}
    )
    assert cluster is not None
    assert cluster.workers == ("a:1", "b:2")
    assert (cluster.index, cluster.address) == (index, ("a:1", "b:2")[index])
    assert cluster.chief == (index == 0)
    assert cluster.source == "TF_CONFIG"


@pytest.mark.parametrize(
    ("kind", "index", "place"), [("chief", 0, 0), ("worker", 1, 2)]
)
def test_chief_entry_is_worker_zero(kind, index, place):
    kinds = {"worker": ["b:1", "c:1"], "chief": ["a:1"]}
    cluster = read(
        {
            "cluster": kinds,
            "task": {"type": kind, "index": index},
            "environment": "cloud",
        }
    )
    assert cluster is not None
    assert cluster.workers == ("a:1", "b:1", "c:1")
    assert cluster.index == place


def test_index_as_text_and_ipv6():
    cluster = read(
        {
            "cluster": {"worker": ["[::1]:2222", "[fe80::2]:2222"]},
            "task": {"type": "worker", "index": "1"},
        }
    )
    assert cluster is not None
    assert cluster.address == "[fe80::2]:2222"


@pytest.mark.parametrize("size", range(1, 6))
def test_what_is_rendered_reads_back_the_same(size):
    first = on_this_host(range(5000, 5000 + size))
    for index in range(size):
        cluster = first.at(index)
        again = from_tf_config({"TF_CONFIG": cluster.tf_config()})
        assert again is not None
        assert (again.workers, again.index) == (cluster.workers, index)


WORKER_0 = {"type": "worker", "index": 0}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "JSON list"),
        ({"task": WORKER_0}, "cluster"),
        ({"cluster": {}, "task": WORKER_0}, "cluster"),
        ({"cluster": TWO}, "task"),
        ({"cluster": TWO, "task": {"index": 0}}, "task"),
        ({"cluster": TWO, "task": {"type": "worker"}}, "index None"),
        ({"cluster": TWO, "task": {"type": "worker", "index": 2}}, "0 to 1"),
        ({"cluster": TWO, "task": {"type": "worker", "index": -1}}, "0 to 1"),
        ({"cluster": TWO, "task": {"type": "worker", "index": True}}, "True"),
        ({"cluster": TWO, "task": {"type": "boss", "index": 0}}, "'boss'"),
        ({"cluster": TWO, "task": {"type": "chief", "index": 0}}, "'chief'"),
        ({"cluster": TWO, "task": {"type": "evaluator", "index": 0}},
         "run of its own"),
        ({"cluster": TWO | {"ps": ["c:1"]}, "task": WORKER_0}, "'ps'"),
        ({"cluster": {"worker": "a:1"}, "task": WORKER_0}, "a list"),
        ({"cluster": {"worker": ["a", "b:1"]}, "task": WORKER_0}, "'a'"),
        ({"cluster": {"worker": ["a:", "b:1"]}, "task": WORKER_0}, "'a:'"),
        ({"cluster": {"worker": ["a:0"]}, "task": WORKER_0}, "'a:0'"),
        ({"cluster": {"worker": ["a:70000"]}, "task": WORKER_0}, "65535"),
        ({"cluster": {"worker": ["::1:22"]}, "task": WORKER_0}, "'::1:22'"),
        ({"cluster": {"worker": [7]}, "task": WORKER_0}, "address 7"),
        ({"cluster": {"worker": ["a:1", "a:1"]}, "task": WORKER_0},
         "2 times"),
        ({"cluster": {"chief": ["a:1", "b:1"]},
          "task": {"type": "chief", "index": 0}}, "2 chiefs"),
        ({"cluster": {"worker": []}, "task": WORKER_0}, "no address"),
        ({"sparseCluster": TWO, "task": WORKER_0}, "enableDynamicWorker"),
    ],
)
def test_malformed_is_refused_in_words(document, words):
    with pytest.raises(UsageError, match="TF_CONFIG") as caught:
        read(document)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_not_json():
    with pytest.raises(UsageError, match="not JSON"):
        from_tf_config({"TF_CONFIG": "{'cluster': 1}"})
