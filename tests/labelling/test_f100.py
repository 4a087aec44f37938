import json
import sys

import pytest
from f100 import F100_ENTITIES, BiographyRequest, f100_anti_requests, f100_requests, write_requests

from syncheck.base.errors import InputError, MissingExtraError, RecordError
from syncheck.labelling import Passage, load_biographies, load_passages

NAMES = ("Ada Lovelace", "Malcolm X", "Anne Frank")
PASSAGES = [
    Passage("Rome", "Hills by the sea."),
    Passage("Malcolm X", "He was minister."),
    Passage("Ada Lovelace", "Ada Lovelace (born 1815) wrote. ADA LOVELACE's father was Byron; Ada Lovelaces are many."),
    Passage("Diary", "Anne Frank wrote one."),
    Passage("", "Frank is another name."),
]


def request(topic, *passages):
    return BiographyRequest(topic, tuple(passages) or (Passage(topic, f"{topic} lived."),))


class TestEntities:
    def test_the_papers_hundred(self):
        assert len(F100_ENTITIES) == len(set(F100_ENTITIES)) == 100
        assert (F100_ENTITIES[0], F100_ENTITIES[83], F100_ENTITIES[-1]) == (
            "Nikita Khrushchev",
            "Jane Austen",
            "Confucius",
        )


class TestF100:
    def test_the_best_passages_by_bm25(self):
        requests = f100_requests(PASSAGES, NAMES, count=2)
        assert [r.topic for r in requests] == list(NAMES)
        assert [[PASSAGES.index(p) for p in r.passages] for r in requests] == [[2], [1], [3, 4]]
        assert requests[1].question == "Tell me a bio of Malcolm X."

    def test_ten_passages_and_only_those_that_share_a_word(self):
        passages = [Passage("", f"Ada {i}.") for i in range(12)] + [Passage("", "Byron.")]
        (ten,) = f100_requests(passages, ["Ada"])
        assert ten.passages == tuple(passages[:10])
        (one,) = f100_requests(passages, ["Byron"])
        assert one.passages == (passages[12],)

    def test_a_rare_word_weighs_more_than_a_common_one_and_a_short_passage_more_than_a_long_one(self):
        texts = ["Ada, and more of it.", "Ada.", "Bio of Byron.", "Ada, and more."]
        (found,) = f100_requests([Passage("", text) for text in texts], ["Ada"])
        # idf of "bio" ln(1 + 3.5 / 1.5), of "of" ln(1 + 2.5 / 2.5), of "ada" ln(1 + 1.5 / 3.5)
        assert [texts.index(passage.text) for passage in found.passages] == [2, 0, 1, 3]

    def test_an_entity_that_nothing_is_found_for(self):
        with pytest.raises(InputError, match="Zeus"):
            f100_requests([Passage("", "Ada.")], ["Ada", "Zeus"])

    @pytest.mark.parametrize(
        ("entities", "found"), [(["Ada", "Ada"], r"\['Ada'\]"), ([], "none"), (["Ada", " "], r"\[' '\]")]
    )
    def test_entities_are_named_once(self, entities, found):
        with pytest.raises(InputError, match=found):
            f100_requests(PASSAGES, entities)

    @pytest.mark.parametrize("passages", [[], [Passage("", "...")]])
    def test_without_a_word_to_search(self, passages):
        with pytest.raises(InputError, match="none"):
            f100_requests(passages, NAMES)

    def test_a_count_of_none(self):
        with pytest.raises(InputError, match="count"):
            f100_requests(PASSAGES, NAMES, count=0)

    def test_without_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "bm25s", None)
        with pytest.raises(MissingExtraError, match="bm25s"):
            f100_requests(PASSAGES, NAMES)


