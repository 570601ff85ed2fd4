import json
import logging
import math
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from medhop_dspy.errors import ArtefactError, InputError, SettingsError
from medhop_dspy.retrieval.flashrank_reranker import FlashRankReranker
from medhop_dspy.retrieval.late_interaction import LateInteractionReranker
from medhop_dspy.retrieval.rerank import NoReranker, by_score, make_reranker, passage_text
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage
from tests.retrieval.tiny_cross_encoder import write_cross_encoder

NAME = "ms-marco-TinyBERT-L-2-v2"
ONNX = "flashrank-TinyBERT-L-2-v2.onnx"
WORDS = ["fbn1", "is", "located", "on", "chromosome", "15", "filler", "gene", "which", "where", "marfan", "a", "b", "c"]
FACT = "FBN1 is located on chromosome 15"


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"d{i}#0", f"d{i}", f"T{i}", "", text, score=0.25) for i, text in enumerate(texts)]


def texts(ranked: list[Passage]) -> list[str]:
    return [p.text for p in ranked]


@pytest.fixture
def flashrank(tmp_path):
    def build(*, max_length=512, batch_size=32, with_title=False, **model):
        write_cross_encoder(tmp_path / NAME, ONNX, WORDS, **model)
        return FlashRankReranker(NAME, tmp_path, max_length=max_length, batch_size=batch_size, with_title=with_title)

    return build


