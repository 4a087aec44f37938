"""What word risks read beside texts: values by hand, what is saved of a source, and what is refused."""

import copy
import json
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from test_checkpoints import saved_tokenizer, tiny_bert
from test_regressor import ITEMS, item
from transformers import BertForTokenClassification

from syncheck.cli import main
from syncheck.errors import (
    CheckpointError,
    InputError,
    MismatchError,
    MissingExtraError,
    NotReadyError,
    TextGeneratorError,
)
from syncheck.spans import (
    UNIVERSAL_TAGS,
    AskedSource,
    ClassifierSource,
    SpanItem,
    SpanRegressor,
    TagSource,
    TokenClassifierDetector,
    held_out_labels,
    load_span_regressor,
    nltk_tags,
    regression_features,
    regression_names,
    risk_of,
    spacy_tagger,
    span_feature_names,
    words_of,
)


@dataclass
class Told:
    """Knows which words are wrong."""

    name: str = "told"
    columns: tuple = ("told_wrong",)
    fingerprint: dict = field(default_factory=lambda: {"version": 1})

    def __call__(self, one, words):
        starts = {start for start, _ in one.labels.hard}
        return np.array([[float(word.start in starts)] for word in words])


@dataclass
class Fixed:
    """Gives the same values whatever it is asked."""

    values: object
    name: str = "fixed"
    columns: tuple = ("fixed_a", "fixed_b")
    fingerprint: dict = field(default_factory=dict)

    def __call__(self, one, words):
        return self.values


def one(response, lang="en", passages=()):
    return SpanItem(id="1", lang=lang, question="?", response=response, passages=passages)


def blind(known):
    """The same item without the texts that give the wrong name away."""
    return SpanItem(id=known.id, lang=known.lang, question=known.question, response=known.response, labels=known.labels)


def saved_classifier(folder, seed=0):
    torch.manual_seed(seed)
    model = BertForTokenClassification(tiny_bert()).eval()
    model.save_pretrained(folder)
    saved_tokenizer(folder, 8)
    return model


# What sources give


def test_the_columns_of_sources_come_after_those_of_texts_in_their_order():
    first, second = Fixed(np.array([[1.0, np.nan], [3.0, 4.0]])), Told(columns=("z",))
    known = SpanItem(id="1", lang="en", question="?", response="red fox", labels=item(0).labels)
    names = regression_names("spans.v1", [first, second])
    assert names == (*span_feature_names("spans.v1"), "fixed_a", "fixed_b", "z")
    found = regression_features(known, "spans.v1", [first, second])[:, -3:]
    assert np.array_equal(found, [[1, np.nan, 0], [3, 4, 0]], equal_nan=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((1, 2)), r"shape \(2, 2\).*found shape \(1, 2\)"),
        (np.zeros((2, 1)), r"found shape \(2, 1\)"),
        (np.array([[0, np.inf], [0, 0]]), "with infinite values"),
    ],
)
def test_values_of_another_shape_or_without_bound_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        regression_features(one("red fox"), "spans.v1", [Fixed(values)])


def test_a_response_without_words_is_shown_to_no_source():
    def fails(words, lang):
        raise AssertionError

    found = regression_features(one(" ... "), "spans.v1", [TagSource(fails, {})])
    assert found.shape == (0, len(span_feature_names("spans.v1")) + 17)


@pytest.mark.parametrize("kind", ["xgb", "svr"])
def test_the_regression_learns_from_a_source_what_texts_do_not_tell(kind):
    items = [blind(known) for known in ITEMS]
    fitted = SpanRegressor.fit(items, kind=kind, sources=[Told()])
    right, wrong = (
        risk_of(fitted.detect(blind(item(101, right=r))).soft, len(item(101, right=r).response))[20:24].mean()
        for r in (True, False)
    )
    assert right < 0.2 < 0.7 < wrong
    assert fitted.name == f"mikani-{kind}-told"


def test_held_out_labels_read_sources_too():
    items = [blind(known) for known in ITEMS]
    found = held_out_labels(items, by="question", folds=2, sources=[Told()])
    assert all(found[i.id].hard == i.labels.hard for i in items if i.labels.hard)


# What is saved and refused


def test_sources_are_asked_for_by_name_in_any_order(tmp_path):
    tags = TagSource(lambda words, lang: ["X"] * len(words), {"tagger": "none"})
    fitted = SpanRegressor.fit(ITEMS, sources=[Told(), tags])
    fitted.save(tmp_path)
    saved = json.loads((tmp_path / "spans.json").read_text())
    assert [record["name"] for record in saved["sources"]] == ["told", "tags"]
    assert saved["features"][-18:] == ["told_wrong", *(f"tags_{tag.lower()}" for tag in UNIVERSAL_TAGS)]
    loaded = load_span_regressor(tmp_path, sources=[tags, Told()])
    assert [source.name for source in loaded.sources] == ["told", "tags"]
    assert loaded.detect(item(101, right=False)) == fitted.detect(item(101, right=False))
    for given, message in (
        ([], "the word sources 'tags', 'told'; found no word source"),
        ([Told()], "'tags', 'told'; found the word sources 'told'"),
        ([Told(), Told(), tags], "found the word sources 'tags', 'told', 'told'"),
    ):
        with pytest.raises(InputError, match=message):
            load_span_regressor(tmp_path, sources=given)
    with pytest.raises(MismatchError, match="another word source 'told', which differs in version; pass that one"):
        load_span_regressor(tmp_path, sources=[tags, Told(fingerprint={"version": 2})])
    with pytest.raises(MismatchError, match="differs in more"):
        load_span_regressor(tmp_path, sources=[tags, Told(fingerprint={"version": 1, "more": 1})])
    with pytest.raises(MismatchError, match="differs in columns"):
        load_span_regressor(tmp_path, sources=[tags, Told(columns=("other",))])


