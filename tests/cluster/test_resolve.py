"""The first resolver that answers is believed."""

from __future__ import annotations

from tfmulti.cluster import Cluster, resolve


def test_first_answer_wins_and_later_ones_are_not_asked():
    asked = []

    def says(source, answers):
        def resolver(env, ask):
            asked.append(source)
            if answers:
                return Cluster(workers=("a:1",), index=0, source=source)
            return None

        return resolver

    found = resolve(
        {}, (says("one", False), says("two", True), says("three", True))
    )
    assert found is not None
    assert found.source == "two"
    assert asked == ["one", "two"]
