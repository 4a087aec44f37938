"""What cannot be used is refused at the door, with an error of our tree that says what was found."""

import json
import math

import numpy as np
import pytest
from transformers.generation import GenerationConfig

from fod import (
    AbstainGenerator,
    BacktrackGenerator,
    BestOfNGenerator,
    CADGenerator,
    FLAREGenerator,
    FODConfig,
    FODGenerator,
    PassageIndex,
    RepairConfig,
)
from syncheck import Aggregator, Monitor, MonitorConfig, SyncheckError, feature_schema, prompt_from_texts
from syncheck.aggregators import fit_calibration
from syncheck.base.errors import CheckpointError, InputError, WrongTypeError
from syncheck.cli import main
from syncheck.decoding import prepare_generation
from syncheck.evaluation import cross_validate
from syncheck.results import SpanItem
from syncheck.training import choose_thresholds, measure

HALF = "Paris \ud800 is big."
SCHEMA = feature_schema("paper-no-lid.v1", ())
OUTSIDE = [-0.1, 1.1, math.nan, math.inf, 85]
NO_NUMBER = ["0.5", [0.5], None, True, 0.5j]


@pytest.fixture
def monitor(llama):
    aggregator = Aggregator.from_signal("min_prob", schema=SCHEMA)
    config = MonitorConfig(schema="paper-no-lid.v1")
    return Monitor(llama.model, llama.tokenizer, config=config, aggregator=aggregator)


@pytest.fixture
def prompt(monitor):
    return monitor.prompt(question="Who?", context="Anna.")


def models(monitor):
    return monitor.model, monitor.tokenizer, monitor


def sentences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, len(SCHEMA.names)))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "given",
    [
        {"question": HALF, "context": "p"},
        {"question": "q?", "context": HALF},
        {"question": "q?", "context": ["p", HALF]},
        {"question": "q?", "context": "p", "system": HALF},
    ],
)
def test_half_a_character_in_a_prompt(monitor, given):
    with pytest.raises(InputError, match="surrogate"):
        monitor.prompt(**given)


def test_half_a_character_in_prompts_of_the_caller(monitor):
    texts = {"question": "q?", "context": "p", "with_context": "with", "without_context": "without"}
    for name in texts:
        with pytest.raises(InputError, match=name):
            prompt_from_texts(monitor.tokenizer, **texts | {name: HALF})


@pytest.mark.parametrize("given", [{"response": HALF}, {"sentences": ["One.", HALF]}])
def test_half_a_character_in_a_response(monitor, prompt, given):
    with pytest.raises(InputError, match="surrogate"):
        monitor.score(prompt, **given)
    with pytest.raises(InputError, match="surrogate"):
        monitor.score_batch([prompt], **{"responses" if k == "response" else k: [v] for k, v in given.items()})


def test_half_a_character_in_a_labelled_response(monitor):
    record = {"question": "q?", "context": "p", "response": HALF, "spans": []}
    with pytest.raises(SyncheckError, match="ud800"):
        measure(monitor, [record])


def test_half_a_character_on_the_command_line(tmp_path, capsys):
    passages = tmp_path / "p.txt"
    passages.write_text("Anna.")
    given = ["--question", "Who \udcff?", "--context", str(passages), "--report", str(tmp_path / "r.html")]
    assert main(["demo", *given]) == 2
    assert "surrogate" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        {"sentences": (s for s in ["One.", "Two."])},
        {"sentences": {"One.", "Two."}},
        {"sentences": "One."},
        {"response_token_ids": (i for i in [5, 6])},
        {"response_token_ids": 5},
    ],
)
def test_a_generator_for_a_sequence(monitor, prompt, given):
    """Read once for a check it would be empty afterwards, and the response without a sentence."""
    with pytest.raises(WrongTypeError, match="list"):
        monitor.score(prompt, **given)


