"""Files of lines that survive crashes and full disks."""

import json
import resource
import signal
from contextlib import contextmanager

import pytest

from medhop_dspy.journal import Journal, encode, whole


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lines.jsonl"


def reopened(path) -> list[bytes]:
    journal = Journal(path)
    lines = list(journal.lines)
    journal.mend()
    journal.close()
    return lines


@pytest.mark.parametrize("sync", [True, False])
def test_lines_come_back_in_order(path, sync):
    journal = Journal(path, sync=sync)
    journal.mend()
    for number in range(3):
        journal.append(encode({"n": number}))
    journal.close()
    journal.close()
    assert [json.loads(line)["n"] for line in reopened(path) if line] == [0, 1, 2]


@pytest.mark.parametrize(
    ("stored", "lines"),
    [
        (b"", []),
        (b'{"n": 0}\n', [0]),
        (b'{"n": 0}\n{"n": 1', [0]),
        (b'{"n": 0}\n{"n": 1}', [0, 1]),
        (b'{"n": 0}\n\0\0\0\0', [0]),
        (b'{"n": 0}\n{"n"\0\0', [0]),
        (b'{"n": 0}\nno JSON\n{"n": 1}\n', [0, None, 1]),
        (b'\n\n{"n": 0}\n\n\n', [0]),
        (b"\0\0\0", []),
    ],
)
def test_what_a_crash_has_cut_goes_and_the_next_line_stands_alone(path, stored, lines):
    path.write_bytes(stored)
    found = [line for line in reopened(path) if line]
    assert [None if line == b"no JSON" else json.loads(line)["n"] for line in found] == lines
    journal = Journal(path)
    journal.mend()
    journal.append(b'{"n": 9}\n')
    journal.close()
    assert path.read_bytes().splitlines()[-1] == b'{"n": 9}'
    assert [line for line in reopened(path) if line][:-1] == found


def test_nothing_is_changed_before_it_is_mended(path):
    path.write_bytes(b'{"n": 0}\nfree text')
    Journal(path).close()
    assert path.read_bytes() == b'{"n": 0}\nfree text'


@contextmanager
def room_for(size: int):
    """No file may grow beyond ``size`` bytes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def test_no_part_of_a_line_stays_that_does_not_fit(path):
    journal = Journal(path)
    journal.append(encode({"n": 0}))
    with room_for(20), pytest.raises(OSError, match="File too large"):
        journal.append(encode({"text": "x" * 100}))
    journal.append(encode({"n": 1}))
    journal.close()
    assert path.read_bytes() == b'{"n": 0}\n{"n": 1}\n'


@pytest.mark.parametrize("text", ["α", "line\u2028break", "half \ud800 of a pair", "two\nlines"])
def test_any_text_is_one_line(text):
    line = encode({"text": text})
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert json.loads(line) == {"text": text}
    assert whole(line) == len(line)


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        encode({"value": value})
