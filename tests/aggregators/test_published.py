import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from syncheck import Monitor, MonitorConfig, feature_schema
from syncheck.aggregators import Aggregator
from syncheck.base.errors import CheckpointError, MismatchError
from syncheck.results.types import FeatureSchema

LID = ("lid_layer_15", "lid_layer_16", "lid_layer_17")
ORDER = (
    "max_entropy",
    "mean_entropy",
    *LID,
    "min_prob",
    "mean_prob",
    "mean_contrastive_kl",
    "large_kl_pos",
    "align_score",
)


def pickled_mlp(path, inputs, **settings):
    """Pickle a classifier as the authors did: no scaling, class 1 is unfaithful, protocol 4."""
    rng = np.random.default_rng(inputs)
    X = rng.normal(size=(60, inputs))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    classifier = MLPClassifier(**{"hidden_layer_sizes": 8, "max_iter": 30, "random_state": inputs, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(X, y)
    path.write_bytes(pickle.dumps(classifier, protocol=4))
    return classifier, X


@pytest.mark.parametrize(("inputs", "names"), [(10, ORDER), (7, tuple(name for name in ORDER if name not in LID))])
def test_scores_are_the_probability_of_their_class_0(tmp_path, inputs, names):
    classifier, X = pickled_mlp(tmp_path / "mlp.pkl", inputs)
    aggregator = Aggregator.from_published(tmp_path / "mlp.pkl")
    assert aggregator.schema.names == names
    np.testing.assert_allclose(aggregator.score(X), classifier.predict_proba(X)[:, 0], atol=1e-12)


def test_features_may_come_in_another_order(tmp_path):
    _, X = pickled_mlp(tmp_path / "mlp.pkl", 10)
    expected = Aggregator.from_published(tmp_path / "mlp.pkl").score(X)
    order = np.random.default_rng(0).permutation(10)
    schema = FeatureSchema("paper.v1", tuple(ORDER[i] for i in order), ("",) * 10, (0,) * 10)
    aggregator = Aggregator.from_published(tmp_path / "mlp.pkl", schema=schema)
    assert aggregator.schema == schema
    np.testing.assert_allclose(aggregator.score(X[:, order]), expected, atol=1e-12)


def test_other_features_are_refused(tmp_path):
    pickled_mlp(tmp_path / "mlp.pkl", 7)
    schema = FeatureSchema("paper.v1", ORDER, ("",) * 10, (0,) * 10)
    with pytest.raises(MismatchError, match="LID"):
        Aggregator.from_published(tmp_path / "mlp.pkl", schema=schema)


@pytest.mark.parametrize("layers", [(15, 16, 17), ()], ids=["lid", "no-lid"])
def test_a_monitor_takes_it_in_its_own_order_alone(tmp_path, llama, layers):
    """Both have the same names, so that a count of the columns would not tell them apart."""
    config = MonitorConfig(schema="paper.v1" if layers else "paper-no-lid.v1", layers=layers)
    schema = feature_schema(config.schema, layers)
    path = tmp_path / "mlp.pkl"
    pickled_mlp(path, len(schema.names))
    theirs, ours = Aggregator.from_published(path), Aggregator.from_published(path, schema=schema)
    assert sorted(theirs.schema.names) == sorted(schema.names)
    with pytest.raises(MismatchError, match="schema=feature_schema"):
        Monitor(llama.model, llama.tokenizer, config=config, aggregator=theirs)
    assert Monitor(llama.model, llama.tokenizer, config=config, aggregator=ours).schema == schema


def test_missing_counts_as_0(tmp_path):
    _, X = pickled_mlp(tmp_path / "mlp.pkl", 10)
    aggregator = Aggregator.from_published(tmp_path / "mlp.pkl")
    missing, zero = X.copy(), X.copy()
    missing[:, 3], zero[:, 3] = np.nan, 0.0
    np.testing.assert_array_equal(aggregator.score(missing), aggregator.score(zero))


def test_it_can_be_saved_in_our_format(tmp_path):
    _, X = pickled_mlp(tmp_path / "mlp.pkl", 10)
    aggregator = Aggregator.from_published(tmp_path / "mlp.pkl")
    aggregator.save(tmp_path / "ours")
    loaded = Aggregator.load(tmp_path / "ours")
    np.testing.assert_array_equal(loaded.score(X), aggregator.score(X))
    assert np.isnan(loaded.medians).all()


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return exec, (f"open({str(self.target)!r}, 'w').close()",)


def test_a_pickle_that_runs_code_is_refused(tmp_path):
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(Malicious(tmp_path / "ran")))
    with pytest.raises(CheckpointError, match=r"builtins\.exec"):
        Aggregator.from_published(tmp_path / "bad.pkl")
    assert not (tmp_path / "ran").exists()


def test_code_hidden_in_a_classifier_is_refused(tmp_path):
    classifier, _ = pickled_mlp(tmp_path / "mlp.pkl", 10)
    classifier.loss_curve_ = Malicious(tmp_path / "ran")
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(classifier, protocol=4))
    with pytest.raises(CheckpointError, match=r"builtins\.exec"):
        Aggregator.from_published(tmp_path / "bad.pkl")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "EOFError"),
        (b"not a pickle", "UnpicklingError"),
        (pickle.dumps({"coefs_": []}), "dict"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "bad.pkl").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        Aggregator.from_published(tmp_path / "bad.pkl")


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path):
    """A pickle of fourteen bytes whose string says that it has 2**62 more."""
    forged = b"\x80\x04\x8e" + (2**62).to_bytes(8, "little") + b"..."
    (tmp_path / "bad.pkl").write_bytes(forged)
    with pytest.raises(CheckpointError, match="MemoryError|UnpicklingError"):
        Aggregator.from_published(tmp_path / "bad.pkl")