def test_generators_for_the_rows_of_a_batch(monitor, prompt):
    for name in ("responses", "response_token_ids", "sentences"):
        with pytest.raises(WrongTypeError, match=name):
            monitor.score_batch([prompt], **{name: (row for row in ["One."])})
    with pytest.raises(WrongTypeError, match="prompts"):
        monitor.score_batch((p for p in [prompt]), ["One."])
    with pytest.raises(WrongTypeError, match="generator"):
        monitor.prompt(question="q?", context=(p for p in ["p"]))


def test_an_array_of_rows_is_a_sequence(monitor, prompt):
    of_array = monitor.score_batch([prompt] * 2, np.array(["One.", "Two."], dtype=object))
    assert [report.response for report in of_array] == ["One.", "Two."]


@pytest.mark.parametrize("name", ["backtrack_threshold", "prune_threshold"])
@pytest.mark.parametrize("config", [MonitorConfig, FODConfig, RepairConfig])
def test_thresholds_of_a_config_are_in_0_to_1(config, name):
    for value in (0, 1, 0.5, np.float32(0.25)):
        config(**{name: value})
    for value in OUTSIDE:
        with pytest.raises(InputError, match=name):
            config(**{name: value})
    for value in NO_NUMBER:
        if config is not MonitorConfig and (value is None or isinstance(value, str)):
            continue  # the monitor's own, and a word that may be one of those there are
        with pytest.raises(WrongTypeError, match=name):
            config(**{name: value})


def test_other_numbers_of_a_search():
    for name in ("beam_size", "samples_per_step", "max_sentences"):
        for value in (0, -1):
            with pytest.raises(InputError, match=name):
                FODConfig(**{name: value})
        for value in (1.5, math.nan, "2", None, True):
            with pytest.raises(WrongTypeError, match=name):
                FODConfig(**{name: value})
    for name in ("temperature", "top_p"):
        for value in (0, -1, math.nan, math.inf):
            with pytest.raises(InputError, match=name):
                FODConfig(**{name: value})
        with pytest.raises(WrongTypeError, match=name):
            FODConfig(**{name: "0.9"})


@pytest.mark.parametrize("ask", [FODGenerator.generate, FODGenerator.stream, BacktrackGenerator.generate])
def test_a_seed_is_a_whole_number_of_64_bits(monitor, prompt, ask):
    made = (FODGenerator if ask is not BacktrackGenerator.generate else BacktrackGenerator)(*models(monitor))
    for value in (-1, np.int64(3), 2**64 - 1):
        list(ask(made, prompt, seed=value, max_new_tokens=2))
    for value in ("a", 1.5, None, True):
        with pytest.raises(WrongTypeError, match="seed"):
            list(ask(made, prompt, seed=value, max_new_tokens=2))
    with pytest.raises(InputError, match="seed"):
        list(ask(made, prompt, seed=2**64, max_new_tokens=2))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, p: m.generate(p, stop_belo=0.5),
        lambda m, p: list(m.stream(p, stop_belo=0.5)),
        lambda m, p: FODGenerator(*models(m)).generate(p, stop_belo=0.5),
        lambda m, p: CADGenerator(*models(m)).stream(p, stop_belo=0.5),
        lambda m, p: prepare_generation(m.model, p, stop_belo=0.5),
    ],
)
def test_the_error_of_an_unknown_argument_names_it(monitor, prompt, call):
    with pytest.raises(InputError, match="takes an argument 'stop_belo'"):
        call(monitor, prompt)


