"""MedHopper's control flow on a scripted model and real BM25 retrieval."""

import copy
import itertools
import json
import os
import threading

import dspy
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from medhop_dspy.answers import AnswerType
from medhop_dspy.cli.show import as_text
from medhop_dspy.errors import InputError, ServerUnavailableError
from medhop_dspy.knowledge.orphanet import Orphanet
from medhop_dspy.lm.failures import LMUnavailableError
from medhop_dspy.pipelines.medhopper import TITLED_TYPES, MedHopper
from medhop_dspy.pipelines.single_pass import SinglePass
from medhop_dspy.replies import PHRASE
from medhop_dspy.settings import Settings
from medhop_dspy.signatures import HopType
from tests.conftest import ROOT, prompt_of, task_of
from tests.pipelines.conftest import MULTIHOP, SCRIPT, LexicalRetriever, script

NEVER = {"Answer the question from the evidence. Give": "fibrillin gene region nine"}


@pytest.fixture
def ask(scripted_lm, settings):
    """``ask(question, changes, orphanet=None, **overrides)`` -> (prediction, engine)."""

    def run(question, changes=None, orphanet=None, **overrides):
        lm, engine = scripted_lm(script(changes))
        program = MedHopper(LexicalRetriever(), settings.replace(**overrides), orphanet)
        with dspy.context(lm=lm):
            return program(question=question), engine

    return run


def steps(engine):
    """The start of each request's task that the script knows it by."""
    tasks = [task_of(r).removeprefix("Task: ") for r in engine.requests]
    return [next(s for s in SCRIPT if t.startswith(s)) for t in tasks]


def hop_script(*answers):
    """Hop answers in the order in which they are asked."""
    queue = itertools.chain(answers, itertools.repeat(answers[-1]))
    return {"Answer the question from the evidence with one": lambda request: next(queue)}


def test_a_two_hop_question_from_end_to_end(ask, settings):
    result, engine = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"))
    assert result.answer == "Chromosome 15"
    assert result.validated
    assert (result.strategy, result.answer_type) == ("multihop", "chromosome")
    assert [(h.answer, h.locked, h.attempts) for h in result.hops] == [("FBN1", True, 1), ("chromosome 15", True, 1)]
    assert {p.title for p in result.evidence} >= {"Marfan syndrome", "FBN1"}
    assert "15q21.1" in result.quote
    assert "https://example.org/FBN1" in result.long_answer
    assert result.lm_calls == len(engine.requests) <= MedHopper.max_lm_calls(settings)
    assert result.trace.attempts[0].passed
    assert not result.trace.failures


def test_what_is_shown_names_the_source_of_the_quote_alone_and_what_nobody_decided(ask):
    result, _ = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"), use_model_judges=False)
    shown = as_text(MULTIHOP, result, trace=False)
    undecided = [v.check for v in result.trace.attempts[0].verdicts if v.passed and v.reason]
    assert undecided
    assert f"Chromosome 15   [validated, undecided: {', '.join(undecided)}]" in shown
    assert "On which chromosome is FBN1 located? -> chromosome 15" in shown
    assert len(result.evidence) > 1
    assert result.long_answer.endswith(" Source: FBN1 (https://example.org/FBN1).")


def test_what_was_decided_or_refused_is_shown_as_such(ask):
    decided, _ = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"))
    assert "Chromosome 15   [validated]" in as_text(MULTIHOP, decided, trace=False)
    refused, _ = ask(MULTIHOP, {**hop_script("FBN1", "chromosome 15"), **NEVER}, unvalidated="draft", max_repairs=0)
    assert "[not validated]" in as_text(MULTIHOP, refused, trace=False)
    assert "Passages read: " in refused.long_answer


def test_the_second_hop_asks_about_the_first_answer(ask):
    _, engine = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"))
    hops = [prompt_of(r) for r in engine.requests if "with one specific" in task_of(r)]
    assert "Question: On which chromosome is FBN1 located?" in hops[1]


def test_every_prompt_with_evidence_repeats_the_start_of_the_last(ask):
    _, engine = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"), evidence=8)
    blocks = [prompt_of(r).split("\n\nQuestion: ")[0] for r in engine.requests if prompt_of(r).startswith("Evidence:")]
    assert len(blocks) >= 4
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(blocks))


