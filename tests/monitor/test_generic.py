"""The bundled monitor that reads text alone: any model, at once."""

import json
import math
from functools import cache

import numpy as np
import pytest
from copying import copying_monitor

from fod import FODGenerator
from syncheck import Monitor, MonitorConfig, Verifier, checkpoint, load_kit
from syncheck.base.errors import MismatchError, PromptError
from syncheck.cli import main
from syncheck.results.types import Support
from syncheck.testing import scripted_monitor

PASSAGES = [
    "The Avon bridge opened in 1967. It has two lanes and is closed to lorries.",
    "Tom Smith designed the bridge.",
]
QUESTION = "When did the bridge open?"
SUPPORTED = "The Avon bridge opened in 1967."
UNRELATED = "The moon is made of cheese."


@pytest.fixture(scope="module")
def generic():
    double = scripted_monitor(f"{SUPPORTED} {UNRELATED}")
    return Monitor(double.model, double.tokenizer)


@pytest.fixture
def not_warned(monkeypatch):
    """No warning of a missing reader yet; what others were told does not count."""
    monkeypatch.setattr(checkpoint, "_warn_of_words", cache(checkpoint._warn_of_words.__wrapped__))


def scores_of(monitor):
    given = [f"{SUPPORTED} ", UNRELATED]
    if isinstance(monitor, Verifier):
        return monitor.check(question=QUESTION, passages=PASSAGES, sentences=given).sentences
    return monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), sentences=given).sentences


def test_any_model_has_scores_without_labels_or_a_forward(generic, monkeypatch):
    monkeypatch.setattr(type(generic.model), "forward", None)
    supported, unrelated = scores_of(generic)
    assert supported.score > 0.5 > unrelated.score
    assert (supported.verdict, unrelated.verdict) == ("supported", "unsupported")


def test_it_does_not_depend_on_the_model(generic):
    assert [s.score for s in scores_of(generic)] == [s.score for s in scores_of(load_kit("generic"))]


@pytest.mark.slow
def test_it_reads_with_the_reader_where_its_encoder_is(with_the_reader, not_warned, generic, caplog):
    monitors = [load_kit("generic"), Monitor(generic.model, generic.tokenizer)]
    assert [monitor.name for monitor in monitors] == ["generic-reader"] * 2
    assert monitors[0].aligner is monitors[1].aligner  # a process holds it once
    for verifier in (monitors[0], monitors[1].verifier):
        sentences = ["Do not take more than 4 g a day. ", "You can take 8 g a day."]
        dose = ["The maximum dose is 4 g in 24 hours."]
        right, wrong = verifier.check(sentences=sentences, question=QUESTION, passages=dose).sentences
        assert right.score > 0.5 > wrong.score
    assert load_kit("generic-bundled").name == "generic-bundled"
    assert caplog.text == ""


def test_without_the_encoder_one_warning_says_what_to_do(not_warned, generic, caplog):
    for _ in range(2):
        assert Monitor(generic.model, generic.tokenizer).name == "generic-bundled"
    (record,) = caplog.records
    assert "hf download" in record.getMessage()
    load_kit("generic-bundled")
    assert len(caplog.records) == 1


class SameAligner:
    """Gives everything the same log-odds; only one that reads also says how likely a contradiction is."""

    name = "same"

    def __init__(self, log_odds, contradicted):
        self.log_odds, self.contradicted = log_odds, contradicted

    def align(self, passages, claims):
        score = 1 / (1 + math.exp(-self.log_odds))
        return [Support(score, None, log_odds=self.log_odds, contradicted=self.contradicted) for _ in claims]


@pytest.mark.parametrize(
    ("text", "log_odds", "contradicted", "found"),
    [
        ("The Avon bridge was closed in 1967.", 3.0, None, 1),
        ("The Avon bridge was closed in 1967.", 3.0, 0.01, 0),
        ("The Avon bridge was closed in 1967.", -0.9, 0.6, 0),
        ("The Avon bridge was closed in 1967.", -1.1, 0.6, 1),
        ("The Avon bridge opened in 1976.", 3.0, 0.01, 1),
    ],
)
def test_beside_an_aligner_that_reads_a_contrast_counts_where_its_rule_was_right(
    generic, text, log_odds, contradicted, found
):
    monitor = generic.replaced(aligner=SameAligner(log_odds, contradicted))
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    (sentence,) = monitor.score(prompt, sentences=[text]).sentences
    assert len(sentence.contrasts) == sentence.features["contrasts"] == found
    assert (sentence.score < 0.2) == bool(found)


def test_answers_of_a_chat_are_cut_into_items_and_no_abbreviation_ends_a_sentence(generic):
    prompt = generic.prompt(question=QUESTION, context=["Dr. Ray built it. It is open from 8 a.m. to 6 p.m. daily."])
    answer = "## The bridge\n\n- **Built by:** Dr. Ray\n- Open from 8 a.m. to 7 p.m."
    sentences = generic.score(prompt, answer).sentences
    assert [s.text for s in sentences] == answer.replace("\n\n", "\n").split("\n")
    assert sentences[1].evidence.text == "Dr. Ray built it."
    (contrast,) = sentences[2].contrasts
    assert (contrast.kind, contrast.sentence, contrast.evidence) == ("number", "7", "6")


