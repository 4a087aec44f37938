"""The page of many scored answers: what it counts, what its script is given, and that hostile text stays text."""

import base64
import hashlib
import json

import pytest
from test_html import Page

from syncheck.base.errors import InputError
from syncheck.corpus.records import answer_of
from syncheck.report.labels import tint
from syncheck.report.overview import ANSWER_BYTES, KINDS, Overview

SENTENCES = 6
"""Places in an answer of the script's data."""
HOSTILE = "</script><script>alert(1)</script><!-- ' \" & \u2028 é"


def sentence(score=0.5, *, verdict=None, text="It is so.", status="scored", evidence="So.", **fields):
    if score is not None:
        verdict = verdict or ("supported" if score >= 0.85 else "doubtful" if score >= 0.7 else "unsupported")
    return {
        "text": text,
        "start": 0,
        "end": len(text),
        "score": score,
        "status": status,
        "verdict": verdict,
        "features": {"align_score": score, "large_kl_pos": 1.0},
        "reason": None if score is not None else "no letter or digit",
        "evidence": {"passage": 1, "text": evidence, "score": 0.25},
    } | fields


def row(identity, *sentences):
    return {"id": identity, "sentences": list(sentences)}


def drawn(*rows, **options):
    overview = Overview(answer_of(one) for one in rows)
    source = overview.to_html(**options)
    texts = source.split('<script type="application/json" id="')
    data = {part.partition('"')[0]: part.partition(">")[2].partition("</script>")[0] for part in texts[1:]}
    return overview, source, {name: json.loads(text) for name, text in data.items()}


def test_sentences_are_counted_by_verdict_and_status():
    overview, source, _ = drawn(
        row("a", sentence(0.9), sentence(0.2), sentence(0.1, verdict="contradicted")),
        row("b", sentence(None, status="not_checkable"), sentence(0.95)),
        row("c"),
    )
    assert overview.kinds == {"supported": 2, "unsupported": 1, "contradicted": 1, "not_checkable": 1}
    assert (overview.answers, overview.sentences) == (3, 5)
    assert "40.0 %" in Page(source).text("td")
    assert {place: n for place, n in enumerate(overview.sentence_histogram.totals) if n} == {2: 1, 4: 1, 18: 1, 19: 1}
    assert {place: n for place, n in enumerate(overview.answer_histogram.totals) if n} == {2: 1, 19: 1}


def test_the_bars_of_a_histogram_have_the_colours_of_verdicts_whatever_the_threshold_is():
    overview, source, _ = drawn(
        row("a", sentence(0.78, verdict="unsupported"), sentence(0.95, verdict="supported")),
        row("b", sentence(0.81, verdict="contradicted"), sentence(0.84, verdict="supported")),
        row("c", sentence(0.8149, verdict="unsupported"), sentence(None, status="failed")),
    )
    assert [(bar.verdict, bar.place, bar.count, bar.below) for bar in overview.sentence_histogram.bars] == [
        ("unsupported", 15, 1, 0),
        ("contradicted", 16, 1, 0),
        ("unsupported", 16, 1, 1),
        ("supported", 16, 1, 2),
        ("supported", 19, 1, 0),
    ]
    assert [(bar.verdict, bar.place) for bar in overview.answer_histogram.bars] == [
        ("unsupported", 15),
        ("contradicted", 16),
        ("unsupported", 16),
    ]
    assert overview.sentence_histogram.bars[0].tint == tint(15.5 / 20, "unsupported")
    assert "sentences from 0.80 to 0.85, supported: 1" in Page(source).text("title")


def test_a_page_without_scores_says_so_in_place_of_the_histograms():
    _, source, _ = drawn(row("a", sentence(None, status="failed")))
    assert source.count(" data-empty>") == 2 and "No sentence here has a score." in Page(source).text("p")
    assert " data-empty>" not in drawn(row("a", sentence(0.5)))[1]


def test_the_script_is_given_the_worst_first_with_what_it_filters_by():
    _, _, data = drawn(
        row("good", sentence(0.9)), row("none", sentence(None, status="failed")), row("bad", sentence(0.1))
    )
    assert [(one[0], one[2], [KINDS[kind] for kind in one[4]]) for one in data["data"]] == [
        ("bad", 0.1, ["unsupported"]),
        ("good", 0.9, ["supported"]),
        ("none", None, ["failed"]),
    ]
    assert data["tables"]["kinds"] == list(KINDS)
    text, score, _, _, why, evidence, support, _, _ = data["data"][0][SENTENCES][0]
    assert (text, score, evidence, support) == ("It is so.", 0.1, "So.", 0.25)
    assert data["tables"]["words"][why] == "No passage supports it; nearest is passage 2:"


def test_beside_a_sentence_that_claims_nothing_stands_no_signal():
    others = [sentence(0.2 + n / 100, features={"align_score": 0.2 + n / 100}) for n in range(9)]
    heading = sentence(None, status="not_a_claim", features={"align_score": 0.0}, reason="a heading")
    _, _, data = drawn(row("a", heading, *others))
    ((*_, first),) = [one for one in data["data"][0][SENTENCES] if one[1] is None]
    assert first == []


