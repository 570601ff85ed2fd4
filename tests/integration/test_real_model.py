"""The whole program on the real local model. Asserts what must hold for any reply, never the text of one."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import dspy
import pytest

from medhop_dspy import EvidenceFirstAdapter, connect, load, saving, session
from medhop_dspy import signatures as prompts
from medhop_dspy.errors import ServerUnavailableError
from medhop_dspy.evaluation.datasets import read_gold
from medhop_dspy.evaluation.demonstrations import check_demos
from medhop_dspy.lm import artefacts, llamacpp
from medhop_dspy.lm.engine import record_calls
from medhop_dspy.pipelines.program import as_record
from medhop_dspy.questions import read_questions
from medhop_dspy.replies import held_to
from medhop_dspy.trace import Trace
from tests.conftest import ROOT

pytestmark = pytest.mark.lm

# Short prompts, for tests that do not depend on how much is read: reading is most of the time that a small model takes.
LEAN = {"evidence": 3, "hop_evidence": 2}
SHORT = [part for name, value in LEAN.items() for part in ("--set", f"{name}={value}")]

MULTIHOP = "Which enzyme is encoded by the gene mutated in Hunter syndrome?"
TEN = [
    MULTIHOP,
    "Which inherited tumour syndrome combines haemangioblastomas of the retina with clear cell renal cell carcinoma?",
    "What is the term for the watery fluid between the cornea and the lens of the eye?",
    "Is corneal clouding a typical feature of Hunter syndrome?",
    "What is the elimination half-life of digoxin?",
    "Which bone often shows an Erlenmeyer flask deformity in Gaucher disease?",
    "What medical specialty deals with diseases of the kidneys?",
    "Which American physician published the paper 'On Chorea' in 1872?",
    "Welches Gen ist beim Marfan-Syndrom mutiert?",
    "How does metformin affect glucose production in the liver?",
]
PASSAGES = [
    "Hunter syndrome: Hunter syndrome is caused by mutations of the IDS gene.",
    "IDS: The IDS gene encodes the enzyme iduronate-2-sulfatase and lies on the X chromosome.",
]
INPUTS = {
    "evidence": PASSAGES,
    "question": MULTIHOP,
    "answer": "iduronate-2-sulfatase",
    "answer_type": "enzyme",
    "candidates_to_confirm": ["IDS", "IDUA"],
    "known": ["Which gene is mutated in Hunter syndrome? IDS"],
    "constraints": [],
    "rule": "Write the name of the enzyme only.",
    "required_kind": "an enzyme",
    "quote": PASSAGES[1],
    "wanted": "enzyme",
    "strategy": "multihop",
    "next_question": "Which enzyme does IDS encode?",
    "failed_checks": ["type: not an enzyme"],
}
SIGNATURES = [
    prompts.Router, prompts.ConstraintExtractor, prompts.HopPlanner, prompts.HopAnswer, prompts.AnswerDraft,
    prompts.SelfReferenceJudge, prompts.TypeValidator, prompts.GroundingJudge, prompts.RepairQuery,
    prompts.Canonicalizer, prompts.RareDiseaseGate,
]  # fmt: skip


@pytest.fixture(scope="module")
def lm(served):
    with dspy.context(lm=connect(served), adapter=EvidenceFirstAdapter()):
        yield


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.__name__)
def test_every_signature_is_answered_in_its_form_with_one_call(lm, signature):
    inputs = {k: v for k, v in INPUTS.items() if k in signature.input_fields}
    if signature is prompts.RepairQuery:
        inputs["known"] = "IDS"
    with record_calls() as calls:
        reply = dspy.Predict(signature)(**inputs)
    assert len(calls) == 1
    assert calls[0].usage.prompt_tokens > 50
    assert all(getattr(reply, name) is not None for name in signature.output_fields)


def test_demo_and_ten_more_questions_run_through(served):
    demo = [q.text for q in read_questions(ROOT / "data" / "demo.jsonl")]
    judged = served.replace(use_model_judges=True)
    asked = Counter()
    for settings, questions in ((judged, demo), (judged.replace(**LEAN), TEN)):
        with session(settings=settings) as program:
            for question in questions:
                result = program(question=question)
                record = json.loads(json.dumps(as_record(result), ensure_ascii=False))
                assert Trace.from_dict(record["trace"]) == result.trace
                assert result.lm_calls == len(result.trace.calls) <= program.max_lm_calls(settings)
                assert result.trace.attempts
                assert result.validated == result.trace.attempts[-1].passed
                assert (result.answer is None) == (not result.validated)
                asked[result.strategy] += 1
    assert asked["multihop"] >= 2 and len(asked) >= 3


def test_the_model_can_route_and_plan_as_well(served):
    with session(settings=served.replace(plan_by="model", max_repairs=1, **LEAN)) as program:
        for question in (MULTIHOP, TEN[1]):
            result = program(question=question)
            assert result.strategy in {"direct", "definition", "intersection", "multihop"}
            assert result.lm_calls <= program.max_lm_calls(program.settings)
            assert all(f.reason for f in result.trace.failures)


@pytest.mark.parametrize("readings", [0, 2], ids=["letters", "texts"])
def test_a_reply_to_a_question_with_options_is_one_of_them_whatever_they_look_like(served, readings):
    texts = ['the "A" \\ band', "\u03b2-catenin,\n  phosphorylated", "and " * 90 + "so on", "t(8;14)"]
    with session("zero_shot", settings=served.replace(readings=readings)) as program:
        for letters in ("ABCD", "C\u03a9", "xB"):
            asked = dict(zip(letters, texts, strict=False))
            result = program(question=TEN[0], options=asked)
            assert (result.answer in asked, result.trace.failures, result.lm_calls) == (True, (), 1)


def test_most_prompt_tokens_of_a_multihop_question_come_from_the_prefix_cache(real):
    question = "Which cofactor is required by the enzyme that is deficient in phenylketonuria?"
    # Drafts read in several steps have prompts of their own, which are short; here every call shares the evidence.
    with session(settings=real.replace(port=30002, use_model_judges=True, readings=0)) as program:
        result = program(question=question)
    assert result.strategy == "multihop"
    assert result.usage.cached_share >= 0.6


def test_without_the_prefix_cache_a_reply_is_the_same_whatever_was_asked_before(served):
    prompt = "\n".join([*PASSAGES * 8, MULTIHOP])
    with dspy.context(lm=connect(served.replace(prefix_cache=False)), adapter=EvidenceFirstAdapter()):
        lm, phrases, seen = dspy.settings.lm, held_to(["IDS", "iduronate-2-sulfatase", "FBN1"]), []
        with record_calls() as calls:
            for before in (None, prompt, prompt[:300] + " Quite another question."):
                if before:
                    lm(before, **phrases)
                seen.append(lm(prompt, **phrases)[0])
    assert all(reply == seen[0] for reply in seen) and seen[0]["logprobs"]
    assert not any(call.usage.cached_tokens for call in calls)


async def test_the_awaited_program_gives_the_same_kind_of_result(served):
    with session(settings=served.replace(**LEAN)) as program:
        result = await program.acall(question=MULTIHOP)
    assert result.trace.calls and result.evidence


def test_a_small_model_that_fails_most_forms_is_survived(served_small):
    rows = (ROOT / "data" / "test.jsonl").read_text(encoding="utf-8").split("\n")[:200:10]
    failures = Counter()
    limited = served_small.replace(plan_by="model", max_repairs=0, evidence=2, hop_evidence=1, use_model_judges=True)
    with session(settings=limited) as program:
        for row in rows:
            result = program(question=json.loads(row)["Question"])
            assert result.lm_calls <= program.max_lm_calls(limited)
            assert all(f.step and f.reason for f in result.trace.failures)
            failures.update(f.step for f in result.trace.failures)
            for attempt in result.trace.attempts:
                assert attempt.passed or any(v.reason for v in attempt.verdicts if not v.passed)
    assert sum(failures.values()) > 0


def test_a_server_killed_in_between_is_a_typed_error(real):
    model = artefacts.path(real.lm_model, real.home)
    with llamacpp.start(real, model) as server:
        settings = real.replace(lm_url=server.url, retries=0, timeout=60, **LEAN)
        with session(settings=settings) as program:
            program(question="Which bone often shows an Erlenmeyer flask deformity?")
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(ServerUnavailableError, match="did not answer"):
                program(question=MULTIHOP)


MEDHOP = str(Path(sys.executable).parent / "medhop")
GUARD = """
import socket, sys
_connect = socket.socket.connect
def connect(self, address):
    host = address[0] if isinstance(address, tuple) else "127.0.0.1"
    if host not in ("127.0.0.1", "::1", "localhost"):
        print("EGRESS", address, file=sys.stderr)
        raise OSError("only loopback is allowed")
    return _connect(self, address)