def test_the_search_works_with_it():
    kit = copying_monitor()
    monitor = Monitor(kit.model, kit.tokenizer)
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    found = FODGenerator(kit.model, kit.tokenizer, monitor).generate(
        prompt, max_new_tokens=24, return_dict_in_generate=True
    )
    assert all(sentence.score >= monitor.config.backtrack_threshold for sentence in found.report.sentences)


def test_a_monitor_that_reads_signals_is_for_its_model_alone(generic, tmp_path):
    other = scripted_monitor("Something else was said here.")
    signals = Monitor(generic.model, generic.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
    signals.save_pretrained(tmp_path / "signals")
    with pytest.raises(MismatchError, match="model"):
        Monitor.from_pretrained(tmp_path / "signals", model=other.model, tokenizer=other.tokenizer)
    generic.save_pretrained(tmp_path / "text")
    loaded = Monitor.from_pretrained(tmp_path / "text", model=other.model, tokenizer=other.tokenizer)
    assert loaded.aggregator.kind == generic.aggregator.kind


@pytest.mark.slow
def test_the_command_line_has_it_for_any_model(generic, tmp_path):
    generic.model.save_pretrained(tmp_path / "model")
    generic.tokenizer.save_pretrained(tmp_path / "model")
    record = {"id": "a", "question": QUESTION, "context": PASSAGES, "response": SUPPORTED}
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(record) + "\n", encoding="utf-8")
    written = {}
    for name, options in {"kit": [], "own": ["--model", str(tmp_path / "model")]}.items():
        target = tmp_path / f"{name}.jsonl"
        words = ["score", *options, "--monitor", "generic-bundled", "--input", str(source)]
        assert main([*words, "--output", str(target)]) == 0
        written[name] = json.loads(target.read_text(encoding="utf-8"))["sentences"][0]["score"]
    assert written["kit"] == written["own"] > 0.5


@pytest.mark.parametrize("name", ["generic", "generic-reader"])
def test_a_folder_of_that_name_is_not_taken_for_it(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    assert main(["score", "--monitor", name, "--input", "in.jsonl"]) == 2
    assert f"./{name}" in capsys.readouterr().err


def test_tokens_without_signals_are_not_drawn_and_batches_are_as_single(generic):
    prompt = generic.prompt(question=QUESTION, context=PASSAGES)
    single = generic.score(prompt, SUPPORTED)
    (batched,) = generic.score_batch([prompt], [SUPPORTED])
    assert single.to_dict()["sentences"][0]["verdict"] == batched.sentences[0].verdict == "supported"
    assert np.isnan(single.tokens.kl).all() and np.isnan(batched.tokens.kl).all()
    assert 'class="token' not in single.to_html()
    assert 'class="token' in generic.score(prompt, SUPPORTED, signals=True).to_html()
    untrained = Monitor(generic.model, generic.tokenizer, config=generic.config)
    for report in (untrained.score(prompt, SUPPORTED), *untrained.score_batch([prompt], [SUPPORTED])):
        assert not np.isnan(report.tokens.kl).any()


def test_reports_and_pages_name_it(generic):
    prompt = generic.prompt(question=QUESTION, context=PASSAGES)
    report = generic.score(prompt, SUPPORTED)
    assert (report.monitor, report.to_dict()["monitor"]) == ("generic-bundled", "generic-bundled")
    assert "monitor: generic-bundled" in report.to_html()


def test_the_command_line_scores_any_model_with_it(generic, tmp_path):
    generic.model.save_pretrained(tmp_path / "model")
    generic.tokenizer.save_pretrained(tmp_path / "model")
    record = {"question": QUESTION, "context": PASSAGES, "response": f"{SUPPORTED} {UNRELATED}"}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    files = ["--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.jsonl")]
    assert main(["score", "--model", str(tmp_path / "model"), *files]) == 0
    scored = json.loads((tmp_path / "out.jsonl").read_text())["sentences"]
    assert [s["score"] for s in scored] == [s.score for s in scores_of(generic)]


def test_what_the_model_does_not_read_may_exceed_its_window(generic):
    longest = generic.model.config.max_position_embeddings
    prompt = generic.prompt(question=QUESTION, context=[*PASSAGES, "The river is wide. " * longest])
    supported, unrelated = generic.score(prompt, f"{SUPPORTED} {UNRELATED}").sentences
    assert supported.score > 0.5 > unrelated.score
    assert [r.sentences[0].score for r in generic.score_batch([prompt], [SUPPORTED])] == [supported.score]
    with pytest.raises(PromptError, match="window"):
        generic.score(prompt, SUPPORTED, signals=True)
