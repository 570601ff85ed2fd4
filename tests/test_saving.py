"""Saved programs: what they hold, what they refuse."""

import errno
import json
import os
import subprocess
import sys

import dspy
import pytest

from medhop_dspy import saving
from medhop_dspy.adapter import EvidenceFirstAdapter
from medhop_dspy.errors import DiskFullError, ProgramError
from medhop_dspy.pipelines.medhopper import MedHopper
from medhop_dspy.pipelines.single_pass import SinglePass
from medhop_dspy.runtime import load
from medhop_dspy.settings import Settings
from medhop_dspy.signatures import HopType, PlannedHop
from tests.conftest import ROOT
from tests.pipelines.conftest import LexicalRetriever

HOP = PlannedHop(question="Which gene is it?", type=HopType.GENE)
DEMOS = {
    "plan_hops": [
        dspy.Example(question="Q?", hops=[HOP]).with_inputs("question"),
        dspy.Example(question="R?", hops=[]).with_inputs("question"),
    ],
    "route": [{"question": "Q?", "strategy": "direct", "answer_type": "gene"}],
}


def program(**overrides):
    return MedHopper(LexicalRetriever(), Settings().replace(**overrides))


def compiled():
    made = program()
    for name, demos in DEMOS.items():
        getattr(made, name).demos = demos
    made.draft.signature = made.draft.signature.with_instructions("Say it in Greek: α.").with_updated_fields(
        "rule", desc="a rule"
    )
    return made


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "p.json"
    compiled().save(path, dev_score=0.5)
    return path


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def prompts(made):
    """The rendered prompt of every predictor for one fixed question."""
    adapter = EvidenceFirstAdapter()
    return {
        name: adapter.format(p.signature, p.demos, {"question": "Q", "evidence": ["T: x"], "rule": "r"})[1]["content"]
        for name, p in made.named_predictors()
    }


def test_a_program_comes_back_as_it_was_saved(saved):
    made = program()
    made.load(saved)
    assert prompts(made) == prompts(compiled())
    assert made.draft.signature.instructions == "Say it in Greek: α."
    assert [len(p.demos) for _, p in made.named_predictors()] == [
        len(p.demos) for _, p in compiled().named_predictors()
    ]


def test_a_program_comes_back_in_another_process(saved):
    code = (
        "import json, sys; from tests.test_saving import program, prompts\n"
        f"made = program(); made.load({str(saved)!r}); print(json.dumps(prompts(made)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == prompts(compiled())


def test_the_manifest_says_what_the_program_is_made_for(saved):
    about = saving.read(saved)["medhop"]
    assert (about["program"], about["adapter"], about["dev_score"]) == ("medhopper", "EvidenceFirstAdapter", 0.5)
    assert about["settings_digest"] == MedHopper.adjusted(Settings()).digest()
    assert about["predictors"]["draft"]["inputs"]["evidence"] == "list[str]"
    assert about["versions"]["dspy"] == dspy.__version__


def test_neither_key_nor_address_nor_model_handle_is_saved(tmp_path):
    made = program(api_key="sk-test-000", lm_url="http://203.0.113.9/v1", home=tmp_path / "private")
    lm = dspy.LM("openai/m", api_key="sk-test-000", api_base="http://203.0.113.9/v1")
    made.set_lm(lm)
    made.save(tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    assert not any(secret in text for secret in ("sk-test-000", "203.0.113.9", "private"))
    assert all(p.lm is lm for p in made.predictors()), "saving must not change the program"


def test_a_smuggled_model_handle_is_ignored(saved, caplog):
    evil = {"model": "openai/m", "api_base": "http://203.0.113.9/v1"}
    edit(saved, lambda d: [predictor.update(lm=evil) for predictor in d["state"].values()])
    made = program()
    made.load(saved)
    assert all(p.lm is None for p in made.predictors())


def rename(document, key, name):
    document["state"][name] = document["state"].pop(key)


CHANGES = {
    "missing predictor": (lambda d: d["state"].pop("draft"), "missing in the file: draft"),
    "extra predictor": (lambda d: d["state"].update(hop9=d["state"]["draft"]), "unknown here: hop9"),
    "renamed predictor": (lambda d: rename(d, "draft", "final"), "missing in the file: draft.*unknown here: final"),
    "other fields": (lambda d: d["medhop"]["predictors"]["draft"]["inputs"].pop("rule"), "draft.inputs"),
    "other number of fields": (lambda d: d["state"]["draft"]["signature"]["fields"].pop(), "draft, number of fields"),
    "other type": (lambda d: d["medhop"]["predictors"]["draft"]["outputs"].update(answer="int"), "draft.outputs"),
    "other program": (
        lambda d: d["medhop"].update(program="single_pass"),
        "program: saved 'single_pass', here 'medhopper'",
    ),
    "other adapter": (lambda d: d["medhop"].update(adapter="ChatAdapter"), "adapter"),
    "other settings": (
        lambda d: (d["medhop"].update(settings_digest="0"), d["medhop"]["settings"].update(evidence=5)),
        "setting evidence: saved 5, here 8",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_mismatch_is_named_and_nothing_is_changed(saved, change, message):
    edit(saved, change)
    made = program()
    before = json.dumps(made.dump_state(), default=str)
    with pytest.raises(ProgramError, match=message):
        made.load(saved)
    assert json.dumps(made.dump_state(), default=str) == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.pkl", b"x", "ends in .json, not '.pkl'"),
        ("p.json", None, "cannot read program"),
        ("p.json", b"{", "not JSON"),
        ("p.json", b"[" * 200_000, "not JSON"),
        ("p.json", b"[]", "not a saved medhop program"),
        ("p.json", b'{"draft": {}, "metadata": {}}', "not a saved medhop program"),
        ("p.json", b'{"medhop": {"format": 1}, "state": {}}', "not a saved medhop program"),
        (
            "p.json",
            b'{"medhop": {"format": 99, "settings": {}, "predictors": {}}, "state": {}}',
            "has format 99, this version reads 1",
        ),
        (
            "p.json",
            b'{"medhop": {"settings": {}, "predictors": {}, "program": "medhopper"}, "state": {}}',
            "not a saved",
        ),
    ],
)
def test_files_that_are_no_saved_program(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ProgramError, match=message):
        program().load(tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["medhop"].pop("program"),
        lambda d: d["medhop"].update(program=["medhopper"]),
        lambda d: d["medhop"].update(program=7),
        lambda d: d["medhop"].update(settings=[]),
        lambda d: d["medhop"].update(versions=["dspy"]),
        lambda d: d["medhop"].update(index_digest=7),
        lambda d: d["medhop"]["predictors"].update(draft=["evidence"]),
        lambda d: d["medhop"].update(predictors="draft"),
        lambda d: d["state"].update(draft="Say it."),
        lambda d: d["state"].update(draft=None),
        lambda d: d.pop("state"),
        lambda d: d["medhop"]["settings"].update(preset=["local"]),
        lambda d: d["medhop"].update(compiling="labeled"),
        lambda d: d["state"]["draft"].update(demos=5),
        lambda d: d["state"]["draft"].update(demos=["x"]),
        lambda d: d["state"]["draft"].pop("signature"),
        lambda d: d["state"]["draft"].update(signature=5),
        lambda d: d["state"]["draft"]["signature"].update(instructions=5),
        lambda d: d["state"]["draft"]["signature"]["fields"][0].update(prefix=5),
    ],
)
def test_a_manifest_of_another_form_is_no_saved_program(saved, change):
    edit(saved, change)
    with pytest.raises(ProgramError, match="is not a saved medhop program"):
        program().load(saved)
    with pytest.raises(ProgramError, match="is not a saved medhop program"):
        load(saved)


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "p.json").mkdir()
    with pytest.raises(ProgramError, match="it is a folder"):
        saving.prepare(tmp_path / "p.json")


