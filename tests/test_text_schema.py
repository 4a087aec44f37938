"""Schema ``syncheck.v5`` from a text to its scores: text, passages and aligner decide, and the model is left alone."""

import json
from dataclasses import replace
from math import log, nan

import numpy as np
import pytest
from doubles import FormulaAggregator

from syncheck import Monitor, MonitorConfig, Verifier, load_aligner
from syncheck.aggregators import Aggregator
from syncheck.base.errors import InputError, MismatchError
from syncheck.features.schemas import feature_schema
from syncheck.features.sentence import text_features
from syncheck.reading import EvidenceIndex
from syncheck.reading.evidence import BEST_CHUNKS, ContextChunks
from syncheck.results.types import Contrast, Evidence, Support
from syncheck.testing import ScriptedAligner, scripted_monitor
from syncheck.text.words import ContextLexicon, packaged_rarity

SCHEMA = feature_schema("syncheck.v5", ())
PASSAGES = ["The Avon bridge opened in 1967. It has two lanes.", "Tom Smith designed the bridge."]
SENTENCES = ["The bridge opened in 1976.", "It has two lanes.", "Anna Bell designed it."]
ANSWER = " ".join(SENTENCES)
SUPPORTS = dict(zip(SENTENCES, (0.25, 0.875, 0.125), strict=True))
QUESTION = "When did the bridge open?"


class WithLogOdds(ScriptedAligner):
    """Has log-odds of its own, which its scores are not those of."""

    def align(self, passages, claims):
        return [
            Support(s.score, Evidence(0, passages[0], s.score), log_odds=10 * s.score, contradicted=0.5)
            for s in super().align(passages, claims)
        ]


