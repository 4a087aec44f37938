"""The bundled kit: sizes, cards, and the laws on the bundled model."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from fod import FODGenerator
from syncheck import SentenceEvent
from syncheck.base.errors import InputError
from syncheck.kit import demo_questions, load_kit
from syncheck.kit_model import kit_language_model

ASSETS = Path(str(files("syncheck") / "assets"))
MEGABYTE = 1e6


@pytest.fixture(scope="module")
def monitor():
    return load_kit("generation")


@pytest.fixture(scope="module")
def prompts(monitor):
    return [monitor.prompt(question=q.question, context=q.passages) for q in demo_questions()]


def size(folder):
    return sum(f.stat().st_size for f in (ASSETS / folder).rglob("*") if f.is_file())


def test_sizes_are_within_the_limits():
    model, _ = kit_language_model()
    assert model.num_parameters() <= 16e6
    assert size("aligner") <= 25 * MEGABYTE
    assert size("reader") <= 22 * MEGABYTE
    rest = [f.name for f in ASSETS.iterdir() if f.is_dir() and f.name not in ("aligner", "language_model", "reader")]
    assert sum(map(size, rest)) <= 3 * MEGABYTE


def test_a_monitor_knows_what_it_was_trained_on_by_content():
    """Two digests for each of 400 questions; a few questions have one in common."""
    digests = json.loads((ASSETS / "monitor-generation" / "config.json").read_text())["trained_on"]
    assert all(digest.startswith("sha256:") for digest in digests)
    assert 798 <= len(digests) <= 800


@pytest.mark.parametrize("part", [f.name for f in ASSETS.iterdir() if f.is_dir()])
def test_every_part_has_a_short_card(part):
    card = (ASSETS / part / "README.md").read_text(encoding="utf-8")
    assert len(card) > 300 and len(card.splitlines()) <= 90


def test_nothing_in_the_kit_is_a_pickle():
    kinds = {f.suffix for f in ASSETS.rglob("*") if f.is_file()}
    assert kinds <= {".json", ".md", ".safetensors", ".txt"}


def test_unknown_purpose_is_refused():
    with pytest.raises(InputError, match="generation"):
        load_kit("other")  # type: ignore[arg-type]


def test_answers_depend_on_the_question_and_on_the_passages(monitor, prompts):
    answers = [monitor.generate(p, max_new_tokens=40, do_sample=False).response for p in prompts]
    assert len(set(answers)) == len(answers)
    first, second = demo_questions()[:2]
    swapped = monitor.prompt(question=first.question, context=second.passages)
    assert monitor.generate(swapped, max_new_tokens=40, do_sample=False).response != answers[0]


def test_live_is_attached_is_replay(monitor, prompts):
    prompt = prompts[1]
    live = monitor.generate(prompt, max_new_tokens=80, do_sample=False)
    with monitor.attach(prompt) as watch:
        out = monitor.model.generate(
            **prompt.inputs(), logits_processor=watch.processors, max_new_tokens=80, do_sample=False
        )
    attached = watch.report(out)
    replayed = monitor.score(prompt, response_token_ids=live.tokens.token_ids.tolist())
    for other in (attached, replayed):
        assert other.response == live.response
        assert [(s.start, s.end, s.token_start, s.token_end) for s in other.sentences] == [
            (s.start, s.end, s.token_start, s.token_end) for s in live.sentences
        ]
        for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
            np.testing.assert_allclose(getattr(other.tokens, name), getattr(live.tokens, name), atol=1e-4)
        for mine, theirs in zip(live.sentences, other.sentences, strict=True):
            np.testing.assert_allclose(mine.score, theirs.score, atol=1e-3)


def test_stream_gives_the_scores_of_generate(monitor, prompts):
    report = monitor.generate(prompts[0], max_new_tokens=60, do_sample=False)
    events = list(monitor.stream(prompts[0], max_new_tokens=60, do_sample=False))
    streamed = [e.sentence for e in events if isinstance(e, SentenceEvent)]
    assert [(s.text, s.score) for s in streamed] == [(s.text, s.score) for s in report.sentences]


def test_fod_releases_nothing_below_the_thresholds(monitor, prompts):
    generator = FODGenerator(monitor.model, monitor.tokenizer, monitor)
    floor = min(generator.thresholds.backtrack, generator.thresholds.prune)
    for prompt in prompts[:3]:
        output = generator.generate(prompt, max_new_tokens=80, return_dict_in_generate=True)
        scores = [s.score for s in output.report.sentences if s.status == "scored"]
        assert all(score >= floor for score in scores)
        again = generator.generate(prompt, max_new_tokens=80)
        assert again.tolist() == output.sequences.tolist()


def test_the_generic_monitor_tells_support_from_invention():
    generic = load_kit("generic")
    question = demo_questions()[0]
    passage = max(question.passages, key=len)
    supported = passage.split(". ")[0] + "."
    invented = "The Emperor Otto bought 4711 elephants in Antwerp."
    good, bad = (
        generic.check(answer, question=question.question, passages=question.passages).sentences[0]
        for answer in (supported, invented)
    )
    assert good.score > bad.score
    assert good.evidence.text in passage
