import hashlib
import os
import zipfile

import pytest

from medhop_dspy.errors import ArtefactError
from medhop_dspy.lm import artefacts, catalogue
from medhop_dspy.lm.catalogue import ARTEFACTS, Artefact, File, Part, find


@pytest.fixture
def toy(monkeypatch):
    """A pinned artefact of two files, in the table beside the real ones."""
    contents = {"model.bin": b"weights" * 100, "sub/config.json": b"{}"}
    artefact = Artefact(
        name="toy",
        licence="MIT",
        files=tuple(File(p, len(c), hashlib.sha256(c).hexdigest()) for p, c in contents.items()),
    )
    monkeypatch.setattr(catalogue, "ARTEFACTS", (*ARTEFACTS, artefact))
    monkeypatch.setattr(artefacts, "ARTEFACTS", (*ARTEFACTS, artefact))
    return contents


def put(home, contents):
    for path, content in contents.items():
        target = home / "models" / "toy" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=lambda a: a.name)
def test_the_table_is_consistent(artefact):
    assert artefact.licence
    assert bool(artefact.files) != bool(artefact.hub), "pinned, or of the hub"
    assert not artefact.entry or artefact.entry in {f.path for f in artefact.files}
    for file in artefact.files:
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.size > 0
        assert file.parts
        assert all("==" in p.requirement and ".." not in p.member for p in file.parts)


def test_names_are_unique():
    assert len({a.name for a in ARTEFACTS}) == len(ARTEFACTS)


def test_a_model_of_the_hub_is_found_by_its_repository(tmp_path):
    assert find("abhinand/MedEmbed-small-v0.1").name == "MedEmbed-small-v0.1"
    with pytest.raises(ArtefactError, match="no model at") as caught:
        artefacts.path("MedEmbed-small-v0.1", tmp_path)
    assert "hf download abhinand/MedEmbed-small-v0.1 --local-dir" in caught.value.hint
    with pytest.raises(ArtefactError, match="comes from the model hub"):
        artefacts.fetch("MedEmbed-small-v0.1", tmp_path)
    with pytest.raises(ArtefactError, match="no hash of MedEmbed"):
        artefacts.verify("MedEmbed-small-v0.1", tmp_path)
    (tmp_path / "models" / "MedEmbed-small-v0.1").mkdir(parents=True)
    assert artefacts.path("MedEmbed-small-v0.1", tmp_path).is_dir()


def test_an_unknown_name(tmp_path):
    with pytest.raises(ArtefactError, match="unknown artefact 'gpt'"):
        artefacts.path("gpt", tmp_path)


def test_a_file_of_ones_own_is_taken(tmp_path):
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"x")
    assert artefacts.path(str(own), tmp_path / "home") == own


def test_an_absent_model_says_how_to_get_it(tmp_path):
    with pytest.raises(ArtefactError, match="is missing") as caught:
        artefacts.path("smollm2-135m-instruct-q4_1", tmp_path)
    assert caught.value.hint == "Run `medhop models fetch smollm2-135m-instruct-q4_1`."


def test_a_file_is_read_in_full_only_once(toy, tmp_path, monkeypatch):
    put(tmp_path, toy)
    read = []
    real = artefacts.sha256_of
    monkeypatch.setattr(artefacts, "sha256_of", lambda file: read.append(file.name) or real(file))
    for _ in range(2):
        assert artefacts.path("toy", tmp_path) == tmp_path / "models" / "toy"
    assert read == ["model.bin", "config.json"]
    artefacts.verify("toy", tmp_path)
    assert len(read) == 4


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param(lambda f: f.write_bytes(f.read_bytes()[:-1]), "has 699 bytes, wanted 700", id="cut"),
        pytest.param(lambda f: f.write_bytes(b"W" + f.read_bytes()[1:]), "has SHA-256", id="changed"),
        pytest.param(lambda f: f.unlink(), "is missing", id="removed"),
    ],
)
def test_a_damaged_file_is_noticed_at_use(toy, tmp_path, change, match):
    put(tmp_path, toy)
    artefacts.path("toy", tmp_path)
    change(tmp_path / "models" / "toy" / "model.bin")
    with pytest.raises(ArtefactError, match=match):
        artefacts.path("toy", tmp_path)
    assert [s.state for s in artefacts.status(tmp_path) if s.name == "toy"] == ["damaged"]


def test_verify_trusts_no_note(toy, tmp_path):
    put(tmp_path, toy)
    artefacts.path("toy", tmp_path)
    file = tmp_path / "models" / "toy" / "model.bin"
    stat = file.stat()
    file.write_bytes(b"W" + file.read_bytes()[1:])
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    artefacts.path("toy", tmp_path)
    with pytest.raises(ArtefactError, match="has SHA-256"):
        artefacts.verify("toy", tmp_path)


def test_a_broken_note_is_no_harm(toy, tmp_path):
    put(tmp_path, toy)
    (tmp_path / "models" / "toy" / ".verified.json").write_text("[")
    artefacts.path("toy", tmp_path)


def test_status_lists_the_whole_table(toy, tmp_path):
    put(tmp_path, toy)
    states = {s.name: s for s in artefacts.status(tmp_path)}
    assert list(states) == [a.name for a in (*ARTEFACTS, find("toy"))]
    assert states["toy"].state == "ready"
    assert states["all-MiniLM-L6-v2"].state == states["MedEmbed-small-v0.1"].state == "missing"
    assert states["toy"].size == 702


def wheel(folder, name, version, members):
    """A wheel as an index would offer it."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as archive:
        for member, content in members.items():
            archive.writestr(f"{module}/{member}", content)
        info = f"{module}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def pinned(content: bytes, *parts: tuple[str, str]) -> File:
    return File("model.bin", len(content), hashlib.sha256(content).hexdigest(), tuple(Part(*p) for p in parts))
