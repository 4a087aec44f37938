"""Text that is checked while it arrives: the scores of the whole text, whatever the pieces."""

import asyncio
import math
from types import SimpleNamespace

import pytest
from doubles import PASSAGES, QUESTION
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck import Monitor, Verifier
from syncheck.base.errors import InputError, NotReadyError, PromptError, WrongTypeError
from syncheck.results import Append, FoldedAnswer, Notice, Retract, Verified, fold
from syncheck.testing import WordAligner, scripted_monitor
from syncheck.watching.text_watch import MOST_TOGETHER

ANSWER = (
    "Angus Scott is a rugby player. He grew up on a farm in 1982, near e.g. Yass.\n\nThe Brumbies (“a club”) "
    'signed him! "Did he play long?" No one knows... 他是球员。他在农场长大。 Ünï😀 fine.  Café\u0301 closed. Last'
)
PIECES = st.lists(st.integers(0, len(ANSWER)), max_size=40)


@pytest.fixture(scope="module")
def generic():
    double = scripted_monitor(ANSWER)
    return Monitor(double.model, double.tokenizer)


@pytest.fixture(scope="module")
def scripted():
    supports = {"Lyon is large.": 1.0, "It is in Spain.": 0.1, "It has a river.": 0.9}
    return scripted_monitor("Lyon is large. It is in Spain. It has a river.", supports=supports)


def prompted(monitor):
    return monitor.prompt(question=QUESTION, context=PASSAGES)


def watched(monitor, pieces, **options):
    """All events of these pieces, and the watch."""
    with monitor.watch_text(prompted(monitor), **options) as watch:
        events = [event for piece in pieces if not watch.is_over for event in watch.feed(piece)]
        return [*events, *watch.close()], watch


def cut(text, places):
    bounds = [0, *sorted(places), len(text)]
    return [text[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]


def same(report, other):
    """Whether two reports hold the same sentences, to the last bit."""
    names = (
        "text",
        "start",
        "end",
        "token_start",
        "token_end",
        "score",
        "status",
        "features",
        "attribution",
        "evidence",
    )
    assert report.response == other.response
    assert report.tokens.token_ids.tolist() == other.tokens.token_ids.tolist()
    assert report.tokens.char_spans.tolist() == other.tokens.char_spans.tolist()
    for one, two in zip(report.sentences, other.sentences, strict=True):
        assert [getattr(one, name) for name in names] == [getattr(two, name) for name in names]


@given(PIECES, st.sampled_from(["verified", "immediate"]), st.integers(1, 4))
@settings(max_examples=15)
def test_watched_is_scored_for_a_monitor_of_text(generic, places, reveal, at_once):
    events, watch = watched(generic, cut(ANSWER, places), reveal=reveal, at_once=at_once)
    same(watch.report, generic.score(prompted(generic), ANSWER))
    assert events == watch.events
    shown, verified = 0, set()
    for event in events if reveal == "verified" else ():
        if isinstance(event, Verified):
            verified.update(range(event.start, event.end))
        elif isinstance(event, Append):
            assert all(i in verified for i in range(shown, shown + len(event.text)) if not ANSWER[i].isspace())
            shown += len(event.text)
    assert fold(events).text == ANSWER


@given(st.text(st.sampled_from('ab .!?\n"é😀。他1-*　'), max_size=80), st.data())
@settings(max_examples=60)
def test_any_text_is_scored_as_the_whole(generic, text, data):
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=12))
    _, watch = watched(generic, cut(text, places))
    same(watch.report, generic.score(prompted(generic), text))


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_surrogate_measures_the_same(request, make_monitor, name):
    monitor = make_monitor(request.getfixturevalue(name))
    text = ANSWER * 2
    whole = monitor.score(prompted(monitor), text)
    _, watch = watched(monitor, list(text))
    assert [(s.text, s.token_start, s.token_end) for s in watch.report.sentences] == [
        (s.text, s.token_start, s.token_end) for s in whole.sentences
    ]
    for one, two in zip(watch.report.sentences, whole.sentences, strict=True):
        features = [[math.nan if value is None else value for value in s.features.values()] for s in (one, two)]
        assert features[0] == pytest.approx(features[1], rel=1e-3, abs=1e-4, nan_ok=True)
    assert watch.report.tokens.log_prob == pytest.approx(whole.tokens.log_prob, abs=1e-4)


