"""Resumable extraction: killed and started again = never killed; changed = refused."""

import json
import sys
from dataclasses import replace
from io import BufferedRandom

import numpy as np
import pytest
from command_runs import LLAMA, run_until_killed
from made_up import record, records

from syncheck import Monitor
from syncheck.base.errors import CheckpointError, InputError, MismatchError, TextGeneratorError
from syncheck.cli import main
from syncheck.labelling import LabelledResponse, LabelledSentence
from syncheck.testing import WordAligner
from syncheck.training import measure, measure_to_parquet, read_parquet

FOUR_KINDS = [record(0), record(1, response="", spans=()), record(2), record(3, passages=("word " * 300,)), record(4)]
"""One has no sentence, one does not fit a window of 400 tokens."""


@pytest.fixture(scope="module")
def monitor(llama, make_monitor):
    made = make_monitor(llama, formula=None)
    made.lid_references = None
    return made


def equal(first, second):
    """Byte by byte: NaN, metadata and all."""
    return first.read_bytes() == second.read_bytes()


def count_replays(monkeypatch):
    """Count what is measured: opened sessions, one a batch."""
    opened = []
    session = Monitor.given_session

    def counted(self, prompts):
        opened.append([prompt.question for prompt in prompts])
        return session(self, prompts)

    monkeypatch.setattr(Monitor, "given_session", counted)
    return opened


def measured_into(path, monitor, given, **options):
    return measure_to_parquet(monitor, given, path, part_size=2, show_progress=False, **options)


def stopped_after(parts, path, monitor, given, batch_size=1):
    """Measure two records a part, and stop once there are so many parts."""
    opened = []
    session = Monitor.given_session

    def breaks(self, prompts):
        if len(opened) * batch_size == 2 * parts:
            raise KeyboardInterrupt
        opened.append(prompts)
        return session(self, prompts)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Monitor, "given_session", breaks)
        with pytest.raises(KeyboardInterrupt):
            measured_into(path, monitor, given, batch_size=batch_size)


def test_parts_give_what_measuring_at_once_gives(monitor, tmp_path):
    given = records(5)
    found = measured_into(tmp_path / "x.parquet", monitor, given)
    at_once = measure(monitor, given, show_progress=False)
    for measured in (found, read_parquet(tmp_path / "x.parquet")):
        np.testing.assert_array_equal(measured.values, at_once.values)
        for layer, states in at_once.activations.items():
            np.testing.assert_array_equal(measured.activations[layer], states)
        assert (measured.records, measured.texts) == (at_once.records, at_once.texts)
        assert measured.owners.tolist() == at_once.owners.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_batches_agree_with_one_by_one(monitor, tmp_path):
    given = [*records(3), record(3, response=" Short. One.", spans=())]
    one = measure(monitor, given, show_progress=False)
    many = measure(monitor, given, batch_size=3, show_progress=False)
    np.testing.assert_allclose(many.values, one.values, atol=2e-4, equal_nan=True)
    assert (many.texts, many.records) == (one.texts, one.records)
    assert many.owners.tolist() == one.owners.tolist() == sorted(one.owners)
    with pytest.raises(InputError, match="batch_size"):
        measure(monitor, given, batch_size=0, show_progress=False)


def test_records_without_a_sentence_or_too_long_are_neither_lost_nor_in_the_way(monitor, monkeypatch, tmp_path):
    monkeypatch.setattr(monitor.model.config, "max_position_embeddings", 400)
    path = tmp_path / "x.parquet"
    # One a part, so that there are parts without a sentence.
    found = measure_to_parquet(monitor, FOUR_KINDS, path, part_size=1, show_progress=False)
    assert [r.id for r in found.records] == ["r0", "r1", "r2", "r4"]
    assert list(found.left_out) == ["r3"] and found.owners.tolist() == [0] * 3 + [2] * 3 + [3] * 3
    np.testing.assert_array_equal(found.values, measure(monitor, FOUR_KINDS, show_progress=False).values)
    with pytest.raises(InputError, match="r3"):
        measure_to_parquet(monitor, [FOUR_KINDS[1], FOUR_KINDS[3]], tmp_path / "y.parquet", show_progress=False)