class TestFlashRank:
    def test_orders_by_relevance_and_keeps_ties_in_input_order(self, flashrank):
        given = passages("filler", "chromosome gene", FACT, "filler filler")
        assert texts(flashrank().rank("FBN1 chromosome", given)) == [FACT, "chromosome gene", "filler", "filler filler"]

    def test_nothing_in_nothing_out(self, flashrank):
        assert flashrank().rank("gene", []) == []

    @pytest.mark.parametrize("query", ["", " \n"])
    def test_blank_query(self, flashrank, query):
        with pytest.raises(InputError, match="is blank"):
            flashrank().rank(query, passages("gene"))

    def test_input_and_earlier_results_stay_as_they_were(self, flashrank):
        reranker = flashrank()
        given = passages("gene", FACT, "filler")
        before = list(given)
        first = reranker.rank("chromosome", given)
        kept = list(first)
        second = reranker.rank("gene", given)
        assert given == before
        assert first == kept
        assert texts(first) != texts(second)
        assert all(new is not old for new in second for old in given)

    @pytest.mark.parametrize(
        ("classes", "bias", "order", "scores"),
        [
            pytest.param(1, {"a": (0.0,), "b": (2.0,), "c": (-2.0,)}, "bac", [0.880797, 0.5, 0.119203], id="sigmoid"),
            pytest.param(
                2, {"a": (2.0, 0.0), "b": (0.0, 2.0), "c": (1.0, 1.0)}, "bca", [0.880797, 0.5, 0.119203], id="softmax"
            ),
            pytest.param(
                1, {"a": (-1000.0,), "b": (1000.0,), "c": (0.0,)}, "bca", [1.0, 0.5, 0.0], id="sigmoid of 1000"
            ),
            pytest.param(
                2,
                {"a": (1000.0, 0.0), "b": (0.0, 1000.0), "c": (1000.0, 1000.0)},
                "bca",
                [1.0, 0.5, 0.0],
                id="softmax of 1000",
            ),
        ],
    )
    def test_score_is_a_plain_probability(self, flashrank, classes, bias, order, scores):
        ranked = flashrank(overlap=(0.0,) * classes, bias=bias).rank("gene", passages("a", "b", "c"))
        assert texts(ranked) == list(order)
        assert [p.score for p in ranked] == pytest.approx(scores, abs=1e-6)
        assert all(type(p.score) is float for p in ranked)
        assert json.loads(json.dumps([p.score for p in ranked])) == [p.score for p in ranked]

    @pytest.mark.parametrize(
        ("overlap", "bias", "seen"),
        [
            pytest.param((0.0, 0.0, 0.0), {}, r"shape \(1, 3\)", id="three classes"),
            pytest.param((0.0,), {"a": (math.nan,)}, "all finite", id="not a number"),
        ],
    )
    def test_refuses_logits_that_mean_nothing(self, flashrank, overlap, bias, seen):
        with pytest.raises(ArtefactError, match=seen):
            flashrank(overlap=overlap, bias=bias).rank("gene", passages("a"))

    @pytest.mark.parametrize("at", [0, 100, 199])
    def test_reads_all_of_a_long_passage(self, flashrank, at):
        words = ["filler"] * 200
        long = " ".join([*words[:at], FACT, *words[at:]])
        ranked = flashrank(max_length=64).rank("FBN1 chromosome", passages(" ".join(words), long))
        assert ranked[0].text == long
        assert ranked[0].score > ranked[1].score

    def test_the_models_own_limit_holds(self, flashrank):
        long = "filler " * 100 + FACT
        ranked = flashrank(model_max_length=32).rank("FBN1 chromosome", passages("filler", long))
        assert ranked[0].text == long

    def test_a_query_longer_than_the_model_leaves_room_for_passages(self, flashrank):
        query = "FBN1 chromosome " + "which where " * 300
        assert texts(flashrank(max_length=64).rank(query, passages("filler", FACT))) == [FACT, "filler"]

    @pytest.mark.parametrize("text", ["", "   ", "線粒体"], ids=["empty", "blank", "unknown word"])
    def test_odd_passages_are_ranked_like_any_other(self, flashrank, text):
        assert texts(flashrank().rank("chromosome", passages(text, FACT))) == [FACT, text]

    def test_batches_do_not_change_the_result(self, flashrank, tmp_path):
        given = passages(*(" ".join(WORDS[: i % len(WORDS)]) for i in range(50)))
        by_one = flashrank(batch_size=1).rank("FBN1 gene", given)
        assert by_one == FlashRankReranker(NAME, tmp_path, batch_size=7).rank("FBN1 gene", given)

    def test_model_without_token_types(self, flashrank):
        assert texts(flashrank(token_types=False, bias={"b": (1.0,)}).rank("gene", passages("a", "b"))) == ["b", "a"]

    def test_title_counts_only_if_asked_for(self, flashrank, tmp_path):
        given = [Passage("x#0", "x", "Filler", "", "gene"), Passage("y#0", "y", "Marfan syndrome", "", "gene")]
        assert [p.id for p in flashrank().rank("Marfan", given)] == ["x#0", "y#0"]
        with_title = FlashRankReranker(NAME, tmp_path, with_title=True)
        assert [p.id for p in with_title.rank("Marfan", given)] == ["y#0", "x#0"]

    def test_threads_agree(self, flashrank):
        reranker = flashrank(max_length=64)
        given = passages(*(f"filler {'filler ' * (i * 9)} {FACT}" for i in range(12)), "gene")
        alone = reranker.rank("FBN1 gene", given)
        with ThreadPoolExecutor(4) as pool:
            assert all(r == alone for r in pool.map(lambda _: reranker.rank("FBN1 gene", given), range(8)))

    def test_leaves_the_root_logger_alone(self, flashrank, monkeypatch):
        monkeypatch.setattr(logging.root, "handlers", [])
        level = logging.root.level
        flashrank()
        assert logging.root.handlers == []
        assert logging.root.level == level


