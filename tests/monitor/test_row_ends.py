"""Attached = own loop = replay, for every way a row can end: fill and end-of-text tokens are no text."""

import contextlib
import threading

import pytest
import torch
from doubles import PASSAGES, QUESTION
from test_works_with import same_signals
from transformers.generation import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding.observed import OverheardStops

TEXTS = (
    " He played in 1982. The farm was sold.",
    " Scott grew up on a farm. Did he play long? He was signed in 2003 as a prop. No one knows it, or so it seems.",
    " No.",
)
END = 7
"""Ends a text where it is given as ``eos_token_id``; the model knows another."""


@pytest.fixture
def golden(llama):
    return llama


class Written(LogitsProcessor):
    """Makes each row write its text, then an end, again and again: what is no fill shows that a row has gone on."""

    def __init__(self, width, rows, end):
        self.width, self.rows, self.end = width, rows, end

    def __call__(self, input_ids, scores):
        step = input_ids.shape[1] - self.width
        forced = torch.full_like(scores, -torch.inf)
        for place, row in enumerate(self.rows):
            forced[place, row[step] if step < len(row) else self.end] = 0.0
        return forced


class AfterTokens(StoppingCriteria):
    """Ends each row after as many columns as are its."""

    def __init__(self, columns):
        self.columns = torch.tensor(columns)

    def __call__(self, input_ids, scores, **options):
        return self.columns <= input_ids.shape[1]


@pytest.fixture
def prompts(monitor):
    return [
        monitor.prompt(question=QUESTION, context=PASSAGES),
        monitor.prompt(question="Was he signed?", context=PASSAGES[1:]),
        monitor.prompt(question=QUESTION, context=PASSAGES[:1]),
    ]


@pytest.fixture
def rows(monitor):
    return [monitor.tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]


def inputs_of(monitor, prompts):
    given = {"input_ids": [list(prompt.with_context_ids) for prompt in prompts]}
    return monitor.tokenizer.pad(given, padding_side="left", return_tensors="pt")


def width_of(prompts):
    return max(len(prompt.with_context_ids) for prompt in prompts)


WAYS = {
    "end token of the model": lambda monitor, width: {},
    "end token that is given": lambda monitor, width: {"eos_token_id": END},
    "one of several end tokens": lambda monitor, width: {"eos_token_id": [END, 5]},
    "end token that fills": lambda monitor, width: {"eos_token_id": END, "pad_token_id": END},
    "word that fills": lambda monitor, width: {"eos_token_id": END, "pad_token_id": 300},
    "stop strings": lambda monitor, width: {"stop_strings": ["1982", "2003", "No."], "tokenizer": monitor.tokenizer},
    "criterion": lambda monitor, width: {
        "stopping_criteria": StoppingCriteriaList([AfterTokens([width + n for n in (5, 12, 3)])])
    },
    "criterion without any end token": lambda monitor, width: {
        "stopping_criteria": StoppingCriteriaList([AfterTokens([width + n for n in (5, 12, 3)])]),
        "eos_token_id": None,
        "pad_token_id": 2,
    },
    "criterion, all at once": lambda monitor, width: {
        "stopping_criteria": StoppingCriteriaList([AfterTokens([width + 6] * 3)])
    },
    "length": lambda monitor, width: {"max_new_tokens": 9},
}


@contextlib.contextmanager
def without_own_end(monitor, way):
    """generate takes ``eos_token_id=None`` for "not given"."""
    config = monitor.model.generation_config
    before = config.eos_token_id
    if way == "criterion without any end token":
        config.eos_token_id = None
    try:
        yield
    finally:
        config.eos_token_id = before


@pytest.mark.parametrize("count", [1, 3], ids=["one row", "batch"])
@pytest.mark.parametrize("way", WAYS)
def test_attached_is_own_loop_is_replay(monitor, prompts, rows, way, count):
    prompts, rows = prompts[:count], rows[:count]
    width = width_of(prompts)
    given = {"max_new_tokens": 60, **WAYS[way](monitor, width)}
    if criteria := given.get("stopping_criteria"):
        criteria[0].columns = criteria[0].columns[:count]
    end = END if given.get("eos_token_id") else monitor.tokenizer.eos_token_id
    given["logits_processor"] = LogitsProcessorList([Written(width, rows, end)])
    with without_own_end(monitor, way):
        own = monitor.generate(prompts, **given)
        with monitor.attach(prompts) as watch:
            output = monitor.model.generate(**inputs_of(monitor, prompts), **given)
        attached = watch.reports(output)
    for prompt, row, one, other in zip(prompts, rows, own, attached, strict=True):
        ids = one.tokens.token_ids.tolist()
        assert ids == row[: len(ids)] and ids
        assert other.response == one.response and other.stop == one.stop
        same_signals(other, one)
        same_signals(other, monitor.score(prompt, response_token_ids=ids))


