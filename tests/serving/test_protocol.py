"""Events that carry an answer: folded, they are the answer, however they reach the reader."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncheck import EndEvent, NoticeEvent, SentenceEvent, SentenceScore, TokenEvent
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.results import (
    Append,
    EventWriter,
    Final,
    FoldedAnswer,
    Notice,
    Retract,
    Verified,
    fold,
    from_dict,
    from_json,
    protocol_events,
    to_dict,
    to_json,
    to_sse,
)
from syncheck.results.types import Evidence

CLIENT = Path(__file__).parents[2] / "syncheck" / "serving" / "client.js"
PASSAGES = ["The dose is 50 mg.\nIt is taken  twice.", "Nothing else."]
WORDS = st.text("ab é😀", min_size=1, max_size=6).filter(str.strip).map(str.strip)
GAPS = st.sampled_from(["", " ", "\n\n", "  \n"])


def scored(text, start, score=0.9, **more):
    return SentenceScore(text, start, start + len(text), 0, 0, score, "scored", {}, **more)


@st.composite
def writings(draw):
    """What a producer tells, immediate or verified, with numbers of sentences taken back; and the response."""
    reveal = draw(st.sampled_from(["verified", "immediate"]))
    text, events, kept = "", [], []
    for step in draw(st.lists(st.tuples(GAPS, WORDS, st.booleans(), st.booleans()), max_size=8)):
        lead, words, by_tokens, taken_back = step
        if reveal == "immediate" and by_tokens:
            cut = draw(st.integers(0, len(lead + words)))
            events += [TokenEvent(0, part) for part in ((lead + words)[:cut], (lead + words)[cut:])]
        event = SentenceEvent(scored(words, len(text + lead)), (), lead=lead)
        events.append(event)
        kept.append((event, len(text)))
        text += lead + words
        if reveal == "immediate" and taken_back:
            count = draw(st.integers(1, len(kept)))
            events.append(count)
            text = text[: kept[-count][1]]
            del kept[-count:]
    return reveal, events, text + draw(GAPS)


def told(reveal, events, response):
    writer = EventWriter(PASSAGES, reveal=reveal)
    for event in events:
        writer.retract(event, "better") if isinstance(event, int) else writer.write(event)
    writer.end({"response": response})
    return writer.events


@given(writings(), st.data())
def test_folding_gives_the_text_after_any_breaks_and_repeats(writing, data):
    reveal, source, response = writing
    events = told(*writing)
    answer = FoldedAnswer()
    while answer.last_id < len(events):
        first = data.draw(st.integers(0, answer.last_id))
        after = data.draw(st.integers(answer.last_id + 1, len(events)))
        fold(events[first:after], answer)
        last = answer.last_id
        fold(data.draw(st.lists(st.sampled_from(events[:last]), max_size=3)), answer)
        assert answer.last_id == last
    assert answer.text == answer.report["response"] == response
    assert [s.id for s in answer.sentences] == sorted(s.id for s in answer.sentences)
    for sentence in answer.sentences:
        assert not response[sentence.start : sentence.end].isspace()
    assert answer == fold(events)


@given(writings())
def test_nothing_is_shown_before_its_sentence_is_verified(writing):
    reveal, source, response = writing
    if reveal == "immediate":
        return
    answer = FoldedAnswer()
    for event in told(*writing):
        fold([event], answer)
        covered = {i for s in answer.sentences for i in range(s.start, s.end)}
        assert all(i in covered for i, char in enumerate(answer.text) if not char.isspace())
        assert not isinstance(event, Retract)


@given(writings())
def test_json_gives_back_every_event(writing):
    for event in told(*writing):
        assert from_json(to_json(event)) == event
        assert to_sse(event).splitlines()[0] == f"id: {event.id}"


@given(
    st.text(st.sampled_from("ab😀"), max_size=12),
    st.lists(st.tuples(*[st.integers(0, 12)] * 2)),
)
def test_retractions_move_the_sentences_behind_them(text, retractions):
    events = [Append(1, text), *(Verified(i + 2, i, i + 1, 0.5, "scored") for i in range(len(text)))]
    marks = list(text)
    for a, b in retractions:
        start, end = sorted((min(a, len(marks)), min(b, len(marks))))
        events.append(Retract(len(events) + 1, start, end, "taken back"))
        del marks[start:end]
    answer = fold(events)
    assert [s.start for s in answer.sentences] == list(range(len(marks)))
    assert [answer.text[s.start : s.end] for s in answer.sentences] == marks


def run_client(events, tmp_path):
    """The state of the JavaScript client after these events."""
    (tmp_path / "client.mjs").write_text(CLIENT.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "main.mjs").write_text(
        'import {FoldedAnswer} from "./client.mjs"; import fs from "fs";\n'
        "const states = JSON.parse(fs.readFileSync(0)).map((events) => {\n"
        "  const answer = new FoldedAnswer(); for (const event of events) answer.take(event);\n"
        "  return {...answer, text: answer.text};\n"
        "}); process.stdout.write(JSON.stringify(states));",
        encoding="utf-8",
    )
    sent = json.dumps([[to_dict(event) for event in stream] for stream in events])
    run = subprocess.run(["node", "main.mjs"], cwd=tmp_path, input=sent, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_javascript_client_folds_alike(tmp_path):
    assert len(CLIENT.read_text(encoding="utf-8").splitlines()) <= 60
    streams = []

    @given(writings())
    def collect(writing):
        events = told(*writing)
        streams.append([*events, *events[:2]])  # with duplicates

    collect()
    streams.append([Append(1, "a😀b"), Verified(2, 2, 3, 0.5, "scored"), Retract(3, 0, 2, "")])
    for events, state in zip(streams, run_client(streams, tmp_path), strict=True):
        answer = fold(events)
        assert (state["text"], state["lastId"], state["report"]) == (answer.text, answer.last_id, answer.report)
        assert [(s["start"], s["end"]) for s in state["sentences"]] == [(s.start, s.end) for s in answer.sentences]


def test_evidence_is_cited_by_its_characters():
    sentences = [
        scored("50 mg.", 0, evidence=Evidence(0, "The dose is 50 mg.", 0.9)),
        scored("Twice.", 7, evidence=Evidence(0, "It is taken twice.", 0.8)),  # white space as the aligner joins it
        scored("Else.", 14, evidence=Evidence(1, "Something of its own.", 0.1)),
        scored("More.", 20, evidence=Evidence(2, "A passage found later.", 0.1)),
    ]
    source = [SentenceEvent(s, (), lead=" " if s.start else "") for s in sentences]
    found = protocol_events(source, PASSAGES, passage_ids=["leaflet", "note"])
    cited = [e.evidence[0] for e in found if isinstance(e, Verified)]
    assert [(c.passage_id, c.start, c.end) for c in cited] == [
        ("leaflet", 0, 18),
        ("leaflet", 19, 38),
        ("note", None, None),
        (None, None, None),
    ]
    assert PASSAGES[0][19:38] == "It is taken  twice."


def test_a_message_ends_the_answer():
    answer = fold(protocol_events([NoticeEvent("I cannot answer this.", ())]))
    assert (answer.text, answer.sentences, answer.notices) == ("I cannot answer this.", [], [])


def test_a_reader_comes_back():
    writer = EventWriter()
    writer.notice("one")
    writer.notice("two", kind="warning")
    assert writer.since(1) == [Notice(2, "two", "warning")]
    assert writer.since(0) == writer.events


@pytest.mark.parametrize(
    "events",
    [
        [Append(1, "a"), Append(3, "c")],
        [Final(2, {})],
    ],
)
def test_a_gap_is_refused(events):
    with pytest.raises(InputError, match="last_id"):
        fold(events)


@pytest.mark.parametrize(
    "values",
    [
        {"v": 2, "type": "append", "id": 1, "text": "a"},
        {"v": 1, "type": "token", "id": 1, "text": "a"},
        {"v": 1, "type": "append", "id": 1},
        {},
    ],
)
def test_other_events_are_refused(values):
    with pytest.raises(InputError):
        from_dict(values)


def test_unknown_fields_are_left_for_later_releases():
    assert from_dict({"v": 1, "type": "append", "id": 1, "text": "a", "more": 2}) == Append(1, "a")


@pytest.mark.parametrize("line", ["{", "[]"])
def test_what_is_no_event_is_refused(line):
    with pytest.raises(InputError):
        from_json(line)


def test_what_does_not_add_up_is_refused():
    writer = EventWriter()
    writer.sentence(scored("One.", 0))
    with pytest.raises(InputError, match="reveal"):
        writer.end({"response": "Two."})
    with pytest.raises(InputError, match="lead"):
        writer.sentence(scored("Two.", 5))


@pytest.mark.parametrize("options", [{"reveal": "late"}, {"passage_ids": ["a"]}])
def test_bad_options_of_a_writer_are_refused(options):
    with pytest.raises(InputError):
        EventWriter(PASSAGES, **options)


@pytest.mark.parametrize("names", ["ab", [1, 2], ["a", None]])
def test_names_of_passages_that_are_no_texts_are_refused(names):
    with pytest.raises(WrongTypeError, match="passage_ids"):
        EventWriter(PASSAGES, passage_ids=names)


def test_an_end_event_is_final(report_of):
    (final,) = protocol_events([EndEvent(report_of(""))])
    assert isinstance(final, Final)
    assert final.report["response"] == "" and "tokens" not in final.report
