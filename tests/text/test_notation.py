"""One way to write numbers and signs."""

import pytest

from syncheck.text.notation import levelled, number_of, written_out


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("16,181", 16181),
        ("16 181", 16181),
        ("16'181", 16181),
        ("1.234.567", 1234567),
        ("1,234.5", 1234.5),
        ("0.05", 0.05),
        ("2,5", 2.5),
        ("42", 42),
    ],
)
def test_a_number_has_its_value_however_its_thousands_are_set_apart(written, value):
    assert number_of(written) == value


def test_typographic_signs_keep_their_places():
    text = "a\u00a0\u201cnon\u2011stop\u201d flight\u2019s"
    assert levelled(text) == 'a "non-stop" flight\'s'


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("16 181 or 16'181 people", "16,181 or 16,181 people"),
        ("$890M, 2bn and 5 m", "$890 million, 2 billion and 5 m"),
        ("≥ 5 at 8 °C", "at least 5 at 8 degrees Celsius"),
        ("5 \u03bcg", "5 micrograms"),
        ("in 2020 100 came", "in 2020 100 came"),
    ],
)
def test_the_reader_reads_one_notation(text, read):
    assert written_out(text).strip() == read
