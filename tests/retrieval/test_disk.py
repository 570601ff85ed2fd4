"""Files that are whole or not there, and what is no file at all."""

import os

import pytest

from medhop_dspy.retrieval.disk import write_atomically


def write(file):
    write_atomically(file, lambda stream: stream.write(b"new"))


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_and_stays(make, tmp_path):
    make(tmp_path / "it")
    kind = (tmp_path / "it").stat().st_mode
    with pytest.raises(OSError, match="not a regular file"):
        write(tmp_path / "it")
    assert (tmp_path / "it").stat().st_mode == kind


@pytest.mark.parametrize("name", ["", "/", "."])
def test_no_name_is_no_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        write(type(tmp_path)(name))