@pytest.mark.parametrize("stop_after", [0, 1, 2])
def test_stopped_and_started_again_is_never_stopped(monitor, monkeypatch, tmp_path, stop_after):
    given = records(6)
    whole, path = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    measured_into(whole, monitor, given, batch_size=2)
    stopped_after(stop_after, path, monitor, given, batch_size=2)
    assert not path.exists()
    parts = sorted((tmp_path / "x.parquet.parts").glob("part-*.parquet"))
    assert len(parts) == stop_after
    opened = count_replays(monkeypatch)
    measured_into(path, monitor, given, batch_size=2)
    assert sorted(q for batch in opened for q in batch) == sorted(r.question for r in given[2 * stop_after :])
    assert equal(path, whole)
    opened.clear()
    measured_into(path, monitor, given, batch_size=2)
    assert opened == [], "a finished file is not measured again"


def test_a_part_that_was_cut_short_is_measured_again_once_deleted(monitor, tmp_path):
    given = records(4)
    whole, path = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    measured_into(whole, monitor, given)
    stopped_after(1, path, monitor, given)
    (part,) = (tmp_path / "x.parquet.parts").glob("part-*.parquet")
    part.write_bytes(part.read_bytes()[:-100])
    part.with_name("part-00001.parquet.unfinished-1").write_bytes(b"PAR1")
    with pytest.raises(CheckpointError, match=f"(?s){part.name}.*delete it"):
        measured_into(path, monitor, given)
    part.unlink()
    measured_into(path, monitor, given)
    assert equal(path, whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["whole.parquet", "x.parquet"]


def test_a_damaged_part_is_measured_again_once_deleted(monitor, monkeypatch, tmp_path):
    given = records(6)
    whole, path = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    measured_into(whole, monitor, given)
    stopped_after(2, path, monitor, given)
    _, part = sorted((tmp_path / "x.parquet.parts").glob("part-*.parquet"))
    before = part.read_bytes()
    place = before.index(b"Scott")  # in a text, behind the footer's back
    part.write_bytes(before[:place] + b"s" + before[place + 1 :])
    opened = count_replays(monkeypatch)
    with pytest.raises(CheckpointError, match=f"(?s){part.name}.*delete it"):
        measured_into(path, monitor, given)
    part.unlink()
    assert opened == []
    measured_into(path, monitor, given)
    assert sorted(q for batch in opened for q in batch) == sorted(r.question for r in given[2:])
    assert equal(path, whole)


def test_a_damaged_file_is_measured_again(monitor, tmp_path):
    path = tmp_path / "x.parquet"
    measured_into(path, monitor, records(2))
    before = path.read_bytes()
    place = before.index(b"Scott")
    path.write_bytes(before[:place] + b"s" + before[place + 1 :])
    measured_into(path, monitor, records(2))
    assert path.read_bytes() == before


def test_parts_stay_until_the_whole_can_be_read(monitor, monkeypatch, tmp_path):
    import pyarrow.parquet as parquet

    path, write = tmp_path / "x.parquet", parquet.write_table

    def half_the_whole(table, file, **options):
        write(table, file, **options)
        if isinstance(file, BufferedRandom):  # parts are written to memory first
            file.truncate(file.tell() - 100)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_table", half_the_whole)
        with pytest.raises(CheckpointError, match="disk"):
            measured_into(path, monitor, records(4))
    opened = count_replays(monkeypatch)
    assert len(measured_into(path, monitor, records(4)).records) == 4
    assert opened == []


def test_an_aligner_that_failed_is_asked_again(llama, make_monitor, monitor, tmp_path):
    class FailsAtFirst(WordAligner):
        asked = 0

        def align(self, passages, claims):
            self.asked += 1
            if self.asked == 3:
                raise RuntimeError("out of memory")
            return super().align(passages, claims)

    whole, path = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    measured_into(whole, monitor, records(4))
    failing = make_monitor(llama, formula=None, aligner=FailsAtFirst())
    failing.lid_references = None
    with pytest.raises(TextGeneratorError, match="r[23]"):
        measured_into(path, failing, records(4))
    assert len(list((tmp_path / "x.parquet.parts").glob("part-*"))) == 1
    measured_into(path, failing, records(4))
    assert equal(path, whole)


def test_records_that_were_added_or_changed_are_measured_beside_the_others(monitor, monkeypatch, tmp_path):
    whole, path = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    other = [record(9), *records(3), replace(record(3), response=" Other.", spans=())]
    measured_into(whole, monitor, other)
    stopped_after(1, path, monitor, records(4))
    opened = count_replays(monkeypatch)
    measure_to_parquet(monitor, other, path, part_size=3, show_progress=False)
    assert sorted(q for batch in opened for q in batch) == sorted(other[i].question for i in (0, 3, 4))
    assert equal(path, whole)


class TestWhatChangedIsRefused:
    @pytest.fixture
    def started(self, monitor, tmp_path):
        path = tmp_path / "x.parquet"
        stopped_after(1, path, monitor, records(4))
        return path

    def test_weights(self, monitor, started):
        weight = monitor.model.get_output_embeddings().weight.data
        before = weight.clone()
        weight.mul_(1.5)
        try:
            with pytest.raises(MismatchError, match="weights"):
                measured_into(started, monitor, records(4))
        finally:
            weight.copy_(before)

    def test_config_and_aligner(self, llama, make_monitor, started):
        other = make_monitor(llama, formula=None, schema="paper-no-lid.v1")
        other.aligner = None
        with pytest.raises(MismatchError, match="config"):
            measured_into(started, other, records(4))

    def test_weights_of_the_aligner(self, llama, make_monitor, tmp_path):
        class Weighed(WordAligner):
            def __init__(self, weights):
                self.weights = weights

            def weights_sha256(self):
                return self.weights

        path = tmp_path / "y.parquet"
        first, second, silent = (make_monitor(llama, formula=None, aligner=Weighed(w)) for w in ("1f", "2e", None))
        stopped_after(1, path, first, records(4))
        for other in (second, silent):
            with pytest.raises(MismatchError, match="sha256"):
                measured_into(path, other, records(4))
        assert measured_into(path, first, records(4)).provenance["aligner weights sha256"] == "1f"

    def test_a_folder_without_its_note(self, monitor, started):
        (started.with_name("x.parquet.parts") / "_run.json").unlink()
        with pytest.raises(MismatchError, match=r"_run\.json"):
            measured_into(started, monitor, records(4))

    def test_a_larger_batch_goes_on(self, monitor, started):
        assert len(measured_into(started, monitor, records(4), batch_size=2).records) == 4


def test_a_finished_file_of_another_run_is_replaced(monitor, tmp_path):
    path = tmp_path / "x.parquet"
    measured_into(path, monitor, records(3))
    first = read_parquet(path).provenance
    measured_into(path, monitor, records(4))
    assert len(read_parquet(path).records) == 4
    assert {name for name, value in read_parquet(path).provenance.items() if first[name] != value} == {"records"}


def test_sizes_and_folders_that_cannot_be_used(monitor, tmp_path):
    with pytest.raises(InputError, match="part_size"):
        measure_to_parquet(monitor, records(1), tmp_path / "x.parquet", part_size=0)
    with pytest.raises(InputError, match="exist"):
        measure_to_parquet(monitor, records(1), tmp_path / "no" / "x.parquet")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_the_command_goes_on_after_a_kill(tmp_path):
    data = tmp_path / "data.jsonl"
    with data.open("w") as lines:
        for given in records(7):
            spans = [{"start": span.start, "end": span.end} for span in given.spans]
            values = {"id": given.id, "question": given.question, "context": given.passages}
            lines.write(json.dumps({**values, "response": given.response, "spans": spans}) + "\n")
    command = ["features", "--model", str(LLAMA), "--aligner", "none", "--data", str(data), "--part-size", "2"]
    command += ["--batch-size", "2", "--output"]
    path, whole = tmp_path / "x.parquet", tmp_path / "whole.parquet"
    run_until_killed(*command, str(path))
    folder = tmp_path / "x.parquet.parts"
    assert len(list(folder.glob("part-*.parquet"))) == 2 and len(list(folder.glob("*unfinished*"))) == 1
    assert main([*command, str(path)]) == 0
    assert main([*command, str(whole)]) == 0
    assert [r.id for r in read_parquet(path).records] == [f"r{i}" for i in range(7)]
    assert equal(path, whole)
    assert not folder.exists()


def test_refused_sentences_leave_nothing_that_blocks_the_next_run(monitor, tmp_path):
    sentences = (LabelledSentence(0, 10, True), LabelledSentence(8, 14, False))
    given = LabelledResponse("r", "Q?", ("It is old.",), "It is old. So.", "g", "m", sentences=sentences)
    for _ in range(2):
        with pytest.raises(InputError, match="one after the other"):
            measure_to_parquet(monitor, [given], tmp_path / "x.parquet")
        assert list(tmp_path.iterdir()) == []


def test_a_run_that_stored_nothing_leaves_nothing_that_blocks_the_next(llama, make_monitor, monitor, tmp_path):
    class Broken(WordAligner):
        def align(self, passages, claims):
            raise RuntimeError("out of memory")

    broken = make_monitor(llama, formula=None, aligner=Broken())
    with pytest.raises(TextGeneratorError):
        measure_to_parquet(broken, records(4), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="none of the records"):
        measure_to_parquet(monitor, [FOUR_KINDS[1]], tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
