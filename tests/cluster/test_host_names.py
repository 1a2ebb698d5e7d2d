"""Short forms of host lists, written out in their own order."""

from __future__ import annotations

import pytest

from tfmulti.cluster.host_names import expand_counts, expand_hosts
from tfmulti.errors import UsageError


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", "n1"),
        ("n[9-10]", "n9 n10"),
        ("n[10,9]", "n10 n9"),
        ("n[008-010]", "n008 n009 n010"),
        ("n[8-10,3].lan,m", "n8.lan n9.lan n10.lan n3.lan m"),
        ("r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1"),
        ("a,b[1-2]c[3,5]d,e", "a b1c3d b1c5d b2c3d b2c5d e"),
    ],
)
def test_hosts(text, hosts):
    assert expand_hosts(text) == tuple(hosts.split())


@pytest.mark.parametrize(
    "text",
    ["", ",", "a,,b", "n[", "n]", "n[]", "n[2-1]", "n[a]", "n[1-2", "n[1[2]]",
     "n[1-]", "n[0-999999999999]", "n[1-400]m[1-400]"],
)  # fmt: skip
def test_wrong_lists_are_refused(text):
    with pytest.raises(UsageError):
        expand_hosts(text)


def test_counts():
    assert expand_counts("2(x3),1") == (2, 2, 2, 1)
    for text in ("", "2(x", "x2", "1,,1", "1(x999999999999)"):
        with pytest.raises(UsageError):
            expand_counts(text)