def test_a_failed_hop_is_tried_again_after_a_repair(ask):
    result, engine = ask(MULTIHOP, {**hop_script("unknown", "FBN1", "chromosome 15"), **NEVER}, max_repairs=1)
    assert [(h.answer, h.attempts) for h in result.hops] == [("FBN1", 2), ("chromosome 15", 1)]
    assert [a.round for a in result.trace.attempts] == [0, 1]
    assert result.trace.attempts[1].repair_query in result.trace.attempts[1].queries
    assert steps(engine).count("The last search did not") == 1


def test_hops_stop_at_the_first_that_fails(ask):
    result, _ = ask(MULTIHOP, hop_script("unknown"), use_repair=False)
    assert [(h.answer, h.attempts) for h in result.hops] == [("", 1), ("", 0)]
    assert "not specific" in result.hops[0].reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("gene", "not specific"),
        ("N/A", "not specific"),
        ("not sure", "not specific"),
        ("BRCA1", "does not occur in the evidence"),
        ("Marfan syndrome", "repeats the question"),
    ],
)
def test_a_hop_answer_must_be_specific_new_and_grounded(ask, reply, reason):
    result, _ = ask(MULTIHOP, hop_script(reply), use_repair=False)
    assert not result.hops[0].resolved
    assert reason in result.hops[0].reason


@pytest.mark.parametrize(("reply", "answer"), [("yes", "Yes"), ("No, it is not.", "No"), ("perhaps", "")])
def test_a_yes_no_hop_is_exact_and_never_steers(ask, reply, answer):
    plan = '{"hops": [{"question": "Is Marfan syndrome a connective tissue disorder?", "type": "yes_no"}]}'
    result, _ = ask(MULTIHOP, {"Split the question": plan, **hop_script(reply)}, use_repair=False)
    assert result.hops[0].answer == answer
    assert not result.hops[0].locked


@pytest.mark.parametrize(("switch", "answer"), [(True, "Ochronosis"), (False, "")])
def test_a_title_can_answer_a_hop_that_the_model_cannot(ask, switch, answer):
    question = "What is the disease with blue-black pigmentation of connective tissue?"
    plan = json.dumps({"hops": [{"question": question, "type": "disease"}]})
    changes = {"Split the question": plan, **hop_script("blue-black pigmentation")}
    result, _ = ask(MULTIHOP, changes, use_repair=False, titles_answer_hops=switch)
    assert result.hops[0].answer == answer


def test_rules_plan_without_the_model(ask):
    result, engine = ask(MULTIHOP, hop_script("FBN1"), plan_by="rules", evidence=8)
    assert "Classify" not in steps(engine) and "Split the question" not in steps(engine)
    assert [h.question for h in result.hops] == ["What is the gene that is mutated in Marfan syndrome?"]
    drafts = [prompt_of(r) for r in engine.requests if "as short as possible" in task_of(r)]
    assert "Question: On which chromosome is FBN1 located?" in drafts[0]
    assert result.answer == "Chromosome 15"


def test_a_draft_that_only_repeats_a_hop_is_refused(ask):
    changes = {**hop_script("FBN1"), "Answer the question from the evidence. Give": "FBN1"}
    result, _ = ask("Which protein is encoded by the gene mutated in Marfan syndrome?", changes, plan_by="rules")
    verdicts = {v.check: v for v in result.trace.attempts[0].verdicts}
    assert not verdicts["self_reference"].passed
    assert "what a hop found" in verdicts["self_reference"].reason


# Readings


def held(request):
    """The phrases that a reply is held to; none for a free one."""
    wanted = request.config.response_format or {}
    return wanted["schema"]["enum"] if wanted.get("name") == PHRASE else []


def drafts(engine):
    return [(len(held(r)), prompt_of(r)) for r in engine.requests if "as short as possible" in task_of(r)]