class TestFlashRankFiles:
    @pytest.mark.parametrize(
        "missing", [ONNX, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"]
    )
    @pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
    def test_names_the_file_and_the_folder(self, tmp_path, missing, empty):
        folder = tmp_path / NAME
        write_cross_encoder(folder, ONNX, WORDS)
        (folder / missing).unlink()
        if empty:
            (folder / missing).touch()
        with pytest.raises(ArtefactError, match=missing) as error:
            FlashRankReranker(NAME, tmp_path)
        assert str(folder) in str(error.value)
        assert error.value.hint

    @pytest.mark.parametrize("exists", [False, True], ids=["no folder", "empty folder"])
    def test_never_downloads(self, tmp_path, monkeypatch, exists):
        if exists:
            (tmp_path / NAME).mkdir()
        monkeypatch.setattr(socket, "socket", _no_socket)
        with pytest.raises(ArtefactError, match="missing in folder"):
            FlashRankReranker(NAME, tmp_path)
        assert list(tmp_path.rglob("*")) == ([tmp_path / NAME] if exists else [])

    def test_starts_offline_from_a_complete_folder(self, tmp_path, monkeypatch):
        write_cross_encoder(tmp_path / NAME, ONNX, WORDS)
        monkeypatch.setattr(socket, "socket", _no_socket)
        assert FlashRankReranker(NAME, tmp_path).rank("gene", passages("gene"))

    @pytest.mark.parametrize("damaged", [ONNX, "tokenizer.json", "config.json"])
    def test_damaged_file(self, tmp_path, damaged):
        write_cross_encoder(tmp_path / NAME, ONNX, WORDS)
        (tmp_path / NAME / damaged).write_text("not a model")
        with pytest.raises(ArtefactError, match="cannot be loaded"):
            FlashRankReranker(NAME, tmp_path)

    @pytest.mark.parametrize("name", ["no-such-model", "rank_zephyr_7b_v1_full"])
    def test_unknown_model(self, tmp_path, name):
        with pytest.raises(SettingsError, match=name):
            FlashRankReranker(name, tmp_path)

    @pytest.mark.parametrize("sizes", [{"max_length": 15}, {"batch_size": 0}])
    def test_sizes(self, tmp_path, sizes):
        with pytest.raises(InputError, match="wanted at least 16 and 1"):
            FlashRankReranker(NAME, tmp_path, **sizes)


def _no_socket(*_args, **_kwargs):
    raise AssertionError("a socket was opened")


def test_by_score_is_stable_and_leaves_its_input():
    given = passages("x", "y", "z")
    assert [(p.text, p.score) for p in by_score(given, [0.1, 0.5, 0.1])] == [("y", 0.5), ("x", 0.1), ("z", 0.1)]
    assert given == passages("x", "y", "z")


@pytest.mark.parametrize(
    ("title", "with_title", "expected"),
    [("T", True, "T: text"), ("T", False, "text"), ("", True, "text")],
)
def test_passage_text(title, with_title, expected):
    assert passage_text(Passage("p#0", "p", title, "", "text"), with_title=with_title) == expected


class TestMakeReranker:
    def test_none_keeps_order_and_scores(self):
        given = passages("x", "y")
        ranked = make_reranker(Settings(reranker="none")).rank("q", given)
        assert ranked == given
        assert ranked is not given
        assert NoReranker().rank("q", []) == []

    def test_flashrank_from_the_models_folder(self, tmp_path):
        write_cross_encoder(tmp_path / "models" / NAME, ONNX, WORDS)
        settings = Settings(home=tmp_path, reranker="flashrank", reranker_model=NAME, embed_title=False)
        assert texts(make_reranker(settings).rank("gene", passages("a", "gene"))) == ["gene", "a"]

    @pytest.mark.parametrize("reranker", ["flashrank", "late_interaction"])
    def test_missing_model(self, tmp_path, reranker):
        settings = Settings(home=tmp_path, reranker=reranker)
        with pytest.raises(ArtefactError, match=str(tmp_path / "models")):
            make_reranker(settings)


@pytest.fixture(scope="module")
def encoder_folder():
    folder = Settings().home / "models" / "all-MiniLM-L6-v2"
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"no embedding model in {folder}")
    return folder


@pytest.fixture(scope="module")
def late_interaction(encoder_folder):
    return make_reranker(Settings(reranker="late_interaction", embedder=str(encoder_folder), embed_title=True))


