import math
from dataclasses import replace

import numpy as np
import pytest
from doubles import LAYERS, BrokenAligner
from made_up import record, records

from syncheck import LidReferences
from syncheck.base.errors import InputError, TextGeneratorError
from syncheck.labelling import LabelledSentence
from syncheck.training import measure


@pytest.fixture(scope="module")
def monitor(llama, make_monitor):
    made = make_monitor(llama, formula=None)
    made.lid_references = None  # an untrained monitor has no references yet
    return made


@pytest.fixture(scope="module")
def measured(monitor):
    """Four responses of three sentences; the first two are answers to one question."""
    given = [record(0, group="same"), record(1, group="same"), record(2), record(3)]
    return measure(monitor, given, show_progress=False)


def test_sentences_are_those_of_the_monitor(monitor, measured):
    assert measured.owners.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert measured.groups.tolist() == ["same"] * 6 + ["g2"] * 3 + ["g3"] * 3
    assert measured.generators.tolist() == ["made up"] * 12
    assert measured.left_out == {} and measured.schema == monitor.schema
    for text, (start, end), owner in zip(measured.texts, measured.bounds, measured.owners, strict=True):
        assert measured.records[owner].response[start:end] == text
    assert measured.texts[:3] == ("Angus Scott was born in 1900.", "The farm has 3 cows.", "Angus Scott is a player.")


def test_values_are_those_of_the_monitor(monitor, measured):
    third = measured.records[2]
    report = monitor.score(monitor.prompt(question=third.question, context=third.passages), third.response)
    for row, sentence in zip(measured.values[6:9], report.sentences, strict=True):
        expected = [math.nan if v is None else v for v in sentence.features.values()]
        np.testing.assert_array_equal(row, expected)
    lid = [measured.schema.names.index(f"lid_layer_{k}") for k in LAYERS]
    assert np.isnan(measured.values[:, lid]).all()


def test_labels_by_span(measured):
    assert measured.labels().tolist() == [1, 0, 1] * 4


def test_labels_by_sentence(monitor):
    response = " He is a player. He has cows. No."
    given = record(
        0,
        response=response,
        spans=None,
        sentences=(LabelledSentence(1, 16, True), LabelledSentence(17, 29, False), LabelledSentence(30, 33, True)),
    )
    assert measure(monitor, [given], show_progress=False).labels().tolist() == [1, 0, 1]


def test_sentences_with_a_letter_and_those_with_a_digit(monitor):
    found = measure(monitor, [record(0, response=" He is! ***! 12! Yes.", spans=())], show_progress=False)
    assert dict(zip(found.texts, found.with_letter.tolist(), strict=True)) == {
        text: any(c.isalpha() for c in text) for text in found.texts
    }
    assert dict(zip(found.texts, found.checkable.tolist(), strict=True)) == {
        text: any(c.isalnum() for c in text) for text in found.texts
    }
    assert found.with_letter.sum() < found.checkable.sum() < len(found.texts)


class TestFeatures:
    def expected(self, measured, train):
        """One sentence at a time: faithful training sentences of other groups, in order."""
        labels, groups = measured.labels(), measured.groups
        column = []
        for i in range(len(labels)):
            chosen = [j for j in train if labels[j] == 1 and groups[j] != groups[i]]
            lid_references = LidReferences({3: measured.activations[3][chosen]})
            column.append(lid_references.lid_of(3, measured.activations[3][i : i + 1])[0])
        return column

    @pytest.mark.parametrize("train", [range(12), [0, 1, 2, 6, 7, 8, 9], [3, 4, 5, 6, 8]], ids=str)
    def test_references_are_faithful_training_sentences_of_other_groups(self, measured, train):
        train = np.array(train)
        features = measured.features(measured.labels(), train)
        found = features[:, measured.schema.names.index("lid_layer_3")]
        np.testing.assert_allclose(found, self.expected(measured, train), rtol=1e-4)

    def test_own_group_does_not_matter(self, measured):
        """Whatever the other sentences of the group look like, a sentence's LID stays."""
        labels, everything = measured.labels(), np.arange(12)
        before = measured.features(labels, everything)
        moved = {k: states.copy() for k, states in measured.activations.items()}
        for states in moved.values():
            states[1:6] += 5.0
        after = replace(measured, activations=moved).features(labels, everything)
        np.testing.assert_allclose(before[0], after[0], rtol=1e-5)
        assert not np.array_equal(before[6], after[6], equal_nan=True)

    def test_other_features_stay(self, measured):
        features = measured.features(measured.labels(), np.arange(12))
        other = [i for i, name in enumerate(measured.schema.names) if not name.startswith("lid")]
        np.testing.assert_array_equal(features[:, other], measured.values[:, other])
        assert np.isfinite(features).sum() > np.isfinite(measured.values).sum()

    def test_one_group_alone_has_no_references(self, measured):
        features = measured.features(measured.labels(), np.arange(6))
        lid = features[:, measured.schema.names.index("lid_layer_2")]
        assert np.isnan(lid[:6]).all() and np.isfinite(lid[6:]).all()

    def test_most_references(self, measured):
        few = replace(measured, max_references=3)
        assert few.references(few.labels(), np.arange(12)).tolist() == [0, 2, 3]
        assert few.references(few.labels(), np.array([4, 7, 9, 8, 11, 6])).tolist() == [9, 8, 11]
        assert len(few.lid_references(few.labels(), np.arange(12)).references[2]) == 3


