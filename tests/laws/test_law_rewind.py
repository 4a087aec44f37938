"""Rewind and go on = never having gone there, for every family; the session is driven as a search drives it."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
import torch
from first_principles import NATS, SIGNALS, assert_signals, assert_states, from_scratch, one_pass
from watched import RecordingMonitor, RecordingScorer

from fod import BranchProposer, RepairConfig, Thresholds, repair
from fod.search import drain
from syncheck import MonitorConfig, SegmenterConfig
from syncheck.base.errors import InputError
from syncheck.decoding import prepare_generation

SENTENCES = [" He is a player.", " The farm was sold.", " Did he?", " Did he play?"]
"""Of 6, 8, 4 and 5 tokens."""
NEXT = " The"
"""Begins the next sentence, which closes the one before."""
FILLER = 5
"""Pushed to rows whose sentence is complete."""


class Search:
    """A session, and what each of its rows ought to hold."""

    def __init__(self, family, prompt, session):
        self.family, self.prompt, self.session = family, prompt, session
        self.responses = [[]]

    def write(self, texts, *, ends=()):
        """Push one text to each row, in lockstep, with what closes it; rows in ``ends`` end their text instead."""
        end = self.family.tokenizer.eos_token_id
        columns = [self.family.encode(text) + self.family.encode(NEXT) for text in texts]
        for row in ends:
            columns[row][-1] = end
        for step in range(max(map(len, columns))):
            if self.session.complete():
                break
            tokens = [column[step] if step < len(column) else FILLER for column in columns]
            self.session.push(torch.tensor(tokens), end_tokens=(end,))
        assert self.session.complete()

    def measure(self):
        """Measure one sentence a row, each as one pass over the whole row measures it."""
        for row, (sentence,) in enumerate(self.session.measure()):
            ids = [*self.responses[row], *sentence.token_ids.tolist()]
            expected = from_scratch(self.family, self.prompt, ids)
            assert_signals(sentence, expected, start=sentence.span.token_start)
            assert_states(sentence, len(ids) - 1, expected)
            self.responses[row] = ids

    def select(self, rows, *, keep_sentences=True):
        """Go on with these rows; what comes next is as if each had been written alone."""
        self.session.select(rows, keep_sentences=keep_sentences)
        self.responses = [list(self.responses[row]) for row in rows]
        assert [row.token_ids for row in self.session.rows] == self.responses
        for logits, ids in zip(self.session.next_logits, self.responses, strict=True):
            wanted, _ = one_pass(self.family, self.prompt.with_context_ids, tuple(ids))
            torch.testing.assert_close(logits, wanted[-1], rtol=0, atol=NATS)


@pytest.fixture
def search(any_family, prompt):
    with RecordingMonitor.of(any_family).session(prompt) as watched:
        yield Search(any_family, prompt, watched.decoding)


def test_a_sentence_taken_back(search):
    """Once before and once after it was measured."""
    search.write(SENTENCES[:1])
    search.measure()
    search.select([0])
    kept = search.responses
    search.write(SENTENCES[1:2])
    search.select([0], keep_sentences=False)
    search.write(SENTENCES[2:3])
    search.measure()
    search.responses = kept
    search.select([0], keep_sentences=False)
    search.write(SENTENCES[3:])
    search.measure()


def test_rows_that_branch_and_are_pruned(search):
    """Rows of unequal length: copied, dropped, reordered, taken back; one that has ended beside one that goes on."""
    search.select([0, 0, 0])
    search.write(SENTENCES[:3])
    search.measure()
    search.select([2, 1, 2])
    kept = [list(ids) for ids in search.responses]
    search.write(SENTENCES[1:])
    search.measure()
    search.responses = kept
    search.select([1, 0], keep_sentences=False)
    search.write(SENTENCES[2:], ends=[0])
    search.measure()
    search.select([1, 0, 1])


def test_rows_that_are_cut_inside_a_sentence(search):
    """Forks of a measured sentence at several tokens beside the whole one, each written to its end another way."""
    search.write(SENTENCES[:1])
    search.measure()
    search.select([0])
    search.write(SENTENCES[1:2])
    search.measure()
    session, family = search.session, search.family
    (kept,) = search.responses
    start = len(family.encode(SENTENCES[0]))
    cuts = (2, 0, 5)
    with pytest.raises(InputError, match="tokens"):
        session.fork([0], [len(kept)])
    session.fork([0, 0, 0, 0], [None, *cuts])
    search.responses = [kept, *(kept[: start + cut] for cut in cuts)]
    assert [row.token_ids for row in session.rows] == search.responses and session.running == [1, 2, 3]
    rests = [family.encode(text) + family.encode(NEXT) for text in SENTENCES[2:] + SENTENCES[:1]]
    for step in range(max(map(len, rests))):
        tokens = [FILLER, *(rest[step] if step < len(rest) else FILLER for rest in rests)]
        if step != 1:  # the branch without the context may be read at any time, before the other one or with it
            if step > 1:
                session.next_logits  # noqa: B018 - it feeds the last tokens
            contrast = session.contrast_logits
            for row in session.running:
                ids = tuple(session.rows[row].token_ids)
                wanted, _ = one_pass(family, search.prompt.without_context_ids, ids)
                torch.testing.assert_close(contrast[row], wanted[-1], rtol=0, atol=NATS)
        session.push(torch.tensor(tokens), one_sentence=True)
    assert session.complete()
    for row, (sentence,) in enumerate(session.measure()):
        ids, whole = search.responses[row], [*kept[:start], *sentence.token_ids.tolist()]
        assert whole[: len(ids)] == ids[: len(whole)] and sentence.span.token_start == start
        expected = from_scratch(family, search.prompt, whole)
        assert_signals(sentence, expected, start=start)
        assert_states(sentence, len(whole) - 1, expected)
        search.responses[row] = whole
    search.select([2, 0])


class Fickle(RecordingScorer):
    """Lets a greedy sentence pass, then the branches of the next, then neither of the one after."""

    def __init__(self, prompt, **options):
        super().__init__(prompt, **options)
        self.verdicts = cycle([1.0, 0.0, 1.0, 0.0, 0.0])

    def answers(self, answers, **options):
        verdict = next(self.verdicts)
        found = super().answers(answers, **options)
        return [[replace(score, score=verdict, status="scored") for score in scores] for scores in found]


class FickleMonitor(RecordingMonitor):
    def scorer(self, prompt):
        return Fickle(prompt, config=self.config, aggregator=self.aggregator, aligner=self.aligner)


def test_an_answer_repaired_by_branching(any_family, prompt):
    """Sentences replaced, hidden and gone on after: what is shown has the signals of one pass over all of it."""
    config = MonitorConfig(schema="syncheck.v3", layers=any_family.layers, segmenter=SegmenterConfig(max_tokens=4))
    monitor = FickleMonitor(any_family.model, any_family.tokenizer, config=config)
    options = RepairConfig(plausibility=0.0, branches=2, max_skips=8, max_sentences=5, opening_relevance=0.0)
    plan = prepare_generation(any_family.model, prompt, max_new_tokens=23)  # as many as LongRoPE lets it write
    with monitor.session(prompt) as watched:
        propose = BranchProposer(watched, plan, options)
        result = drain(repair(propose, options, Thresholds(0.5, 0.5)))
        report = propose.report(result.beam, stop=result.stop, seconds=0.0)
    assert result.dropped and report.sentences and report.hidden
    ids = list(report.written_token_ids)
    expected, shown, before = from_scratch(any_family, prompt, ids), np.ones(len(ids), bool), 0
    for span in report.hidden:
        start = span.token_start + before
        shown[start : start + len(span.token_ids)] = False
        before += len(span.token_ids)
    for name in SIGNALS:
        found, wanted = getattr(report.tokens, name), np.asarray(getattr(expected, name))[shown]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=NATS)