def test_drafts_are_read_from_more_and_more_passages(ask):
    result, engine = ask(MULTIHOP, hop_script("FBN1"), plan_by="rules", evidence=8, readings=3)
    assert result.answer == "Chromosome 15"
    first, second = (prompt for _, prompt in drafts(engine))  # no third: four passages are all there are
    assert (first.count("\n["), second.count("\n["), len(result.evidence)) == (1, 4, 4)
    assert first.startswith("Evidence:\n[1] FBN1: ")  # the best, which stands last where all are shown
    assert second.startswith(first.split("\n\nQuestion: ")[0])
    assert [number for number, _ in drafts(engine)] == [1, 2]  # chromosomes in them
    assert result.lm_calls == len(engine.requests)


def test_without_readings_no_reply_is_held_and_the_prompts_are_those_of_the_programs_before(ask):
    """What every preset but ``local`` does; compiled programs and published runs rest on it."""
    result, engine = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"))
    assert Settings().readings == 0
    assert not any(held(request) or request.config.logprobs for request in engine.requests)
    assert len(drafts(engine)) == 1
    assert drafts(engine)[0][1].count("\n[") == len(result.evidence)


def test_a_draft_that_is_no_phrase_is_asked_freely(ask):
    changes = {"Answer the question from the evidence. Give": lambda r: "region nine" if held(r) else "Chromosome 15"}
    result, engine = ask(MULTIHOP, {**hop_script("FBN1"), **changes}, plan_by="rules", evidence=8, readings=2)
    assert [number > 0 for number, _ in drafts(engine)] == [True, True, False]
    assert result.answer == "Chromosome 15"


def test_yes_and_no_are_asked_freely(ask):
    changes = {"Answer the question from the evidence. Give": "yes"}
    result, engine = ask("Is insulin injected?", changes, plan_by="rules", readings=2)
    assert [number for number, _ in drafts(engine)] == [0]
    assert result.draft == "Yes"


def test_unusable_readings_are_survived(ask):
    changes = {"Answer the question from the evidence. Give": lambda r: "" if held(r) else "Chromosome 15"}
    result, _ = ask(MULTIHOP, {**hop_script("FBN1"), **changes}, plan_by="rules", evidence=8, readings=2)
    assert [failure.step for failure in result.trace.failures] == ["draft", "draft"]
    assert result.answer == "Chromosome 15"


def test_a_draft_is_not_offered_what_a_hop_found_or_a_check_refused(ask):
    question = "Which protein is encoded by the gene mutated in Marfan syndrome?"
    changes = {**hop_script("FBN1"), "Answer the question from the evidence. Give": lambda r: (held(r) or ["none"])[-1]}
    result, engine = ask(question, changes, plan_by="rules", evidence=8, readings=2, max_repairs=2)
    offered = [held(r) for r in engine.requests if "as short as possible" in task_of(r)]
    assert not any("FBN1" in phrases for phrases in offered)
    refused = [attempt.draft for attempt in result.trace.attempts]
    assert len(set(refused)) == len(refused)


@pytest.mark.parametrize(("free", "asked"), [("FBN1", [False]), ("the gene", [False, True]), ("BRCA1", [False, True])])
def test_a_hop_is_held_to_phrases_only_where_the_free_reply_is_refused(ask, free, asked):
    hop = "Answer the question from the evidence with one"
    result, engine = ask(MULTIHOP, {hop: lambda r: "FBN1" if held(r) else free}, plan_by="rules", readings=2)
    hops = [bool(held(r)) for r in engine.requests if "with one specific" in task_of(r)]
    assert hops == asked
    assert [(h.answer, h.attempts, h.reason) for h in result.hops] == [("FBN1", 1, "")]


def test_every_type_of_hop_can_be_held_to_phrases():
    """The types of hops are answer types, but for the two that diseases have."""
    assert {HopType.DISEASE, HopType.SYNDROME} == TITLED_TYPES == set(HopType) - set(map(str, AnswerType))


def test_a_hop_whose_held_reply_is_refused_too_keeps_a_reason(ask):
    hop = "Answer the question from the evidence with one"
    result, _ = ask(MULTIHOP, {hop: "BRCA1"}, plan_by="rules", readings=2, use_repair=False)
    assert result.hops[0].answer == ""
    assert "does not occur in the evidence" in result.hops[0].reason


