"""Labels of biographies that are kept as they are made: on after a kill, without a record lost or labelled twice."""

import json
from pathlib import Path

import pytest

from syncheck.cli import main
from syncheck.errors import CheckpointError, InputError, RecordError, TextGeneratorError
from syncheck.labelling import SupportJudge, load_biographies, load_judge, load_records
from syncheck.training import read_parquet

GOLDEN = str(Path(__file__).parents[1] / "golden" / "signals" / "llama")
PEOPLE = ("Ada Lovelace", "Malcolm X", "Noël Clay", "Plato")


class KilledError(BaseException):
    """Ends a run as a signal does: nothing of the library catches it."""


def biography(name, **given):
    values = {"id": name, "topic": name, "ctxs": [{"text": f"{name} was born in London."}]}
    return values | {"output": f"{name} was born in London. {name} sold 17 boats in Oslo."} | given


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "x.jsonl", *map(biography, PEOPLE))


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept.jsonl"


class Judge:
    """Born is supported, all else is not; before the ``end``-th question it raises ``error``."""

    def __init__(self, end=None, error=None, *, then=lambda: None):
        self.asked, self._end, self._error, self._then = [], end, error, then

    def __call__(self, passages, propositions):
        if len(self.asked) == self._end:
            self._then()
            raise self._error
        self.asked.append(passages[0].removesuffix(" was born in London."))
        return ["born" in each for each in propositions]


def label(data, kept, judge, **options):
    return load_biographies(data, propositioner=lambda text: text.split(". "), judge=judge, kept=kept, **options)


def test_a_run_that_is_killed_goes_on_where_it_was(data, kept):
    lines = []
    first = Judge(2, KilledError(), then=lambda: lines.extend(kept.read_bytes().splitlines(keepends=True)))
    with pytest.raises(KilledError):
        label(data, kept, first)
    assert len(lines) == 2 and all(line.endswith(b"\n") for line in lines)  # there when the kill came
    second, alone = Judge(), Judge()
    assert label(data, kept, second) == load_biographies(data, propositioner=lambda t: t.split(". "), judge=alone)
    assert (first.asked, second.asked, alone.asked) == ([*PEOPLE[:2]], [*PEOPLE[2:]], [*PEOPLE])
    assert [json.loads(line)["id"] for line in kept.read_text().splitlines()] == [*PEOPLE]
    assert label(data, kept, Judge(0, KilledError()))[2].group == "Noël Clay"  # the judge is not asked again


@pytest.mark.parametrize("end", [-2, -40, "ë", "start"])
def test_a_line_that_a_kill_left_half_written_is_dropped(data, kept, end):
    expected = label(data, kept, Judge())
    whole = kept.read_bytes()
    lines = whole.splitlines(keepends=True)
    third = lines[2]
    cut = {"ë": third.index("ë".encode()) + 1, "start": 4}.get(end, end)
    kept.write_bytes(b"".join(lines[:2]) + third[:cut])
    again = Judge()
    assert label(data, kept, again) == expected
    assert again.asked == [*PEOPLE[2:]]
    assert kept.read_bytes() == whole


def test_half_a_character_of_a_model_is_kept(data, kept):
    def cut(text):
        return ["born \ud800"]

    expected = load_biographies(data, propositioner=cut, judge=Judge(), kept=kept)
    assert load_biographies(data, kept=kept) == expected


def test_a_last_line_without_its_end_is_whole(data, kept):
    expected = label(data, kept, Judge())
    whole = kept.read_bytes()
    kept.write_bytes(whole.rstrip())
    assert label(data, kept, Judge(0, KilledError())) == expected
    assert kept.read_bytes() == whole


@pytest.mark.parametrize(
    "line", ['{"record": "sha256:0", "propositions": [{"text": "a"}]}', '{"record": "sha256:0", "pro', "[]", "{}"]
)
def test_a_damaged_line_is_named(data, kept, line):
    label(data, kept, Judge())
    before = kept.read_text().splitlines()
    kept.write_text("\n".join([before[0], line, *before[2:]]) + "\n")
    with pytest.raises(CheckpointError, match=r"kept\.jsonl:2 is damaged .*Delete this line"):
        label(data, kept, Judge())


