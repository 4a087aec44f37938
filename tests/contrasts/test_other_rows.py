"""The rule for rows of a table: a cell of another row than the one that a sentence names."""

import pytest

from syncheck import load_kit
from syncheck.contrasts.contrast import contrast_with
from syncheck.reading.tables import cells_in, row_as_texts

COLUMNS = ["Course", "Teacher", "Room", "Day", "Fee"]
COURSES = [
    ["Life drawing", "S. Adler", "A3", "Thursday", "95 EUR"],
    ["Bookbinding", "M. Ruiz", "B14", "Friday", "120 EUR"],
    ["Pottery", "Jo Lindqvist", "B12", "Tuesday", "140 EUR"],
]
ROWS = [text for cells in COURSES for text in row_as_texts(COLUMNS, cells)]


def found(sentence, rows=ROWS):
    return {
        (one.sentence, one.evidence) for one in contrast_with(sentence, rows).differences if one.rule == "other rows"
    }


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Bookbinding is taught on Thursdays.", ("Thursday", "Friday")),
        ("M. Ruiz teaches life drawing.", ("M. Ruiz", "S. Adler")),
        ("Jo Lindqvist is the teacher of the bookbinding course.", ("Jo Lindqvist", "M. Ruiz")),
        ("The fee for pottery is 95 EUR.", ("95 EUR", "140 EUR")),
    ],
)
def test_a_cell_of_another_row_is_named_beside_the_right_one(sentence, words):
    assert found(sentence) == {words}


@pytest.mark.parametrize(
    "sentence",
    [
        "Bookbinding is taught on Fridays.",  # right
        "Life drawing is on Thursday and bookbinding on Friday.",  # names both rows
        "Bookbinding is not taught on Thursdays.",
        "Bookbinding costs more than the 95 EUR of life drawing.",
        "Jo Lindqvist teaches in room B12 on Tuesday.",  # names no subject
        "Pottery is fun.",
        "For bookbinding, teacher S. Adler has room A3 on Thursday.",  # more of the other row than of the named one
    ],
)
def test_silent_where_no_cell_is_exchanged(sentence):
    assert not found(sentence)


def test_silent_where_another_chunk_says_it_of_the_row():
    assert not found("Bookbinding is taught on Thursdays.", [*ROWS, "In May, bookbinding is taught on Thursdays."])


def test_silent_where_two_rows_have_the_same_cell():
    rows = [text for cells in (["Ann", "Hall"], ["Bea", "Hall"]) for text in row_as_texts(["Name", "Room"], cells)]
    assert not found("Ann is in the hall.", rows)


def test_a_bare_number_counts_beside_the_name_of_its_column_only():
    rows = [text for cells in (["Ann", "2"], ["Bea", "5"]) for text in row_as_texts(["Name", "Goals"], cells)]
    assert found("Ann scored 5 goals.", rows) == {("5", "2")}
    assert not found("Ann is one of 5 players.", rows)


def test_cells_are_found_where_they_were_written():
    (row,) = row_as_texts(COLUMNS, COURSES[0])
    subject, spans = cells_in(row)
    assert subject == "Life drawing"
    assert [row[start:end] for start, end in spans] == ["Teacher S. Adler", "Room A3", "Day Thursday", "Fee 95 EUR"]
    assert cells_in("Lyon has two rivers.") is None


def test_a_name_of_another_row_is_contradicted_in_words():
    rows = ["Machine | Warden", "---|---", "Router table | Paula Lind", "Band saw | Otto Brandt"]
    report = load_kit("generic-bundled").check(
        question="Who looks after what?", passages=["\n".join(rows)], answer="Otto Brandt is the router table's warden."
    )
    (sentence,) = report.sentences
    assert sentence.verdict == "contradicted" and sentence.score < 0.2
    assert [(c.kind, c.sentence, c.evidence) for c in sentence.contrasts] == [("row", "Otto Brandt", "Paula Lind")]