socket.socket.connect = socket.socket.connect_ex = connect
_resolve = socket.getaddrinfo
def getaddrinfo(host, *a, **k):
    if host not in (None, "", "127.0.0.1", "::1", "localhost"):
        print("EGRESS", host, file=sys.stderr)
        raise OSError("only loopback is allowed")
    return _resolve(host, *a, **k)
socket.getaddrinfo = getaddrinfo
"""


@pytest.fixture(scope="module")
def alone():
    """The start of a command that is to run where loopback is all there is; empty where this machine forbids that."""
    inside = ["unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if shutil.which("unshare") is None:
        return []
    return [] if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode else inside


def test_ask_needs_loopback_alone_and_tries_no_other_address(real, alone, tmp_path):
    """Neither the command, nor the model server that it starts."""
    home = tmp_path / "home"  # of its own, so that the log there is that of its own server
    home.mkdir()
    (home / "models").symlink_to(real.home / "models")
    (tmp_path / "sitecustomize.py").write_text(GUARD)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "MEDHOP_HOME": str(home), "MEDHOP_INDEX": real.index}

    def ran(*command):
        return subprocess.run([*alone, *command], capture_output=True, text=True, env=env, check=False, timeout=300)

    tried = ran(sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 9), 1)")
    assert "EGRESS 192.0.2.1" in tried.stderr  # the guard works
    settings = [*SHORT, "--set", "max_repairs=0", "--set", "port=30003"]
    done = ran(MEDHOP, "ask", "--json", *settings, "Which gene is mutated in Marfan syndrome?")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["evidence"] and record["lm_calls"] >= 1
    [log] = (home / "logs").glob("*.log")
    assert "EGRESS" not in done.stderr + log.read_text(errors="replace")
    assert "telemetry" not in done.stderr.lower()


def test_one_bad_question_costs_only_itself(served, tmp_path):
    questions = ["Which \ud800 bone is it?", "🧬", "Which bone shows an Erlenmeyer flask deformity?"]
    file = tmp_path / "q.jsonl"
    file.write_text("".join(json.dumps({"question": q}) + "\n" for q in questions))
    env = {**os.environ, "MEDHOP_INDEX": served.index, "MEDHOP_LM_URL": served.lm_url}
    done = subprocess.run(
        [MEDHOP, "ask", "--json", *SHORT, "--file", file],
        capture_output=True, text=True, env=env, check=False, timeout=300,
    )  # fmt: skip
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [r.get("error", {}).get("type") for r in records] == ["InputError", "InputError", None]


def test_a_reader_that_leaves_is_no_failure(served):
    env = {**os.environ, "MEDHOP_INDEX": served.index, "MEDHOP_LM_URL": served.lm_url}
    ask = shlex.join([MEDHOP, "ask", "--json", *SHORT])
    command = f"printf 'Is it a bone?\\nIs it a gene?\\n' | {ask} | head -1; exit ${{PIPESTATUS[1]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("path", sorted((ROOT / "compiled").glob("*.json")), ids=lambda path: path.stem)
def test_the_compiled_programs_fit_this_version_and_the_bundled_index(path, real):
    document = saving.read(path)
    check_demos(document, read_gold(ROOT / "data" / "test.jsonl"))
    load(path, saving.saved_settings(document, home=real.home, index=real.index))
