"""Monitors from unlabelled prompts: made-up labels, their card, and a run that goes on."""

import json

import pytest
from copying import MODEL
from doubles import LAYERS
from made_up import records

from syncheck import Monitor, MonitorConfig
from syncheck.base.errors import InputError, RecordError, TextGeneratorError, WrongTypeError
from syncheck.cli import main
from syncheck.labelling import load_jsonl
from syncheck.results.types import Support
from syncheck.testing import BrokenAligner, WordAligner, scripted_monitor
from syncheck.training import adapt_monitor, sentences_needed

CONFIG = MonitorConfig(schema="syncheck.v3", layers=LAYERS)


def prompts(count=10):
    """Questions with passages and answers, of whose second sentences no passage has the words."""
    return [
        {"id": r.id, "question": r.question, "context": list(r.passages), "response": r.response, "group": r.group}
        for r in records(count)
    ]


def adapted(llama, given=None, **options):
    options = {"config": CONFIG, "aligner": WordAligner(), "teacher": WordAligner(), "show_progress": False, **options}
    return adapt_monitor(
        prompts() if given is None else given, kind=Monitor, model=llama.model, tokenizer=llama.tokenizer, **options
    )


@pytest.fixture(scope="module")
def found(llama):
    return adapted(llama)


def test_labels_are_those_the_teacher_is_sure_of(found):
    teacher = WordAligner()
    for record in found.records:
        if record.task != "answer":
            continue
        for sentence in record.sentences:
            (support,) = teacher.align(record.passages, [record.response[sentence.start : sentence.end]])
            sure = support.score >= 0.8 or support.score <= 0.2
            assert sentence.faithful == ((support.score >= 0.8) if sure else None)


def test_what_was_made_is_unfaithful(found):
    counts = found.counts()
    assert set(counts) > {"answer"}
    assert all(
        faithful == 0 and unfaithful > 0 for task, (faithful, unfaithful, _) in counts.items() if task != "answer"
    )
    originals = {record.id: record for record in found.records if record.task == "answer"}
    for record in found.records:
        if record.task.startswith("planted"):
            (wrong,) = (s for s in record.sentences if s.faithful is False)
            assert record.response[wrong.start : wrong.end] not in originals[record.id.rpartition("/")[0]].response
        if record.task == "exchanged passages":
            assert record.passages != originals[record.id.rpartition("/")[0]].passages


def test_the_monitor_scores_by_its_own_signals(llama, found):
    monitor = found.monitor
    assert monitor.aggregator.kind == "monotone" and monitor.aggregator.prior == 0.5
    assert monitor.lid_references.layers == LAYERS
    assert 0 < monitor.config.backtrack_threshold <= monitor.config.prune_threshold < 1
    given = prompts()[0]
    report = monitor.score(monitor.prompt(question=given["question"], context=given["context"]), given["response"])
    assert {s.status for s in report.sentences} == {"scored"}


def test_the_same_seed_gives_the_same_monitor(llama, found):
    again = Monitor.adapt(
        prompts(),
        model=llama.model,
        tokenizer=llama.tokenizer,
        teacher=WordAligner(),
        config=CONFIG,
        aligner=WordAligner(),
        show_progress=False,
    )
    rows = [[0.5] * len(again.schema.names)]
    assert again.aggregator.score(rows).tolist() == found.monitor.aggregator.score(rows).tolist()
    assert again.config == found.monitor.config


def test_labels_that_are_given_are_not_read(llama, found):
    given = adapted(llama, records(10))
    assert [r.sentences for r in given.records] == [r.sentences for r in found.records]
    assert all(record.spans is None for record in given.records)


def test_what_does_not_fit_the_window_is_left_out(llama, found):
    long = {"id": "long", "question": "q", "context": "word " * 5000, "response": "It is."}
    given = adapted(llama, [*prompts(), long])
    assert list(given.left_out) == ["long"]
    assert [r.id for r in given.records] == [r.id for r in found.records]


def test_the_card_guarantees_nothing(found):
    card = found.card()
    assert "No coverage is guaranteed" in card
    assert f"at least {sentences_needed()} sentences" in card and sentences_needed() == 45
    assert "`words`" in card and "| answer |" in card