@pytest.mark.parametrize("do_sample", [False, True])
def test_a_temperature_is_finite_and_above_0(monitor, prompt, do_sample):
    fod = FODGenerator(*models(monitor))
    for ask in (monitor.generate, lambda *given, **more: list(monitor.stream(*given, **more)), fod.generate):
        for value in (-1.0, math.nan, math.inf):
            with pytest.raises(InputError, match="temperature"):
                ask(prompt, temperature=value, do_sample=do_sample, max_new_tokens=2)
        for value in ("0.9", True, [1.0]):
            with pytest.raises(WrongTypeError, match="temperature"):
                ask(prompt, temperature=value, do_sample=do_sample, max_new_tokens=2)
    with pytest.raises(InputError, match="temperature"):
        given = GenerationConfig(do_sample=do_sample, temperature=-1.0, max_new_tokens=2)
        monitor.generate(prompt, generation_config=given)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        *(({"max_new_tokens": value}, InputError, "max_new_tokens must be at least 1") for value in (0, -1)),
        *(({"max_new_tokens": value}, WrongTypeError, "max_new_tokens must be a whole") for value in ("5", True, 2.5)),
        ({"max_length": "5"}, WrongTypeError, "max_length must be a whole number"),
        ({"max_new_tokens": 2, "stop_strings": []}, InputError, "stop_strings must hold at least one"),
        *(({"stop_strings": value}, WrongTypeError, "stop_strings must be a string or") for value in (5, [5], {"a"})),
        ({"max_new_tokens": 2, "min_new_tokens": "1"}, WrongTypeError, "refuses a value of .*min_new_tokens"),
        ({"max_new_tokens": 2, "do_sample": True, "top_k": "many"}, InputError, "refuses a value of .*top_k"),
    ],
)
def test_a_value_of_an_argument_of_generate_that_cannot_be_used_is_named(monitor, prompt, given, error, said):
    fod = FODGenerator(*models(monitor))
    for ask in (monitor.generate, lambda *one, **more: list(monitor.stream(*one, **more)), fod.generate):
        with pytest.raises(error, match=said):
            ask(prompt, **given)


def test_a_temperature_of_0_is_greedy_and_does_not_sample(monitor, prompt):
    greedy = monitor.generate(prompt, max_new_tokens=4, do_sample=False)
    assert monitor.generate(prompt, max_new_tokens=4, do_sample=False, temperature=0.0).response == greedy.response
    with pytest.raises(InputError, match="do_sample=False"):
        monitor.generate(prompt, max_new_tokens=4, do_sample=True, temperature=0.0)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (FODGenerator, {"backtrack_threshold": None}),
        (FODGenerator, {"prune_threshold": None}),
        (BacktrackGenerator, {"backtrack_threshold": None}),
        (AbstainGenerator, {"threshold": None}),
        (FLAREGenerator, {"threshold": None, "retriever": list}),
        (CADGenerator, {"plausibility": None}),
        (BestOfNGenerator, {"top_p": None, "reward": "mean"}),
        (BestOfNGenerator, {"top_p": None, "reward": "likelihood"}),
    ],
)
def test_thresholds_of_every_decoder_are_in_0_to_1(monitor, kind, given):
    (name,) = [key for key, value in given.items() if value is None]
    for value in OUTSIDE:
        with pytest.raises(InputError, match=name):
            kind(monitor.model, monitor.tokenizer, monitor, **given | {name: value})
    for value in ([0.5], 0.5j, True):
        with pytest.raises(WrongTypeError, match=name):
            kind(monitor.model, monitor.tokenizer, monitor, **given | {name: value})


def test_counts_of_a_baseline(monitor):
    parts = models(monitor)
    with pytest.raises(WrongTypeError, match="samples"):
        BestOfNGenerator(*parts, reward="mean", samples=2.5)
    with pytest.raises(WrongTypeError, match="max_retrievals"):
        FLAREGenerator(*parts, retriever=list, threshold=0.5, max_retrievals="8")
    with pytest.raises(WrongTypeError, match="count"):
        PassageIndex(["a passage"], count=2.5)
    with pytest.raises(InputError, match="alpha"):
        CADGenerator(*parts, alpha=math.nan)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda X: X.astype(complex), "complex128"),
        (lambda X: X.astype(object), "object"),
        (lambda X: X.astype(str), "str"),
        (lambda X: [[None] * X.shape[1]] * len(X), "NoneType"),
        (lambda X: (row for row in X), "generator"),
        (lambda X: np.full(X.shape, "2020-01-01", "datetime64[D]"), "datetime64"),
    ],
)
def test_features_are_real_numbers(change, found):
    X, y = sentences()
    aggregator = Aggregator.fit(X, y, schema=SCHEMA, kind="lr")
    for use in (
        lambda given: Aggregator.fit(given, y, schema=SCHEMA, kind="lr"),
        aggregator.score,
        lambda given: cross_validate(given, y, range(len(y)), aggregator="lr", folds=2, repeats=1),
    ):
        with pytest.raises(WrongTypeError, match=found):
            use(change(X))


