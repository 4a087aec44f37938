"""What holds for every text, every way to cut it into tokens, and every option."""

import pytest
import whole_texts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, BoundaryFinder, IncrementalSegmenter, Punkt, TextSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig


def config_of(name, max_tokens=whole_texts.NO_LIMIT):
    return SegmenterConfig(max_tokens=max_tokens, **whole_texts.OPTIONS[name])


@pytest.mark.parametrize("name", whole_texts.OPTIONS)
@settings(deadline=None, max_examples=50)
@given(response=whole_texts.responses, widths=whole_texts.widths_of_tokens)
@example(response="。.，3", widths=[1])
@example(response="a\n- \n1. b\n-", widths=[1])
@example(response="# a\n \nb", widths=[2])
@example(response="x!\u3002J. b", widths=[1])
@example(response="a\n2\u3001!!!b", widths=[1])
@example(response=".*", widths=[1])
def test_one_character_at_a_time_is_all_at_once(name, response, widths):
    expected = whole_texts.reference(response, **whole_texts.OPTIONS[name])
    for tokens in (list(response), [response], whole_texts.cut(response, widths)):
        spans = whole_texts.segment(tokens, config_of(name))
        assert whole_texts.bounds(spans) == expected
        if spans:
            whole_texts.assert_partition(spans, len(tokens))


@settings(deadline=None, max_examples=100)
@given(name=whole_texts.configs, response=whole_texts.responses, other=whole_texts.responses, at=st.integers(0, 60))
def test_what_is_reported_holds_whatever_comes_after(name, response, other, at):
    segmenter = IncrementalSegmenter(config_of(name))
    closed = [span for char in response[:at] for span in segmenter.push(char)]
    for text in (response, response[:at] + other, response[:at]):
        assert whole_texts.bounds(closed) == whole_texts.reference(text, **whole_texts.OPTIONS[name])[: len(closed)]


@settings(deadline=None, max_examples=100)
@given(
    name=whole_texts.configs,
    response=whole_texts.responses,
    widths=whole_texts.widths_of_tokens,
    limit=st.integers(1, 9),
)
def test_every_token_is_in_one_sentence_within_the_limit(name, response, widths, limit):
    tokens = [token for token in whole_texts.cut(response, widths) if token]
    spans = whole_texts.segment(tokens, config_of(name, limit))
    if not spans:
        assert not response.strip()
        return
    whole_texts.assert_partition(spans, len(tokens))
    assert all(span.token_end - span.token_start <= limit for span in spans)
    assert all(span.token_end - span.token_start == limit for span in spans if span.truncated)


@settings(deadline=None, max_examples=100)
@given(
    name=whole_texts.configs,
    response=whole_texts.responses,
    widths=whole_texts.widths_of_tokens,
    at=st.integers(0, 30),
    other=whole_texts.responses,
    limit=st.integers(2, 30),
)
def test_a_fork_goes_its_own_way(name, response, widths, at, other, limit):
    config = config_of(name, limit)
    tokens, others = whole_texts.cut(response, widths), whole_texts.cut(other, [2])
    segmenter = IncrementalSegmenter(config)
    closed = [span for token in tokens[:at] for span in segmenter.push(token)]
    fork = segmenter.fork()
    forked = closed + [span for token in others for span in fork.push(token)] + fork.finish()
    closed += [span for token in tokens[at:] for span in segmenter.push(token)]
    assert closed + segmenter.finish() == whole_texts.segment(tokens, config)
    assert forked == whole_texts.segment(tokens[:at] + others, config)