class TestLateInteraction:
    QUERY = "On which chromosome is the FBN1 gene?"
    GIVEN = passages(
        "The mitral valve lies between the left atrium and the left ventricle.",
        "The FBN1 gene is located on chromosome 15q21.1 and encodes fibrillin-1.",
        "Chromosome 7 holds the CFTR gene.",
    )

    def test_orders_by_relevance_with_plain_scores(self, late_interaction):
        before = list(self.GIVEN)
        ranked = late_interaction.rank(self.QUERY, self.GIVEN)
        assert [p.id for p in ranked] == ["d1#0", "d2#0", "d0#0"]
        assert all(type(p.score) is float and 0 < p.score < 1 for p in ranked)
        assert before == self.GIVEN

    def test_nothing_in_nothing_out(self, late_interaction):
        assert late_interaction.rank(self.QUERY, []) == []

    @pytest.mark.parametrize("query", ["", " \n"])
    def test_blank_query(self, late_interaction, query):
        with pytest.raises(InputError, match="is blank"):
            late_interaction.rank(query, self.GIVEN)

    def test_ties_keep_their_order(self, late_interaction):
        twins = [Passage(f"d{i}#0", f"d{i}", "T", "", "fibrillin") for i in (2, 0, 1)]
        assert [p.id for p in late_interaction.rank("fibrillin", twins)] == ["d2#0", "d0#0", "d1#0"]

    def test_scores_do_not_depend_on_what_was_ranked_before_or_beside(self, late_interaction):
        cold = {p.id: p.score for p in late_interaction.rank(self.QUERY, self.GIVEN)}
        late_interaction.rank("mitral valve " * 5, [*self.GIVEN, *passages(*("valve " * n for n in range(1, 6)))])
        assert {p.id: p.score for p in late_interaction.rank(self.QUERY, self.GIVEN[::-1])} == cold
        late_interaction._vectors.cache_clear()
        assert [p.score for p in late_interaction.rank(self.QUERY, self.GIVEN[1:2])] == [cold["d1#0"]]

    def test_reads_all_of_a_long_passage(self, late_interaction):
        filler = "The clinic opens in the morning and closes in the evening. " * 25
        ranked = late_interaction.rank(self.QUERY, passages(filler, f"{filler} {self.GIVEN[1].text}"))
        assert ranked[0].id == "d1#0"
        assert ranked[0].score > ranked[1].score + 0.1

    def test_text_without_tokens_scores_zero(self, late_interaction):
        nothing = Passage("n#0", "n", "", "", "\u200b")
        assert late_interaction.rank(self.QUERY, [nothing])[0].score == 0.0
        assert late_interaction.rank("\u200b", self.GIVEN[:1])[0].score == 0.0

    def test_threads_agree(self, late_interaction):
        alone = late_interaction.rank(self.QUERY, self.GIVEN)
        late_interaction._vectors.cache_clear()
        barrier = threading.Barrier(4)

        def rank(_):
            barrier.wait(timeout=30)
            return late_interaction.rank(self.QUERY, self.GIVEN)

        with ThreadPoolExecutor(4) as pool:
            assert all(r == alone for r in pool.map(rank, range(4)))

    @pytest.mark.parametrize("content", [None, b"", b"not a model"], ids=["missing", "empty", "damaged"])
    @pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
    def test_unusable_file(self, encoder_folder, tmp_path, name, content):
        for file in encoder_folder.iterdir():
            if file.name != name:
                (tmp_path / file.name).symlink_to(file)
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ArtefactError, match=str(tmp_path)):
            LateInteractionReranker(tmp_path)

    def test_unusable_tokenizer(self, encoder_folder, tmp_path):
        for file in encoder_folder.iterdir():
            if file.name != "tokenizer.json":
                (tmp_path / file.name).symlink_to(file)
        (tmp_path / "tokenizer.json").write_text("not a tokenizer")
        with pytest.raises(ArtefactError, match="cannot be loaded"):
            LateInteractionReranker(tmp_path)