def monotone():
    """Trained on rows in which every feature goes with the label in its direction, but for some that are missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = rng.normal(size=(120, len(SCHEMA.names))) + np.outer(2 * y - 1, SCHEMA.directions)
    X[rng.random(X.shape) < 0.1] = np.nan
    return Aggregator.fit(X, y, schema=SCHEMA, kind="monotone")


def made(aligner, aggregator):
    double = scripted_monitor(ANSWER)
    return Monitor(
        double.model,
        double.tokenizer,
        config=MonitorConfig(schema="syncheck.v5"),
        aligner=aligner,
        aggregator=aggregator,
    )


@pytest.fixture
def monitor():
    return made(ScriptedAligner(SUPPORTS), monotone())


@pytest.fixture
def prompt(monitor):
    return monitor.prompt(question=QUESTION, context=PASSAGES)


@pytest.fixture
def passes(monitor):
    """One entry for each forward pass of the model."""
    found = []
    monitor.model.register_forward_pre_hook(lambda *_: found.append(1))
    return found


def expected_features(sentence, logit):
    index = EvidenceIndex(PASSAGES)
    found = text_features(
        sentence,
        logit=logit,
        chunks=ContextChunks.from_texts([chunk.text for chunk in index.chunks]),
        best=index.best(sentence, BEST_CHUNKS),
        lexicon=ContextLexicon.from_passages(PASSAGES),
        rarity=packaged_rarity(),
    )
    return pytest.approx(found, rel=1e-12, nan_ok=True)


def measured_features(sentence):
    return {name: nan if value is None else value for name, value in sentence.features.items()}


def comparable(report):
    """Return the sentences without what a clock decides, and without their tokens, which only a model has."""
    left_out = dict.fromkeys(("latency_ms", "token_start", "token_end"))
    return [sentence | left_out for sentence in report.to_dict()["sentences"]]


def test_the_features_are_those_of_the_text(monitor, prompt):
    for sentence, text in zip(monitor.score(prompt, ANSWER).sentences, SENTENCES, strict=True):
        logit = log(SUPPORTS[text] / (1 - SUPPORTS[text]))
        assert measured_features(sentence) == expected_features(text, logit)
        assert tuple(sentence.features) == SCHEMA.names


def test_an_aligners_own_log_odds_are_preferred_to_those_of_its_score(prompt):
    report = made(WithLogOdds(SUPPORTS), monotone()).score(prompt, ANSWER)
    assert [s.features["align_logit"] for s in report.sentences] == [2.5, 8.75, 1.25]


def test_scoring_asks_no_language_model_unless_told_to(monitor, prompt, passes):
    without = monitor.score(prompt, ANSWER)
    assert passes == [] and {s.status for s in without.sentences} == {"scored"}
    with_signals = monitor.score(prompt, ANSWER, signals=True)
    assert passes != []
    assert comparable(without) == comparable(with_signals)
    assert (len(without.tokens), len(with_signals.tokens)) == (0, 16)
    assert {(s.token_start, s.token_end) for s in without.sentences} == {(None, None)}
    assert [(s.token_start, s.token_end) for s in with_signals.sentences] == [(0, 6), (6, 11), (11, 16)]


def test_a_contradiction_scores_below_what_the_passages_say(monitor, prompt):
    wrong_year, right, wrong_name = (sentence.score for sentence in monitor.score(prompt, ANSWER).sentences)
    assert max(wrong_year, wrong_name) < right


def test_tokens_have_signals_if_they_are_asked_for(monitor, prompt):
    names = ("log_prob", "log_prob_without_context", "entropy", "kl")
    without, measured = (
        json.loads(monitor.score(prompt, ANSWER, signals=wanted).to_json())["tokens"] for wanted in (False, True)
    )
    assert (len(without), len(measured)) == (0, 16)
    assert not any(token[name] is None for token in measured for name in names)


def test_batched_is_single(monitor, passes):
    prompts = [
        monitor.prompt(question=QUESTION, context=context) for context in (PASSAGES, PASSAGES[:1], PASSAGES[1:], [])
    ]
    answers = [ANSWER, SENTENCES[0], " ".join(SENTENCES[::-1]), ANSWER]
    batched = monitor.score_batch(prompts, answers, batch_size=3)
    single = [monitor.score(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
    assert passes == []
    assert [comparable(report) for report in batched] == [comparable(report) for report in single]
    assert {sentence.status for sentence in batched[3].sentences} == {"no_context"}


def test_generated_answers_score_as_given_ones(monitor, prompt):
    generated = monitor.generate(prompt, max_new_tokens=20)
    assert generated.response == ANSWER
    assert comparable(generated) == comparable(monitor.score(prompt, ANSWER))


def test_saved_is_loaded(monitor, prompt, passes, tmp_path):
    monitor.save_pretrained(tmp_path)
    parts = {"model": monitor.model, "tokenizer": monitor.tokenizer}
    loaded = Monitor.from_pretrained(tmp_path, **parts, aligner=ScriptedAligner(SUPPORTS))
    assert (loaded.schema, loaded.aggregator.kind) == (SCHEMA, "monotone")
    assert comparable(loaded.score(prompt, ANSWER)) == comparable(monitor.score(prompt, ANSWER))
    assert passes == []


def test_an_aggregator_of_another_schema_is_refused():
    other = Aggregator.from_signal("align_score", schema=feature_schema("paper-no-lid.v1", ()))
    with pytest.raises(MismatchError):
        made(ScriptedAligner(SUPPORTS), other)


def test_without_an_aggregator_the_signals_are_what_is_asked_for(prompt):
    report = made(ScriptedAligner(SUPPORTS), None).score(prompt, ANSWER)
    assert {sentence.status for sentence in report.sentences} == {"no_aggregator"}
    assert not np.isnan(report.tokens.log_prob).any()


def test_an_aligner_alone_gives_its_support_as_the_score(prompt, passes, tmp_path):
    parts = {name: getattr(scripted_monitor(ANSWER), name) for name in ("model", "tokenizer")}
    monitor = Monitor(**parts, aligner=ScriptedAligner(SUPPORTS))
    report = monitor.score(prompt, ANSWER)
    assert {sentence.text: sentence.score for sentence in report.sentences} == SUPPORTS
    assert (monitor.config.backtrack_threshold, monitor.config.prune_threshold) == (0.5, 0.5)
    monitor.save_pretrained(tmp_path)
    loaded = Monitor.from_pretrained(tmp_path, **parts, aligner=ScriptedAligner(SUPPORTS))
    assert comparable(loaded.score(prompt, ANSWER)) == comparable(report)
    assert passes == []
    with pytest.raises(InputError, match="share"):
        monitor.with_prior(0.9)


def test_without_an_aligner_its_feature_alone_is_missing(prompt):
    report = made(None, monotone()).score(prompt, ANSWER)
    for sentence, text in zip(report.sentences, SENTENCES, strict=True):
        assert measured_features(sentence) == expected_features(text, None)


@pytest.mark.parametrize(
    ("prune", "backtrack", "against", "verdict"),
    [
        (0.9, 0.1, None, "doubtful"),
        (0.5, 0.1, None, "supported"),
        (0.5, 0.5, None, "supported"),
        (0.9, 0.6, None, "unsupported"),
        (0.9, 0.6, 0.75, "unsupported"),
        (0.9, 0.6, 0.85, "contradicted"),
        (0.1, 0.9, None, "doubtful"),
    ],
)
def test_a_verdict_is_by_the_thresholds_and_what_the_aligner_says_against_it(prune, backtrack, against, verdict):
    class Against(ScriptedAligner):
        def align(self, passages, claims):
            return [Support(s.score, s.evidence, contradicted=against) for s in super().align(passages, claims)]

    monitor = made(Against(SUPPORTS), FormulaAggregator(SCHEMA, lambda values: 0.5))
    monitor.config = replace(monitor.config, prune_threshold=prune, backtrack_threshold=backtrack)
    report = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), SENTENCES[1])
    assert [(s.score, s.verdict) for s in report.sentences] == [(0.5, verdict)]


@pytest.mark.parametrize(("score", "verdict"), [(0.9, "supported"), (0.65, "doubtful"), (0.5, "contradicted")])
def test_a_contrast_contradicts_a_sentence_below_the_threshold(score, verdict):
    monitor = made(ScriptedAligner(SUPPORTS), FormulaAggregator(SCHEMA, lambda values: score))
    monitor.config = replace(monitor.config, prune_threshold=0.8, backtrack_threshold=0.6)
    (sentence,) = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), SENTENCES[0]).sentences
    assert sentence.verdict == verdict
    assert sentence.contrasts == (Contrast("number", "1976", "1967", 0),)


@pytest.mark.parametrize(("text", "verdict"), [("It has two lanes.", "contradicted"), ("Cheese!", "unsupported")])
def test_what_no_passage_touches_is_not_contradicted_by_the_aligner(text, verdict):
    class Against(ScriptedAligner):
        def align(self, passages, claims):
            return [Support(s.score, s.evidence, contradicted=0.9) for s in super().align(passages, claims)]

    monitor = made(Against({text: 0.1}), FormulaAggregator(SCHEMA, lambda values: 0.1))
    (sentence,) = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), text).sentences
    assert sentence.verdict == verdict


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Yes.", "not_checkable"),
        ("No, ok!", "not_checkable"),
        ("No, 5.", "scored"),
        ("Here is a summary:", "not_a_claim"),
        ("Sure, I can help with that!", "not_a_claim"),
        ("I hope this helps!", "not_a_claim"),
        ("Hope this helps :)", "not_a_claim"),
        ("Let me know if you need more.", "not_a_claim"),
        ("Here are the lanes of the bridge:", "not_a_claim"),
        ("Here is a summary: the moon is cheese.", "scored"),
        ("Sure, the moon is cheese.", "scored"),
        ("Let me know if it is 5.", "scored"),
        ("If you have any further questions or doubts, please let me know!", "not_a_claim"),
        ("If you have any questions, Tom answers them on Mars.", "scored"),
        ("Feel free to ask Tom on Mars.", "scored"),
        ("## Overview", "not_a_claim"),
        ("## **Key takeaways:**", "not_a_claim"),
        ("**Key takeaways**", "not_a_claim"),
        ("__Key takeaways__:", "not_a_claim"),
        ("Side effects:", "not_a_claim"),
        ("## Side effects", "not_a_claim"),
        ("**Summary**", "not_a_claim"),
        ("## Pros and cons", "not_a_claim"),
        ("**Albert Einstein**", "scored"),
        ("**Take forty tablets daily**", "scored"),
        ("## Ibuprofen cures cancer", "scored"),
        ("Ibuprofen cures cancer:", "scored"),
        ("**Treatment causes the symptoms**", "scored"),
        ("**Treatment useful**", "scored"),
        ("**After treatment**", "scored"),
        ("**Forty tips**", "scored"),
        ("Here is Einstein curing cancer with ibuprofen:", "scored"),
        ("Let me know if ibuprofen cures cancer.", "scored"),
        ("I can help cure cancer.", "scored"),
        ("I hope this answers why ibuprofen cures cancer.", "scored"),
        ("## Lanes and traffic", "not_a_claim"),
        ("## The moon is cheese", "scored"),
        ("**No refunds**", "scored"),
        ("## Made in 5 days", "scored"),
        ("**Made on Mars** by Tom", "scored"),
        ("## Six words of a heading here", "scored"),
        ("Made on Mars by Tom:", "scored"),
        ("(Source: passage 2)", "not_a_claim"),
        ("**Sources:** [1], [3]", "not_a_claim"),
        ("Source: the moon.", "scored"),
        ("Source: 5 moons", "scored"),
    ],
)
def test_a_bare_answer_phrase_or_heading_has_no_score_from_text_alone(text, status):
    monitor = made(ScriptedAligner({text: 0.1}), FormulaAggregator(SCHEMA, lambda values: 0.1))
    (sentence,) = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), text).sentences
    assert sentence.status == status


def test_what_claims_nothing_has_no_evidence():
    answer = "The Avon bridge opened in 1967. I hope this helps!"
    aligner = load_aligner("bundled")
    claim, phrase = Verifier(aligner=aligner).check(answer, question=QUESTION, passages=PASSAGES).sentences
    assert claim.evidence is not None and (phrase.status, phrase.evidence) == ("not_a_claim", None)


def test_a_table_of_an_answer_is_scored_row_by_row_against_that_of_a_passage_and_streams_alike():
    table = "| Plan | Price |\n|---|---|\n| Basic | 2 EUR |\n| Pro | 9 EUR |"
    answer = f"Here are the plans:\n\n{table}\n\n" + '{"opened": "1967", "lanes": {"in all": 2}}\n\nlanes lanes lanes'
    asked = {"question": QUESTION, "passages": [*PASSAGES, table]}
    verifier = Verifier(aligner=load_aligner("bundled"))
    report = verifier.check(answer, **asked)
    scored = [sentence.text for sentence in report.sentences if sentence.status == "scored"]
    assert scored == ["| Basic | 2 EUR |", "| Pro | 9 EUR |", '{"opened": "1967",', '"in all": 2}}']
    assert all(answer[sentence.start : sentence.end] == sentence.text for sentence in report.sentences)
    assert report.sentences[3].evidence.text == "| Basic | 2 EUR |" and report.sentences[-1].status == "degenerate"
    with verifier.watch_text(**asked) as watch:
        for at in range(0, len(answer), 3):
            watch.feed(answer[at : at + 3])
        watch.close()
    assert [replace(s, latency_ms=None) for s in watch.report.sentences] == list(report.sentences)