@settings(deadline=None, max_examples=150)
@given(
    name=whole_texts.configs,
    response=whole_texts.responses,
    widths=whole_texts.widths_of_tokens,
    keep=st.integers(0, 5),
    limit=st.integers(2, 30),
)
@example(name="default", response="b. !!!a", widths=[2], keep=1, limit=30)
@example(name="default", response="). !\u201d)a. b", widths=[1], keep=2, limit=30)
@example(name="cjk", response="x!\u3002J. b", widths=[1], keep=1, limit=30)
@example(name="lines", response="a\n!!!b", widths=[1, 4], keep=1, limit=30)
@example(name="all", response='\uff0e!"\u300d-&', widths=[1, 5], keep=1, limit=30)
@example(name="lists", response="a\n1. b. c\n2. d", widths=[1], keep=1, limit=30)
@example(name="pairs", response="a. b. c. d. e", widths=[1], keep=1, limit=30)
def test_rewinding_to_a_boundary_and_going_on_gives_the_same_sentences(name, response, widths, keep, limit):
    tokens = [token for token in whole_texts.cut(response, widths) if token]
    segmenter = IncrementalSegmenter(config_of(name, limit))
    spans = [span for token in tokens for span in segmenter.push(token)]
    kept = spans[:keep]
    stop = kept[-1].token_end if kept else 0
    again = segmenter.rewound(stop, sentences=len(kept))
    assert again.text == "".join(tokens[:stop])
    rest = [span for token in tokens[stop:] for span in again.push(token)] + again.finish()
    assert kept + rest == spans + segmenter.finish()


@pytest.mark.parametrize("name", ["default", "all", "lists"])
@pytest.mark.parametrize(
    "piece",
    [
        "Dr. Lee paid 3.5 dollars, e.g. for No. 5, vs. 1,000 in the U.S. by then. It is so! ",
        "Smith J. A., Miller B. C. and Jones D. E., ",
        "A. A. A. A. ",
        "Dr. Dr. Dr. ",
        "at 5 p.m. on a day ",
        "1.25 2.5. 1, ",
        "a.\u00a0b.\u00a0c. ",
        "日本。の（文）! ",
        "- - - ",
    ],
)
def test_the_cost_is_linear_in_the_length(name, piece, monkeypatch):
    """Counted in characters that Punkt reads, of texts with numbers, abbreviations and no line breaks."""
    read = []
    spans = Punkt.spans

    def counted(self, text):
        read.append(len(text))
        return spans(self, text)

    monkeypatch.setattr(Punkt, "spans", counted)
    options = {**whole_texts.OPTIONS[name], "abbreviations": ENGLISH_ABBREVIATIONS}
    config = SegmenterConfig(max_tokens=whole_texts.NO_LIMIT, **options)
    costs = []
    for copies in (16, 128):
        read.clear()
        whole_texts.segment(whole_texts.cut(piece * copies, [4]), config)
        costs.append(sum(read))
    assert costs[1] <= 9 * costs[0]  # 64 times if it were quadratic
    assert costs[0] < 7 * len(piece * 16)  # 8 when asked at every word


@pytest.mark.parametrize("config", [SegmenterConfig(), SegmenterConfig(line_breaks="lists", cjk_stops=True)])
def test_a_boundary_is_certain_once_the_text_is_seen_that_far(config):
    text = (
        'It is old. So, e.g. this.\n\n- One item.\n- Two? "No," he said... In the U.S. it is. '
        "他是球员。他在。\n\nViii is so. [1] It is. Source: Atlas. 2 are (M, 1998). (Meyer, 1998) No. "
        "https://x.org/a\n- So"
    )
    found = BoundaryFinder(config).find(text)
    assert len(found) > 4
    for stop, after, block, seen in found:
        assert (stop, after, block) in [known[:3] for known in BoundaryFinder(config).find(text[:seen])]


@pytest.mark.parametrize("name", ["default", "abbreviations", "lists", "cjk"])
@pytest.mark.parametrize(
    "text",
    [
        "Lyon is large. It is in France [1]. Dr. Roux lives there! Does he?",
        "Two facts:\n\n- Lyon is large.\n- It is in France. It has rivers.\n\nThat is all.",
        "1. Lyon is large.\n2. It is in France.\n\nSee No. 4 of the list. It is short.",
        "里昂很大。它在法国。 It is in the U.S. too. Yes.",
    ],
)
def test_what_follows_a_sentence_is_cut_as_in_the_whole_text(name, text):
    whole = TextSegmenter(config_of(name))
    spans = whole.push(text) + whole.finish()
    for index, span in enumerate(spans):
        after = TextSegmenter(config_of(name), after=text[: span.end])
        rest = [closed for char in text[span.end :] for closed in after.push(char)] + after.finish()
        assert whole_texts.bounds(rest) == whole_texts.bounds(spans[index + 1 :])
        assert not after.breaks_off
