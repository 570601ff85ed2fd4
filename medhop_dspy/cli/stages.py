"""How far a long command is, how long it will take, and what the language model has cost so far."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from medhop_dspy.trace import Usage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from medhop_dspy.trace import LMCall

_EVERY: Final = 30.0  # seconds between lines where bars cannot be drawn, as in a log file


class Cost:
    """LM calls and tokens so far. ``calls`` grows while it is read; each call is counted once."""

    def __init__(self, calls: Sequence[LMCall]) -> None:
        self._calls = calls
        self._counted = 0
        self._usage = Usage()

    def __str__(self) -> str:
        new = self._calls[self._counted :]
        self._usage = sum((call.usage for call in new), self._usage)
        self._counted += len(new)
        if not self._counted:
            return ""
        read, written = self._usage.prompt_tokens, self._usage.completion_tokens
        return f"{self._counted:,} LM calls, {read:,} prompt tokens, {written:,} generated"


class Stages:
    """One bar a stage on a terminal, a line now and then elsewhere."""

    def __init__(self, bars: Progress, console: Console, cost: Cost) -> None:
        self._bars = bars
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._last = time.monotonic()
        self.cost = cost

    def show(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` of a stage are done."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total, cost="")
        self._bars.update(self._tasks[stage], completed=done, total=total, cost=str(self.cost))
        if not self._console.is_terminal and time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            left = self._bars.tasks[self._tasks[stage]].time_remaining
            eta = f", {left:.0f} s left" if left else ""
            cost = f", {self.cost}" if str(self.cost) else ""
            self._console.print(f"{stage}: {done:,} of {total:,}{eta}{cost}", highlight=False, soft_wrap=True)


@contextmanager
def stages(calls: Sequence[LMCall] = ()) -> Iterator[Stages]:
    """Progress on standard error for the length of the block; ``calls`` are what the model was asked meanwhile."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cost]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        yield Stages(bars, console, Cost(calls))
