"""Citations: which passage a mark names, whether that passage supports the sentence, and what checking them costs."""

import json
import pickle

import pytest

from syncheck import Aggregator, Citation, MonitorConfig, Passage, SegmenterConfig, Verifier, feature_schema
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.citations import place_of
from syncheck.cli import main
from syncheck.results.types import Evidence, Support
from syncheck.testing import ScriptedAligner, scripted_monitor


class BestPassage(ScriptedAligner):
    """Aligner of words with the passage that has most of them as evidence."""

    def align(self, passages, claims):
        self.asked.append((tuple(passages), tuple(claims)))
        found = []
        for claim in claims:
            words = [{*text.lower().replace(".", "").split()} for text in passages]
            wanted = claim.lower().replace(".", "").split()
            shares = [sum(word in known for word in wanted) / len(wanted) for known in words]
            best = max(range(len(passages)), key=shares.__getitem__)
            whole = sum(any(word in known for known in words) for word in wanted) / len(wanted)
            found.append(Support(float(whole == 1), Evidence(best, passages[best], shares[best])))
        return found


THRESHOLDS = {"backtrack_threshold": 0.5, "prune_threshold": 0.5}
PASSAGES = ["Lyon lies in France.", "Bern lies in Switzerland.", "The mill is old."]


def verifier(aligner=None):
    config = MonitorConfig("aligner.v1", segmenter=SegmenterConfig(line_breaks="lists"), **THRESHOLDS)
    aggregator = Aggregator.from_signal("align_score", schema=feature_schema("aligner.v1", ()))
    return Verifier(aligner or BestPassage({}), config=config, aggregator=aggregator)


def cited(answer, passages=PASSAGES, **options):
    """The citations of an answer: marker, passage, status and the better passage."""
    report = verifier().check(answer, passages=passages, **options)
    found = [one for sentence in report.sentences for one in sentence.citations]
    assert [answer[one.start : one.end] for one in found] == [one.marker for one in found]
    return [(one.marker, one.passage, one.status, one.better) for one in found]


def test_a_monitor_and_a_verifier_count_blank_passages():
    passages = ["Lyon lies in France.", " ", "The mill is old."]
    answer = "The mill is old [3]. The mill is old [2]. The mill is old [4]."
    monitor = scripted_monitor(answer)
    prompt = monitor.prompt(question="How old is the mill?", context=passages)
    report = monitor.verifier.cited(monitor.score(prompt, answer))
    found = [(one.marker, one.passage, one.status) for sentence in report.sentences for one in sentence.citations]
    assert found == [("[3]", 2, "supported"), ("[2]", 1, "unresolved"), ("[4]", None, "fabricated")]
    assert found == [one[:3] for one in cited(answer, passages)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Lyon lies in France [1].", [("[1]", 0, "supported", None)]),
        ("Lyon lies in France. [2]", [("[2]", 1, "misattributed", 0)]),
        ("Lyon lies in France.[4]", [("[4]", None, "fabricated", 0)]),
        ("Lyon lies in Spain [1].", [("[1]", 0, "misattributed", None)]),
        ("Lyon lies in France [1, 3].", [("[1, 3]", 0, "supported", None), ("[1, 3]", 2, "misattributed", 0)]),
        ("Lyon lies in France\u30101\u2020source\u3011.", [("\u30101\u2020source\u3011", 0, "supported", None)]),
        (
            "Lyon lies in France.\u00b9 The mill is old.\u00b2",
            [("\u00b9", 0, "supported", None), ("\u00b2", 1, "misattributed", 2)],
        ),
        ("Lyon lies in France (Meyer, 2021).", [("(Meyer, 2021)", None, "unresolved", None)]),
        ("Is Lyon in France? [1]", [("[1]", 0, "unresolved", None)]),
    ],
)
def test_a_number_counts_passages_and_each_citation_is_checked_alone(answer, expected):
    assert cited(answer) == expected


def test_passages_that_support_a_sentence_together_are_both_supported():
    assert cited("Lyon lies in Switzerland [1][2].") == [("[1]", 0, "supported", None), ("[2]", 1, "supported", None)]
    assert cited("Lyon lies in Switzerland [1][3].") == [
        ("[1]", 0, "misattributed", None),
        ("[3]", 2, "misattributed", None),
    ]


NAMED = [
    Passage(PASSAGES[0], id="doc-7", title="Atlas of France", url="https://www.x.org/lyon/"),
    {"text": PASSAGES[1], "title": "Meyer 2021, Towns of Switzerland", "url": "https://x.org/bern"},
]