@pytest.mark.parametrize("awaited", [False, True])
async def test_ordering_the_passages_never_holds_up_the_event_loop(scripted_lm, settings, awaited):
    class Noting(LexicalRetriever):
        def by_best_sentence(self, query, passages):
            self.thread = threading.current_thread()
            return super().by_best_sentence(query, passages)

    retriever = Noting()
    program = MedHopper(retriever, settings.replace(plan_by="rules", readings=2))
    with dspy.context(lm=scripted_lm(script())[0]):
        await program.acall(question=MULTIHOP) if awaited else program(question=MULTIHOP)
    assert (retriever.thread is threading.current_thread()) is not awaited


def test_without_repair_there_is_one_round(ask):
    result, engine = ask(MULTIHOP, {**hop_script("FBN1"), **NEVER}, use_repair=False)
    assert len(result.trace.attempts) == 1
    assert "The last search did not" not in steps(engine)


@pytest.mark.parametrize(("unvalidated", "answer"), [("null", None), ("draft", "fibrillin gene region nine")])
def test_what_is_reported_when_nothing_passes(ask, unvalidated, answer):
    result, _ = ask(MULTIHOP, {**hop_script("FBN1"), **NEVER}, unvalidated=unvalidated)
    assert not result.validated
    assert result.answer == answer
    assert result.draft == "fibrillin gene region nine"


def test_a_draft_after_a_repair_is_told_what_was_refused(ask):
    """Where the new search brings nothing new, the same prompt would bring the same draft."""

    refused = "fibrillin gene region nine"

    def draft(request):
        return "Chromosome 15" if f"not {refused}" in prompt_of(request) else refused

    changes = {**hop_script("FBN1"), "Answer the question from the evidence. Give": draft}
    result, _ = ask(MULTIHOP, changes, evidence=8)
    assert [a.draft for a in result.trace.attempts] == [refused, "Chromosome 15"]
    assert result.validated


def test_constraints_are_searched_only_if_copied(ask):
    question = "Which drug lowers blood glucose and is first-line therapy?"
    changes = {
        "Classify": '{"strategy": "intersection", "answer_type": "medication"}',
        "Copy from the question": '{"constraints": ["lowers blood glucose", "cures gout"]}',
        "Answer the question from the evidence. Give": "Metformin",
    }
    result, _ = ask(question, changes)
    assert result.trace.constraints == ("lowers blood glucose",)
    assert "lowers blood glucose" in result.trace.attempts[0].queries
    assert result.answer == "Metformin"


def test_python_routes_what_it_knows_without_the_model(ask):
    _, engine = ask(
        "Is metformin the first-line therapy of type 2 diabetes?",
        {"Answer the question from the evidence. Give": "Yes"},
    )
    assert "Classify" in steps(engine) or engine.requests
    result, engine = ask(
        "What is the half-life of digoxin?",
        {"Answer the question from the evidence. Give": "36 hours", **hop_script("36 hours")},
    )
    assert "Classify" not in steps(engine)
    assert (result.strategy, result.answer_type) == ("multihop", "duration")


# The bound


ALWAYS_WRONG = {
    "an answer outside the evidence": {**hop_script("unknown"), **NEVER},
    "a model that refuses": {
        **hop_script("FBN1", "unknown"),
        "Does the evidence support": '"no"',
        "Is the answer of the required": '"no"',
        "Does the answer merely": '"yes"',
    },
    "unusable replies": dict.fromkeys(SCRIPT, "{"),
    "empty lists": {"Split the question": '{"hops": []}', **NEVER},
}


@pytest.mark.parametrize("changes", ALWAYS_WRONG.values(), ids=ALWAYS_WRONG)
@pytest.mark.parametrize(
    "limits", [{}, {"max_hops": 0}, {"max_repairs": 0}, {"max_hops": 6, "max_repairs": 10}, {"readings": 3}]
)
def test_no_question_exceeds_the_bound(ask, settings, changes, limits):
    result, engine = ask(MULTIHOP, changes, **limits)
    assert not result.validated
    assert len(engine.requests) == result.lm_calls <= MedHopper.max_lm_calls(settings.replace(**limits))


