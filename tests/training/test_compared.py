"""Training beside ``generic``: it is compared, pulled towards it, and given up where it is no better."""

from dataclasses import replace

import numpy as np
import pytest
from measured_doubles import yes_and_no

from syncheck import Aggregator, MonitorConfig, Verifier, feature_schema, load_aligner, load_kit
from syncheck.aggregators.kinds import fit_model, shrunk_towards
from syncheck.base.errors import InputError
from syncheck.evaluation.metrics import auroc
from syncheck.testing import WordAligner
from syncheck.training import fit_measured, narrowed, train_measured

SCHEMA = feature_schema("syncheck.v5", ())
SUPPORT = SCHEMA.names.index("align_logit")
KINDS = ["shrunk", "lr", "xgb", "mlp", "ensemble"]


@pytest.fixture(scope="module")
def untrained():
    return Verifier(load_aligner("bundled"), config=MonitorConfig(schema="syncheck.v5"))


@pytest.fixture(scope="module")
def generic():
    return load_kit("generic-bundled").aggregator


def sentences(faithful, unfaithful, *, responses=20, seed=3):
    """Answers of two sentences, the second unfaithful, whose supports have these means; the rest says nothing."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2 * responses, len(SCHEMA.names)), scale=0.1)
    values[:, SCHEMA.names.index("contrasts")] = 0.0
    values[::2, SUPPORT] = faithful + rng.normal(size=responses)
    values[1::2, SUPPORT] = unfaithful + rng.normal(size=responses)
    return yes_and_no(SCHEMA, values)


def test_every_training_has_a_row_for_generic_and_for_the_aligner_alone(untrained, generic):
    measured = sentences(2.0, -1.0)
    scores = {"generic": generic.score(measured.values), "aligner alone": measured.values[:, SUPPORT]}
    for kind, trained in (("lr", ["lr"]), ("best", KINDS), ("generic", [])):
        table = train_measured(untrained, measured, aggregator=kind).table
        assert [row.system for row in table.rows] == ["generic", "aligner alone", *trained]
        for row, values in zip(table.rows, scores.values(), strict=False):
            assert row.auroc == pytest.approx(auroc(values, measured.labels()))


def test_where_nothing_is_better_generic_is_kept(untrained, generic, tmp_path):
    measured = sentences(20.0, -20.0)  # generic errs nowhere
    trained = train_measured(untrained, measured)
    assert trained.kind == "generic" and "generic is kept" in trained.doubt
    trained.monitor.save_pretrained(tmp_path)
    loaded = Verifier.from_pretrained(tmp_path, aligner=untrained.aligner)
    assert loaded.aggregator.score(measured.values).tolist() == generic.score(measured.values).tolist()
    assert loaded.aggregator.comparison == trained.monitor.aggregator.comparison
    assert loaded.aggregator.comparison["chosen"] == "generic"
    assert loaded.aggregator.comparison["auroc"]["generic"][0] == 1.0
    assert loaded.config == trained.monitor.config and loaded.trained_on > load_kit("generic-bundled").trained_on


def test_what_is_better_beyond_its_interval_is_taken_without_doubt(untrained):
    trained = train_measured(untrained, sentences(-20.0, 20.0))  # supported means unfaithful here
    assert trained.kind in KINDS[1:] and trained.row.gain_low > 0 and trained.doubt is None


def test_what_is_no_better_says_so(untrained, caplog):
    measured = sentences(1.0, 0.0)
    trained = train_measured(untrained, measured, aggregator="mlp")
    assert not trained.row.gain_low > 0 and "'mlp' is not better than 'generic'" in trained.doubt
    fit_measured(untrained, measured, aggregator="mlp")
    assert trained.doubt in caplog.messages


@pytest.mark.parametrize("aggregator", ["shrunk", "generic"])
def test_generic_cannot_be_had_with_another_aligner_or_without_its_features(aggregator):
    for aligner, version in ((WordAligner(), "syncheck.v5"), (load_aligner("bundled"), "aligner.v1")):
        untrained = Verifier(aligner, config=MonitorConfig(schema=version))
        measured = yes_and_no(untrained.schema, np.tile([[0.9], [0.2]], (10, len(untrained.schema.names))))
        with pytest.raises(InputError, match="needs the aligner of a bundled verifier"):
            train_measured(untrained, measured, aggregator=aggregator)


def test_without_generic_training_is_compared_with_the_aligner_alone():
    schema = feature_schema("aligner.v1", ())
    measured = yes_and_no(schema, np.tile([[0.9], [0.2]], (10, 1)))
    trained = train_measured(
        Verifier(WordAligner(), config=MonitorConfig(schema="aligner.v1")), measured, aggregator="lr"
    )
    assert [row.system for row in trained.table.rows] == ["aligner alone", "lr"]


def towards(generic, **parameters):
    return shrunk_towards(generic.model, generic.schema.names, SCHEMA.names).set_params(**parameters)


def fitted(generic, rows, y, **parameters):
    return fit_model(rows, y, kind=towards(generic, **parameters), seed=0, names=SCHEMA.names)


def test_the_strongest_pull_leaves_generic_but_for_a_shift(generic):
    measured = sentences(1.0, -1.0)
    rows = measured.values.copy()
    rows[5, 3:9] = np.nan  # what was not measured is filled as generic fills it
    y = measured.labels()
    shift = fitted(generic, rows, y, strength=1e9).log_odds(rows) - generic.model.log_odds(rows)
    assert np.ptp(shift) < 1e-6


def test_many_labels_outweigh_the_pull(generic):
    """The pull weighs as much as a number of labels: ten times the labels need ten times the pull for the same fit."""
    measured = sentences(1.0, -1.0)
    rows, y = measured.values, measured.labels()
    once = fitted(generic, rows, y, strength=3.0)
    tenfold = fitted(generic, np.tile(rows, (10, 1)), np.tile(y, 10), strength=30.0)
    np.testing.assert_allclose(tenfold.log_odds(rows), once.log_odds(rows), atol=1e-5)


def test_a_feature_that_generic_lacks_starts_at_no_weight(generic):
    names = (*SCHEMA.names, "mean_prob")
    measured = sentences(1.0, -1.0)
    rows = np.column_stack([measured.values, np.linspace(0, 1, 40)])
    kind = shrunk_towards(generic.model, generic.schema.names, names).set_params(strength=1e9)
    found = fit_model(rows, measured.labels(), kind=kind, seed=0, names=names)
    other = rows.copy()
    other[:, -1] = 0.5
    np.testing.assert_allclose(found.log_odds(other), found.log_odds(rows), atol=1e-6)


def test_probabilities_hold_at_the_share_of_the_labels_with_the_ceiling_of_a_contrast(generic):
    """The ceiling of 0.2 is that of even odds; where 3 of 4 are faithful, its odds of 1 to 4 are tripled."""
    measured = sentences(1.0, -1.0)
    keep = np.flatnonzero((measured.labels() == 1) | (np.arange(40) % 6 == 1))[:24]
    rows, y = measured.values[keep], measured.labels()[keep]
    model = fitted(generic, rows, y)
    assert model.probability(rows).mean() == pytest.approx(y.mean(), abs=1e-4)
    contrasted = rows.copy()
    contrasted[:, SCHEMA.names.index("contrasts")] = 1.0
    odds = y.mean() / (1 - y.mean()) / 4
    assert model.ceiling(contrasted).tolist() == pytest.approx([odds / (1 + odds)] * len(rows))
    aggregator = Aggregator.fit(rows, y, schema=SCHEMA, kind=towards(generic), allow_unmeasured=True)
    assert aggregator.kind == "monotone" and aggregator.base_rate == y.mean()


def test_a_file_with_more_features_is_read_without_them(untrained):
    """A monitor that keeps ``generic`` is evaluated and calibrated on the file that it was trained on."""
    wide = feature_schema("syncheck.v6", (2, 3))
    measured = yes_and_no(wide, np.random.default_rng(0).random((4, len(wide.names))))
    measured = replace(measured, activations={2: np.ones((4, 3), np.float32), 3: np.ones((4, 3), np.float32)})
    found = narrowed(measured, SCHEMA)
    columns = [wide.names.index(name) for name in SCHEMA.names]
    assert found.schema == SCHEMA and found.activations == {}
    assert found.values.tolist() == measured.values[:, columns].tolist()
    for other in (wide, feature_schema("paper.v1", (2, 3)), feature_schema("syncheck.v3", (2, 3))):
        assert narrowed(measured, other) is measured  # lexical features of others are measured in another way
