"""Jobs at the same time: both ways of running them begin, finish and fail alike."""

import asyncio
import threading

import pytest

from medhop_dspy.pipelines.concurrency import drive, in_tasks, in_threads


class Jobs:
    """Jobs that wait until ``together`` of them are under way; then those in ``failing`` fail and the others go on."""

    def __init__(self, count, together, failing=()):
        self.begun, self.ended = [], []
        self._failing, self._together = failing, together
        self._all_begun, self._failed = threading.Event(), threading.Event()
        self.jobs = [lambda number=number: self._job(number) for number in range(count)]

    async def _job(self, number):
        self.begun.append(number)
        if len(self.begun) == self._together:
            self._all_begun.set()
        await self._wait(self._all_begun)
        if number in self._failing:
            self._failed.set()
            raise LookupError(f"job {number}")
        if self._failing:
            await self._wait(self._failed)
        await self._pause()
        self.ended.append(number)
        return number * number


class Blocking(Jobs):
    def run(self, limit):
        return drive(in_threads(self.jobs, limit))

    async def _wait(self, event):
        assert event.wait(20)

    async def _pause(self):
        threading.Event().wait(0.05)


class Awaited(Jobs):
    def run(self, limit):
        return asyncio.run(in_tasks(self.jobs, limit))

    async def _wait(self, event):
        while not event.is_set():
            await asyncio.sleep(0.001)

    async def _pause(self):
        await asyncio.sleep(0.05)


BOTH = pytest.mark.parametrize("kind", [Blocking, Awaited])


@BOTH
@pytest.mark.parametrize("limit", [1, 2, 5, 50])
def test_results_come_in_the_order_of_the_jobs(kind, limit):
    made = kind(5, together=min(limit, 5))
    assert made.run(limit) == [0, 1, 4, 9, 16]
    assert kind(0, together=1).run(limit) == []


@BOTH
@pytest.mark.parametrize("failing", [(0,), (1,), (2, 1), (0, 1, 2)])
def test_after_a_failure_nothing_begins_and_what_is_under_way_is_finished(kind, failing):
    made = kind(8, together=3, failing=failing)
    with pytest.raises(LookupError, match=f"job {min(failing)}"):
        made.run(3)
    assert sorted(made.begun) == [0, 1, 2]
    assert sorted(made.ended) == [number for number in range(3) if number not in failing]


@BOTH
def test_one_at_a_time_stops_at_the_first_failure(kind):
    made = kind(5, together=1, failing=(0, 1))
    with pytest.raises(LookupError, match="job 0"):
        made.run(1)
    assert made.begun == [0]


async def test_a_question_that_is_given_up_takes_its_jobs_along():
    made = Awaited(3, together=4)  # they wait for a fourth that never comes
    task = asyncio.ensure_future(in_tasks(made.jobs, 2))
    while len(made.begun) < 2:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (made.begun, made.ended) == ([0, 1], [])
    assert asyncio.all_tasks() == {asyncio.current_task()}