def test_a_cut_file_is_refused(tmp_path):
    pickled_mlp(tmp_path / "mlp.pkl", 10)
    data = (tmp_path / "mlp.pkl").read_bytes()
    (tmp_path / "cut.pkl").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="published"):
        Aggregator.from_published(tmp_path / "cut.pkl")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="exist"):
        Aggregator.from_published(tmp_path / "none.pkl")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="read"):
        Aggregator.from_published(tmp_path)


@pytest.mark.parametrize("field", ["activation", "out_activation_"])
@pytest.mark.parametrize("kind", ["tuple", "str"])
def test_what_is_too_large_to_write_out_is_not_in_the_message(tmp_path, field, kind):
    """Each tuple holds the one before twice, which a pickle stores once."""
    value = () if kind == "tuple" else "x" * 1_000_000
    for _ in range(20 if kind == "tuple" else 0):
        value = (value, value)
    classifier, _ = pickled_mlp(tmp_path / "mlp.pkl", 10)
    setattr(classifier, field, value)
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(classifier, protocol=4))
    with pytest.raises(CheckpointError, match=field) as caught:
        Aggregator.from_published(tmp_path / "bad.pkl")
    assert len(str(caught.value)) < 500


def without_bytes(state):
    return (*state[:-1], [1.0])


def with_shape_of_words(state):
    return (state[0], ("ten", 8), *state[2:])


@pytest.mark.parametrize(
    ("change", "message"),
    [(without_bytes, "bytes"), (with_shape_of_words, "whole numbers")],
)
def test_weights_that_are_none_are_refused(tmp_path, change, message):
    class Forged(np.ndarray):
        def __reduce__(self):
            made, arguments, state = np.asarray(self).__reduce__()
            return made, arguments, change(state)

    classifier, _ = pickled_mlp(tmp_path / "mlp.pkl", 10)
    classifier.coefs_ = [layer.view(Forged) for layer in classifier.coefs_]
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(classifier, protocol=4))
    with pytest.raises(CheckpointError, match=message):
        Aggregator.from_published(tmp_path / "bad.pkl")


@pytest.mark.parametrize(
    ("inputs", "settings", "message"),
    [(9, {}, "inputs"), (10, {"activation": "tanh"}, "tanh")],
)
def test_other_networks_are_refused(tmp_path, inputs, settings, message):
    pickled_mlp(tmp_path / "mlp.pkl", inputs, **settings)
    with pytest.raises(CheckpointError, match=message):
        Aggregator.from_published(tmp_path / "mlp.pkl")