@pytest.mark.parametrize(
    ("mark", "passage", "status"),
    [
        ("[doc-7]", 0, "supported"),
        ("(Atlas of France)", 0, "supported"),
        ("(Source: atlas of France)", 0, "supported"),
        ("https://x.org/lyon", 0, "supported"),
        ("[x.org](http://x.org/lyon#map)", 0, "supported"),
        ("(Meyer, 2021)", 1, "misattributed"),
        ("[Meyer, 2021](https://x.org/bern)", 1, "misattributed"),
        ("https://x.org/paris", None, "fabricated"),
        ("(Source: Atlas of Spain)", None, "fabricated"),
        ("(Smith, 2021)", None, "unresolved"),
    ],
)
def test_a_name_is_an_id_a_title_or_an_address(mark, passage, status):
    better = 0 if status in ("misattributed", "fabricated") else None
    assert cited(f"Lyon lies in France {mark}.", NAMED) == [(mark, passage, status, better)]
    assert cited(f"Lyon lies in France. {mark}", NAMED) == [(mark, passage, status, better)]


LISTED = [
    "[1] https://x.org/bern\n[2] [Atlas of France](https://www.x.org/lyon/)",
    "[1] <https://x.org/bern>.\n[2] doc-7",
    "1. https://x.org/bern\n2. Atlas of France",
    "[1]: Meyer on Switzerland, https://x.org/bern\n\n[2]: Atlas of France",
]


@pytest.mark.parametrize("listed", LISTED)
def test_sources_that_an_answer_lists_are_those_of_its_marks_and_no_claims(listed):
    answer = f"Bern lies in Switzerland [1]. Lyon lies in France [2].\n\nSources:\n\n{listed}"
    report = verifier().check(answer, passages=NAMED)
    found = [(one.marker, one.passage, one.status) for sentence in report.sentences[:2] for one in sentence.citations]
    assert found == [("[1]", 1, "supported"), ("[2]", 0, "supported")]
    rest = [sentence.text for sentence in report.sentences[2:] if sentence.status != "not_a_claim"]
    assert rest == (["[1]: Meyer on Switzerland, https://x.org/bern"] if "Meyer" in listed else [])
    assert report.citation_recall == 2 / (2 + len(rest))


def test_footnotes_of_any_name_are_marks_and_their_text_is_checked():
    answer = "Lyon lies in France[^a]. The mill is old[^2].\n\n"
    answer += "[^a]: doc-7\n[^2]: https://x.org/paris\n\n[^3]: It is new."
    report = verifier().check(answer, passages=[*NAMED, PASSAGES[2]])
    assert [(one.marker, one.passage, one.status) for s in report.sentences for one in s.citations] == [
        ("[^a]", 0, "supported"),
        ("[^2]", None, "fabricated"),
    ]
    assert [(s.text, s.status) for s in report.sentences[2:]] == [
        ("[^a]: doc-7\n[^2]: https://x.org/paris", "not_a_claim"),
        ("[^3]: It is new.", "scored"),
    ]


def test_words_beside_a_listed_source_stay_a_claim():
    for line in (
        "[1] The mill is new, https://x.org/bern",
        "[1] [The mill is new](https://x.org/bern)",
        "1. It is new.",
    ):
        (sentence,) = verifier().check(line, passages=NAMED).sentences
        assert sentence.status == "scored" and sentence.score < 0.5


def test_an_id_goes_before_the_number():
    passages = [Passage("a", id="2"), Passage("b", id="1")]
    assert [place_of([name], passages) for name in ("1", "2", "3")] == [(1, False), (0, False), (None, True)]


def test_a_pattern_names_the_marks_of_an_answer():
    answer = "Lyon lies in France {ref:1;2} [9]."
    assert cited(answer, citation=r"\{ref:(.*?)\}") == [
        ("{ref:1;2}", 0, "misattributed", None),
        ("{ref:1;2}", 1, "misattributed", None),
    ]
    assert cited("Lyon lies in France {ref:1}.", citation=r"\{ref:(.*?)\}") == [("{ref:1}", 0, "supported", None)]
    with pytest.raises(InputError, match="regular expression"):
        cited(answer, citation="[")


def test_an_answer_without_citations_asks_the_aligner_once():
    aligner = BestPassage({})
    checked = verifier(aligner)
    report = checked.check("Lyon lies in France. The mill is old.", passages=PASSAGES)
    assert len(aligner.asked) == 1
    assert checked.cited(report) is report
    assert (report.citation_precision, report.citation_recall) == (None, None)


def test_sentences_that_cite_the_same_passage_are_scored_together():
    aligner = BestPassage({})
    verifier(aligner).check("Lyon lies in France [1]. Lyon lies in France, says who [1].", passages=PASSAGES)
    assert [passages for passages, _ in aligner.asked] == [tuple(PASSAGES), (PASSAGES[0],)]
    assert all("[" not in claim for _, claims in aligner.asked for claim in claims)


