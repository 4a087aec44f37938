"""Short items of an answer, which are read after the heading, label or announcement that they stand under."""

import pytest

from syncheck import Verifier
from syncheck.config import MonitorConfig
from syncheck.features.schemas import ALIGNER_ALONE
from syncheck.reading import Claim
from syncheck.results.types import SentenceSpan
from syncheck.testing import ScriptedAligner
from syncheck.text.sentences import SegmenterConfig

PASSAGES = ["The Basic plan costs £5 a month and has no API. The Pro plan costs £9 a month and has the API."]


def read(text, *earlier, question=""):
    return Claim(text, SentenceSpan(0, 0, len(text), 0, 0)).after(earlier, question=question).read


@pytest.mark.parametrize(
    ("earlier", "item", "expected"),
    [
        (["**Pro plan:**"], "- Price: £9", "Pro plan: Price: £9"),
        (["**Basic:**", "- Price: £5", "**Pro:**", "- API: yes"], "- Price: £9 [1]", "Pro: Price: £9"),
        (["### Fees"], "* Adults £5", "Fees: Adults £5"),
        (["According to passage 1, the causes are:", "1. Stress"], "2. Noise", "the causes are: Noise"),
        (["1. **Pro plan:**"], "- Price: £9", "Pro plan: Price: £9"),
        (["**Pro plan**"], "Price: £9", "Pro plan: Price: £9"),
        (["It must be:"], "(b) dry", "It must be: dry"),
        (["Fees:", "a) Adults 5"], "b) Children 2", "Fees: Children 2"),
        (["1. **Pool**:", "- Depth: 2 m", "2. **Sauna**:"], "- Heat: 80", "Sauna: Heat: 80"),
        (["Included:", "- Pool", "Not included: [2]"], "- Parking", "Not included: Parking"),
        (["Milestones:"], "1. (1967) The bridge opened.", "Milestones: (1967) The bridge opened."),
    ],
)
def test_a_short_item_is_read_after_what_it_stands_under(earlier, item, expected):
    assert read(item, *earlier) == expected


@pytest.mark.parametrize(
    ("earlier", "item"),
    [
        ([], "- Price: £9"),
        (["The Pro plan costs more."], "- Price: £9"),
        (["Here is a comparison:"], "- Price: £9"),  # a phrase of conversation
        (["**Pro plan:**"], "It costs £9."),
        (["**Pro plan:**"], "- It is what most firms take that have more than one office and a phone"),
        (["**Pro plan:**", "It has the API."], "- Price: £9"),
        (["The firm, which has its seat in a small town by the sea, offers two plans:"], "- Price: £9"),
        (["**Pro plan:**"], "- **Prices:**"),
        (["The ticket does not include:", "- Breakfast"], "Total price: 9 EUR"),  # after the list
        (["Not included:", "- API", "Pro plan: 19 EUR per month"], "- SSO"),
        (["The hotel has:", "- Rooms:", "- single rooms"], "- A heated pool"),  # perhaps no room
        (["The passages do not say:"], "- the price"),
        (["The hotel offers what most guests ask for:"], "Total price: 9 EUR"),
        (["According to the passage:"], "- It opens at nine"),
    ],
)
def test_other_sentences_are_read_alone(earlier, item):
    assert read(item, *earlier) == item
    assert read("- Price: £9", "**Pro plan:**", question=None) == "- Price: £9"


def test_an_item_is_aligned_after_what_it_stands_under():
    aligner = ScriptedAligner({"Pro: Price: £5": 0.1, "- Price: £5": 0.9})
    for reads_answers, expected in ((True, 0.1), (False, 0.9)):
        aligner.reads_answers = reads_answers
        config = MonitorConfig(schema=ALIGNER_ALONE, segmenter=SegmenterConfig(line_breaks="lists"))
        report = Verifier(aligner, config=config).check(passages=PASSAGES, answer="**Pro:**\n- Price: £5")
        last = report.sentences[-1]
        assert (last.text, last.features["align_score"]) == ("- Price: £5", expected)