def test_rows_of_one_length():
    with pytest.raises(InputError, match="features"):
        Aggregator.fit([[1.0], [1.0, 2.0]], [0, 1], schema=SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.astype(complex),
        lambda y: y.astype(object),
        lambda y: y.astype(str),
        lambda y: [None] * len(y),
        lambda y: [0, "a"] * (len(y) // 2),
        lambda y: (label for label in y),
    ],
)
def test_labels_are_real_numbers(change):
    X, y = sentences()
    for use in (
        lambda given: Aggregator.fit(X, given, schema=SCHEMA, kind="lr"),
        lambda given: fit_calibration(np.linspace(0, 1, len(y)), given),
        lambda given: choose_thresholds(np.linspace(0, 1, len(y)), given),
        lambda given: cross_validate(X, given, range(len(y)), aggregator="lr", folds=2, repeats=1),
    ):
        with pytest.raises(WrongTypeError, match="labels"):
            use(change(y))


@pytest.mark.parametrize("kind", ["lr", "xgb", "mlp", "ensemble"])
def test_a_column_that_was_never_measured(kind):
    X, y = sentences()
    X[:, SCHEMA.names.index("align_score")] = math.nan
    with pytest.raises(InputError, match="align_score"):
        Aggregator.fit(X, y, schema=SCHEMA, kind=kind)
    allowed = Aggregator.fit(X, y, schema=SCHEMA, kind=kind, allow_unmeasured=True)
    measured = X.copy()
    measured[:, SCHEMA.names.index("align_score")] = 0.5
    assert allowed.score(X).tolist() == allowed.score(measured).tolist()  # it counts nowhere
    with pytest.raises(InputError, match="columns"):
        Aggregator.fit(np.full_like(X, math.nan), y, schema=SCHEMA, kind=kind, allow_unmeasured=True)


def test_a_threshold_of_a_saved_monitor_outside_is_a_damaged_file(monitor, tmp_path):
    monitor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for value in (7, "a", None):
        (tmp_path / "config.json").write_text(json.dumps(config | {"prune_threshold": value}))
        with pytest.raises(CheckpointError):
            Monitor.from_pretrained(tmp_path, model=monitor.model, tokenizer=monitor.tokenizer)


@pytest.mark.parametrize("field", ["id", "lang", "question", "response", "generator", "source", "passages", "tokens"])
def test_half_a_character_in_an_item(field):
    item = {"id": "1", "lang": "EN", "question": "Who?", "response": "Anna."}
    with pytest.raises(InputError, match=field):
        SpanItem(**item | {field: (HALF,) if field in ("passages", "tokens") else HALF})
    for unread in ({"passages": (p for p in ["p"])}, {"tokens": "Anna."}, {"logits": (x for x in [0.5])}):
        with pytest.raises(WrongTypeError, match="list"):
            SpanItem(**item | unread)


def test_half_a_character_in_a_list_that_is_written_as_a_string(tmp_path, capsys):
    """The record itself is whole: the escape is within a string, and read with the list."""
    record = {"id": "1", "lang": "EN", "model_input": "Who?", "model_output_text": "Anna."}
    tokens = {"model_output_tokens": r"['An\ud800', 'na.']", "model_output_logits": "[1.0, 2.0]"}
    source = tmp_path / "items.jsonl"
    source.write_text(json.dumps(record | tokens))
    assert main(["spans", "--input", str(source), "--output", str(tmp_path / "o.jsonl")]) == 2
    assert "half" in capsys.readouterr().err


def test_layers_that_can_be_read_once_are_refused():
    with pytest.raises(WrongTypeError, match="layers"):
        MonitorConfig(schema="paper.v1", layers=(k for k in (1, 2)))
