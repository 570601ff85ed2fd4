"""Files that are whole or not there, and what is no file at all."""

import os
import sqlite3

import pytest
from chromadb.errors import InternalError

from medhop_dspy.errors import StoreError
from medhop_dspy.retrieval.connection import chroma_errors
from medhop_dspy.retrieval.disk import write_atomically
from medhop_dspy.retrieval.location import FolderLocation


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


def test_an_index_that_may_not_be_written_is_not_called_damaged(tmp_path):
    sqlite3.connect(tmp_path / "db").execute("create table t (x)").connection.close()
    with pytest.raises(sqlite3.OperationalError) as refused:
        sqlite3.connect(f"file:{tmp_path / 'db'}?mode=ro", uri=True).execute("insert into t values (1)")
    with pytest.raises(StoreError) as caught, chroma_errors(FolderLocation(tmp_path)):
        raise InternalError(str(refused.value))
    assert "copy the index" in caught.value.hint and "delete" not in caught.value.hint