def test_signals_that_are_worse_than_in_most_sentences_stand_beside_it():
    _, _, data = drawn(*(row(str(i), sentence(i / 10)) for i in range(10)))
    place, value, percent = data["data"][0][SENTENCES][0][-1][0]
    assert (data["tables"]["signals"][place][1], value, percent) == ("align_score", "0", 90)
    assert [one[SENTENCES][0][-1] for one in data["data"][3:]] == [[]] * 7  # large_kl_pos has no better side


def test_contrasts_stand_beside_the_sentence():
    found = {"kind": "number", "sentence": "1968", "evidence": "1967", "passage": 0}
    _, _, data = drawn(row("a", sentence(0.2, contrasts=[found, found | {"kind": "unit"}])))
    assert data["data"][0][SENTENCES][0][-2] == ["passage 1 says “1967”, not “1968”"]


def test_what_a_decoder_gave_beside_the_sentences_stands_with_them():
    quoted = "The passages say:\n“It burned down.”"
    after = row("after", sentence(0.2)) | {"response": f"It is so. {quoted}\n", "stop": "quoted"}
    instead = row("instead") | {"response": quoted, "stop": "quoted"}
    ended = row("ended", sentence(0.9)) | {"response": "It is so. And", "stop": "length"}
    _, _, data = drawn(after, instead, ended, row("empty"))
    words = data["tables"]["words"]
    found = {one[0]: (words[one[8]], words[one[9]], one[10]) for one in data["data"]}
    assert found == {
        "after": ("", "given after it", quoted),
        "instead": ("no answer: the passages are quoted", "given instead", quoted),
        "ended": ("", "", ""),
        "empty": ("empty answer", "", ""),
    }


def test_hostile_text_stays_text():
    hostile = sentence(None, text=HOSTILE, status="failed", evidence=HOSTILE) | {"reason": HOSTILE}
    given = {"response": f"{HOSTILE} {HOSTILE}", "stop": "quoted"}
    hostile |= {"end": len(HOSTILE)}
    _, source, data = drawn(row(HOSTILE, sentence(0.5, text=HOSTILE), hostile) | given, title=HOSTILE)
    assert source.count("<script") == source.count("</script>") == 3
    assert "<!--" not in source
    assert [one[0] for one in data["data"][0][SENTENCES]] == [HOSTILE, HOSTILE] and data["data"][0][10] == HOSTILE
    assert HOSTILE in Page(source).text("h1")


def test_the_page_runs_its_own_script_alone_and_needs_no_other_file():
    _, source, _ = drawn(row("a", sentence()))
    page = Page(source)
    script = source.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page.values("content")
    assert not {"link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert page.values("src") == []
    assert "innerHTML" not in script


@pytest.mark.parametrize("text", ["word " * 100, "<" * 400, "\u65e5" * 3000], ids=["words", "escaped", "wide"])
def test_an_answer_takes_at_most_5_kilobytes_and_keeps_its_worst_sentence(text):
    many = [sentence(0.9, text=text, evidence=text) for _ in range(200)]
    many[150] = sentence(0.125, text=f"Worst. {text}", evidence=text)
    _, source, data = drawn(row("x", *many))
    line = source.partition('id="data">[')[2].partition("]</script>")[0]
    assert len(line.encode()) <= ANSWER_BYTES
    total, kept = data["data"][0][5:7]
    assert total == 200
    assert any(one[1] == 0.125 and one[0].startswith("Worst") for one in kept)


def test_more_answers_than_a_page_holds_are_counted_and_the_worst_listed(monkeypatch):
    monkeypatch.setattr("syncheck.report.overview.MOST_ANSWERS", 2)
    overview, source, data = drawn(*(row(str(i), sentence(i / 10)) for i in (3, 1, 2)))
    assert [one[0] for one in data["data"]] == ["1", "2"]
    assert overview.answers == 3
    assert "2 worst are listed" in Page(source).text("p")


def test_the_bundled_monitor_is_named():
    of = {"monitor": "generic-reader"}
    assert "Scored by generic-reader." in Page(drawn(row("a", sentence()) | of, row("b", sentence()))[1]).text("p")
    assert "Scored by" not in Page(drawn(row("a", sentence()))[1]).text("p")


def test_no_answers_are_said_to_be_none():
    assert "no answer was given" in Page(drawn()[1]).text("p")


@pytest.mark.parametrize(
    "given",
    [
        {"id": "a"},
        row("a", "text"),
        row("a", sentence(0.5, remarks=["unheard"])),
        row("a", sentence(0.5, contrasts=[{"kind": "unheard"}])),
        row("a", sentence(1.5)),
        row("a", sentence(0.5, status="unheard")),
        row("a", sentence(0.5) | {"verdict": None}),
        row("a", sentence(0.5) | {"evidence": {"passage": "1", "text": "", "score": 1}}),
    ],
    ids=["no sentences", "no object", "remark", "contrast", "score", "status", "verdict", "evidence"],
)
def test_a_line_that_score_did_not_write_is_refused(given):
    with pytest.raises(InputError):
        answer_of(given)