def test_live_sentences_hold_no_fill(monitor, prompts, rows):
    """They are scored while other rows go on."""
    width = width_of(prompts)
    given = WAYS["criterion"](monitor, width)
    script = LogitsProcessorList([Written(width, rows, monitor.tokenizer.eos_token_id)])
    with monitor.attach(prompts) as watch:
        output = monitor.model.generate(
            **inputs_of(monitor, prompts), **given, logits_processor=script, max_new_tokens=60
        )
    watch.reports(output)
    assert [sum(s.token_end - s.token_start for s in row) for row in watch.rows] == [5, 12, 3]


def by_hand(monitor, prompts, rows, watch, ends):
    """Decodes without generate; ``ends``: tokens of each row, after which it is filled with a word."""
    ids = inputs_of(monitor, prompts)
    mask, columns = ids["attention_mask"], ids["input_ids"]
    past, step = None, 0
    with torch.no_grad():
        while step < max(ends):
            fed = columns if past is None else columns[:, -1:]
            positions = (mask.cumsum(-1) - 1).clamp_min(0)[:, -fed.shape[1] :]
            past = monitor.model(
                input_ids=fed, attention_mask=mask, position_ids=positions, past_key_values=past, use_cache=True
            ).past_key_values
            step += 1
            chosen = [row[step - 1] if step <= end else 300 for row, end in zip(rows, ends, strict=True)]
            for row, end in enumerate(ends):
                if step == end:
                    watch.end(row, tokens=step)
            columns = torch.cat([columns, torch.tensor(chosen)[:, None]], 1)
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
    return columns


def test_a_loop_by_hand_says_where_its_rows_end(monitor, prompts, rows):
    ends = (5, 12, 3)
    with monitor.attach(prompts) as watch:
        output = by_hand(monitor, prompts, rows, watch, ends)
    for prompt, row, end, report in zip(prompts, rows, ends, watch.reports(output), strict=True):
        assert report.stop == "criteria"
        same_signals(report, monitor.score(prompt, response_token_ids=row[:end]))


def test_a_row_that_was_fed_more_cannot_end_before(monitor, prompts, rows):
    with monitor.attach(prompts) as watch:
        by_hand(monitor, prompts, rows, watch, (5, 12, 3))
        with pytest.raises(InputError, match="fed"):
            watch.end(0, tokens=2)
        with pytest.raises(InputError, match="row must be from 0 to 2, a row of the loop; found 3"):
            watch.end(3, tokens=2)
        with pytest.raises(WrongTypeError, match="row must be a whole number; found 'first'"):
            watch.end("first", tokens=2)


def test_final_ids_are_rows_of_the_loop_in_the_vocabulary(monitor, prompt):
    ids = list(prompt.with_context_ids)
    size = monitor.model.get_input_embeddings().num_embeddings
    for given, message in (
        ([[*ids, size]], rf"0..{size - 1}, the vocabulary; found \[{size}\]"),
        ([[*ids, 5], ids], r"rows of one length, .* found lengths \["),
        ([ids, ids], "attached: 1 prompt; found: 2 sequences"),
    ):
        with monitor.attach(prompt) as watch, pytest.raises(InputError, match=message):
            watch.report(given)


def test_final_ids_hold_all_text_that_was_watched(monitor, prompts, rows):
    """Ids that the caller has cut are not what was watched; what follows the end of a row may be left out."""
    width = width_of(prompts)
    with monitor.attach(prompts) as watch:
        output = by_hand(monitor, prompts, rows, watch, (5, 12, 3))  # its last tokens are not fed
    for cut in (output[:, : width + 9], output[:, :width]):
        with pytest.raises(InputError, match=rf"lack the last {width + 11 - cut.shape[1]} tokens of the text"):
            watch.reports(cut)
    assert [len(report.tokens) for report in watch.reports(output)] == [5, 12, 3]
    prompt, end = list(prompts[0].with_context_ids), monitor.tokenizer.eos_token_id
    with monitor.attach(prompts[0]) as watch, torch.no_grad():
        past = None
        for fed in (prompt, rows[0][:1], rows[0][1:2], [end]):
            past = monitor.model(input_ids=torch.tensor([fed]), past_key_values=past, use_cache=True).past_key_values
    assert watch.report([*prompt, *rows[0][:2]]).tokens.token_ids.tolist() == rows[0][:2]


def test_generate_of_another_thread_is_not_overheard(monitor, prompt):
    """And afterwards the model is as it was, whoever leaves first."""
    mine, others = (OverheardStops(monitor.model, 1) for _ in range(2))
    entered, leave = threading.Event(), threading.Event()

    def listen():
        with others.listening():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=listen)
    with mine.listening():
        thread.start()
        entered.wait(60)
        monitor.model.generate(**prompt.inputs(), max_new_tokens=3, eos_token_id=END)
    leave.set()
    thread.join()
    columns = len(prompt.with_context_ids) + 3
    assert (mine.over, mine.end_tokens, mine.limit) == ([columns], (END,), columns)
    assert (others.over, others.end_tokens, others.limit) == ([None], None, None)
    assert "_get_stopping_criteria" not in vars(monitor.model)