@pytest.mark.parametrize(("longer", "of_a_sentence"), [(1, 1), (6, 2)])
def test_a_surrogate_reads_both_branches_at_once_unless_the_context_is_long(llama, make_monitor, longer, of_a_sentence):
    monitor = make_monitor(llama)
    text = "Lyon is large. It is in Spain. It has a river."
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES * longer)
    with monitor.watch_text(prompt) as watch:
        forwards = []
        handle = monitor.model.register_forward_pre_hook(lambda *_: forwards.append(1))
        for piece in text:
            watch.feed(piece)
        watch.close()
        handle.remove()
    assert len(forwards) == of_a_sentence * 3
    whole = monitor.score(prompt, text).tokens
    assert watch.report.tokens.log_prob == pytest.approx(whole.log_prob, abs=1e-4)
    assert watch.report.tokens.kl == pytest.approx(whole.kl, abs=1e-4)


def test_surrogate_pairs_may_come_in_halves(generic):
    text = "One 😀 two. Three."
    halves = text.encode("utf-16-le")
    pieces = [halves[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(halves), 2)]
    events, _ = watched(generic, pieces, reveal="immediate")
    assert fold(events).text == text


@pytest.mark.parametrize("pieces", [["\ud83d", "x"], ["\ude00"], ["x\ud83d"]])
def test_half_a_character_is_refused(generic, pieces):
    with pytest.raises(InputError):
        watched(generic, pieces)


def test_a_sentence_is_told_while_the_text_goes_on(generic):
    with generic.watch_text(prompted(generic)) as watch:
        told = [len(watch.feed(word)) for word in ["Angus Scott ", "is old. ", "He grew ", "up there, ", "on a farm. "]]
    assert told[:2] == [0, 0] and sum(told) == 2  # verified, append


SENTENCES = ["Lyon is large. ", *["It has a river. "] * 19]


@pytest.mark.parametrize(
    ("options", "counts"), [({}, [0, *[1] * 19, 1]), ({"at_once": 4}, [0, *[0, 0, 0, 4] * 4, 0, 0, 0, 4])]
)
def test_sentences_wait_for_each_other_as_asked(scripted, options, counts):
    with scripted.watch_text(prompted(scripted), **options) as watch:
        told = [*map(watch.feed, SENTENCES), watch.close()]
    assert [sum(isinstance(event, Verified) for event in events) for events in told] == counts


def test_stopping_below_a_score(scripted):
    pieces = [*"Lyon is large. It is in Spain. It has a river."]
    for reveal in ("verified", "immediate"):
        events, watch = watched(scripted, pieces, stop_below=0.5, reveal=reveal)
        answer = fold(events)
        assert answer.text == watch.report.response == "Lyon is large. It is in Spain."
        assert (watch.report.stop, len(answer.sentences), len(answer.notices)) == ("below_threshold", 2, 1)
        assert any(isinstance(event, Retract) for event in events) == (reveal == "immediate")
        assert watch.is_over
        with pytest.raises(NotReadyError):
            watch.feed("more")


def test_stopping_before_a_sentence_withholds_it(scripted):
    verifier = Verifier(aligner=WordAligner())
    begin = (
        lambda: scripted.watch_text(prompted(scripted), stop_below=0.5, stop_after=False),
        lambda: verifier.watch_text(passages=["Lyon is large."], stop_below=0.5, stop_after=False),
    )
    for text, kept in (("Lyon is large. It is in Spain. It has a river.", "Lyon is large."), ("It is in Spain.", "")):
        for each in begin:
            with each() as watch:
                events = [*watch.feed(text), *watch.close()]
            assert fold(events).text == watch.report.response == kept and watch.report.stop == "below_threshold"
            assert watch.withheld.text == "It is in Spain." and len(watch.report.sentences) == bool(kept)


def test_all_at_once_stops_too(scripted):
    events, watch = watched(scripted, ["Lyon is large. It is in Spain. It has a river."], stop_below=0.5)
    assert watch.report.response == "Lyon is large. It is in Spain."
    assert [s.score for s in watch.report.sentences] == [1.0, 0.1]


