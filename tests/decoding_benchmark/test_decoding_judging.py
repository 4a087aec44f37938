"""Answers judged proposition by proposition."""

import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from decoding import AnswerJudge, EvaluatedAnswer, JudgedProposition
from decoding.judging import propositions_of
from judged import answer, judged

from syncheck import load_aligner
from syncheck.base.errors import InputError
from syncheck.results.types import Support
from syncheck.testing import WordAligner

PASSAGES = ("red green blue one two three four",)


class OtherAligner(WordAligner):
    """Not the monitors' by name; counts what it is asked."""

    name = "other"

    def __init__(self):
        self.asked = []

    def align(self, passages, claims):
        self.asked.append(list(claims))
        return super().align(passages, claims)


@pytest.fixture
def monitor(llama, make_monitor):
    return make_monitor(llama)


def judge_of(monitor, aligner, **options):
    return AnswerJudge(aligner, monitor=monitor, **options)


def test_each_proposition_is_judged_and_each_cut_counted(monitor):
    given = answer("Red green. One two three four; red black white. Gold.")
    (found,) = judge_of(monitor, OtherAligner()).judge([given], passages=PASSAGES, prompt="p", task="t")
    assert [(p.text, p.support) for p in found.verdict.propositions] == [
        ("Red green.", 1.0),
        ("One two three four", 1.0),
        ("red black white.", pytest.approx(1 / 3)),
        ("Gold.", 0.0),
    ]
    assert found.verdict.cut == ((1, 1), (3, 2), (4, 2))
    assert (found.faithfulness, found.informativeness) == (0.5, 4)
    assert [found.faithfulness_at(n) for n in (1, 2, 3, 9)] == [1.0, 2 / 3, 0.5, 0.5]


def test_what_follows_the_last_sentence_is_judged_with_it(monitor):
    given = [answer("Red. Black. Gold.", ends=(4, 11)), answer("Red. Gold", ends=())]
    found = judge_of(monitor, OtherAligner()).judge(given, passages=PASSAGES, prompt="p", task="t")
    assert [each.verdict.cut for each in found] == [((1, 1), (3, 1)), ((2, 1),)]


def test_the_threshold_is_the_least_support_of_a_faithful_one(monitor):
    given = answer("Red black.")
    for threshold, faithfulness in ((0.5, 1.0), (0.51, 0.0)):
        judge = judge_of(monitor, OtherAligner(), threshold=threshold)
        assert judge.judge([given], passages=PASSAGES, prompt="p", task="t")[0].faithfulness == faithfulness


def test_shared_propositions_are_judged_once(monitor):
    aligner = OtherAligner()
    given = [answer("Red. Blue."), answer("Red."), answer("")]
    found = judge_of(monitor, aligner).judge(given, passages=PASSAGES, prompt="p", task="t")
    assert aligner.asked == [["Red.", "Blue."]]
    assert [each.informativeness for each in found] == [2, 1, 0]


@pytest.mark.parametrize("text", ["", "  ", "..."])
def test_an_empty_answer_has_nothing_to_judge(monitor, text):
    aligner = OtherAligner()
    (found,) = judge_of(monitor, aligner).judge([answer(text)], passages=PASSAGES, prompt="p", task="t")
    assert aligner.asked == [] and found.answer.is_empty
    assert (found.faithfulness, found.informativeness, found.faithfulness_at(1)) == (None, 0, None)


def test_the_monitors_aligner_is_refused(monitor):
    class SameName:
        name = "words"

        def align(self, passages, claims):
            return [Support(1.0, None) for _ in claims]

    for aligner in (monitor.aligner, SameName()):
        with pytest.raises(InputError, match="own"):
            judge_of(monitor, aligner)
        judge_of(monitor, aligner, allow_monitor_aligner=True)
    for threshold in (0.0, 1.1):
        with pytest.raises(InputError, match="threshold"):
            judge_of(monitor, OtherAligner(), threshold=threshold)


def test_the_monitors_aligner_is_refused_under_another_name(llama, make_monitor, tmp_path):
    """The packaged aligner by its folder, and a copy of it."""
    bundled = load_aligner("bundled")
    monitor = make_monitor(llama, aligner=bundled)
    packaged = Path(str(files("syncheck") / "assets" / "aligner"))
    copy = shutil.copytree(packaged, tmp_path / "judge")
    for folder in (packaged, copy):
        aligner = load_aligner(folder)
        assert aligner.name == str(folder) != bundled.name
        with pytest.raises(InputError) as caught:
            judge_of(monitor, aligner)
        assert repr(str(folder)) in str(caught.value)
        judge_of(monitor, aligner, allow_monitor_aligner=True)
    judge_of(monitor, OtherAligner())
    judge_of(make_monitor(llama), bundled)


def test_a_judged_answer_survives_json():
    given = judged("p", [(1, 1), (3, 2)], backtracked=True)
    assert EvaluatedAnswer.from_dict(given.to_dict()) == given
    assert given.to_dict()["empty"] is False and judged("p").to_dict()["empty"] is True
    with pytest.raises(KeyError):
        EvaluatedAnswer.from_dict({})
    changed = replace(given, verdict=replace(given.verdict, propositions=(JudgedProposition("x", 0.5),)))
    assert EvaluatedAnswer.from_dict(changed.to_dict()) == changed != given


@pytest.mark.parametrize(
    ("text", "propositions"),
    [
        ("", ()),
        (" \n", ()),
        ("?! ...", ()),
        ("He was born in 1903.", ("He was born in 1903.",)),
        ("One two. Three four!", ("One two.", "Three four!")),
        ("Born in 1903; died in 1950.", ("Born in 1903", "died in 1950.")),
        (
            "He wrote four long books, and the last one was sold. He ate pears, and plums.",
            ("He wrote four long books", "the last one was sold.", "He ate pears, and plums."),
        ),
        ("He went to the sea, but she liked the hills.", ("He went to the sea", "she liked the hills.")),
        (
            "In the first year he ran, and he swam far out, while they slept in the tent.",
            ("In the first year he ran", "he swam far out", "they slept in the tent."),
        ),
        ("Red, and in the year of 1903.", ("Red, and in the year of 1903.",)),
    ],
)
def test_rules_cut_at_sentences_semicolons_and_conjunctions(text, propositions):
    assert propositions_of(text) == list(propositions)
