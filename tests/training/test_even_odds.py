"""What the starter kit's ``generic-reader`` is trained on: each source, and each label of it, counts the same."""

import numpy as np
import train_aggregators


def test_each_label_of_each_source_has_the_same_number_of_rows(monkeypatch):
    monkeypatch.setattr(train_aggregators, "ROWS_OF_EACH", 6)
    labels = np.array([1, 1, 1, 1, 0, 1, 0, 0])
    sources = np.array(["a", "a", "a", "a", "a", "b", "b", "b"])
    drawn = train_aggregators.even_rows(labels, sources)
    assert list(drawn) == list(train_aggregators.even_rows(labels, sources))
    for source, label, rows in [("a", 0, {4}), ("a", 1, {0, 1, 2, 3}), ("b", 0, {6, 7}), ("b", 1, {5})]:
        of_cell = drawn[(sources[drawn] == source) & (labels[drawn] == label)]
        assert len(of_cell) == 6 and set(of_cell) == rows
        counts = np.bincount(of_cell)
        assert counts[counts > 0].max() - counts[counts > 0].min() <= 1
