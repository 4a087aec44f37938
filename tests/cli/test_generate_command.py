"""``syncheck generate`` by every decoder, on the bundled kit."""

import json
import re
from functools import partial
from inspect import signature

import pytest
from command_runs import LLAMA
from copying import copying_monitor

from fod import BestOfNGenerator, CADGenerator, FLAREGenerator, FODConfig, FODGenerator
from fod.config import ABSTENTION, REPAIR, SEARCH
from syncheck.cli import main

PASSAGES = ["The mill in Bern was built by Anna Keller in 1842.", "Bern lies on a river, the Aare."]
DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")
OPTIONS = {
    "temperature": ("0.9", ["sample", "fod", "rerank", "best-of-n"]),
    "top-p": ("0.9", ["sample", "fod", "rerank", "best-of-n"]),
    "backtrack-threshold": ("0.5", ["fod", "fod-backtrack", "abstain"]),
    "prune-threshold": ("0.5", ["fod"]),
    "beam-size": ("2", ["fod"]),
    "samples-per-step": ("6", ["fod"]),
    "until": ("any", ["fod"]),
    "max-sentences": ("9", ["fod", "fod-backtrack"]),
    "on-exhausted": ("stop", ["fod"]),
    "message": ("No.", ["fod", "fod-backtrack", "abstain"]),
    "propose": ("sample", ["fod"]),
    "guards": ("no", ["fod"]),
    "branches": ("4", ["fod"]),
    "max-skips": ("2", ["fod"]),
    "samples": ("6", ["rerank", "best-of-n"]),
    "reward": ("mean", ["rerank", "best-of-n"]),
    "alpha": ("0.5", ["cad", "fod"]),
    "plausibility": ("0", ["cad", "fod"]),
    "flare-threshold": ("0.1", ["flare"]),
    "max-retrievals": ("8", ["flare"]),
    "passages": ("nowhere.txt", ["flare"]),
}
"""A value of each option, as a rule its default, and the decoders that have it."""


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
    options = {
        "rerank": ["--samples", "2"],
        "best-of-n": ["--samples", "2", "--reward", "lowest"],
        "flare": ["--flare-threshold", "0.3", "--passages", str(files / "passages.txt"), "--max-retrievals", "2"],
    }
    code, (answer,) = generate(files, decoder, *options.get(decoder, []))
    assert code == 0 and answer["id"] == 7 and answer["stop"]
    joined = "".join(s["text"] for s in answer["sentences"])
    assert joined.replace(" ", "") == answer["response"].replace(" ", "")
    assert ("trace" in answer) == (decoder not in ("greedy", "sample"))
    if decoder in ("rerank", "best-of-n"):
        assert len(answer["trace"]["rewards"]) == 2
    if decoder == "best-of-n":
        lowest = min(s["score"] for s in answer["sentences"] if s["score"] is not None)
        assert max(answer["trace"]["rewards"]) == lowest
    assert ("thresholds" in answer.get("trace", {})) == (decoder in ("fod", "fod-backtrack", "abstain"))
    if decoder == "flare":
        assert all(set(r) == {"query", "passages"} for r in answer["trace"]["retrievals"])


def test_abstaining_says_the_message(files):
    fod = ["--prune-threshold", "1"]
    asked = (("abstain", []), ("fod", fod), ("fod", [*fod, "--on-exhausted", "abstain"]), ("fod-backtrack", []))
    for decoder, options in asked:
        message = ["--backtrack-threshold", "1", "--message", "I do not know."]
        code, (answer,) = generate(files, decoder, *options, *message)
        assert (code, answer["response"], answer["stop"]) == (0, "I do not know.", "abstained")
        assert answer["sentences"] == [] and answer["trace"]["message"] == "I do not know."


def test_the_tree_of_a_search(files):
    _, (answer,) = generate(files, "fod", "--backtrack-threshold", "1", "--prune-threshold", "0")
    trace = answer["trace"]
    assert trace["backtracked"] and trace["tree"][0]["fate"] == "taken_back"
    assert sum(len(step["candidates"]) for step in trace["rounds"]) + 1 == sum(size(node) for node in trace["tree"])


def test_options_reach_the_search(files, monkeypatch):
    """All that FODConfig has, but for what is only for callers in Python."""
    built = []
    generate_really = FODGenerator.generate
    monkeypatch.setattr(
        FODGenerator, "generate", lambda self, *args, **kw: built.append(self) or generate_really(self, *args, **kw)
    )
    search = ["--backtrack-threshold", "1", "--prune-threshold", "0", "--beam-size", "1", "--samples-per-step", "2"]
    limits = ["--until", "all", "--max-sentences", "1", "--on-exhausted", "annotate"]
    limits += ["--guards", "yes"]
    _, (answer,) = generate(files, "fod", *search, *limits, "--temperature", "0.5", "--top-p", "0.75")
    assert built[0].config == FODConfig(
        backtrack_threshold=1.0,
        prune_threshold=0.0,
        beam_size=1,
        samples_per_step=2,
        temperature=0.5,
        top_p=0.75,
        until="all",
        max_sentences=1,
        on_exhausted="annotate",
        guards=True,
    )
    assert len(answer["sentences"]) == 1
    assert answer["trace"]["thresholds"] == {"backtrack": 1.0, "prune": 0.0}
    generate(files, "fod-backtrack", "--backtrack-threshold", "0", "--max-sentences", "1")
    assert (built[1].config.backtrack_threshold, built[1].config.max_sentences) == (0.0, 1)
    generate(files, "fod")
    assert built[2].config == FODConfig()


