from dataclasses import replace
from math import isnan

import pytest

from syncheck.features.schemas import TEXT_FEATURES, feature_schema
from syncheck.features.sentence import read_log_odds, text_features
from syncheck.reading.claim import statement
from syncheck.reading.evidence import ContextChunks
from syncheck.results.types import Support
from syncheck.text.words import ContextLexicon, packaged_rarity

PASSAGES = ["The bridge opened in 1967.", "The bridge has two lanes."]


def of(sentence, logit=1.5, read=None):
    return text_features(
        sentence,
        logit=logit,
        read=read,
        chunks=ContextChunks.from_texts(PASSAGES),
        best=[0, 1],
        lexicon=ContextLexicon.from_passages(PASSAGES),
        rarity=packaged_rarity(),
    )


def test_columns_are_those_of_the_schema_and_each_has_a_direction():
    schema = feature_schema("syncheck.v5", layers=())
    assert tuple(of("The bridge opened in 1976.")) == schema.names == TEXT_FEATURES
    assert set(schema.directions) == {1, -1}


def test_a_contradiction_moves_each_column_in_its_direction_or_not_at_all():
    right, wrong = of("The bridge opened in 1967."), of("The bridge opened in 1976.")
    schema = feature_schema("syncheck.v5", layers=())
    directed = zip(schema.names, schema.directions, strict=True)
    moved = [direction * (right[name] - wrong[name]) for name, direction in directed if not isnan(right[name])]
    assert min(moved) >= 0
    assert (right["contrasts"], wrong["contrasts"]) == (0, 1)


@pytest.mark.parametrize(("log_odds", "counted"), [(None, 1), (-1.1, 1), (0.0, 0), (3.0, 0)])
def test_beside_an_aligner_that_reads_a_contrast_counts_where_its_rule_was_right(log_odds, counted):
    assert of("The bridge has not two lanes.", read=log_odds)["contrasts"] == counted


def test_another_number_counts_whatever_the_reader_thinks():
    assert of("The bridge opened in 1976.", read=5.0)["contrasts"] == 1


def test_only_an_aligner_that_tells_contradicted_from_not_stated_reads():
    reads = Support(0.95, None, log_odds=2.5, contradicted=0.02)
    assert read_log_odds(reads) == 2.5
    assert read_log_odds(replace(reads, contradicted=None)) is None
    assert read_log_odds(None) is None


def test_a_logit_that_was_not_asked_for_is_not_measured():
    assert isnan(of("It has two lanes.", logit=None)["align_logit"])


def test_what_names_the_source_changes_nothing():
    plain, named = of("The bridge opened in 1967."), of("According to passage 1, The bridge opened in 1967.")
    assert plain == named


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("According to passage 2, the bridge is blue.", "the bridge is blue."),
        ("1. The bridge is blue (passage 3).", "The bridge is blue ."),
        ("Passage 1 states that it is blue [2].", "it is blue ."),
        ("Based on the given passages, it is blue.", "it is blue."),
        ("Rents rose by 1.5 percent.", "Rents rose by 1.5 percent."),
        ("According to passage 2,", "According to passage 2,"),
    ],
)
def test_a_statement_is_without_what_names_its_source(sentence, stated):
    assert statement(sentence) == stated