REPLIES = st.sampled_from(
    ['"yes"', '"no"', "FBN1", "unknown", "chromosome 15", "", "{", SCRIPT["Classify"], SCRIPT["Split the question"]]
)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    replies=st.lists(REPLIES, min_size=1, max_size=40),
    hops=st.integers(0, 4),
    repairs=st.integers(0, 4),
    readings=st.integers(0, 3),
)
def test_no_model_exceeds_the_bound(scripted_lm, settings, replies, hops, repairs, readings):
    queue = itertools.cycle(replies)
    lm, engine = scripted_lm(lambda request: next(queue))
    limited = settings.replace(max_hops=hops, max_repairs=repairs, readings=readings)
    with dspy.context(lm=lm):
        result = MedHopper(LexicalRetriever(), limited)(question=MULTIHOP)
    assert len(engine.requests) == result.lm_calls <= MedHopper.max_lm_calls(limited)


# Failures


@pytest.mark.parametrize("broken", [s for s in SCRIPT if s != "Cut the answer down"])
@pytest.mark.parametrize("reply", ["", "{", '{"thoughts": {}, "command": "x"}'], ids=["empty", "cut", "foreign"])
def test_any_unusable_reply_is_recorded_and_survived(ask, broken, reply):
    result, engine = ask(MULTIHOP, {**hop_script("FBN1", "chromosome 15"), broken: reply}, max_repairs=1)
    if broken in steps(engine):
        assert result.trace.failures
        assert all(f.step and f.reason for f in result.trace.failures)
    assert reply == "" or result.answer != reply


def test_a_server_fault_ends_the_question_with_a_typed_error(ask):
    with pytest.raises(ServerUnavailableError, match="is down"):
        ask(MULTIHOP, {"Answer the question from the evidence. Give": lambda request: LMUnavailableError("it is down")})


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("🧬🧬", "no letters"),
        ("a" * 20_000, "20,000 characters"),
        ("Which \ud800 bone?", "surrogate"),
        (None, "must be a text"),
    ],
)
def test_unusable_questions_are_refused_before_any_call(ask, question, message):
    with pytest.raises(InputError, match=message):
        ask(question)


def test_a_question_in_another_language_is_answered_or_left_open(ask):
    result, _ = ask("Auf welchem Chromosom liegt das Gen des Marfan-Syndroms?", {**hop_script("FBN1"), **NEVER})
    assert result.answer is None


# Switches: each changes a call that can be observed


@pytest.mark.parametrize(
    ("switch", "changes", "step"),
    [
        ("use_repair", {**hop_script("FBN1"), **NEVER}, "The last search did not"),
        ("use_model_judges", hop_script("FBN1", "chromosome 15"), "Does the evidence support"),
        ("use_grounding_check", hop_script("FBN1", "chromosome 15"), "Does the evidence support"),
    ],
)
def test_each_switch_changes_a_call(ask, switch, changes, step):
    _, on = ask(MULTIHOP, changes)
    _, off = ask(MULTIHOP, changes, **{switch: False})
    assert step in steps(on)
    assert step not in steps(off)


@pytest.mark.parametrize(
    ("switch", "question", "draft"),
    [
        ("use_generic_filter", "What is mutated in Marfan syndrome?", "gene"),
        ("use_type_check", MULTIHOP, "connective tissue"),
        ("use_self_reference_check", "What disorder is Marfan syndrome, exactly?", "Marfan syndrome"),
        ("use_grounding_check", MULTIHOP, "Chromosome 21"),
        ("use_quote_check", "What is the half-life of digoxin?", "36 hours"),
    ],
)
def test_each_check_can_be_switched_off(ask, switch, question, draft):
    changes = {"Answer the question from the evidence. Give": draft, **hop_script("FBN1")}
    names = {"use_generic_filter": "type"}
    check = names.get(switch, switch.removeprefix("use_").removesuffix("_check"))
    others = {s: False for s in ("use_generic_filter", "use_type_check", "use_self_reference_check",
                                 "use_grounding_check", "use_quote_check") if s != switch}  # fmt: skip
    on, _ = ask(question, changes, use_repair=False, **others)
    off, _ = ask(question, changes, use_repair=False, **others, **{switch: False})
    assert [v.check for v in on.trace.attempts[0].verdicts] == [check]
    assert off.trace.attempts[0].verdicts == ()
    assert off.validated


