"""A business record that is one unbroken line reaches the aligners whole."""

import json

import pytest

from syncheck.aligners import ClassifierAligner
from syncheck.labelling import Selection, load_ragtruth
from syncheck.reading import EvidenceIndex, split_passages

UNBROKEN = "".join(f'"k{i:03}":"v{i:03}",' for i in range(215))
"""A review that quotes JSON without white space or a full stop: 3,010 characters."""
NESTED = {f"attribute{i:02}": {f"kind{j}": None if j else i % 2 == 0 for j in range(6)} for i in range(20)}
BUSINESS = {
    "name": "Café Cucas",
    "attributes": NESTED,
    "review_info": [{"review_stars": 4.0, "review_text": UNBROKEN}, {"review_stars": 1.0, "review_text": "Rude."}],
}


class CharacterScorer:
    """Counts characters as tokens; a premise supports a claim if it holds it."""

    window = 160

    def __init__(self):
        self.premises = []

    def length(self, premise, claim):
        return len(premise) + len(claim)

    def score(self, pairs):
        self.premises += [premise for premise, _ in pairs]
        return [float(claim in premise) for premise, claim in pairs]


@pytest.fixture
def record(tmp_path):
    source = {"source_id": "9", "task_type": "Data2txt", "source": "Yelp", "source_info": BUSINESS}
    response = {"id": "90", "source_id": "9", "model": "llama", "labels": [], "split": "test", "quality": "good"}
    (tmp_path / "source_info.jsonl").write_text(json.dumps(source))
    (tmp_path / "response.jsonl").write_text(json.dumps(response | {"response": "A café."}))
    (found,) = load_ragtruth(tmp_path, Selection(["Data2txt"]))
    return found


def covered(passage, pieces):
    """Whether the pieces have all characters of each value, in order and white space aside; pieces may overlap."""
    held = "".join("".join(piece.split()) for piece in pieces)
    return all(
        all(character in rest for character in "".join(value.split()))
        for value in values(passage)
        for rest in [iter(held)]
    )


def values(found):
    if isinstance(found, dict | list):
        return [leaf for inner in (found.values() if isinstance(found, dict) else found) for leaf in values(inner)]
    return [found if isinstance(found, str) else json.dumps(found)]


def test_the_reviews_are_in_one_prompt_and_not_in_the_other(record):
    assert len(UNBROKEN) > 3000 and UNBROKEN in record.prompt_with_context
    assert "'Rude.'" in record.prompt_with_context and str(NESTED) in record.prompt_with_context
    assert "review" not in record.prompt_without_context and "v000" not in record.prompt_without_context
    assert str(NESTED) in record.prompt_without_context


def test_every_character_of_the_record_is_in_a_passage(record):
    parts = [json.loads(passage) for passage in record.passages]
    reviews = [part["review_info"] for part in parts if "review_info" in part]
    assert {k: v for part in parts for k, v in part.items()} | {"review_info": reviews} == BUSINESS


def test_every_character_is_in_a_chunk_that_can_be_evidence(record):
    chunks = split_passages(record.passages)
    for index, passage in enumerate(record.passages):
        assert covered(json.loads(passage), [chunk.text for chunk in chunks if chunk.passage == index])
    evidence = EvidenceIndex(record.passages)
    for name in ("k000", "k107", "k214", "attribute19"):
        (best,) = evidence.best(f"The record has {name}.", 1)
        assert name in evidence.chunks[best].text


def test_every_character_is_in_a_premise_of_a_classifier(record):
    scorer = CharacterScorer()
    claims = ["v000", "v107", "v214", "attribute19", "Rude.", "v215"]
    supports = ClassifierAligner(scorer).align(record.passages, claims)
    assert [support.score for support in supports] == [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    assert max(map(len, scorer.premises)) <= scorer.window
    again = CharacterScorer()
    ClassifierAligner(again).align(record.passages, claims[:1])
    assert all(covered(json.loads(passage), again.premises) for passage in record.passages)