class Source:
    """A stream that can be closed."""

    def __init__(self, text):
        self.pieces, self.given, self.is_closed = iter(text), 0, False

    def __iter__(self):
        return self

    def __next__(self):
        self.given += 1
        return next(self.pieces)

    def close(self):
        self.is_closed = True


class AsyncSource(Source):
    def __aiter__(self):
        return self

    async def __anext__(self):
        await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self):
        self.close()


TEXT = "Lyon is large. It is in Spain. It has a river. It is old."


def test_a_stream_is_read_and_closed(scripted):
    source = Source(TEXT)
    events = list(scripted.watch(source, prompted(scripted)))
    assert fold(events).text == TEXT and source.is_closed


def test_a_stream_is_closed_where_it_is_stopped(scripted):
    source = Source(TEXT)
    assert fold(scripted.watch(source, prompted(scripted), stop_below=0.5)).text == "Lyon is large. It is in Spain."
    assert source.is_closed and source.given < len(TEXT)


def test_a_stream_is_closed_when_nobody_listens_any_more(scripted):
    source = Source(TEXT)
    events = scripted.watch(source, prompted(scripted))
    next(events)
    events.close()
    assert source.is_closed


def test_the_asynchronous_twins(scripted):
    async def told(stop_below):
        source = AsyncSource(TEXT)
        return [e async for e in scripted.watch_async(source, prompted(scripted), stop_below=stop_below)], source

    async def fed():
        async with scripted.watch_text(prompted(scripted)) as watch:
            events = [event for piece in TEXT for event in await watch.feed_async(piece)]
            return [*events, *await watch.close_async()]

    for stop_below in (None, 0.5):
        events, source = asyncio.run(told(stop_below))
        plain = list(scripted.watch(Source(TEXT), prompted(scripted), stop_below=stop_below))
        assert fold(events).text == fold(plain).text and source.is_closed
    assert fold(asyncio.run(fed())).text == TEXT


def test_a_response_that_outgrows_the_window(scripted):
    with pytest.raises(PromptError), scripted.watch_text(prompted(scripted), signals=True) as watch:
        for _ in range(20):
            watch.feed("is large " * 500)


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
def test_an_end_of_text_token_in_the_text_ends_it_for_a_model_that_reads_it(generic, reveal):
    text = "It is old.</s> It is new. It is there, too."
    for signals, shown in ((True, "It is old."), (False, text)):
        events, watch = watched(generic, [*text], reveal=reveal, signals=signals)
        whole = generic.score(prompted(generic), text, signals=signals)
        assert fold(events).text == watch.report.response == whole.response == shown
        assert [s.text for s in watch.report.sentences] == [s.text for s in whole.sentences]


def test_sentences_are_cut_at_the_limit_of_tokens(scripted):
    text = "it goes on " * 60
    _, watch = watched(scripted, [text[i : i + 7] for i in range(0, len(text), 7)])
    whole = scripted.score(prompted(scripted), text)
    same(watch.report, whole)
    assert whole.sentences[0].truncated


@pytest.mark.parametrize("pieces", [[], [""], ["  ", "\n"]])
def test_an_answer_without_words(generic, pieces):
    events, watch = watched(generic, pieces)
    same(watch.report, generic.score(prompted(generic), "".join(pieces)))
    assert fold(events).text == "".join(pieces)


def test_a_reader_comes_back_to_a_watch(generic):
    with generic.watch_text(prompted(generic)) as watch:
        for piece in cut(ANSWER, range(0, len(ANSWER), 9)):
            watch.feed(piece)
        answer = fold(watch.events[:3], FoldedAnswer())
        watch.close()
        assert watch.close() == []
    assert fold(watch.events[answer.last_id :], answer).text == ANSWER


def test_a_watch_is_used_within_its_block(generic):
    watch = generic.watch_text(prompted(generic))
    for refused in (lambda: watch.feed("x"), watch.close):
        with pytest.raises(NotReadyError):
            refused()
    with watch:
        pass
    for refused in (lambda: watch.feed("x"), watch.__enter__):
        with pytest.raises(NotReadyError):
            refused()