def test_only_json_is_written(tmp_path):
    with pytest.raises(ProgramError, match=r"ends in \.json"):
        program().save(tmp_path / "p.pkl")


def test_a_failed_save_leaves_the_old_file(saved):
    before = saved.read_bytes()
    made = program()
    for demo, facts in ((object(), {}), ("Q?", {"fact": object()}), ("\ud800", {})):
        made.route.demos = [{"question": demo}]
        with pytest.raises(ProgramError, match="that JSON cannot"):
            made.save(saved, **facts)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["p.json"]


def test_saved_settings_come_back_at_this_machines_places(tmp_path):
    made = program(evidence=5, hop_evidence=2, home=tmp_path / "there")
    made.save(tmp_path / "p.json")
    settings = saving.saved_settings(saving.read(tmp_path / "p.json"))
    assert (settings.evidence, settings.digest()) == (5, made.settings.digest())
    assert settings.home != tmp_path / "there"


def test_single_pass_has_its_own_files(tmp_path, saved):
    SinglePass(LexicalRetriever(), Settings()).save(tmp_path / "s.json")
    with pytest.raises(ProgramError, match="program"):
        program().load(tmp_path / "s.json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ProgramError, match="cannot write program"):
        program().save(tmp_path / "no" / "p.json")
    saving.prepare(tmp_path / "no" / "p.json")
    program().save(tmp_path / "no" / "p.json")


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, ProgramError)]
)
def test_what_the_disk_does_not_take_leaves_the_old_file(saved, monkeypatch, code, kind):
    def fails(descriptor):
        raise OSError(code, os.strerror(code))

    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(kind, match=f"cannot write program .*{os.strerror(code)}"):
        program().save(saved)
    assert saved.read_bytes() == before and [p.name for p in saved.parent.iterdir()] == ["p.json"]


def test_a_saved_setting_of_another_version_is_a_program_error(saved):
    edit(saved, lambda d: d["medhop"]["settings"].update(colour="red"))
    with pytest.raises(ProgramError, match="colour"):
        saving.saved_settings(saving.read(saved))


def test_places_can_be_given_with_a_saved_program(tmp_path, saved):
    settings = saving.saved_settings(saving.read(saved), lm_url="http://127.0.0.1:9", home=tmp_path)
    assert (settings.lm_url, settings.digest()) == ("http://127.0.0.1:9", MedHopper.adjusted(Settings()).digest())


def test_a_program_saved_with_rare_disease_tables_needs_some(tmp_path):
    program(orphanet=tmp_path / "tables").save(tmp_path / "p.json")
    program(orphanet=tmp_path / "elsewhere").load(tmp_path / "p.json")
    with pytest.raises(ProgramError, match="orphanet"):
        program().load(tmp_path / "p.json")
