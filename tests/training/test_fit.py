import re
from inspect import signature

import numpy as np
import pytest
from doubles import LAYERS
from made_up import record, records
from sklearn.linear_model import LogisticRegression

from syncheck import Monitor, MonitorConfig, checkpoint
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.cli import parser
from syncheck.cli.monitors import monitor_to_measure
from syncheck.config import DEFAULT_SCHEMA
from syncheck.evaluation import cross_validate
from syncheck.testing import WordAligner
from syncheck.training import choose_thresholds, measure, question_digests

CONFIG = MonitorConfig(schema="syncheck.v3", layers=LAYERS)


def fitted(llama, kind="lr", *, given=None, **options):
    options = {"config": CONFIG, "aligner": WordAligner(), **options}
    return Monitor.fit(
        records(8) if given is None else given,
        model=llama.model,
        tokenizer=llama.tokenizer,
        aggregator=kind,
        **options,
    )


@pytest.fixture(scope="module")
def monitor(llama):
    return fitted(llama)


def scores(monitor, index=11):
    given = record(index)
    report = monitor.score(monitor.prompt(question=given.question, context=given.passages), given.response)
    assert {s.status for s in report.sentences} == {"scored"}
    return [s.score for s in report.sentences]


def test_tells_new_sentences_apart(monitor):
    faithful, unfaithful, other = scores(monitor)
    assert 0 <= unfaithful < min(faithful, other) <= 1


def test_what_it_was_trained_on(monitor):
    assert monitor.trained_on == question_digests(records(8))
    assert monitor.lid_references.layers == LAYERS and len(monitor.lid_references.references[3]) == 16
    assert monitor.aggregator.schema == monitor.schema and monitor.aggregator.kind == "lr"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lr", "xgb", "mlp", "ensemble"])
def test_the_same_seed_gives_the_same_monitor(llama, kind):
    first, second = (fitted(llama, kind) for _ in range(2))
    assert scores(first) == scores(second)
    assert first.config == second.config


def test_loaded_scores_as_fitted(llama, monitor, tmp_path):
    monitor.save_pretrained(tmp_path)
    loaded = Monitor.from_pretrained(tmp_path, model=llama.model, tokenizer=llama.tokenizer, aligner=WordAligner())
    assert scores(loaded) == scores(monitor) and loaded.config == monitor.config


def test_thresholds_are_chosen_on_scores_of_sentences_not_trained_on(llama, monitor):
    untrained = Monitor(llama.model, llama.tokenizer, config=CONFIG, aligner=WordAligner())
    measured = measure(untrained, records(8), show_progress=False)
    labels = measured.labels()
    held_out = cross_validate(
        lambda train: measured.features(labels, train),
        labels,
        measured.groups,
        aggregator="lr",
        folds=5,
        repeats=1,
        seed=0,
    )
    expected = choose_thresholds(held_out[0], labels)
    assert monitor.config.backtrack_threshold == expected.backtrack
    assert monitor.config.prune_threshold == expected.prune
    assert np.isfinite(held_out).all()


def test_layers_default_to_the_middle_of_the_model(llama):
    monitor = Monitor.fit(records(6), model=llama.model, tokenizer=llama.tokenizer, aggregator="lr", aligner=None)
    assert monitor.config.layers == (2, 3, 4) and monitor.config.schema == DEFAULT_SCHEMA
    assert monitor.aligner is None


@pytest.mark.parametrize("reads", [False, True])
def test_the_aligner_is_that_of_the_verifier(llama, monkeypatch, reads):
    """By default, training measures with what ``Verifier()`` reads with, in Python and on the command line."""
    loaded = {"reader": WordAligner(), "bundled": WordAligner()}
    monkeypatch.setattr(checkpoint, "can_read", lambda: reads)
    monkeypatch.setattr(checkpoint, "load_aligner", lambda name, device: loaded[name])
    expected = loaded["reader" if reads else "bundled"]
    config = MonitorConfig(schema="aligner.v1")
    assert fitted(llama, config=config, aligner="generic").aligner is expected
    args = parser().parse_args(["features", "--data", "x", "--output", "y", "--schema", "syncheck.v5"])
    assert monitor_to_measure(args).aligner is expected


def test_each_parameter_of_training_is_documented():
    described = re.findall(r"^        (\w+(?:, \w+)*)$", Monitor.fit.__doc__, flags=re.M)
    assert {name for line in described for name in line.split(", ")} >= set(signature(Monitor.fit).parameters)


def test_a_schema_without_lid(llama):
    monitor = fitted(llama, config=MonitorConfig(schema="paper-no-lid.v1"))
    assert monitor.lid_references is None and len(scores(monitor)) == 3


def test_records_may_come_one_by_one(llama, monitor):
    assert scores(fitted(llama, given=(r for r in records(8)))) == scores(monitor)


def test_one_label_alone(llama):
    with pytest.raises(InputError, match="faithful"):
        fitted(llama, given=[record(i, spans=()) for i in range(6)])
    with pytest.raises(InputError, match="faithful"):
        fitted(llama, given=[*(record(i, spans=()) for i in range(6)), record(6)])


def test_too_few_questions_are_refused_before_they_are_measured(llama, monkeypatch):
    monkeypatch.setattr("syncheck.training.extract.measure", None)
    with pytest.raises(InputError, match="questions") as caught:
        fitted(llama, given=records(4))
    assert "5 questions" in str(caught.value) and "found 4 in 4 records. Label" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("svm", "must be one of 'best', 'shrunk', 'generic', 'lr'.*found 'svm'"),
        (LogisticRegression, "MonotoneLogisticRegression; found <class"),
        (None, "found None"),
    ],
)
def test_an_aggregator_that_cannot_be_trained_is_refused_before_the_records_are_measured(
    llama, monkeypatch, kind, said
):
    monkeypatch.setattr("syncheck.training.extract.measure", lambda *_, **__: pytest.fail("measured"))
    with pytest.raises(InputError, match=said):
        fitted(llama, kind)


def test_a_name_in_place_of_a_model_is_refused(llama, monitor, tmp_path):
    monitor.save_pretrained(tmp_path)
    with pytest.raises(WrongTypeError, match="model must be a loaded causal language model.*found 'my-model'"):
        Monitor.from_pretrained(tmp_path, model="my-model", tokenizer=llama.tokenizer)
    with pytest.raises(WrongTypeError, match="tokenizer must be the model's tokenizer.*found 'my-model'"):
        Monitor.from_pretrained(tmp_path, model=llama.model, tokenizer="my-model")