def test_two_of_one_name_are_refused():
    with pytest.raises(InputError, match="word sources of different names; found told twice"):
        SpanRegressor.fit(ITEMS, sources=[Told(), Told(columns=("b",))])
    with pytest.raises(InputError, match="columns of different names; found told_wrong twice"):
        SpanRegressor.fit(ITEMS, sources=[Told(), Told(name="b")])


@pytest.mark.parametrize("sources", [[{"name": "a"}], "a", 3, [3]])
def test_a_damaged_list_of_sources_is_no_regressor(sources, tmp_path):
    SpanRegressor.fit(ITEMS).save(tmp_path)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sources": sources}))
    with pytest.raises(CheckpointError, match="no folder of a span regressor"):
        load_span_regressor(tmp_path)


# A token classifier


def test_a_word_has_the_mean_and_the_highest_risk_of_its_characters(tmp_path):
    model = saved_classifier(tmp_path)
    source = ClassifierSource(TokenClassifierDetector(str(tmp_path)))
    text = "a red:fox 1999:"
    with torch.inference_mode():  # ":" is unknown to the tokenizer, and no word here
        ids = torch.tensor([[1, 4, 5, 3, 6, 8, 3, 2]])
        a, red, _, fox, year, _ = model(ids).logits[0].softmax(-1)[1:-1, 1].double().tolist()
    found = source(one(text), words_of(text))
    assert source.columns == ("classifier_risk_mean", "classifier_risk_max")
    np.testing.assert_allclose(found, [[a, a], [red, red], [fox, fox], [year, year]], atol=1e-6)


def test_a_word_of_several_tokens_and_one_of_none():
    class Given:
        def risks(self, item):
            return np.array([0.25, 0.25, 0.5, 1.0, np.nan, np.nan, np.nan])

    found = ClassifierSource(Given())(one("1.23 fo"), words_of("1.23 fo"))
    assert np.array_equal(found, [[0.5, 1.0], [np.nan, np.nan]], equal_nan=True)


def test_classifiers_of_other_weights_or_another_class_are_told_apart(tmp_path):
    for seed in (0, 1):
        saved_classifier(tmp_path / str(seed), seed)
    first, again, other = (TokenClassifierDetector(str(tmp_path / name)).fingerprint for name in ("0", "0", "1"))
    turned = TokenClassifierDetector(str(tmp_path / "0"), wrong=0).fingerprint
    assert first == again
    assert [key for key in first if first[key] != other[key]] == ["weights_sha256"]
    assert [key for key in first if first[key] != turned[key]] == ["wrong"]


# Parts of speech


def tags_of(source, text, lang="EN"):
    rows = source(one(text, lang), words_of(text))
    assert ((rows == 0) | (rows == 1)).all()
    return [UNIVERSAL_TAGS[row.argmax()] if row.sum() == 1 else None for row in rows]


def test_a_tag_is_one_column():
    asked = []

    def tagger(words, lang):
        asked.append((list(words), lang))
        return ["DET", "PROPN", "CONJ", "PRT", "."]

    found = tags_of(TagSource(tagger, {}), "The Fox and to +")
    assert found == ["DET", "PROPN", "CCONJ", "PART", "PUNCT"]
    assert asked == [(["The", "Fox", "and", "to", "+"], "en")]


def test_what_a_tagger_must_give():
    with pytest.raises(InputError, match="one tag a word, 2 for '1'; found 1"):
        tags_of(TagSource(lambda words, lang: ["X"], {}), "a b")
    with pytest.raises(InputError, match="universal tags, ADJ, .*; found 'NN'"):
        tags_of(TagSource(lambda words, lang: ["NN"], {}), "a")
    unknown = TagSource(lambda words, lang: None, {})(one("a b"), words_of("a b"))
    assert unknown.shape == (2, 17)
    assert np.isnan(unknown).all()


@pytest.fixture
def no_nltk_data(monkeypatch, tmp_path):
    import nltk

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    monkeypatch.setattr(nltk.tag, "_get_tagger", nltk.tag._get_tagger.__wrapped__)  # NLTK keeps what it has loaded
    monkeypatch.setattr(nltk.tag.mapping, "_MAPPINGS", copy.deepcopy(nltk.tag.mapping._MAPPINGS))
    return tmp_path


