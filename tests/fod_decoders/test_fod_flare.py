"""FLARE: an unlikely token makes the sentence be written anew under the passages retrieved for it."""

import numpy as np
import pytest
from doubles import PASSAGES, QUESTION
from test_fod_generator import decoder, grammar, response_of

from fod import FLAREGenerator
from syncheck import prompt_from_texts
from syncheck.base.errors import InputError, WrongTypeError

FOUND = ["He plays for the Brumbies, far from the farm.", PASSAGES[1]]


def run(monitor, prompt, retriever, threshold, **options):
    generator = FLAREGenerator(
        monitor.model, monitor.tokenizer, monitor, retriever=retriever, threshold=threshold, **options
    )
    return generator.generate(
        prompt, max_new_tokens=60, logits_processor=grammar(monitor, prompt), return_dict_in_generate=True
    )


def test_nothing_unlikely_is_greedy(monitor, prompt):
    asked = []
    out = run(monitor, prompt, asked.append, 0.0)
    greedy = decoder(monitor, 0.0).generate(
        prompt, max_new_tokens=60, logits_processor=grammar(monitor, prompt), return_dict_in_generate=True
    )
    assert asked == [] and out.retrievals == () and out.sequences.tolist() == greedy.sequences.tolist()
    assert [s.text for s in out.report.sentences] == [s.text for s in greedy.report.sentences]


def test_the_sentence_is_asked_for_and_written_anew(monitor, prompt):
    asked = []

    def retriever(query):
        asked.append(query)
        return FOUND

    threshold = 1.0  # a random model is never certain
    out = run(monitor, prompt, retriever, threshold, max_retrievals=1)
    (query,) = asked
    greedy = monitor.generate(prompt, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, prompt))
    assert query.question == QUESTION and query.written == ""
    assert query.sentence.text == greedy.sentences[0].text
    assert "".join(text for text, _ in query.tokens).strip() == query.sentence.text
    np.testing.assert_allclose(
        [p for _, p in query.tokens], np.exp(greedy.tokens.log_prob[: len(query.tokens)]), rtol=1e-3
    )
    assert query.text == ""  # no token is likely enough to ask with
    assert out.dropped == (query.sentence,) and out.retrievals[0].passages == tuple(FOUND)
    assert out.sampled_tokens >= len(query.tokens) + len(out.report.tokens)  # what was thrown away counts
    other = monitor.prompt(question=QUESTION, context=FOUND)
    anew = monitor.generate(other, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, other))
    assert out.report.response == anew.response
    assert response_of(prompt, out.sequences)[: len(anew.tokens)] == anew.tokens.token_ids.tolist()
    np.testing.assert_allclose(out.report.tokens.kl, anew.tokens.kl, rtol=0, atol=1e-4)
    assert out.report.prompt.passages == (*PASSAGES, FOUND[0])


def test_later_sentences_go_on_behind_what_was_written(monitor, prompt):
    """Each sentence is what the monitor makes of it under the prompt that it was written under."""
    asked = []

    def retriever(query):
        asked.append(query)
        return FOUND if len(asked) % 2 else list(PASSAGES)

    out = run(monitor, prompt, retriever, 1.0, max_retrievals=3)
    report = out.report
    assert len(asked) == len(out.retrievals) == 3 and len(report.sentences) >= 3
    assert asked[1].written.strip() == report.sentences[0].text
    # the sentences partition the tokens and lie where they say
    assert [s.token_start for s in report.sentences] == [0, *(s.token_end for s in report.sentences[:-1])]
    assert report.sentences[-1].token_end == len(report.tokens)
    for sentence in report.sentences:
        assert report.response[sentence.start : sentence.end] == sentence.text
        evidence = sentence.evidence
        assert report.prompt.passages[evidence.passage] == evidence.text
        assert all(found.evidence in report.prompt.passages[found.passage] for found in sentence.contrasts)
    assert [report.response[a:b] for a, b in report.tokens.char_spans.tolist()]
    # the second sentence was written under the second retrieval's passages
    second = monitor.prompt(question=QUESTION, context=list(PASSAGES))
    ids = report.tokens.token_ids.tolist()
    again = monitor.score(second, response_token_ids=ids[: report.sentences[1].token_end])
    where = slice(report.sentences[1].token_start, report.sentences[1].token_end)
    np.testing.assert_allclose(report.tokens.log_prob[where], again.tokens.log_prob[where], rtol=0, atol=1e-4)


def test_the_query_leaves_out_what_is_unlikely(monitor, prompt):
    greedy = monitor.generate(prompt, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, prompt))
    probabilities = np.exp(greedy.tokens.log_prob[: greedy.sentences[0].token_end])
    threshold = float(np.median(probabilities)) + 1e-9
    asked = []
    run(monitor, prompt, lambda query: asked.append(query) or [], threshold)
    query = asked[0]
    assert query.text == "".join(t for t, p in query.tokens if p >= threshold).strip()
    assert query.text and query.text != query.sentence.text