def test_the_bank_holds_the_faithful_sentences(measured):
    train = np.array([0, 1, 2, 6, 7])
    lid_references = measured.lid_references(measured.labels(), train)
    assert lid_references.layers == LAYERS
    expected = measured.activations[4][[0, 2, 6]].astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(lid_references.references[4].numpy(), expected)


def test_a_schema_without_lid_has_no_bank(llama, make_monitor):
    monitor = make_monitor(llama, schema="paper-no-lid.v1", formula=None)
    found = measure(monitor, records(1), show_progress=False)
    assert found.activations == {} and found.lid_references(found.labels(), np.arange(3)) is None
    np.testing.assert_array_equal(found.features(found.labels(), np.arange(3)), found.values)


def test_a_sentence_without_a_label_is_refused(measured):
    first, *others = measured.records
    half = replace(first, spans=None, sentences=(LabelledSentence(1, 4, True),))
    with pytest.raises(InputError, match="'r0'"):
        replace(measured, records=(half, *others)).labels()


def test_an_empty_response_has_no_sentence(monitor):
    found = measure(monitor, [record(0, response="", spans=()), record(1)], show_progress=False)
    assert found.owners.tolist() == [1, 1, 1] and found.labels().tolist() == [1, 0, 1]
    assert len(found.records) == 2


def test_a_records_own_prompts_are_used(monitor):
    own = record(0, prompt_with_context="All of it. Who?", prompt_without_context="Who?")
    found = measure(monitor, [own], show_progress=False)
    template = measure(monitor, [record(0)], show_progress=False)
    column = found.schema.names.index("mean_prob")
    assert not np.allclose(found.values[:, column], template.values[:, column])


class TestTooLong:
    def test_is_left_out_with_the_reason(self, monitor, monkeypatch):
        long = record(1, passages=("word " * 300,))
        window = 400
        monkeypatch.setattr(monitor.model.config, "max_position_embeddings", window)
        found = measure(monitor, [record(0), long, record(2)], show_progress=False)
        assert [r.id for r in found.records] == ["r0", "r2"] and found.owners.tolist() == [0] * 3 + [1] * 3
        assert list(found.left_out) == ["r1"] and f"the model's window is {window}" in found.left_out["r1"]

    def test_all_of_them(self, monitor, monkeypatch):
        monkeypatch.setattr(monitor.model.config, "max_position_embeddings", 10)
        with pytest.raises(InputError, match="window"):
            measure(monitor, records(2), show_progress=False)

    def test_no_records(self, monitor):
        with pytest.raises(InputError, match="records"):
            measure(monitor, [], show_progress=False)


def test_a_failing_aligner_is_not_a_missing_feature(llama, make_monitor):
    broken = make_monitor(llama, formula=None, aligner=BrokenAligner())
    empty = record(0, response="", spans=())  # nothing to align
    with pytest.raises(TextGeneratorError, match="'r1'"):
        measure(broken, [empty, record(1)], show_progress=False)


def test_a_progress_bar_is_only_for_a_terminal(monitor, capsys):
    measure(monitor, records(1))
    assert capsys.readouterr().err == ""
    measure(monitor, records(1), show_progress=True)
    assert "responses" in capsys.readouterr().err


def test_a_batch_without_memory_is_halved_and_said_and_a_response_without_is_left_out(monitor, monkeypatch, caplog):
    whole = type(monitor).given_session

    def small(self, prompts):
        if len(prompts) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        if any(prompt.question == "too large" for prompt in prompts):
            raise MemoryError
        return whole(self, prompts)

    given = [*records(4), replace(record(4), question="too large")]
    one = measure(monitor, records(4), show_progress=False)
    monkeypatch.setattr(type(monitor), "given_session", small)
    found = measure(monitor, given, batch_size=5, show_progress=False)
    np.testing.assert_allclose(found.values, one.values, atol=2e-4, equal_nan=True)
    assert found.records == tuple(given[:4])
    assert "out of memory" in found.left_out["r4"]
    assert "5 responses at once" in caplog.text and "measured as 2 and 3" in caplog.text


def test_what_breaks_a_prompt_leaves_that_record_out(monitor, monkeypatch):
    whole = type(monitor).prompt

    def breaks(self, *, question, **given):
        if question == "break":
            raise ZeroDivisionError("division by zero")
        return whole(self, question=question, **given)

    monkeypatch.setattr(type(monitor), "prompt", breaks)
    found = measure(monitor, [record(0), replace(record(1), question="break")], show_progress=False)
    assert found.left_out == {"r1": "ZeroDivisionError: division by zero"}
