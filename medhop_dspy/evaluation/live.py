"""A run's progress on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

    from medhop_dspy.evaluation.runner import Progress

EVERY: Final = 30.0  # seconds between two lines


def describe(state: Progress) -> str:
    """Running exact match or accuracy with its denominator, failures, speed, and the time that is left.

    Tokens are those that the server worked on: prompt tokens that were not in its prefix cache, and its replies.
    """
    parts = (
        [f"{state.measure} {state.correct / state.done:.3f} ({state.correct} of {state.done})"] if state.done else []
    )
    if state.failed:
        parts.append(f"{state.failed} failed")
    if state.asked:
        work = state.usage.computed_tokens + state.usage.completion_tokens
        parts.append(f"{work / max(state.seconds, 1e-9):.0f} tokens/s")
        parts.append(f"{state.usage.cached_share:.0%} of prompt tokens cached")
        left = state.seconds / state.asked * (state.total - state.done)
        parts.append(f"{int(left) // 3600}:{int(left) // 60 % 60:02}:{int(left) % 60:02} left")
    return ", ".join(parts)


@contextmanager
def live_progress(console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """What :func:`medhop_dspy.evaluation.runner.evaluate` takes as ``progress``.

    Args:
        console: Where to; standard error by default.
    """
    import rich.console

    console = console or rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), console=console) as bar:
        task = bar.add_task("", total=None)
        yield lambda state: bar.update(task, total=state.total, completed=state.done, description=describe(state))


class _Lines:
    """At most one line in :data:`EVERY` seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = float("-inf")

    def __call__(self, state: Progress) -> None:
        if time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            self._console.print(f"{state.done}/{state.total} {describe(state)}", soft_wrap=True, markup=False)