def test_precision_is_of_checked_citations_and_recall_of_scored_sentences():
    answer = (
        "Lyon lies in France [1]. The mill is old [1][9]. Bern lies in Switzerland. Is it? Bern lies (Meyer, 2021)."
    )
    report = verifier().check(answer, passages=PASSAGES)
    assert report.citation_precision == 1 / 3  # of [1], [1] and [9]; (Meyer, 2021) could not be checked
    assert report.citation_recall == 1 / 4  # of four sentences with a score
    made = json.loads(report.to_json())
    assert (made["citation_precision"], made["citation_recall"]) == (1 / 3, 1 / 4)
    assert made["sentences"][1]["citations"] == [
        {"marker": "[1]", "start": 41, "end": 44, "passage": 0, "status": "misattributed", "better": 2},
        {"marker": "[9]", "start": 44, "end": 47, "passage": None, "status": "fabricated", "better": 2},
    ]


def test_a_watched_answer_is_checked_at_its_end_if_asked():
    answer = "Lyon lies in France. [2] The mill is old.\u00b3 It ends [1]."
    expected = verifier().check(answer, passages=PASSAGES).sentences
    for options in ({"citations": True}, {}):
        with verifier().watch_text(passages=PASSAGES, **options) as watched:
            for char in answer:
                watched.feed(char)
            watched.close()
        found = watched.report.sentences
        assert [one.citations for one in found] == [one.citations if options else () for one in expected]
        assert [(one.text, one.score) for one in found] == [(one.text, one.score) for one in expected]


def test_records_with_the_same_texts_and_other_names_are_told_apart():
    records = [
        {
            "answer": "Lyon lies in France [a].",
            "passages": [{"text": text, "id": name} for text, name in zip(PASSAGES, names, strict=True)],
        }
        for names in ("abc", "bac")
    ]
    statuses = [report.sentences[0].citations[0].status for report in verifier().check_many(records)]
    assert statuses == ["supported", "misattributed"]


def test_a_named_passage_is_its_text():
    passage = Passage("Lyon lies in France.", id="a", title="Atlas")
    assert passage == PASSAGES[0] and pickle.loads(pickle.dumps(passage)).names == passage.names == ("a", "Atlas", None)
    with pytest.raises(WrongTypeError, match="'text'"):
        verifier().check("a", passages=[{"title": "Atlas"}])
    with pytest.raises(WrongTypeError, match="title"):
        verifier().check("a", passages=[{"text": "a", "title": 7}])


def test_citations_move_with_their_sentence():
    (sentence,) = verifier().check("Lyon lies in France [1].", passages=PASSAGES).sentences
    assert sentence.moved(characters=5, tokens=0).citations == (Citation("[1]", 25, 28, 0, "supported"),)


@pytest.mark.parametrize(
    ("answers", "options", "code", "said"),
    [
        (["Lyon lies in France [1].", "The mill is old. [c]"], [], 0, "2 citations, precision 100%, recall 100%"),
        (["Lyon lies in France [2]."], [], 1, "0.5 missed: 1 citation, precision 0%, recall 0%"),
        (
            ["Lyon lies in France [1]. It is old. It is grey."],
            [],
            1,
            "0.5 missed: 1 citation, precision 100%, recall 33%",
        ),
        (["Lyon lies in France."], [], 1, "0.5 missed: no citation was found"),
        (["Lyon lies in France (Li, 2021)."], [], 1, "did not check 1 citation"),
        (["Lyon lies in France {1}."], ["--citation", r"\{(.)\}"], 0, "1 citation, precision 100%"),
    ],
)
def test_the_command_line_counts_citations_and_fails_under_a_share(
    tmp_path, capsys, monkeypatch, answers, options, code, said
):
    monkeypatch.setattr("syncheck.cli.score.scoring_monitor", lambda args, purpose: verifier())
    context = [*PASSAGES[:2], {"text": PASSAGES[2], "id": "c"}]
    lines = [json.dumps({"question": "", "context": context, "response": answer}) for answer in answers]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    files = ["--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.jsonl")]
    page = ["--html", str(tmp_path / "page.html")]
    assert main(["score", *files, *page, "--fail-under-citations", "0.5", *options]) == code
    assert said in capsys.readouterr().err
    drawn = (tmp_path / "page.html").read_text()
    assert ('<a class="cited supported" href="#q1p1">' in drawn) == ("France [1]" in answers[0] or "{1}" in answers[0])
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert all("citations" in sentence for row in rows for sentence in row["sentences"])


def test_a_page_names_the_passages_and_marks_what_is_wrong():
    passages = [Passage(PASSAGES[0], title="<Atlas>", url="https://x.org/lyon"), *PASSAGES[1:]]
    page = verifier().check("Lyon lies in France [2][4]. The mill is old [3].", passages=passages).to_html()
    assert "<cite>&lt;Atlas&gt; \u00b7 https://x.org/lyon</cite>" in page
    assert (
        'France <a class="cited misattributed" href="#q1p2">[2]</a><span class="cited fabricated">[4]</span>.' in page
    )
    assert "[2] misattributed: passage 2 does not support it; passage 1 does" in page
    assert "[4] fabricated: its source does not exist; passage 1 does" in page