def test_nltk_tags_by_the_data_of_the_machine(no_nltk_data):
    """Data in the layout of NLTK's, whose tagger knows three words for certain and has no weights for others."""
    folder = no_nltk_data / "taggers" / "averaged_perceptron_tagger_eng"
    folder.mkdir(parents=True)
    for name, values in (
        ("weights", {}),
        ("tagdict", {"the": "DT", "castle": "NN", "fell": "VBD"}),
        ("classes", ["DT", "NN", "VBD"]),
    ):
        (folder / f"averaged_perceptron_tagger_eng.{name}.json").write_text(json.dumps(values))
    universal = no_nltk_data / "taggers" / "universal_tagset"
    universal.mkdir()
    (universal / "en-ptb.map").write_text("DT\tDET\nNN\tNOUN\nVBD\tVERB\n")
    source = TagSource(nltk_tags, {"tagger": "nltk"})
    assert tags_of(source, "the castle fell") == ["DET", "NOUN", "VERB"]
    assert np.isnan(source(one("das Schloss", "DE"), words_of("das Schloss"))).all()


def test_without_nltk_data_what_to_get_is_named(no_nltk_data):
    with pytest.raises(NotReadyError, match=r"nltk\.downloader averaged_perceptron_tagger_eng universal_tagset"):
        nltk_tags(["castle"], "en")


def test_without_spacy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"syncheck\[tags\]"):
        spacy_tagger({"en": "en_core_web_sm"})


@pytest.mark.slow
def test_spacy_tags_by_the_pipelines_of_the_machine(tmp_path):
    import spacy

    pipeline = spacy.blank("de")
    ruler = pipeline.add_pipe("attribute_ruler")
    for word, tag in (("das", "DET"), ("Schloss", "NOUN"), ("1999", "NUM")):
        ruler.add([[{"ORTH": word}]], {"POS": tag})
    pipeline.to_disk(tmp_path / "german")
    tagger = spacy_tagger({"de": str(tmp_path / "german")})
    assert tags_of(TagSource(tagger, {}), "das Schloss, 1999", "DE") == ["DET", "NOUN", "NUM"]
    assert tagger(["a"], "en") is None
    with pytest.raises(InputError, match="found ''"):
        tags_of(TagSource(tagger, {}), "unbekannt", "DE")
    with pytest.raises(CheckpointError, match="python -m spacy download none_there"):
        spacy_tagger({"en": "none_there"})


# A model that is asked


class Asked:
    name = "double"

    def __init__(self, answer):
        self.answer, self.prompts = answer, []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        return self.answer


def test_a_word_that_the_model_lists_is_one():
    asked = Asked('["in 1950", "fox"]')
    text = "Built in 1950, fox."
    found = AskedSource(asked)(one(text, passages=("Built in 1342.",)), words_of(text))
    assert found.tolist() == [[0], [1], [1], [1]]
    assert "Text: Built in 1950, fox.\n\nFactual Information: Built in 1342." in asked.prompts[0]
    assert AskedSource(Asked("[]"))(one(text), words_of(text)).tolist() == [[0]] * 4
    with pytest.raises(TextGeneratorError, match="expected an answer with a list"):
        AskedSource(Asked("I do not know."))(one(text), words_of(text))


# The command


def test_spans_takes_the_classifier_that_it_was_trained_with(tmp_path, capsys):
    for seed in (0, 1):
        saved_classifier(tmp_path / str(seed), seed)
    source = ClassifierSource(TokenClassifierDetector(str(tmp_path / "0")))
    fitted = SpanRegressor.fit(ITEMS[:9], sources=[source])
    fitted.save(tmp_path / "spans")
    wrong = item(1, right=False)
    record = {"id": wrong.id, "lang": "en", "model_input": wrong.question, "model_output_text": wrong.response}
    (tmp_path / "in.jsonl").write_text(json.dumps(record | {"retrieved_context": list(wrong.passages)}) + "\n")
    command = ["spans", "--span-model", str(tmp_path / "spans"), "--input", str(tmp_path / "in.jsonl")]
    command += ["--output", str(tmp_path / "out.jsonl")]
    assert main([*command, "--classifier", str(tmp_path / "0")]) == 0
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert found["hard_labels"] == [list(span) for span in fitted.detect(wrong).hard]
    for options, message in (
        ([], "fitted with the word sources 'classifier'; found no word source"),
        (["--classifier", str(tmp_path / "1")], "differs in weights_sha256"),
        (["--classifier", str(tmp_path / "0"), "--wrong-class", "0"], "differs in wrong"),
        (["--classifier", str(tmp_path / "0"), "--tagger", "nltk"], "found the word sources 'classifier', 'tags'"),
        (["--tagger", "nltk", "en=x"], "--tagger expects nltk, or spaCy's pipelines"),
        (["--method", "mark-all", "--tagger", "nltk"], "are of --method mikani; found mark-all"),
    ):
        assert main([*command, *options]) == 2
        assert message in capsys.readouterr().err
