"""Sentences to label: their order, the file of labels, and going on from it."""

from dataclasses import replace

import pytest
from command_runs import write

from syncheck import Monitor, MonitorConfig, Verifier
from syncheck.base.errors import InputError, RecordError
from syncheck.labelling import (
    LabelSheet,
    UnfaithfulSpan,
    labelled_responses,
    load_jsonl,
    second_reading,
    unlabelled_responses,
)
from syncheck.testing import WordAligner, scripted_monitor
from syncheck.training import measure

TEXTS = {"A is red. B is blue.": (0.9, 0.45), "C is old. D is new.": (0.55, 0.1), "E is up. F is down.": (0.3, 0.7)}
SUPPORTS = {
    sentence: score
    for text, scores in TEXTS.items()
    for sentence, score in zip((text[: text.index(".") + 1], text[text.index(".") + 2 :]), scores, strict=True)
}


@pytest.fixture(scope="module")
def monitor():
    found = scripted_monitor(dict.fromkeys(TEXTS, 1.0), supports=SUPPORTS)
    assert found.config.backtrack_threshold < found.config.prune_threshold
    return found


@pytest.fixture
def answers():
    return unlabelled_responses(
        {"id": text[0], "question": f"{text[0]}?", "context": text, "response": text} for text in TEXTS
    )


def asked(sheet):
    return [sheet.text(place)[1] for place in sheet.open]


def labelled(sheet, labels, tmp_path):
    """Read a file in which sentences that are asked about have labels, in order."""
    responses = list(sheet.responses)
    for place, (label, *words) in zip(sheet.open, labels, strict=False):
        response, before = responses[place.response], len(sheet.text(place)[0])
        starts = [before + sheet.text(place)[1].index(one) for one in words]
        spans = [UnfaithfulSpan(start, start + len(one)) for start, one in zip(starts, words, strict=True)]
        sentences = list(response.sentences)
        sentences[place.sentence] = sentences[place.sentence].labelled(label, spans)
        responses[place.response] = replace(response, sentences=tuple(sentences))
    return load_jsonl(write(tmp_path / "labels.jsonl", *replace(sheet, responses=responses).records()))


def count(sheet):
    return sum(s.label is not None for response in sheet.responses for s in response.sentences)


def test_those_nearest_the_threshold_come_first(monitor, answers):
    near = monitor.config.backtrack_threshold
    expected = sorted(SUPPORTS, key=lambda text: abs(SUPPORTS[text] - near))
    assert asked(LabelSheet.of_responses(monitor, answers)) == expected


def test_whole_answers_in_random_order(monitor, answers):
    sheet = LabelSheet.of_responses(monitor, answers, order="random", seed=1)
    pairs = list(zip(asked(sheet)[::2], asked(sheet)[1::2], strict=True))
    assert {" ".join(pair) for pair in pairs} == set(TEXTS)
    assert [record["labels"] for record in sheet.records()] == [[None, None]] * 3


def test_the_file_is_read_as_labels_and_gone_on_from(monitor, answers, tmp_path):
    sheet = LabelSheet.of_responses(monitor, answers)
    kept = labelled(sheet, [(False,)], tmp_path)
    labels = {r.response[s.start : s.end]: s.faithful for r in kept for s in r.sentences}
    assert labels == dict.fromkeys(SUPPORTS) | {asked(sheet)[0]: False}
    again = LabelSheet.of_responses(monitor, answers, kept=kept)
    assert count(again) == 1
    assert asked(again) == asked(sheet)[1:]
    # Answers that are not drawn any more keep their labels.
    others = LabelSheet.of_responses(monitor, answers[:1], kept=kept)
    assert count(others) == 1 and len(others.records()) == 3


def test_words_marked_in_an_unfaithful_sentence_are_kept_by_the_next_sheet(monitor, tmp_path):
    given = unlabelled_responses(
        [{"id": "a", "question": "A?", "context": "A is red.", "response": "E is\nup. F is down."}]
    )
    sheet = LabelSheet.of_responses(monitor, given, order="random")
    kept = labelled(sheet, [(False, "E", "is\nup"), (True, "down")], tmp_path)  # a faithful sentence has none
    again = LabelSheet.of_responses(monitor, given, order="random", kept=kept)
    assert again.responses == kept and not again.open
    (record,) = again.records()
    assert record["labels"] == [0, 1] and [span["text"] for span in record["spans"]] == ["E", "is\nup"]


def reading(*labels, **more):
    record = {
        "id": "a",
        "question": "A?",
        "context": "A is red.",
        "sentences": ["A is red.", "B is blue.", "C is old."],
    }
    return labelled_responses([record | {"labels": list(labels)} | more])


def test_two_readers_agree_or_keep_both_labels():
    first = reading(1, 0, 0, spans=[{"start": 10, "end": 11}, {"start": 26, "end": 29}])
    (joined,), agreements = second_reading(first, reading(1, 0, "no claim", spans=[{"start": 15, "end": 19}]))
    assert [(s.label, s.readings) for s in joined.sentences] == [
        (True, None),
        (False, None),
        (None, (False, "no claim")),
    ]
    assert [[joined.response[m.start : m.end] for m in s.spans] for s in joined.sentences] == [
        [],
        ["B", "blue"],
        ["old"],
    ]
    faithful, unfaithful, no_claim, every = agreements
    assert (faithful.share, faithful.kappa) == (1.0, 1.0)
    assert (unfaithful.first, unfaithful.second, unfaithful.both, unfaithful.share) == (2, 1, 1, pytest.approx(2 / 3))
    assert (no_claim.share, no_claim.kappa) == (0.0, 0.0)
    # By hand: observed 2/3, by chance (1 * 1 + 2 * 1 + 0 * 1) / 9.
    assert (every.first, every.both, every.share) == (3, 2, pytest.approx(2 / 3))
    assert every.kappa == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))


