"""The end of a meeting does not hang on a task that misses its end."""

from __future__ import annotations

import asyncio

from tfmulti.cluster.rendezvous.meeting import _end


def test_a_task_that_loses_a_cancellation_is_cancelled_again():
    lost = []

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append(True)

    async def meeting():
        task = asyncio.ensure_future(stubborn())
        await asyncio.sleep(0)
        await asyncio.wait_for(_end({task}), 10)
        return task.cancelled()

    assert asyncio.run(meeting())
    assert lost