class TestF100Anti:
    def test_passages_come_from_another_whose_name_is_replaced(self):
        given = [request("Ada Lovelace", PASSAGES[2], PASSAGES[0]), request("Malcolm X", PASSAGES[1])]
        ada, malcolm = f100_anti_requests(given)
        assert ada == BiographyRequest(
            "Ada Lovelace", (Passage("Ada Lovelace", "He was minister."),), lent_by="Malcolm X", replaced=1
        )
        assert malcolm.passages == (
            Passage("Malcolm X", "Malcolm X (born 1815) wrote. Malcolm X's father was Byron; Ada Lovelaces are many."),
            PASSAGES[0],
        )
        assert (malcolm.lent_by, malcolm.replaced) == ("Ada Lovelace", 3)

    def test_names_are_no_patterns(self):
        dotted, slashed = f100_anti_requests([request("J.K. R.", Passage("", "JxKx R.; J.K. R.")), request(r"\1 B")])
        assert dotted.passages == (Passage("J.K. R.", "J.K. R. lived."),)
        assert slashed.passages == (Passage("", r"JxKx R.; \1 B"),)

    def test_passages_that_never_name_their_entity(self):
        first, _ = f100_anti_requests([request("Ada"), request("Plato", PASSAGES[0])])
        assert (first.passages, first.replaced) == ((PASSAGES[0],), 0)

    def test_each_lends_once_and_to_no_namesake(self):
        anti = f100_anti_requests([request(name) for name in F100_ENTITIES])
        assert [r.topic for r in anti] == list(F100_ENTITIES)
        assert sorted(r.lent_by for r in anti) == sorted(F100_ENTITIES)
        assert all(set(r.topic.lower().split()).isdisjoint(r.lent_by.lower().split()) for r in anti)

    def test_the_seed_decides(self):
        given = [request(name) for name in F100_ENTITIES]
        assert f100_anti_requests(given, seed=3) == f100_anti_requests(given, seed=3)
        assert f100_anti_requests(given, seed=3) != f100_anti_requests(given, seed=4)

    @pytest.mark.parametrize("names", [["Ada"], ["Mozart", "Wolfgang Amadeus Mozart"]])
    def test_those_that_cannot_be_paired(self, names):
        with pytest.raises(InputError, match="entities"):
            f100_anti_requests([request(name) for name in names])


class TestFiles:
    def test_passages(self, tmp_path):
        path = tmp_path / "wiki.jsonl"
        path.write_text('{"title": "Rome", "text": "A city."}\n{"text": "Hills."}\n')
        assert load_passages(path) == [Passage("Rome", "A city."), Passage("", "Hills.")]

    @pytest.mark.parametrize(
        ("line", "field"),
        [('{"title": "Rome"}', "text"), ('{"text": " "}', "text"), ('{"text": "a", "title": 1}', "title")],
    )
    def test_a_bad_passage_is_located(self, tmp_path, line, field):
        path = tmp_path / "wiki.jsonl"
        path.write_text('{"text": "A city."}\n' + line)
        with pytest.raises(RecordError) as caught:
            load_passages(path)
        assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), 2, field)

    def test_no_passage(self, tmp_path):
        path = tmp_path / "wiki.jsonl"
        path.write_text("")
        with pytest.raises(InputError, match=r"wiki\.jsonl"):
            load_passages(path)

    def test_requests_are_records_of_generate(self, tmp_path):
        path = tmp_path / "anti.jsonl"
        write_requests(
            [BiographyRequest("Ada", (Passage("Rome", "Ada ist schön."),), lent_by="Plato", replaced=2)], path
        )
        (line,) = path.read_text(encoding="utf-8").splitlines()
        assert json.loads(line) == {
            "id": "Ada",
            "topic": "Ada",
            "question": "Tell me a bio of Ada.",
            "context": ["Rome\nAda ist schön."],
            "ctxs": [{"title": "Rome", "text": "Ada ist schön."}],
            "lent_by": "Plato",
            "replaced": 2,
        }

    def test_the_published_prompts_are_those_that_are_measured(self, tmp_path):
        path = tmp_path / "f100.jsonl"
        write_requests([request("Ada")], path, outputs=["Ada lived."], prompts="task")
        (line,) = map(json.loads, path.read_text().splitlines())
        (record,) = load_biographies(path, propositioner=lambda text: [], prompts="task")
        assert line["prompt_with_context"] == record.prompt_with_context
        assert line["prompt_without_context"] == record.prompt_without_context
        assert record.prompt_with_context.endswith("### Instruction:\nTell me a bio of Ada.\n\n### Response:")

    def test_prompts_of_none(self, tmp_path):
        with pytest.raises(InputError, match="paper"):
            write_requests([request("Ada")], tmp_path / "f100.jsonl", prompts="paper")

    def test_with_outputs_they_are_biographies(self, tmp_path):
        path = tmp_path / "f100.jsonl"
        write_requests([request("Ada"), request("Plato")], path, outputs=["Ada lived.", "He did."], generator="m")
        records = load_biographies(path, propositioner=lambda text: [text], judge=lambda _, texts: ["Ada" in texts[0]])
        assert [(r.id, r.response, r.generator) for r in records] == [
            ("Ada", "Ada lived.", "m"),
            ("Plato", "He did.", "m"),
        ]
        assert [r.sentences[0].faithful for r in records] == [True, False]

    def test_an_output_for_each(self, tmp_path):
        with pytest.raises(InputError, match="requests"):
            write_requests([request("Ada")], tmp_path / "f100.jsonl", outputs=[])
