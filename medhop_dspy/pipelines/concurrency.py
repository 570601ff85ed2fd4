"""Coroutines without an event loop, and several of them at once."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    job begins.
    """
    if min(limit, len(jobs)) <= 1:
        return [drive(job()) for job in jobs]
    with ThreadPoolExecutor(min(limit, len(jobs)), "program") as pool:
        futures = [pool.submit(contextvars.copy_context().run, lambda job=job: drive(job())) for job in jobs]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()  # does nothing to those that have ended


async def in_tasks(jobs: Sequence[Job[T]], limit: int) -> list[T]:
    """Results of jobs in their order, at most ``limit`` at once; the first error cancels the others."""
    gate = asyncio.Semaphore(limit)

    async def gated(job: Job[T]) -> T:
        async with gate:
            return await job()

    tasks = [asyncio.ensure_future(gated(job)) for job in jobs]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