def test_a_token_as_likely_as_the_threshold_is_likely_enough(monitor, prompt):
    def asked_at(threshold):
        asked = []
        run(monitor, prompt, lambda query: asked.append(query) or [], threshold)
        return asked

    every = asked_at(1.0)
    lowest = min(probability for query in every for _, probability in query.tokens)
    assert asked_at(lowest) == [] and asked_at(np.nextafter(lowest, 1)) != []
    tokens = every[0].tokens
    middle = sorted(probability for _, probability in tokens)[len(tokens) // 2]
    assert asked_at(middle)[0].text == "".join(text for text, p in tokens if p >= middle).strip()


def test_a_retriever_that_finds_nothing_lets_it_stand(monitor, prompt):
    out = run(monitor, prompt, lambda query: [" "], 1.0)
    greedy = monitor.generate(prompt, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, prompt))
    assert out.report.response == greedy.response and out.retrievals == ()


def test_the_limit_holds_over_all_prompts(monitor, prompt):
    generator = FLAREGenerator(monitor.model, monitor.tokenizer, monitor, retriever=lambda query: FOUND, threshold=1.0)
    for limit in range(1, 16, 3):
        ids = generator.generate(prompt, max_new_tokens=limit, logits_processor=grammar(monitor, prompt))
        assert 0 < len(response_of(prompt, ids)) <= limit


CHAT = (
    "{% for m in messages %}{{ '[' ~ m['role'] ~ '] ' ~ m['content'] | trim ~ ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}[model] {% endif %}"
)


@pytest.mark.parametrize("template", [None, CHAT])
def test_the_system_prompt_stays(monitor, template, monkeypatch):
    monkeypatch.setattr(monitor.tokenizer, "chat_template", template)
    system = "He plays rugby. Be brief."
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES, system=system)
    out = run(monitor, prompt, lambda query: FOUND, 1.0, max_retrievals=1)
    other = monitor.prompt(question=QUESTION, context=FOUND, system=system)
    anew = monitor.generate(other, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, other))
    assert out.report.response == anew.response and len(out.retrievals) == 1
    # the random model reads the system prompt, so that the signals without it are others
    np.testing.assert_allclose(out.report.tokens.log_prob, anew.tokens.log_prob, rtol=0, atol=1e-4)
    bare = monitor.score(
        monitor.prompt(question=QUESTION, context=FOUND), response_token_ids=anew.tokens.token_ids.tolist()
    )
    assert np.abs(bare.tokens.log_prob - anew.tokens.log_prob).max() > 1e-3


class TestOwnPrompts:
    @staticmethod
    def own(monitor, question, passages):
        texts = {"with_context": f"Read: {' '.join(passages)} {question} So:", "without_context": f"{question} So:"}
        return prompt_from_texts(monitor.tokenizer, question=question, context=passages, **texts)

    @pytest.mark.parametrize("template", [None, CHAT, "{{ raise_exception('no system') if messages|length > 1 }}x"])
    def test_are_refused_before_anything_is_decoded(self, monitor, template, monkeypatch):
        monkeypatch.setattr(monitor.tokenizer, "chat_template", template)
        monkeypatch.setattr(monitor, "session", None)
        with pytest.raises(InputError, match="its own texts"):
            run(monitor, self.own(monitor, QUESTION, PASSAGES), lambda query: FOUND, 0.0)


@pytest.mark.parametrize("found", ["a passage", [3]])
def test_a_retriever_must_return_passages(monitor, prompt, found):
    with pytest.raises(WrongTypeError, match="retriever"):
        run(monitor, prompt, lambda query: found, 1.0)


def test_errors(monitor):
    models = (monitor.model, monitor.tokenizer, monitor)
    with pytest.raises(InputError, match="threshold"):
        FLAREGenerator(*models, retriever=list, threshold=1.5)
    with pytest.raises(InputError, match="max_retrievals"):
        FLAREGenerator(*models, retriever=list, threshold=0.5, max_retrievals=0)


@pytest.mark.parametrize(
    "found", [None, "a passage", [5], iter(FOUND)], ids=["none", "a string", "numbers", "an iterator"]
)
def test_a_retriever_that_returns_no_list_of_passages_is_refused(monitor, prompt, found):
    with pytest.raises(WrongTypeError, match="must return a list of strings.*found"):
        run(monitor, prompt, lambda query: found, 1.0)


def test_passages_in_place_of_a_retriever_are_refused(monitor, prompt):
    with pytest.raises(WrongTypeError, match="must be a function of a FLAREQuery.*found list"):
        run(monitor, prompt, FOUND, 1.0)
