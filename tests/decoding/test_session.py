"""A session that backtracks and branches measures what one full forward pass over each row's ids measures."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from doubles import LAYERS, PASSAGES, QUESTION

from syncheck import SegmenterConfig
from syncheck.base.errors import NotReadyError, PromptError
from syncheck.decoding import SearchSession
from syncheck.decoding.observed import ObservedSession
from syncheck.prompts import build_prompt
from syncheck.signals import token_statistics

SENTENCES = [
    " He is a player.",
    " The farm in New South Wales lies far from any other farm.",
    " No.",
    " Was he signed in 2003?",
    " Scott grew up on a farm, and it was a large one!",
]
FILLER = 5


@pytest.fixture
def prompt(golden):
    return build_prompt(golden.tokenizer, question=QUESTION, context=PASSAGES)


@pytest.fixture
def session(golden, prompt):
    with SearchSession(golden.model, golden.tokenizer, prompt, layers=LAYERS, segmenter=SegmenterConfig()) as opened:
        yield opened


def encoded(golden, text):
    return golden.tokenizer(text, add_special_tokens=False)["input_ids"]


def write(golden, session, texts, *, ends=()):
    """Push one text to each row, in lockstep, each with the token behind it that closes the sentence."""
    columns = [[*encoded(golden, text), *encoded(golden, " The")] for text in texts]
    for row in ends:
        columns[row][-1] = golden.tokenizer.eos_token_id
    for step in range(max(map(len, columns))):
        if session.complete():
            break
        tokens = [column[step] if step < len(column) else FILLER for column in columns]
        session.push(torch.tensor(tokens), end_tokens=(golden.tokenizer.eos_token_id,))
    assert session.complete()


def after(golden, ids):
    """Logits of what follows these ids, by one pass without a cache."""
    with torch.no_grad():
        return golden.model(torch.tensor([list(ids)]), use_cache=False).logits[0, -1]


def whole(golden, prompt, ids):
    """Signals of every token and activations by layer, by one pass a prompt without a cache."""
    logits, states = [], None
    for prompt_ids in (prompt.with_context_ids, prompt.without_context_ids):
        with torch.no_grad():
            output = golden.model(torch.tensor([[*prompt_ids, *ids]]), use_cache=False, output_hidden_states=True)
        n = len(prompt_ids)
        logits.append(output.logits[0, n - 1 : n - 1 + len(ids)])
        if states is None:
            states = {k: output.hidden_states[k + 1][0, n:].numpy() for k in LAYERS}
    return token_statistics(*logits, torch.tensor(list(ids))), states


def assert_measured(golden, prompt, before, sentence):
    """``before``: the row's tokens before this sentence."""
    ids = [*before, *sentence.token_ids.tolist()]
    assert (sentence.span.token_start, sentence.span.token_end) == (len(before), len(ids))
    signals, states = whole(golden, prompt, ids)
    for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
        expected = getattr(signals, name).numpy()[len(before) :]
        np.testing.assert_allclose(getattr(sentence, name), expected, rtol=0, atol=1e-4, err_msg=name)
    for layer in LAYERS:
        np.testing.assert_allclose(sentence.activations[layer], states[layer][-1], rtol=0, atol=5e-4)


def assert_next(golden, prompt, session, responses):
    for logits, ids in zip(session.next_logits, responses, strict=True):
        torch.testing.assert_close(logits, after(golden, [*prompt.with_context_ids, *ids]), rtol=0, atol=1e-4)


def test_one_row_sentence_by_sentence(golden, prompt, session):
    before = []
    for text in SENTENCES:
        (left,) = session.rows
        rest = encoded(golden, text)[len(left.token_ids) - len(before) :]
        for token in [*rest, *encoded(golden, " The")]:
            session.push(torch.tensor([token]))
        ((sentence,),) = session.measure()
        assert sentence.text == text.strip() and sentence.span.index == SENTENCES.index(text)
        assert_measured(golden, prompt, before, sentence)
        before += sentence.token_ids.tolist()
        session.select([0])  # drops the first token of the next sentence
    assert_next(golden, prompt, session, [before])


