"""Every feature belongs to one signal."""

import pytest

from syncheck import feature_schema
from syncheck.errors import InputError
from syncheck.schemas import FEATURE_GROUPS, FEATURES, SCHEMAS, feature_groups


def test_every_feature_is_in_one_group():
    grouped = [name for columns in FEATURE_GROUPS.values() for name in columns]
    assert sorted(grouped) == sorted(feature.name for feature in FEATURES)


@pytest.mark.parametrize("version", SCHEMAS)
def test_groups_divide_the_columns_of_a_schema(version):
    names = feature_schema(version, (2, 3)).names
    found = feature_groups(names)
    assert sorted(name for columns in found.values() for name in columns) == sorted(names)
    assert all(found.values())


def test_columns_keep_their_order_and_empty_groups_are_left_out():
    found = feature_groups(("lid_layer_9", "align_score", "lid_layer_10", "mean_prob", "min_prob"))
    assert list(found.items()) == [
        ("likelihood", ("mean_prob", "min_prob")),
        ("LID", ("lid_layer_9", "lid_layer_10")),
        ("aligner", ("align_score",)),
    ]


def test_an_unknown_column_is_refused():
    with pytest.raises(InputError, match="found 'new_one' in none of them"):
        feature_groups(("min_prob", "new_one"))