# Orphanet


GENE_QUESTION = "Which gene is mutated in Marfan syndrome?"


def test_expansion_needs_the_gate_and_never_becomes_evidence(ask):
    orphanet = Orphanet.load(ROOT / "data" / "orphanet")
    changes = {"Classify": '{"strategy": "direct", "answer_type": "gene"}',
               "Answer the question from the evidence. Give": "FBN1"}  # fmt: skip
    opened, engine = ask(GENE_QUESTION, changes, orphanet, use_expansion=True)
    assert "Is the question about a rare" in steps(engine)
    assert "FBN1" in opened.trace.expansion
    assert set(opened.trace.expansion[:5]) <= set(opened.trace.attempts[0].queries)
    assert all(p.url.startswith("https://example.org/") for p in opened.evidence)
    closed, _ = ask(GENE_QUESTION, {**changes, "Is the question about a rare": '"no"'}, orphanet, use_expansion=True)
    assert closed.trace.expansion == ()
    _, engine = ask(GENE_QUESTION, changes, orphanet, use_expansion=False)
    assert "Is the question about a rare" not in steps(engine)


# Two ways to call, copies, the baseline


async def test_awaited_and_blocking_agree(scripted_lm, settings):
    results = []
    for awaited in (False, True):
        lm, engine = scripted_lm(script(hop_script("FBN1", "chromosome 15")))
        program = MedHopper(LexicalRetriever(), settings)
        with dspy.context(lm=lm):
            result = await program.acall(question=MULTIHOP) if awaited else program(question=MULTIHOP)
        results.append((result.answer, result.hops, [prompt_of(r) for r in engine.requests]))
    assert results[0] == results[1]


def test_nothing_of_one_question_stays_for_the_next(scripted_lm, settings):
    lm, _ = scripted_lm(script())
    program = MedHopper(LexicalRetriever(), settings)
    before = copy.deepcopy(program.dump_state())
    with dspy.context(lm=lm):
        first, second = program(question=MULTIHOP), program(question=MULTIHOP)
    assert first.trace.hops == second.trace.hops
    assert first.evidence == second.evidence
    assert program.dump_state() == before


def test_a_copy_shares_the_retriever(settings):
    program = MedHopper(LexicalRetriever(), settings)
    assert program.deepcopy().retriever is program.retriever


def test_threads_do_not_mix_questions(scripted_lm, settings):
    lm, _ = scripted_lm(script())
    program = MedHopper(LexicalRetriever(), settings)
    questions = [MULTIHOP, "Is metformin injected?", "What is the half-life of digoxin?", "Is insulin injected?"] * 3
    with dspy.context(lm=lm):
        results = dspy.Parallel(num_threads=4, disable_progress_bar=True)(
            [(program, {"question": q}) for q in questions]
        )
    assert [r.trace.question for r in results] == questions


def test_single_pass_is_one_search_and_one_call(scripted_lm, settings):
    lm, engine = scripted_lm(script())
    retriever = LexicalRetriever()
    with dspy.context(lm=lm):
        result = SinglePass(retriever, settings)(question=MULTIHOP)
    assert len(engine.requests) == result.lm_calls == len(retriever.searches) == 1
    assert (result.answer, result.validated) == ("Chromosome 15", False)


def test_single_pass_survives_an_unusable_reply(scripted_lm, settings):
    lm, _ = scripted_lm(script({"Answer the question from the evidence. Give": ""}))
    with dspy.context(lm=lm):
        result = SinglePass(LexicalRetriever(), settings)(question=MULTIHOP)
    assert result.answer is None
    assert "empty" in result.trace.failures[0].reason


def test_programs_do_not_read_the_environment(monkeypatch, ask):
    monkeypatch.setitem(os.environ, "MEDHOP_MAX_HOPS", "0")
    result, _ = ask(MULTIHOP, hop_script("FBN1", "chromosome 15"))
    assert len(result.hops) == 2