def test_repair_by_branching(files, capsys):
    options = ["--propose", "branch", "--backtrack-threshold", "0.9", "--branches", "2", "--max-skips", "1"]
    options += ["--prune-threshold", "0.95"]
    code, (answer,) = generate(files, "fod", *options, "--alpha", "0.25", "--plausibility", "0.05")
    trace = answer["trace"]
    assert code == 0 and all(s["score"] >= 0.9 for s in answer["sentences"] if s["status"] == "scored")
    assert sum(len(step["candidates"]) for step in trace["rounds"]) == sum(size(node) for node in trace["tree"])
    assert len(trace["hidden"]) <= 1 and trace["thresholds"]["prune"] == 0.95
    arguments = ["generate", "--input", str(files / "in.jsonl"), "--decoder", "fod"]
    assert main([*arguments, "--propose", "branch", "--beam-size", "2"]) == 2
    assert "--beam-size" in capsys.readouterr().err
    assert main([*arguments, "--max-skips", "2"]) == 2 and "--max-skips" in capsys.readouterr().err


@pytest.mark.parametrize("decoder", DECODERS)
def test_options_of_other_decoders_are_refused(files, decoder, capsys):
    """All of them at once, with the decoders that have them; none is refused that it has."""
    foreign = {name: value for name, (value, own) in OPTIONS.items() if decoder not in own}
    flags = [part for name, value in foreign.items() for part in (f"--{name}", value) if part is not None]
    assert main(["generate", "--input", str(files / "in.jsonl"), "--decoder", decoder, *flags]) == 2
    message = capsys.readouterr().err
    assert decoder in message
    named = dict(re.findall(r"--([a-z-]+) is for ([a-z, -]+?)(?=[;.])", message))
    assert named == {name: ", ".join(OPTIONS[name][1]) for name in foreign}


@pytest.mark.parametrize(
    "option",
    [["--beam-size", "0"], ["--backtrack-threshold", "release"], ["--prune-threshold", "1.5"]],
    ids=" ".join,
)
def test_values_outside_their_range(files, option):
    with pytest.raises(SystemExit) as stopped:
        main(["generate", "--decoder", "fod", *option])
    assert stopped.value.code == 2


def described(command, capsys):
    """What --help says of each option: its flag -> the rest of its entry, on one line."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    entries = re.split(r"\n  (?=-)", capsys.readouterr().out.partition("\noptions:")[2])
    named = [entry.partition(" ") for entry in entries if entry.startswith("-")]
    return {flag: " ".join(rest.partition("\n\n")[0].split()) for flag, _, rest in named}


def test_the_help_of_generate(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    found = described("generate", capsys)
    defaults = {
        "--beam-size": SEARCH.beam_size,
        "--samples-per-step": SEARCH.samples_per_step,
        "--until": SEARCH.until,
        "--propose": "sample",
        "--branches": REPAIR.branches,
        "--max-skips": REPAIR.max_skips,
        "--max-sentences": SEARCH.max_sentences,
        "--samples": SEARCH.samples_per_step,
        "--temperature": f"1), fod, rerank and best-of-n ({SEARCH.temperature}",
        "--top-p": f"1), fod, rerank and best-of-n ({SEARCH.top_p}",
        "--max-retrievals": signature(FLAREGenerator).parameters["max_retrievals"].default,
        "--alpha": f"cad: {signature(CADGenerator).parameters['alpha'].default}; fod: {REPAIR.alpha}",
        "--reward": signature(BestOfNGenerator).parameters["reward"].default,
        "--on-exhausted": SEARCH.on_exhausted,
        "--message": ABSTENTION,
    }
    for flag, default in defaults.items():
        assert f"({default})" in found[flag], flag
    assert (
        not signature(CADGenerator).parameters["plausibility"].default
        and f"(cad: 0, none; fod: {REPAIR.plausibility})" in found["--plausibility"]
    )


@pytest.mark.parametrize("command", ["generate", "score", "demo"])
def test_every_option_has_a_help_with_its_default(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    found = described(command, capsys)
    assert len(found) >= 5
    without = (
        "--flare-threshold",
        "--output",
        "--passages",
        "--aligner-entailment",
        "--spans",
        "--html",
        "--context",
        "-h,",
    )
    for flag, text in found.items():
        assert text.endswith(")") != (flag in without), flag
    if command == "generate":
        assert set(found) >= {f"--{name}" for name in OPTIONS}


def size(node):
    return 1 + sum(size(child) for child in node["children"])


def test_flare_needs_its_options(files, capsys):
    code = main(["generate", "--input", str(files / "in.jsonl"), "--decoder", "flare"])
    assert code == 2 and "--flare-threshold" in capsys.readouterr().err


def test_decoders_that_need_scores(files, capsys):
    model = ["--model", str(LLAMA), "--aligner", "none"]
    for decoder in ("fod", "fod-backtrack", "abstain", "best-of-n", "rerank"):
        assert main(["generate", "--input", str(files / "in.jsonl"), "--decoder", decoder, *model]) == 2
        said = "no aggregator" if decoder in ("best-of-n", "rerank") else decoder
        assert said in capsys.readouterr().err


def test_the_demo_shows_a_quotation_as_the_answer(files, monkeypatch, capsys):
    monkeypatch.setattr("syncheck.kit.load_kit", lambda purpose: copying_monitor())
    monkeypatch.setattr("fod.FODGenerator", partial(FODGenerator, backtrack_threshold=1.0, prune_threshold=1.0))
    asked = ["--question", "Who built the mill?", "--context", str(files / "passages.txt")]
    assert main(["demo", *asked, "--report", str(files / "report.html"), "--max-new-tokens", "20"]) == 0
    shown = capsys.readouterr().out
    assert "(given instead: Passage 1 says:" in shown and "(no sentence)" not in shown