def test_another_file_is_not_taken_for_kept_labels(data, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("do not cut this")
    with pytest.raises(CheckpointError, match=r"notes\.txt:1 is damaged"):
        label(data, other, Judge())
    assert other.read_text() == "do not cut this"
    with pytest.raises(CheckpointError, match=r"x\.jsonl:1 is damaged"):
        label(data, data, Judge())
    with pytest.raises(InputError, match="the folder does not exist"):
        label(data, tmp_path / "no" / "kept.jsonl", Judge())


def test_only_changed_records_are_labelled_again(data, kept):
    label(data, kept, Judge())
    changed = [
        biography(PEOPLE[0], group="another", generator="m"),  # what a label does not depend on
        biography(PEOPLE[1], output="Malcolm X was born in London."),
        biography(PEOPLE[2], ctxs=[{"text": "A new passage."}]),
        biography(PEOPLE[3], propositions=["Plato was born in London."]),
        biography("New Name"),
    ]
    judge = Judge()
    found = label(write(data, *reversed(changed)), kept, judge)
    assert judge.asked == ["New Name", "Plato", "A new passage.", "Malcolm X"]
    assert [r.id for r in found] == ["New Name", *PEOPLE[::-1]] and found[-1].group == "another"
    judge = Judge()
    label(data, kept, judge, max_passages=1)
    assert judge.asked == []


def test_what_is_kept_needs_no_models(data, kept):
    expected = label(data, kept, Judge())
    assert load_records(data, kept=kept) == expected
    with pytest.raises(InputError, match="Leave the propositioner and the judge out, and kept="):
        plain = {"question": "q", "context": "c", "response": "r", "spans": []}
        load_records(write(data.with_name("plain.jsonl"), plain), kept=kept)


@pytest.mark.parametrize("error", [TextGeneratorError("no list"), InputError("no list")])
def test_an_answer_of_another_form_is_located_and_what_was_labelled_stays(data, kept, error):
    with pytest.raises(RecordError, match="no list") as caught:
        label(data, kept, Judge(3, error))
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(data), 4, "propositions")
    assert caught.value.__cause__ is error
    judge = Judge()
    label(data, kept, judge)
    assert judge.asked == ["Plato"]


def test_a_propositioner_that_answers_in_another_form_is_located(data):
    def fails(text):
        raise TextGeneratorError("no list")

    with pytest.raises(RecordError, match="no list") as caught:
        load_biographies(data, propositioner=fails)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(data), 1, "output")


def test_a_bad_record_is_found_before_the_first_is_labelled(data):
    write(data, *map(biography, PEOPLE), biography("Ada Lovelace"))
    judge = Judge()
    with pytest.raises(RecordError, match="another response has the id 'Ada Lovelace'"):
        label(data, None, judge)
    assert judge.asked == []


def test_a_bar_shows_how_far_it_is(data, kept, capsys):
    with pytest.raises(KilledError):
        label(data, kept, Judge(1, KilledError()), show_progress=True)
    assert "labelling" in capsys.readouterr().err
    label(data, kept, Judge(), show_progress=True)
    shown = capsys.readouterr().err.split("\r")
    assert "1/4" in shown[1] and "4/4" in shown[-1]
    label(data, kept, Judge(), show_progress=True)  # nothing to wait for
    label(write(data, biography("A", propositions=[])), kept, Judge(), show_progress=True)
    assert "labelling" not in capsys.readouterr().err


@pytest.fixture
def features(data, tmp_path):
    models = ["--model", GOLDEN, "--aligner", "none", "--schema", "paper-no-lid.v1"]
    labels = ["--propositioner", "rules", "--judge", "bundled"]
    return ["features", *models, "--data", str(data), *labels, "--output", str(tmp_path / "x.parquet")]


@pytest.mark.slow
def test_features_go_on_with_the_labels_of_a_run_that_ended(features, tmp_path, monkeypatch, capsys):
    judge, asked = SupportJudge.__call__, []

    def fails_once(self, passages, propositions):
        asked.append(passages[0])
        if len(asked) == 3:
            raise TextGeneratorError("no list")
        return judge(self, passages, propositions)

    monkeypatch.setattr(SupportJudge, "__call__", fails_once)
    assert main(features) == 2
    assert "x.jsonl:3, field 'propositions': no list" in capsys.readouterr().err
    assert main(features) == 0
    assert [text.removesuffix(" was born in London.") for text in asked] == [*PEOPLE[:3], *PEOPLE[2:]]
    found = read_parquet(tmp_path / "x.parquet")
    assert [r.id for r in found.records] == [*PEOPLE] and found.labels().tolist() == [1, 0] * 4


@pytest.mark.slow
def test_features_load_no_models_for_what_is_kept(features, monkeypatch):
    loaded = []
    monkeypatch.setattr("syncheck.cli.labelled.load_judge", lambda *a, **k: loaded.append(a) or load_judge(*a, **k))
    assert main(features) == main(features) == 0
    assert len(loaded) == 1
