"""Work in several threads at once."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")
_Made = TypeVar("_Made")


def made_once(make: Callable[[Any], _Made]) -> cached_property[_Made]:
    """A cached property that is made once, however many threads ask for it first.

    From Python 3.12 on, ``functools.cached_property`` has no lock of its own.
    """
    lock, name = threading.RLock(), make.__name__

    def get(instance: Any) -> _Made:  # noqa: ANN401
        with lock:
            if name not in vars(instance):
                vars(instance)[name] = make(instance)
            made: _Made = vars(instance)[name]
            return made

    get.__doc__ = make.__doc__
    return cached_property(get)


def in_threads(
    work: Callable[[_Task], _Done],
    tasks: Iterable[_Task],
    workers: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[_Done]:
    """What ``work`` makes of each task, as it comes.

    A task is begun only once an earlier result has been dealt with, so no work piles up behind a caller who is about
    to stop; after ``stopped`` only what is under way still comes. Each thread runs in a copy of the caller's context,
    where DSPy keeps the language model. The threads are daemons: an interrupted run does not wait for a slow server.

    Raises:
        BaseException: the first that ``work`` raises; no task begins after it.
    """
    waiting: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[_Done] | BaseException] = queue.SimpleQueue()

    def run() -> None:
        while (task := waiting.get()) is not None:
            try:
                results.put((work(task),))
            except BaseException as error:  # noqa: BLE001  (raised again by whoever waits for the result)
                results.put(error)

    todo = iter(tasks)
    under_way = 0
    for task in itertools.islice(todo, workers):
        waiting.put(task)
        under_way += 1
        threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    try:
        while under_way:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result[0]
            under_way -= 1
            for task in itertools.islice(todo, 0 if stopped() else 1):
                waiting.put(task)
                under_way += 1
    finally:
        for _ in range(workers):
            waiting.put(None)
