"""Relevance: whether a sentence answers the question, beside its score."""

import json

import pytest

from syncheck import closest_evidence, load_kit
from syncheck.base.errors import InputError, WrongTypeError

SHOES = [
    "You may return unworn shoes within 30 days of delivery. Sale items can only be exchanged.",
    "Soles are covered for two years, zips for one. Water damage is not covered.",
]


@pytest.fixture(scope="module")
def verifier():
    return load_kit("generic-bundled")


def rated(verifier, question, answer):
    report = verifier.rated(verifier.check(question=question, passages=SHOES, answer=answer))
    return [sentence.relevance for sentence in report.sentences]


def test_what_was_asked_is_more_relevant_than_what_was_not(verifier):
    asked, beside = rated(
        verifier,
        "How long do I have to return shoes?",
        "You may return unworn shoes within 30 days. Zips have one year.",
    )
    assert 0.5 < asked < 1 and 0 < beside < 0.3


def test_yes_or_no_answers_a_question_that_wants_it(verifier):
    answer, beside = rated(verifier, "Is water damage covered?", "No, it is not. Sale items can only be exchanged.")
    assert answer > 0.6 > 0.3 > beside


def test_a_number_where_one_is_asked_for_counts(verifier):
    number, none = (
        rated(verifier, "For how long are soles covered?", f"It is {said}.")[0]
        for said in ("two years", "a good while")
    )
    assert number > none


def test_scores_and_verdicts_stay(verifier):
    report = verifier.check(question="Is it waterproof?", passages=SHOES, answer="Soles are covered for two years.")
    (before,), (after,) = report.sentences, verifier.rated(report).sentences
    assert before.relevance is None and after.relevance is not None
    assert (before.score, before.verdict, before.features) == (after.score, after.verdict, after.features)
    assert report.to_dict()["sentences"][0]["relevance"] is None
    assert f"answers the question: {after.relevance:.2f}" in str(verifier.rated(report))


def test_what_claims_nothing_is_not_rated(verifier):
    assert rated(verifier, "Is it covered?", "Sure! Zips are covered for one year.")[0] is None


def test_without_passages_only_the_words_of_the_question_count(verifier):
    report = verifier.check(question="Is it covered?", passages=[], answer="It is covered.")
    assert 0 < verifier.rated(report).sentences[0].relevance < 1


def test_a_report_without_a_question_is_refused(verifier):
    with pytest.raises(InputError, match="question"):
        verifier.rated(verifier.check(passages=SHOES, answer="Zips are covered for one year."))


def quoted(question, passage, **options):
    """Quote the only passage."""
    (evidence,) = closest_evidence(question, [passage], **options)
    return evidence.text


def test_the_closest_evidence_is_a_line_of_its_heading_and_no_heading():
    hours = (
        "## Hours of the clubhouse\nMon: closed\nSat: 8:00 to 18:00\n\n## Hours of the workshop\nMon: 7:30\nSat: closed"
    )
    saturday = quoted("When is the clubhouse open on Saturday?", hours)
    assert saturday == "Hours of the clubhouse \u2026 Sat: 8:00 to 18:00"
    assert closest_evidence("What are the hours of the clubhouse?", ["Is it open?", "## Hours of the clubhouse"]) == ()


def test_the_closest_evidence_answers_the_question():
    (evidence,) = closest_evidence("How long do I have to return shoes?", SHOES)
    assert (evidence.passage, evidence.text) == (0, "You may return unworn shoes within 30 days of delivery.")
    assert 0.5 < evidence.score < 1


def test_a_row_is_quoted_with_its_header_and_a_value_with_its_object():
    table = "| Plan | Storage |\n|---|---|\n| Basic | 10 GB |\n| Plus | 50 GB |"
    assert quoted("How much storage does Plus have?", table) == "| Plan | Storage |\n| Plus | 50 GB |"
    record = '{"item": "tile cutter", "back_on": "2026-12-03"}'
    assert quoted("When will the tile cutter be back?", f"Tools: {record}") == record
    cup = '{"event": "autumn cup", "entry": {"deadline": "2026-11-14", "fee": 15}}'
    assert quoted("Until when can I enter the autumn cup?", cup) == cup
    stock = {"item": "tile cutter", "notes": 40 * "wet "}
    assert quoted("Where is the tile cutter?", json.dumps(stock)) == '"item": "tile cutter"'


@pytest.mark.parametrize("between", [",", "\t", "     "])
def test_rows_without_bars_are_quoted_with_their_header_too(between):
    lines = [
        between.join(row)
        for row in (["Ticket", "Adult", "Child"], ["Single", "6.50", "3.20"], ["Day", "11.00", "5.50"])
    ]
    table = "\n".join(lines)
    question = "How much is a day ticket for a child?"
    assert quoted(question, table) == f"{lines[0]}\n{lines[2]}"
    assert quoted(question, f"Prices of the lido\n\n{table}") == f"{lines[0]}\n{lines[2]}"
    assert quoted("How much is a ticket for a child, single or day?", table, count=2) == table