def test_advance_keeps_the_tokens_decoded_since(golden, prompt, session):
    write(golden, session, SENTENCES[:1])
    ((first,),) = session.measure()
    session.advance()
    assert session.rows[0].closed == []
    for token in [*encoded(golden, SENTENCES[1].replace(" The", "", 1)), *encoded(golden, " The")]:
        session.push(torch.tensor([token]))
    ((second,),) = session.measure()
    assert second.text == SENTENCES[1].strip()
    assert_measured(golden, prompt, first.token_ids.tolist(), second)


def test_advance_keeps_what_was_measured_of_tokens_decoded_since(golden, prompt, session):
    """A quotation mark may still belong to the sentence before: the second token behind the full stop decides."""
    ids = encoded(golden, ' He is a player. "No one knows." The')
    before = []
    for token in ids:
        session.push(torch.tensor([token]))
        if session.complete():
            ((sentence,),) = session.measure()
            assert_measured(golden, prompt, before, sentence)
            before += sentence.token_ids.tolist()
            if sentence.span.index == 0:
                assert len(session.rows[0].token_ids) > len(before) + 1
            session.advance()
    assert session.rows[0].sentences == 2


@pytest.mark.parametrize("measured", [True, False])
def test_backtracking_is_never_having_gone_there(golden, prompt, session, measured):
    write(golden, session, [SENTENCES[0]])
    ((first,),) = session.measure()
    session.select([0])
    kept = first.token_ids.tolist()
    write(golden, session, [SENTENCES[1]])
    if measured:
        session.measure()
    session.select([0], keep_sentences=False)
    assert session.rows[0].token_ids == kept and session.rows[0].text == SENTENCES[0]
    assert_next(golden, prompt, session, [kept])
    write(golden, session, [SENTENCES[4]])
    ((other,),) = session.measure()
    assert (other.span.index, other.text) == (1, SENTENCES[4].strip())
    assert_measured(golden, prompt, kept, other)


def test_backtracking_many_rows_to_where_they_began(golden, prompt, session):
    session.select([0, 0])
    write(golden, session, SENTENCES[1:3])
    session.measure()
    session.select([1, 1, 0], keep_sentences=False)
    assert_next(golden, prompt, session, [[], [], []])


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_unequal_length(golden, prompt, session, seed):
    """Some rounds of branching: each row is measured as if it had been decoded alone."""
    chance = random.Random(seed)
    session.select([0] * 3)
    responses = [[], [], []]
    for _ in range(3):
        write(golden, session, [chance.choice(SENTENCES) for _ in session.rows])
        measured = session.measure()
        for before, (sentence,) in zip(responses, measured, strict=True):
            assert_measured(golden, prompt, before, sentence)
        responses = [[*ids, *sentence.token_ids.tolist()] for ids, (sentence,) in zip(responses, measured, strict=True)]
        rows = [chance.randrange(len(responses)) for _ in range(chance.randint(2, 4))]
        session.select(rows)
        responses = [responses[row] for row in rows]
        assert [row.token_ids for row in session.rows] == responses
        assert_next(golden, prompt, session, responses)


def test_rows_that_end_beside_rows_that_go_on(golden, prompt, session):
    end = golden.tokenizer.eos_token_id
    session.select([0, 0, 0])
    write(golden, session, [SENTENCES[0], SENTENCES[1], ""], ends=[0, 2])
    assert [row.ended for row in session.rows] == [True, False, True]
    assert [row.end_token for row in session.rows] == [end, None, end]
    (ended,), (open_,), nothing = session.measure()
    assert nothing == []
    assert_measured(golden, prompt, [], ended)
    assert_measured(golden, prompt, [], open_)
    session.select([1, 0])
    assert [(row.ended, row.end_token) for row in session.rows] == [(False, None), (True, end)]
    assert_next(golden, prompt, session, [open_.token_ids.tolist(), ended.token_ids.tolist()])


def test_sequences_are_prompt_and_response(golden, prompt, session):
    ids = list(prompt.with_context_ids)
    assert session.sequences().tolist() == [ids]
    session.select([0, 0])
    write(golden, session, SENTENCES[1:3])
    (long,), (short,) = session.measure()
    session.select([0, 1])
    gap = len(long.token_ids) - len(short.token_ids)
    assert session.sequences().tolist() == [[*ids, *long.token_ids], [*[ids[0]] * gap, *ids, *short.token_ids]]


