"""Records: sums, states, JSON round trip."""

import json
from dataclasses import replace

from medhop_dspy.trace import Attempt, Failure, Hop, LMCall, SearchRecord, Trace, Usage, Verdict

TRACE = Trace(
    question="Q? U+2028:\u2028 é",
    strategy="multihop",
    answer_type="chromosome",
    constraints=("a", "b"),
    expansion=("FBN1",),
    hops=(
        Hop("Which gene?", "gene", "FBN1", locked=True, attempts=2),
        Hop("On which chromosome?", "other", reason="no"),
    ),
    attempts=(
        Attempt(0, ("q",), ("d#0",), "", (Verdict("format", False, "python", "no draft"),)),
        Attempt(1, ("q", "r"), ("d#0", "e#1"), "15", (Verdict("type", True, "python"),), "r"),
    ),
    calls=(LMCall(Usage(10, 4, 2), 0.5, "stop"), LMCall(Usage(), 1.0, "", "ServerError: x")),
    failures=(Failure("plan", "not JSON"),),
    searches=(SearchRecord(("q", "r"), ("FBN1",), True, ("d#0",)), SearchRecord(("s",), (), False, ())),
    seconds=1.5,
)


def test_json_round_trip_is_lossless():
    assert Trace.from_dict(json.loads(json.dumps(TRACE.to_dict()))) == TRACE


def test_a_record_of_before_there_were_graphs_is_read():
    state = TRACE.to_dict()
    del state["searches"]
    assert Trace.from_dict(state) == replace(TRACE, searches=())


def test_usage_adds_up():
    assert TRACE.usage == Usage(10, 4, 2)
    assert TRACE.usage.computed_tokens == 6
    assert TRACE.usage.cached_share == 0.4
    assert Usage().cached_share == 0.0


def test_an_attempt_without_a_draft_never_passes():
    assert not Attempt(0, (), (), "", ()).passed
    assert TRACE.attempts[1].passed
    assert not TRACE.attempts[0].passed


def test_a_hop_is_resolved_by_an_answer():
    assert [h.resolved for h in TRACE.hops] == [True, False]
