"""The ledger: beside which verdicts of a reader a rule speaks."""

import pytest

from syncheck.contrasts.contrast import Hits, band_of, contrast_with, packaged_ledger, speaks
from syncheck.contrasts.rules import RULES


def test_each_rule_has_its_line_with_true_hits():
    assert list(packaged_ledger()) == list(RULES)
    assert all(sum(hits.true for hits in bands) > 0 for bands in packaged_ledger().values())


@pytest.mark.parametrize(("log_odds", "band"), [(-3.0, 0), (-1.0, 0), (-0.5, 1), (1.0, 1), (1.5, 2)])
def test_bands_end_at_their_edges(log_odds, band):
    assert band_of(log_odds) == band


@pytest.mark.parametrize(
    ("bands", "spoken"),
    [
        (
            [(50, 0), (9, 1), (20, 1)],
            [True, True, True, True],
        ),  # right nine times in ten, above the reader's support too
        ([(50, 0), (1, 5), (1, 9)], [True, True, False, False]),
        ([(50, 0), (9, 1), (0, 0)], [True, True, True, False]),  # nothing is known of the last band
        ([(1, 2), (0, 3), (0, 4)], [False, False, False, False]),
    ],
)
def test_a_rule_speaks_where_it_was_right(monkeypatch, bands, spoken):
    monkeypatch.setattr("syncheck.contrasts.contrast.packaged_ledger", lambda: {"new": [Hits(*band) for band in bands]})
    speaks.cache_clear()
    assert [speaks("new", band) for band in (None, 0, 1, 2)] == spoken
    speaks.cache_clear()


def test_another_number_speaks_louder_than_an_opposite():
    number = contrast_with("The shop opens at 9.", ["The shop opens at 8."])
    opposite = contrast_with("The old shop closes in May.", ["The old shop opens in May."])
    assert [len(one.that_speak(5.0)) for one in (number, opposite)] == [1, 0]
    assert [len(one.that_speak(-5.0)) for one in (number, opposite)] == [1, 1]