def test_what_is_no_table_has_no_header():
    mail = "> On Tue, Marit wrote:\n> The sauna is closed from 3 to 14 August for repairs to the\n> roof."
    assert (
        quoted("When is the sauna closed?", mail) == "The sauna is closed from 3 to 14 August for repairs to the roof."
    )
    rules = "rules:\n  - rule: quiet\n    from: 21\n  - rule: swimwear\n    needed: on mixed days, in the pool"
    assert quoted("When is swimwear needed?", rules).startswith("- rule: swimwear")


def test_an_object_without_white_space_is_quoted_if_it_has_few_words():
    port = {"name": "gateway", "port": 8443}
    ports = {"services": [port, *({"name": f"indexer {n}", "port": n} for n in range(20))]}
    compact = json.dumps(ports, separators=(",", ":"))
    assert quoted("Which port does the gateway have?", compact) == json.dumps(port, separators=(",", ":"))


def test_rows_and_objects_that_have_as_much_are_quoted_together():
    table = "| Hut | Beds | Stove |\n|---|---|---|\n| Elm | 4 | yes |\n| Oak | 6 | no |"
    assert quoted("Which hut has a stove?", table) == table.replace("|---|---|---|\n", "")
    many = table + "".join(f"\n| Hut {n} | {n} | no |" for n in range(3, 8))
    assert quoted("Which hut has a stove?", many).count("\n") == 1
    huts = '{"huts": [{"name": "Elm", "stove": true}, {"name": "Oak", "stove": false}]}'
    assert quoted("Which hut has a stove?", huts) == huts


def test_a_title_is_not_quoted():
    log = "Service log of the boiler\nServiced on 9 March, pump replaced.\nThe boiler is serviced again after a year."
    serviced = quoted("When must the boiler be serviced again?", log)
    assert serviced == "The boiler is serviced again after a year."
    assert quoted("What is the service log?", "Service log of the boiler") == "Service log of the boiler"


@pytest.mark.parametrize("passages", [[], ["Zips are covered for one year."]])
def test_no_evidence_where_no_passage_has_a_word_of_the_question(passages):
    assert closest_evidence("Where is the nearest airport?", passages) == ()


def test_further_parts_are_quoted_if_they_are_nearly_as_relevant():
    question = "When does the lido open?"
    apart = ["The lido opens at 7 on weekdays.", "Towels cost 3 euros.", "On Sunday the lido opens at 9."]
    best, second = closest_evidence(question, apart, count=3)
    assert {best.text, second.text} == {apart[0], apart[2]} and best.score >= second.score > 0.7 * best.score
    assert [apart[one.passage] for one in (best, second)] == [best.text, second.text]
    assert closest_evidence(question, apart) == (best,)
    (only,) = closest_evidence("When does the lido open on Sunday?", apart, count=3)  # the others have much less
    assert only.text == apart[2]


def test_parts_of_one_passage_are_quoted_in_its_order():
    question = "When does the lido open?"
    first, last = "The lido opens at 7 on weekdays.", "On Sunday the lido opens at 9."
    assert quoted(question, f"{first} {last}", count=2) == f"{first} {last}"
    assert quoted(question, f"{first} Towels cost 3 euros. {last}", count=2) == f"{first} \u2026 {last}"
    table = "| Pool | Opens |\n|---|---|\n| Lido, big | 9:00 |\n| Baths | 7:00 |\n| Lido, small pool | 10:00 |"
    rows = "| Pool | Opens |\n| Lido, big | 9:00 |\n| Lido, small pool | 10:00 |"
    assert quoted(question, table, count=2) == rows
    hours = "## Hours\n- the lido opens at 9\n- cash only\n- the lido opens at 10 in winter"
    item = "the lido opens at 9 \u2026 the lido opens at 10 in winter"
    assert quoted(question, hours, count=2) == f"Hours \u2026 {item}"


def test_nothing_is_quoted_if_a_sentence_is_nearly_as_relevant():
    question, hours = "When does the lido open on Sunday?", ["On Sunday the lido opens at 9.", "Towels cost 3 euros."]
    for said, is_enough in (
        ([], False),
        (["Towels cost 3 euros."], False),
        (["Towels cost 3 euros.", "The lido opens at 9."], True),
        (["Nobody knows."], False),
    ):
        assert (closest_evidence(question, hours, said=said) == ()) is is_enough


@pytest.mark.parametrize(("count", "error"), [(0, InputError), (1.5, WrongTypeError)])
def test_a_count_of_parts_that_cannot_be_used_is_refused(count, error):
    with pytest.raises(error, match="count"):
        closest_evidence("When?", SHOES, count=count)


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What does a family pay for a swim?", "Family has Swim £17, Card none."),
        ("What do the lockers cost?", "The lockers cost £1 & take coins only."),
        ("Where must dogs stay?", "Dogs must stay on a lead in the garden"),
    ],
)
def test_markup_is_quoted_as_it_is_read(question, quote):
    page = (
        "<table>\n<tr><th></th><th>Swim</th><th>Card</th></tr>\n<tr><td>Adult</td><td>&pound;6</td><td>&pound;58</td>"
        "</tr>\n<tr><td>Family</td><td>&pound;17</td><td>&ndash;</td></tr></table>\n<p>The <b>lockers</b> cost "
        "&pound;1 &amp; take coins only.</p><ul><li>Dogs must stay on a lead in the garden</li></ul>"
    )
    assert [one.text for one in closest_evidence(question, [page])] == [quote]
