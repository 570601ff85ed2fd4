"""Work in several threads at once."""

import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from medhop_dspy.threads import in_threads, made_once


@pytest.mark.parametrize("workers", [1, 3, 50])
def test_every_task_once(workers):
    assert sorted(in_threads(lambda n: n * n, range(20), workers)) == [n * n for n in range(20)]


def test_no_tasks():
    assert list(in_threads(lambda n: n, [], 3)) == []


def test_as_many_at_once_as_there_are_workers():
    together = threading.Barrier(3, timeout=20)  # breaks unless all three are under way
    assert sorted(in_threads(lambda n: (together.wait(), n)[1], range(3), 3)) == [0, 1, 2]


def test_nothing_begins_before_a_result_is_dealt_with():
    begun = []
    for done in in_threads(lambda n: begun.append(n) or n, range(5), 1):
        time.sleep(0.02)
        assert begun == list(range(done + 1))


def test_after_a_stop_only_what_is_under_way_comes():
    stop = threading.Event()
    found = []
    for done in in_threads(lambda n: n, range(100), 2, stop.is_set):
        found.append(done)
        if len(found) == 3:
            stop.set()
    assert 3 <= len(found) <= 5


def test_the_first_error_is_raised_and_no_task_begins_after_it():
    begun = []

    def work(number):
        begun.append(number)
        if number == 2:
            raise LookupError("two")

    with pytest.raises(LookupError, match="two"):
        list(in_threads(work, range(100), 1))
    time.sleep(0.05)
    assert begun == [0, 1, 2]


def test_threads_see_the_context_of_the_caller():
    name = contextvars.ContextVar("name", default="none")
    name.set("caller's")
    assert list(in_threads(lambda _: name.get(), range(4), 2)) == ["caller's"] * 4


class Slow:
    """Something that takes a while to make, and counts how often that is."""

    def __init__(self):
        self.made = []

    @made_once
    def parts(self):
        """What it is made of."""
        self.made.append("parts")
        time.sleep(0.05)
        return list(self.inner)

    @made_once
    def inner(self):
        self.made.append("inner")
        return [len(self.made)]


def test_a_property_is_made_once_however_many_threads_ask():
    one, other = Slow(), Slow()
    together = threading.Barrier(4, timeout=20)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda thing: (together.wait(), thing.parts)[1], [one, one, one, other]))
    assert one.made == other.made == ["parts", "inner"]
    assert all(each is one.parts for each in found[:3]) and found[3] is other.parts is not one.parts
    assert one.parts == [2]
    assert Slow.parts.__doc__ == "What it is made of."


def test_what_could_not_be_made_is_tried_again():
    class Late:
        ready = False

        @made_once
        def value(self):
            if not self.ready:
                raise LookupError
            return 7

    late = Late()
    with pytest.raises(LookupError):
        late.value  # noqa: B018
    late.ready = True
    assert late.value == 7