def test_answers_of_its_own_are_kept(tmp_path, monkeypatch):
    texts = ["The red boat is old. It sank in 1907.", "The blue tower is new. It burned in 1954."]
    double = scripted_monitor({text: 1.0 for text in texts})
    asked = [
        {"question": f"{word} {i}?", "context": f"{text} {word}."}
        for i in range(6)
        for word, text in zip(("boat", "tower"), texts, strict=True)
    ]

    def run():
        return adapt_monitor(
            asked,
            kind=Monitor,
            model=double.model,
            tokenizer=double.tokenizer,
            teacher=WordAligner(),
            config=MonitorConfig(schema="paper-no-lid.v1"),
            aligner=WordAligner(),
            samples=2,
            max_new_tokens=12,
            folder=tmp_path,
            show_progress=False,
        )

    first = run()
    assert {record.generator for record in first.records} == {"ScriptedModel"}
    answers = (tmp_path / "answers.jsonl").read_text(encoding="utf-8")
    assert len(answers.splitlines()) == len(asked)
    kept = load_jsonl(tmp_path / "labels.jsonl")
    assert [[s.faithful for s in r.sentences] for r in kept] == [
        [s.faithful for s in r.sentences] for r in first.records
    ]
    (tmp_path / "answers.jsonl").write_text(answers[:-20], encoding="utf-8")  # killed as it wrote the last
    assert run().records == first.records
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == answers
    monkeypatch.setattr(Monitor, "generate", None)
    assert run().records == first.records
    # Each ends a line for str.splitlines, and none a line of JSON.
    written = answers.replace("The red boat is old.", "The\u2028red\u2029boat\x85is old.")
    assert written != answers
    (tmp_path / "answers.jsonl").write_text(written, encoding="utf-8")
    assert {r.response for r in run().records} >= {"The\u2028red\u2029boat\x85is old. It sank in 1907."}
    (tmp_path / "answers.jsonl").write_text('{"digest": 1}\n', encoding="utf-8")
    with pytest.raises(RecordError, match="digest"):
        run()


def test_too_few_questions_are_refused_before_the_model_answers(llama, monkeypatch):
    monkeypatch.setattr(Monitor, "generate", None)
    given = [{"question": "Sum up.", "context": f"It rained in {place}."} for place in ("Oslo", "Rome", "Bonn", "Lima")]
    with pytest.raises(InputError, match="questions") as caught:
        adapted(llama, [*given, given[0], {"question": "Who?", "context": ""}])
    assert "5 questions" in str(caught.value) and "found 4 in 6 records. Add prompts" in str(caught.value)
    long = {"question": "q", "context": "word " * 5000, "response": "It is."}
    with pytest.raises(InputError, match="left out"):  # enough at first
        adapted(llama, [*prompts(4), long])


def test_too_few_labels_are_refused_before_they_are_measured(llama, monkeypatch):
    class Unsure(WordAligner):
        def align(self, passages, claims):
            return [Support(0.5, None) for _ in claims]

    monkeypatch.setattr("syncheck.training.adapt.measure", None)
    with pytest.raises(InputError, match="faithful") as caught:
        adapted(llama, teacher=Unsure())
    assert "--sure" in str(caught.value)


def test_what_cannot_be_used(llama):
    with pytest.raises(InputError, match="sure"):
        adapted(llama, sure=0.4)
    with pytest.raises(RecordError, match="question"):
        adapted(llama, [{"context": "c"}])
    with pytest.raises(WrongTypeError, match="teacher"):
        adapted(llama, teacher=3)
    with pytest.raises(InputError, match="generic"):
        adapted(llama, teacher="alignscore")
    with pytest.raises(TextGeneratorError, match="broken"):
        adapted(llama, teacher=BrokenAligner())


def test_a_text_generator_teaches(llama):
    class Marks:
        name = "marks"

        def __call__(self, prompt):
            answer = prompt.partition("\nAnswer: ")[2].partition("\nPlease")[0]
            return json.dumps({"hallucination list": [answer] if "boats" in answer else []})

    assert "`spans:marks`" in adapted(llama, teacher=Marks()).card()


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    source, output = tmp_path / "prompts.jsonl", tmp_path / "adapted"
    source.write_text("".join(f"{json.dumps(record)}\n" for record in prompts()), encoding="utf-8")
    model = ["--model", str(MODEL)]
    assert main(["adapt", *model, "--prompts", str(source), "--output", str(output), "--teacher", "bundled"]) == 0
    assert "answer" in capsys.readouterr().out
    assert "No coverage is guaranteed" in (output / "README.md").read_text(encoding="utf-8")
    scored = tmp_path / "scored.jsonl"
    assert main(["score", *model, "--monitor", str(output), "--input", str(source), "--output", str(scored)]) == 0


def test_the_command_replaces_no_card_of_another_s(tmp_path, capsys):
    source, card = tmp_path / "prompts.jsonl", tmp_path / "mine" / "README.md"
    source.write_text("".join(f"{json.dumps(record)}\n" for record in prompts()), encoding="utf-8")
    card.parent.mkdir()
    card.write_text("# Mine\n")
    model = str(MODEL)
    assert main(["adapt", "--model", model, "--prompts", str(source), "--output", str(card.parent)]) == 2
    assert str(card) in capsys.readouterr().err and [*card.parent.iterdir()] == [card]