def test_the_text_of_a_token_is_returned(golden, session):
    texts = [session.push(torch.tensor([token])) for token in encoded(golden, " Zoë is 3.")]
    assert "".join(text for (text,) in texts) == " Zoë is 3."


def test_nothing_to_measure(session):
    session.push(torch.tensor([FILLER]))
    assert session.measure() == [[]]


def test_without_a_context_there_is_no_second_branch(golden):
    prompt = build_prompt(golden.tokenizer, question=QUESTION, context=[])
    with SearchSession(golden.model, golden.tokenizer, prompt, segmenter=SegmenterConfig()) as session:
        write(golden, session, [SENTENCES[0]])
        ((sentence,),) = session.measure()
        session.select([0, 0])
        assert_next(golden, prompt, session, [sentence.token_ids.tolist()] * 2)
    assert np.isnan(sentence.kl).all() and np.isnan(sentence.log_prob_without_context).all()
    assert sentence.activations == {}


class TestErrors:
    @pytest.mark.parametrize("step", ["measure", "push"])
    def test_a_measured_round_is_over(self, golden, session, step):
        write(golden, session, [SENTENCES[0]])
        session.measure()
        with pytest.raises(NotReadyError, match="measured"):
            session.measure() if step == "measure" else session.push(torch.tensor([FILLER]))
        session.advance()
        session.push(torch.tensor([FILLER]))

    def test_a_narrowed_round_ends_by_select(self, golden, session):
        session.select([0, 0])
        session.push(torch.tensor([FILLER] * 2), one_sentence=True)
        for refused in (session.advance, lambda: session.push(torch.tensor([FILLER] * 2))):
            with pytest.raises(NotReadyError, match="left"):
                refused()
        session.select([1])
        assert session.rows[0].token_ids == []

    def test_an_observed_session_feeds_nothing_itself(self, golden, prompt):
        with ObservedSession(golden.model, golden.tokenizer, prompt, segmenter=SegmenterConfig()) as own:
            own.observe(after(golden, prompt.with_context_ids)[None, None], [])
            own.push(torch.tensor([FILLER]))
            with pytest.raises(NotReadyError, match="fed"):
                own.push(torch.tensor([FILLER]))
            own.observe(after(golden, [*prompt.with_context_ids, FILLER])[None, None], [])
            own.push(torch.tensor([FILLER]))

    @pytest.mark.parametrize("step", ["select", "advance"])
    def test_going_on_behind_sentences_that_were_not_measured(self, golden, session, step):
        write(golden, session, [SENTENCES[0]])
        with pytest.raises(NotReadyError, match=r"measure\(\)"):
            session.select([0]) if step == "select" else session.advance()


class TestWindow:
    def test_room(self, prompt, session):
        n = len(prompt.with_context_ids)
        assert session.room == 2048 - n
        session.push(torch.tensor([FILLER]))
        assert session.room == 2048 - n - 1
        assert session.next_logits.shape == (1, 900)
        assert session.room == 2048 - n - 1

    def test_positions_without_an_end(self, golden, prompt, monkeypatch):
        monkeypatch.setattr(type(golden.model.config), "get_text_config", lambda config: SimpleNamespace())
        session = SearchSession(golden.model, golden.tokenizer, prompt, segmenter=SegmenterConfig())
        assert session.room is None

    def test_the_last_token_that_fits_is_measured(self, golden, prompt, monkeypatch):
        ids = encoded(golden, SENTENCES[0])
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", len(prompt.with_context_ids) + len(ids))
        with SearchSession(
            golden.model, golden.tokenizer, prompt, layers=LAYERS, segmenter=SegmenterConfig()
        ) as session:
            for token in ids:
                session.push(torch.tensor([token]))
            assert session.room == 0
            session.rows[0].end()
            ((sentence,),) = session.measure()
        assert_measured(golden, prompt, [], sentence)

    def test_a_prompt_that_fills_the_window(self, golden, prompt, monkeypatch):
        n = len(prompt.with_context_ids)
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", n)
        with pytest.raises(PromptError, match="window"):
            SearchSession(golden.model, golden.tokenizer, prompt, segmenter=SegmenterConfig())
