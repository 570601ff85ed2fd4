"""Presets, sources of values, bounds, digests."""

import pytest

from medhop_dspy.errors import SettingsError
from medhop_dspy.settings import PRESETS, Settings


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    import os

    for name in [n for n in os.environ if n.startswith("MEDHOP_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_valid_and_says_its_name(preset):
    settings = Settings.load(preset)
    assert settings.preset == preset
    assert all(getattr(settings, k) == v for k, v in PRESETS[preset].items())


def test_the_paper_preset_holds_the_published_constants():
    paper = Settings.load("paper")
    assert (paper.chunk_size, paper.chunk_overlap, paper.candidates, paper.pool, paper.evidence) == (
        512,
        32,
        90,
        200,
        20,
    )
    assert (paper.max_hops, paper.max_repairs, paper.temperature, paper.seed) == (3, 3, 0.0, 42)
    assert paper.unvalidated == "null"
    assert Settings.load("released").unvalidated == "draft"


def test_stronger_sources_win(tmp_path, monkeypatch):
    file = tmp_path / "medhop.toml"
    file.write_text('preset = "paper"\nevidence = 11\nhop_evidence = 3\ncandidates = 12\nseed = 13\n')
    monkeypatch.setenv("MEDHOP_CANDIDATES", "21")
    monkeypatch.setenv("MEDHOP_SEED", "22")
    settings = Settings.load(file=file, seed=31)
    assert settings.preset == "paper"
    assert settings.chunk_size == 512  # preset and default
    assert (settings.evidence, settings.candidates, settings.seed) == (11, 21, 31)


def test_settings_file_and_preset_from_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "s.toml"
    file.write_text("max_hops = 2\n")
    monkeypatch.setenv("MEDHOP_SETTINGS", str(file))
    monkeypatch.setenv("MEDHOP_PRESET", "released")
    assert (Settings.load().preset, Settings.load().max_hops) == ("released", 2)


def test_an_empty_environment_variable_counts_as_unset(monkeypatch):
    monkeypatch.setenv("MEDHOP_SEED", "")
    assert Settings.load().seed == 42


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"evidense": 3}, "evidense"),
        ({"evidence": 0}, "evidence.*greater than or equal to 1.*got 0"),
        ({"evidence": 61, "pool": 60}, r"evidence \(61\) must not exceed pool \(60\)"),
        ({"hop_evidence": 9, "evidence": 8}, r"hop_evidence \(9\) must not exceed evidence"),
        ({"chunk_overlap": 512}, r"chunk_overlap \(512\) must be below chunk_size"),
        ({"chunk_overlap": -1}, "chunk_overlap"),
        ({"reranker": "magic"}, "reranker"),
        ({"readings": 4}, "readings.*less than or equal to 3"),
        ({"temperature": "hot"}, "temperature"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises(SettingsError, match=message):
        Settings.load(**values)


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(SettingsError, match="'big'") as caught:
        Settings.load("big")
    assert "local" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"evidence = ", "not valid TOML"), (b"\xff", "not valid TOML"), (None, "cannot read settings file")],
)
def test_a_broken_settings_file_is_named(tmp_path, content, message):
    file = tmp_path / "s.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        Settings.load(file=file)


def test_replace_validates_again():
    with pytest.raises(SettingsError, match="evidence"):
        Settings.load().replace(evidence=500)


def test_a_key_is_neither_shown_nor_digested():
    plain, secret = Settings.load(), Settings.load(api_key="sk-test-000")
    assert "sk-test-000" not in repr(secret) + secret.model_dump_json()
    assert plain.digest() == secret.digest()
    with pytest.raises(SettingsError) as caught:
        Settings.load(api_key=["sk-test-000"])
    assert "sk-test-000" not in str(caught.value)


def test_digest_follows_what_changes_answers_and_nothing_else(tmp_path):
    base = Settings.load()
    assert base.replace(home=tmp_path, lm_url="http://127.0.0.1:1", timeout=3, port=1).digest() == base.digest()
    assert base.replace(evidence=7).digest() != base.digest()
    assert base.replace(use_repair=False).digest() != base.digest()
    with_tables = base.replace(orphanet=tmp_path / "a")
    assert with_tables.digest() == base.replace(orphanet=tmp_path / "b").digest() != base.digest()


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"])
def test_base_url_is_the_root(url):
    assert Settings.load(lm_url=url).base_url == "http://127.0.0.1:8000"
