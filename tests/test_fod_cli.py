"""``syncheck generate`` by every decoder, on the bundled kit."""

import json
from pathlib import Path

import pytest

from syncheck.cli import main

PASSAGES = ["The mill in Bern was built by Anna Keller in 1842.", "Bern lies on a river, the Aare."]
DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "cad", "flare")


@pytest.fixture
def files(tmp_path):
    record = {"id": 7, "question": "What happened in 1842?", "context": PASSAGES}
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    (tmp_path / "passages.txt").write_text("\n\n".join([*PASSAGES, "Anna Keller lived in Bern."]), encoding="utf-8")
    return tmp_path


def generate(files, decoder, *options):
    target = files / "out.jsonl"
    arguments = ["generate", "--input", str(files / "in.jsonl"), "--output", str(target), "--decoder", decoder]
    code = main([*arguments, "--max-new-tokens", "30", *options])
    return code, [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_answers(files, decoder):
    options = ["--samples", "2", "--flare-threshold", "0.3", "--passages", str(files / "passages.txt")]
    code, (answer,) = generate(files, decoder, *options)
    assert code == 0 and answer["id"] == 7 and answer["stop"]
    joined = "".join(s["text"] for s in answer["sentences"])
    assert joined.replace(" ", "") == answer["response"].replace(" ", "")
    assert ("trace" in answer) == (decoder not in ("greedy", "sample"))
    if decoder == "rerank":
        assert len(answer["trace"]["rewards"]) == 2
    if decoder == "flare":
        assert all(set(r) == {"query", "passages"} for r in answer["trace"]["retrievals"])


def test_abstaining_says_the_message(files):
    for decoder, options in (("abstain", []), ("fod", ["--prune-threshold", "1", "--on-nothing", "abstain"])):
        message = ["--backtrack-threshold", "1", "--message", "I do not know."]
        code, (answer,) = generate(files, decoder, *options, *message)
        assert (code, answer["response"], answer["stop"]) == (0, "I do not know.", "abstained")
        assert answer["sentences"] == [] and answer["trace"]["message"] == "I do not know."


def test_the_tree_of_a_search(files):
    _, (answer,) = generate(files, "fod", "--backtrack-threshold", "1", "--prune-threshold", "0")
    trace = answer["trace"]
    assert trace["backtracked"] and trace["tree"][0]["fate"] == "taken_back"
    assert sum(len(step["candidates"]) for step in trace["rounds"]) + 1 == sum(size(node) for node in trace["tree"])


def size(node):
    return 1 + sum(size(child) for child in node["children"])


def test_flare_needs_its_options(files, capsys):
    code = main(["generate", "--input", str(files / "in.jsonl"), "--decoder", "flare"])
    assert code == 2 and "--flare-threshold P and --passages FILE" in capsys.readouterr().err


def test_decoders_that_need_scores(files, capsys):
    model = ["--model", str(Path(__file__).parent / "golden" / "signals" / "llama"), "--aligner", "none"]
    for decoder in ("fod", "fod-backtrack", "abstain"):
        assert main(["generate", "--input", str(files / "in.jsonl"), "--decoder", decoder, *model]) == 2
        assert f"--decoder {decoder} needs a trained monitor" in capsys.readouterr().err
