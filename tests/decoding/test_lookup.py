"""Prompt lookup, and drafts: whatever a session reads ahead, it writes and measures what it would without."""

import random

import pytest
import torch
from copying import QUESTIONS, copying_monitor
from doubles import LAYERS, PASSAGES, QUESTION, assert_same
from test_session import SENTENCES, after, assert_measured, assert_next, encoded
from transformers.generation import BaseStreamer, StoppingCriteria, StoppingCriteriaList

from syncheck import SegmenterConfig, SentenceEvent, TokenEvent
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import PromptLookup, SearchSession
from syncheck.prompts import build_prompt

TEXT = "".join(SENTENCES)


@pytest.fixture
def prompt(golden):
    return build_prompt(golden.tokenizer, question=QUESTION, context=PASSAGES)


@pytest.fixture
def session(golden, prompt):
    with SearchSession(golden.model, golden.tokenizer, prompt, layers=LAYERS, segmenter=SegmenterConfig()) as opened:
        yield opened


@pytest.fixture
def fed(golden):
    """Number of tokens of every forward pass."""
    found = []
    handle = golden.model.register_forward_pre_hook(
        lambda module, args, kwargs: found.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    yield found
    handle.remove()


def push(session, tokens, drafts):
    """Push tokens, each after a draft of what follows the token before."""
    for place, token in enumerate(tokens):
        session.draft(drafts(place))
        session.push(torch.tensor([token]))


FILLED = [token for i in range(1, 7) for token in (i, i + 1, i + 2, *range(100 * i, 100 * i + 20))]
"""Any three successive tokens of 1 to 8, after which come others than in 1 to 8."""


class TestPromptLookup:
    def test_what_followed_the_last_three_tokens_in_their_latest_place(self):
        lookup = PromptLookup([1, 2, 3, 9, 2, 3, 4, 1, 2, 3, 5], longest=3)
        assert lookup.draft([8, 1, 2, 3]) == [5, 8, 1]
        assert lookup.draft([7, 9, 2, 3]) == [4, 1, 2]  # not 5, which follows the last 2 and 3

    def test_the_response_is_searched_too(self):
        assert PromptLookup([1], longest=2).draft([5, 6, 7, 8, 5, 6, 7]) == [8, 5]

    @pytest.mark.parametrize("response", [[], [7], [2, 3], [1, 2, 7]])
    def test_nothing_follows_what_is_new(self, response):
        assert PromptLookup([1, 2, 3], longest=4).draft(response) == []

    def test_no_draft_of_no_length(self):
        assert PromptLookup([1, 2, 3, 4], longest=0).draft([1, 2, 3]) == []

    def test_drafts_grow_when_right(self):
        lookup = PromptLookup(FILLED, longest=16)
        assert [len(lookup.draft(FILLED[:n])) for n in (3, 4, 5)] == [8, 16, 16]

    def test_drafts_end_when_wrong_and_begin_again_with_what_would_have_been_drafted(self):
        lookup = PromptLookup(FILLED, longest=16)
        assert [len(lookup.draft(range(1, n))) for n in (4, 5, 6, 7, 8)] == [8, 4, 2, 1, 0]
        assert [lookup.draft([*range(1, 8), *range(500, n)]) for n in (501, 502)] == [[501], [502, 503, 504]]


class TestDrafts:
    @pytest.mark.parametrize("seed", range(6))
    def test_drafts_change_nothing(self, golden, prompt, session, seed):
        """Right, wrong, partly right and missing drafts; the logits without the context are asked for now and then."""
        chance = random.Random(seed)
        tokens = [*encoded(golden, TEXT), *encoded(golden, " The")]
        before, place = [], 0
        while place < len(tokens):
            draft = tokens[place : place + chance.randrange(8)]
            draft += [chance.randrange(5, 300) for _ in range(chance.randrange(3))]
            session.draft(draft if chance.random() < 0.7 else [])
            assert_next(golden, prompt, session, [tokens[:place]])
            if chance.random() < 0.4:
                expected = after(golden, [*prompt.without_context_ids, *tokens[:place]])
                torch.testing.assert_close(session.contrast_logits[0], expected, rtol=0, atol=1e-4)
            session.push(torch.tensor([tokens[place]]))
            place += 1
            if session.complete():
                ((sentence,),) = session.measure()
                assert_measured(golden, prompt, before, sentence)
                before += sentence.token_ids.tolist()
                session.advance()
        assert [" ".join(row.text.split()) for row in session.rows] == [" ".join((TEXT + " The").split())]

    def test_what_comes_true_is_not_fed_again(self, golden, prompt, session, fed):
        tokens = encoded(golden, SENTENCES[1])
        push(session, tokens[:1], lambda place: [])
        session.draft([*tokens[1:4], tokens[0]])
        fed.clear()
        for token in tokens[1:4]:
            session.push(torch.tensor([token]))
        assert fed == [5]
        for token in tokens[4:6]:  # the first is not the one that was drafted
            session.push(torch.tensor([token]))
        assert fed == [5, 1]

    def test_a_row_that_is_taken_back_or_copied_takes_no_draft_along(self, golden, prompt, session):
        first, second = encoded(golden, SENTENCES[0]), encoded(golden, SENTENCES[1])
        push(session, [*first, *encoded(golden, " The")], lambda place: [*first, *second][place : place + 9])
        session.draft(second)
        assert_next(golden, prompt, session, [[*first, *encoded(golden, " The")]])
        ((sentence,),) = session.measure()
        session.fork([0, 0, 0], [None, 2, 4])
        assert_next(golden, prompt, session, [first, first[:2], first[:4]])
        session.select([0, 0], keep_sentences=False)
        assert_next(golden, prompt, session, [[], []])

    def test_the_last_row_of_several(self, golden, prompt, session):
        """Drafts are used once the others have closed their sentence, with rows that were left out to return to."""
        session.select([0, 0])
        short, long = encoded(golden, SENTENCES[2]), encoded(golden, SENTENCES[1])
        closing = encoded(golden, " The")[0]
        columns = list(zip([*short, closing, *[5] * len(long)], [*long, closing], strict=False))
        for place, column in enumerate(columns):
            if session.complete():
                break
            wrong = [7] if place % 3 else []
            session.draft([*long[place : place + 3], *wrong])
            session.push(torch.tensor(column), one_sentence=True)
        (one,), (other,) = session.measure()
        assert_measured(golden, prompt, [], one)
        assert_measured(golden, prompt, [], other)
        session.select([1, 0])
        assert_next(golden, prompt, session, [other.token_ids.tolist(), one.token_ids.tolist()])

    def test_the_end_of_the_text_inside_a_draft(self, golden, prompt, session):
        end = golden.tokenizer.eos_token_id
        tokens = encoded(golden, SENTENCES[0])
        session.draft([*tokens, end, *tokens])
        for token in [*tokens, end]:
            session.push(torch.tensor([token]), end_tokens=(end,))
        assert session.rows[0].end_token == end
        ((sentence,),) = session.measure()
        assert_measured(golden, prompt, [], sentence)

    def test_a_draft_stops_at_the_window(self, golden, prompt, session, monkeypatch):
        window = len(prompt.with_context_ids) + 4
        monkeypatch.setattr(golden.model.config, "max_position_embeddings", window)
        with SearchSession(golden.model, golden.tokenizer, prompt, segmenter=SegmenterConfig()) as narrow:
            tokens = encoded(golden, SENTENCES[1])
            push(narrow, tokens[:3], lambda place: tokens[place:])
            assert narrow.room == 1
            push(narrow, tokens[3:4], lambda place: tokens[place:])
            assert_next(golden, prompt, narrow, [tokens[:4]])
            assert narrow.room == 0


@pytest.fixture(scope="module")
def copying():
    return copying_monitor()


@pytest.fixture(scope="module")
def asked(copying):
    return [copying.prompt(question=q["question"], context=q["passages"]) for q in QUESTIONS[:2]]


class Ids(BaseStreamer):
    def __init__(self):
        self.puts = []

    def put(self, value):
        self.puts.append(value.flatten().tolist())

    def end(self):
        self.puts.append([])


class At(StoppingCriteria):
    """Ends a text of so many tokens, prompt included."""

    def __init__(self, length):
        self.length = length

    def __call__(self, input_ids, scores, **kwargs):
        return torch.full((len(input_ids),), input_ids.shape[1] >= self.length)


def options_of(name, prompt):
    options = {
        "greedy": {},
        "sampled": {"do_sample": True, "temperature": 0.8, "generator": torch.Generator().manual_seed(1)},
        "a penalty": {"repetition_penalty": 1.2},
        "a stop string": {"stop_strings": [" Eden"]},
        "a criterion": {"stopping_criteria": StoppingCriteriaList([At(len(prompt.with_context_ids) + 13)])},
        "a limit": {"max_new_tokens": 11},
        "a score": {"stop_below": 1.0},
    }
    return {"max_new_tokens": 40, "do_sample": False, **options[name]}


STOPS = {"a stop string": "stop_string", "a criterion": "criteria", "a limit": "length", "a score": "below_threshold"}


class TestMonitor:
    """The monitor's own loop, with a model that copies."""

    @pytest.fixture
    def passes(self, copying):
        found = []
        handle = copying.model.register_forward_hook(lambda module, args, output: found.append(output))
        yield found
        handle.remove()

    @pytest.mark.parametrize("name", ["greedy", "sampled", "a penalty", *STOPS])
    def test_lookup_changes_nothing(self, copying, asked, passes, name):
        counts, reports, puts, events = [], [], [], []
        for lookup in (0, 16):
            streamer = Ids()
            passes.clear()
            report = copying.generate(asked[0], lookup=lookup, streamer=streamer, **options_of(name, asked[0]))
            counts.append(len(passes))
            *shown, end = copying.stream(asked[0], lookup=lookup, **options_of(name, asked[0]))
            reports += [report, end.report]
            puts.append(streamer.puts)
            events.append([e.token_id if isinstance(e, TokenEvent) else e.sentence.text for e in shown])
            assert any(isinstance(e, SentenceEvent) for e in shown)
        for other in reports[1:]:
            assert_same(reports[0], other)
            assert other.stop == reports[0].stop == STOPS.get(name, other.stop)
        assert puts[0] == puts[1] and events[0] == events[1]
        assert counts[1] < counts[0]

    def test_the_default_drafts(self, copying, asked, passes):
        report = copying.generate(asked[0], **options_of("greedy", asked[0]))
        assert len(passes) < len(report.tokens) / 2

    @pytest.mark.parametrize("several", ["prompts", "responses"])
    def test_rows_of_a_batch_are_read_token_by_token(self, copying, asked, passes, several):
        counts, reports = [], []
        for lookup in (0, 16):
            passes.clear()
            options = options_of("sampled", asked[0])
            if several == "responses":
                options["num_return_sequences"] = 2
            reports.append(copying.generate(asked[: 1 if several == "responses" else 2], lookup=lookup, **options))
            counts.append(len(passes))
        assert counts[0] == counts[1]
        for one, other in zip(*reports, strict=True):
            assert_same(one, other)

    @pytest.mark.parametrize(("value", "error"), [(-1, InputError), (1.5, WrongTypeError), (True, WrongTypeError)])
    def test_what_is_no_number_of_tokens(self, copying, asked, value, error):
        with pytest.raises(error, match="lookup must be"):
            copying.generate(asked[0], lookup=value)
        with pytest.raises(error, match="lookup must be"):
            next(copying.stream(asked[0], lookup=value))
