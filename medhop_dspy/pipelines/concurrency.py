"""Coroutines without an event loop, and several of them at once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[], Coroutine[Any, Any, T]]


def drive(program: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends.

    Raises:
        RuntimeError: it did suspend, that is, it awaited something real in blocking mode.
    """
    try:
        program.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    program.close()
    raise RuntimeError("a program suspended in blocking mode; await only Run's methods in it")


async def in_threads(jobs: Sequence[Job[T]], limit: int) -> list[T]:
    """Results of jobs that never suspend, in their order, at most ``limit`` at once; this never suspends either.

    Each thread has a copy of the context, and so of what ``dspy.context`` has set. After the first error no further
    job begins, and those under way are finished.

    Raises:
        Exception: of the jobs that failed, that of the first in the order of ``jobs``.
    """
    if min(limit, len(jobs)) <= 1:
        return [drive(job()) for job in jobs]
    failed = threading.Event()

    def run(job: Job[T]) -> tuple[T] | None:
        """The result, or None where the job was not begun."""
        if failed.is_set():
            return None
        try:
            return (drive(job()),)
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(min(limit, len(jobs)), "program") as pool:
        futures = [pool.submit(contextvars.copy_context().run, run, job) for job in jobs]
        try:
            wait(futures)
        finally:
            failed.set()  # an interrupted wait begins nothing more
    return _results([future.exception() or future.result() for future in futures])


async def in_tasks(jobs: Sequence[Job[T]], limit: int) -> list[T]:
    """Results of jobs in their order, at most ``limit`` at once; as :func:`in_threads`, for jobs that do suspend."""
    gate, failed = asyncio.Semaphore(limit), asyncio.Event()

    async def run(job: Job[T]) -> tuple[T] | None:
        async with gate:
            if failed.is_set():
                return None
            try:
                return (await job(),)
            except BaseException:
                failed.set()
                raise

    return _results(await asyncio.gather(*map(run, jobs), return_exceptions=True))


def _results(outcomes: Sequence[tuple[T] | BaseException | None]) -> list[T]:
    """What the jobs returned; the first error is raised."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome[0] for outcome in outcomes if isinstance(outcome, tuple)]
