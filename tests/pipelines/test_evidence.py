"""Which passages a prompt shows, and in which order."""

import pytest

from medhop_dspy.pipelines.evidence import arrange
from medhop_dspy.trace import Passage


def passages(names, text="x" * 100):
    return [Passage(f"{n}#0", n, n, "", text) for n in names]


def names(arranged):
    return "".join(p.title for p in arranged)


@pytest.mark.parametrize(
    ("shown", "ranked", "limit", "expected"),
    [
        ("", "abc", 8, "cba"),
        ("", "abc", 2, "ba"),
        ("abc", "de", 8, "abced"),
        ("abc", "cdb", 8, "abcd"),
        ("abc", "de", 4, "abed"),
        ("abc", "def", 3, "fed"),
        ("abc", "xcy", 3, "cyx"),
        ("abc", "", 8, "abc"),
        ("", "", 8, ""),
    ],
    ids=["first", "capped", "added-behind", "kept-in-place", "last-old-leaves", "all-new", "one-kept", "none", "empty"],
)
def test_order_keeps_the_longest_start(shown, ranked, limit, expected):
    assert names(arrange(passages(shown), passages(ranked), limit, 4096)) == expected


def test_a_kept_passage_has_the_record_that_was_shown():
    old = [Passage("a#0", "a", "a", "", "text", 0.9)]
    assert arrange(old, [Passage("a#0", "a", "a", "", "text", 0.1)], 3, 4096)[0].score == 0.9


def test_whole_passages_leave_when_the_window_is_full_lowest_ranked_first():
    long = "y" * 1000
    arranged = arrange(passages("a", long), passages("bcdefgh", long), 8, 2048)
    assert names(arranged) == "cb"
    assert all(p.text == long for p in arranged)


def test_other_scripts_need_more_room():
    latin = arrange([], passages("abcdefgh", "y" * 500), 8, 2048)
    greek = arrange([], passages("abcdefgh", "ψ" * 500), 8, 2048)
    assert len(greek) < len(latin)