def test_a_label_of_one_reader_alone_is_none():
    (joined,), (*_, every) = second_reading(reading(1, 0, None), reading(1, None, None))
    assert [s.label for s in joined.sentences] == [True, None, None]
    assert (every.first, every.share, every.kappa) == (1, 1.0, None)
    with pytest.raises(InputError, match="no sentence that both"):
        second_reading(reading(1, None, None), reading(None, 1, 1))
    with pytest.raises(InputError, match="'a' with other text"):
        second_reading(reading(1, 0, 1), reading(1, 0, 1, context="B is blue."))


def test_a_third_reader_may_settle_a_disagreement(monitor, tmp_path):
    given = unlabelled_responses(
        [{"id": "a", "question": "A?", "context": "A is red.", "response": "A is red. B is blue."}]
    )
    two = labelled_responses(
        [
            {
                "id": "a",
                "question": "A?",
                "context": "A is red.",
                "sentences": ["A is red.", "B is blue."],
                "labels": [1, [0, 1]],
            }
        ]
    )
    sheet = LabelSheet.of_responses(monitor, given, kept=two)
    assert asked(sheet) == ["B is blue."] and count(sheet) == 1
    assert sheet.records()[0]["labels"] == [1, [0, 1]]
    (settled,) = labelled(sheet, [(False,)], tmp_path)
    assert [s.label for s in settled.sentences] == [True, False]


def test_some_answers_are_drawn(monitor, answers):
    assert len(LabelSheet.of_responses(monitor, answers, most=2).responses) == 2


def test_another_text_under_a_known_id_is_refused(monitor, answers):
    sheet = LabelSheet.of_responses(monitor, answers)
    changed = unlabelled_responses([{"id": "A", "question": "A?", "context": "x", "response": "C is old. D is new."}])
    with pytest.raises(InputError, match="'A'"):
        LabelSheet.of_responses(monitor, changed, kept=sheet.responses)


def test_nothing_to_label(monitor):
    with pytest.raises(InputError, match="sentence"):
        LabelSheet.of_responses(
            monitor, unlabelled_responses([{"question": "q", "context": "", "response": "C is old."}])
        )


def test_text_that_the_monitor_does_not_read_is_no_part_of_what_is_labelled(llama, tmp_path):
    """A model ends its answer at an end-of-text token, also at one that is written in a given answer."""
    monitor = Monitor(llama.model, llama.tokenizer, config=MonitorConfig("paper-no-lid.v1"), aligner=WordAligner())
    response = f"A is red. B is blue.{llama.tokenizer.eos_token} C is old."
    given = unlabelled_responses([{"id": "a", "question": "A?", "context": "A is red.", "response": response}])
    sheet = LabelSheet.of_responses(monitor, given, order="random")
    kept = labelled(sheet, [(True,)] * 2, tmp_path)
    assert [r.response for r in kept] == ["A is red. B is blue."]
    assert measure(monitor, kept, show_progress=False).labels().tolist() == [1, 1]
    assert count(LabelSheet.of_responses(monitor, given, order="random", kept=kept)) == 2


@pytest.mark.parametrize(
    "response",
    [
        "<think>C is old. So it is.</think>A is red. B is blue.",
        "C is old. So it is.\n</think>\n\nA is red. B is blue.",
        "A is red. <think>C is old. So it is.</think> B is blue.",
    ],
    ids=["before", "opened by the prompt", "between"],
)
def test_reasoning_has_no_sentences_and_needs_no_labels(response, llama, tmp_path):
    verifier = Verifier(WordAligner(), config=MonitorConfig(schema="aligner.v1"))
    given = unlabelled_responses([{"id": "a", "question": "A?", "context": "A is red.", "response": response}])
    sheet = LabelSheet.of_responses(verifier, given, order="random")
    assert asked(sheet) == ["A is red.", "B is blue."]
    kept = labelled(sheet, [(True,)] * 2, tmp_path)
    assert measure(verifier, kept, show_progress=False).labels().tolist() == [1, 1]
    assert count(LabelSheet.of_responses(verifier, given, order="random", kept=kept)) == 2
    # A monitor that reads the tokens of a model cuts reasoning too: its sentences have no label.
    monitor = Monitor(llama.model, llama.tokenizer, config=MonitorConfig("paper-no-lid.v1"), aligner=WordAligner())
    measured = measure(monitor, kept, show_progress=False)
    labels = dict(zip(measured.texts, measured.labels().tolist(), strict=True))
    assert {label for text, label in labels.items() if text.endswith("B is blue.")} == {1}
    assert {label for text, label in labels.items() if "blue" not in text and "red" not in text} == {-1}


def test_text_of_the_answer_beside_reasoning_needs_a_label():
    record = {"question": "A?", "context": "A is red.", "response": "<think>C is old.</think>A is red. B is blue."}
    with pytest.raises(RecordError, match="'B is blue.'"):
        labelled_responses([record | {"sentences": ["A is red."], "labels": [1]}])