def test_bad_arguments(generic, scripted):
    with pytest.raises(WrongTypeError):
        generic.watch_text("a question")
    with pytest.raises(InputError):
        generic.watch_text(prompted(generic), stop_below=1.5)
    for at_once in (0, 1.5, "2", True, None):
        with pytest.raises(InputError, match="at_once"):
            generic.watch_text(prompted(generic), at_once=at_once)
    with pytest.raises(WrongTypeError, match="iterdecode"), generic.watch_text(prompted(generic)) as watch:
        watch.feed(b"bytes")
    with pytest.raises(WrongTypeError, match="iterdecode"):
        list(generic.watch([b"bytes"], prompted(generic)))
    with pytest.raises(WrongTypeError):
        list(generic.watch([3], prompted(generic)))
    with pytest.raises(WrongTypeError):
        list(generic.watch([("a", [])], prompted(generic)))
    with pytest.raises(WrongTypeError, match="watch_async"):
        list(generic.watch(3, prompted(generic)))
    untrained = Monitor(scripted.model, scripted.tokenizer, config=scripted.config)
    with pytest.raises(NotReadyError):
        untrained.watch_text(prompted(untrained), stop_below=0.5)
    for call in (
        lambda: generic.watch_text(prompted(generic), threshold=0.5),
        lambda: list(generic.watch([ANSWER], prompted(generic), threshold=0.5)),
    ):
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'threshold'"):
            call()


def test_notices_and_verified_events_come_in_order(scripted):
    events, _ = watched(scripted, [TEXT], stop_below=0.5)
    assert [type(event) for event in events if isinstance(event, Verified | Notice)] == [Verified, Verified, Notice]


async def at_hand(pieces, error=None):
    """A stream whose pieces are all there."""
    for piece in pieces:
        yield piece
    if error is not None:
        raise error


@pytest.fixture
def recorded(scripted):
    """A monitor, and the claims that its aligner is asked about at once."""
    asked = []

    def align(passages, claims):
        asked.append(list(claims))
        return scripted.aligner.align(passages, claims)

    aligner = SimpleNamespace(name=scripted.aligner.name, align=align)
    options = {"config": scripted.config, "aligner": aligner, "aggregator": scripted.aggregator}
    return Monitor(scripted.model, scripted.tokenizer, **options), asked


def test_sentences_of_a_list_are_scored_together(recorded):
    monitor, asked = recorded
    text = f"{TEXT} " * 5
    assert fold(monitor.watch(list(text), prompted(monitor))).text == text
    assert [len(claims) for claims in asked] == [MOST_TOGETHER, MOST_TOGETHER, 4]
    asked.clear()
    assert fold(monitor.watch(list(text), prompted(monitor), at_once=10)).text == text
    assert [len(claims) for claims in asked] == [10, 10]


def test_a_list_of_pieces_is_stopped_and_checked_as_a_stream_is(recorded):
    monitor, asked = recorded
    text = f"{TEXT} " * 5
    events = monitor.watch(list(text), prompted(monitor), stop_below=0.5)
    assert fold(events).text == "Lyon is large. It is in Spain."
    assert len(asked) == 1
    with pytest.raises(WrongTypeError, match="string"):
        list(monitor.watch([*text, 5], prompted(monitor)))


def test_no_sentence_waits_for_the_next(recorded):
    monitor, asked = recorded

    async def told():
        heard = asyncio.Event()

        async def replying():
            yield "Lyon is large. It is "
            await heard.wait()
            yield "in Spain. It has a river."

        async for event in monitor.watch_async(replying(), prompted(monitor)):
            if isinstance(event, Verified):
                heard.set()

    asyncio.run(asyncio.wait_for(told(), 20))
    assert asked[0] == ["Lyon is large."]


def test_a_stream_that_breaks(scripted):
    async def told(**options):
        events, source = [], at_hand(TEXT, ConnectionError())
        try:
            async for event in scripted.watch_async(source, prompted(scripted), **options):
                events.append(event)
        except ConnectionError:
            return fold(events).text, True
        return fold(events).text, False

    assert asyncio.run(told()) == ("Lyon is large. It is in Spain. It has a river.", True)
    assert asyncio.run(told(stop_below=0.5)) == ("Lyon is large. It is in Spain.", False)  # stopped before it broke
