"""One way to write numbers and signs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncheck.text.notation import WrittenOut, counted, levelled, number_of, roman_value, written_out

PIECES = (
    "the a half an hour and quarter past to two twenty five twenty-five hundred thousand dozen of May 3rd third 5 16 "
    "181 16,181 1.234 .5 ½ 2021-05-03 13/05/2021 Sept. pm 2.30 5pm $890M €1.2bn 12k 5 USD CHF °C ≥ µg m² kph per cent "
    "Mon Sat: Thu. on-call_days: Chapter IV Type II XIV o'clock – - ’ “ million"
).split()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("16,181", 16181),
        ("16 181", 16181),
        ("16'181", 16181),
        ("1.234.567", 1234567),
        ("1,234.5", 1234.5),
        ("1.234,5", 1234.5),
        ("0.05", 0.05),
        ("2,5", 2.5),
        ("42", 42),
    ],
)
def test_a_number_has_its_value_however_its_thousands_are_set_apart(written, value):
    assert number_of(written) == value


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("twenty-five", 25),
        ("a hundred and two", 102),
        ("three hundred and fifty thousand", 350_000),
        ("one thousand two hundred", 1200),
        ("nineteen eighty-four", None),  # a year, in two numbers
        ("twenty thirty", None),
        ("five and twenty", None),
        ("two and", None),
    ],
)
def test_a_number_in_words_has_its_value(words, value):
    assert counted(words) == value


@pytest.mark.parametrize(("numeral", "value"), [("IV", 4), ("XIV", 14), ("XC", 90), ("IIX", None), ("MIX", None)])
def test_a_roman_numeral_has_its_value(numeral, value):
    assert roman_value(numeral) == value


def test_typographic_signs_keep_their_places():
    text = "a\u00a0\u201cnon\u2011stop\u201d flight\u2019s"
    assert levelled(text) == 'a "non-stop" flight\'s'


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("16 181 or 16'181 people", "16,181 or 16,181 people"),
        ("$890M, 2bn and 5 m", "$890 million, 2 billion and 5 m"),
        ("12k, $1.2k, 1.2M", "12,000, $1200, 1.2 million"),
        ("USD 5 or US$5", "$5 or $5"),
        ("≥ 5 at 8 °C", "at least 5 at 8 degrees Celsius"),
        ("5 \u03bcg or 5 mcg of it", "5 micrograms or 5 micrograms of it"),
        ("18 or older, €5 and more, 65 years and over", "at least 18, at least €5, at least 65 years"),
        ("No fewer than 5, a maximum of $20, no more than ever", "at least 5, at most $20, no more than ever"),
        ("not more than five", "at most five"),
        ("**£18** per *firing*, _not_ `hour`", "£18 per firing, not hour"),
        ("***5***, 2*3*4, a * b * c, snake_case_5", "5, 2*3*4, a * b * c, snake_case_5"),
        ("2**10 is 1024 and 2**20 more, f(**5) and g(**6)", "2**10 is 1024 and 2**20 more, f(**5) and g(**6)"),
        ("Max. 3 guests, min. stay 2 nights, min 5 kg", "at most 3 guests, min. stay 2 nights, at least 5 kg"),
        ("max. five guests", "at most five guests"),
        ("12 guests max. No pets, 2 nights minimum", "at most 12 guests. No pets, at least 2 nights"),
        ("wait 10 min, then 5 min; the maximum 40 hours", "wait 10 minutes, then 5 minutes; the maximum 40 hours"),
        ("Mad Max 2, Max 2 weeks later, its maximum 40", "Mad Max 2, Max 2 weeks later, its maximum 40"),
        ("in 1918 max, a 5 minute max, 10 more minimum", "in 1918 max, a 5 minute max, 10 more minimum"),
        ("18+ only, £50+ each, 5+3 and +44 20", "at least 18 only, at least £50 each, 5+3 and +44 20"),
        (">=3.10,<3.13; latency <5 ms", "at least 3.10, less than 3.13; latency less than 5 ms"),
        ("> 40 came; Settings > 5; a<5, <b>7</b>, -> 3", "> 40 came; Settings > 5; a<5, <b>7</b>, -> 3"),
        ("approx. 40 h, ~5 km, c. 1890, ca. €50", "about 40 hours, about 5 km, about 1890, about €50"),
        ("10~20, ~1.2.3, ca. 95814, vitamin c. 50", "10~20, ~1.2.3, ca. 95814, vitamin c. 50"),
        ("±0.5 mm, 5±2", "plus or minus 0.5 mm, 5 plus or minus 2"),
        (
            "1h 52m, 1 hr, 2 hrs. later, >48h, at 14 h",
            "1 hour 52 minutes, 1 hour, 2 hours later, more than 48 hours, at 14 h",
        ),
        ("24 mo. on parts, 3 wks, 6 yrs", "24 months on parts, 3 weeks, 6 years"),
        ("£3/day, £2.50/hr, £950 pcm, £120 p.a.", "£3/day, £2.50 per hour, £950 per month, £120 per year"),
        ("1/2 cup, 1 3/4 cups, on 1/2/2020", "0.5 cup, 1.75 cups, on 1/2/2020"),
        ("In 2020 1/2 of them, page 1/2 of 3", "In 2020 1/2 of them, page 1/2 of 3"),
        ("220C, seat 14C, 12 C# teams", "220 degrees Celsius, seat 14C, 12 C# teams"),
        ("Mon-Fri 9\u201317, Sun closed", "Monday-Friday 9:00 to 17:00, Sunday closed"),
        ("Sunday 9-15 March, Monday 3-5 people", "Sunday 9-15 March, Monday 3-5 people"),
        ("They won on Saturday 3-1.", "They won on Saturday 3-1."),
        ("5 with breakfast incl.", "5 with breakfast included"),
        ("€240 excl. VAT, 5 w/o milk, 10% w/v", "€240 excluding VAT, 5 without milk, 10% w/v"),
        ("API \u2713, Search \u2717. Mail: \u274c", "API yes, Search no. Mail: no"),
        ("Done in 1967 \u2705", "Done in 1967 \u2705"),
        ("[x] Pay 5", "done: Pay 5"),
        ("- [ ] Pay 5, see [x] there", "- not done: Pay 5, see [x] there"),
        ("dep. 9:05, arr. 9:50, dep. 5 files", "departs 9:05, arrives 9:50, dep. 5 files"),
        ("FY23, FY2024, FY24/25", "financial year 2023, financial year 2024, FY24/25"),
        ("No. of seats: 5, 1 mg b.i.d.", "number of seats: 5, 1 mg twice a day"),
        ("one tablet b.i.d., fortnightly", "one tablet twice a day, every two weeks"),
        ("12 or under; 5 and more than 3; 4 and up to 6", "at most 12; 5 and more than 3; 4 and up to 6"),
        ("5 € or +4,90€, 12,50 EUR, 5–7 €", "€5 or plus €4,90, €12,50, 5–€7"),
        ("memory: 512Mi of 2 GiB", "memory: 512 MiB of 2 GiB"),
        ("25 m² at 90 kph, 4 per cent", "25 square metres at 90 km/h, 4 percent"),
        ("in 2020 100 came", "in 2020 100 came"),
        (".5 or 2½", "0.5 or 2.5"),
        ("at \u20135 or 2\u20138", "at -5 or 2\u20138"),
        ("on 2021-05-03, 13/05/2021 or 05/13/2021", "on 3 May 2021, 13 May 2021 or 13 May 2021"),
        ("on 03/05/2021", "on 03/05/2021"),  # May or March
        ("3 Sept. 2021, the third of May", "3 September 2021, 3 May"),
        ("at 2.30 pm, 5pm, half past two, a quarter to one", "at 2:30 pm, 5 pm, 2:30, 12:45"),
        ("nine o'clock", "9:00"),
        ("an hour and a half, half a day, half an hour", "1.5 hours, 0.5 day, 30 minutes"),
        ("twenty-five of a hundred, half a dozen", "25 of 100, 6"),
        ("half a million, two and a half", "500,000, 2.5"),
        ("the twenty-first of nineteen eighty-four", "the 21st of nineteen eighty-four"),
        ("Chapter IV and type II, said I", "Chapter 4 and type 2, said I"),
        ("Mon-Thu: 9 to 5, Sat & Sun: closed", "Monday-Thursday: 9 to 5, Saturday & Sunday: closed"),
        ("Tue, Wed and Thu 10 am; on Sat.", "Tuesday, Wednesday and Thursday 10 am; on Saturday."),
        ("Sun, sea; he sat. Sat on Sun Street", "Sun, sea; he sat. Sat on Sun Street"),
        ("warranty_months: 24", "warranty: 24 months"),
        ("terminationGracePeriodSeconds: 45", "termination grace period: 45 seconds"),
        ("maxUploadSizeMB: 500", "max upload size: 500 MB"),
        ("spec readinessProbe path: /healthz, if isOpen: yes", "spec readiness probe path: /healthz, if is open: yes"),
        ("macOS, easyJet and 120 mmHg in fooBarBaz.py", "macOS, easyJet and 120 mmHg in fooBarBaz.py"),
        ("battery hours: 11.", "battery: 11 hours."),
        ("file_size_mb: 12.5", "file_size: 12.5 mb"),
        ("opening hours: 9", "opening hours: 9"),
        ("Release year: 1999", "Release year: 1999"),
        ("age_min: 18", "age_min: 18"),
        ("Sat: 10:00-14:00, Sun: 9am", "Saturday: 10:00-14:00, Sunday: 9 am"),
        ("The Sun 4.6 billion years ago", "The Sun 4.6 billion years ago"),
        ("Louis XIV may march on", "Louis XIV may march on"),
        ("between five and ten people, one or two", "between five and ten people, one or two"),
    ],
)
def test_the_reader_reads_one_notation(text, read):
    assert written_out(text).strip() == read


def test_a_piece_is_quoted_as_it_was_written():
    written = WrittenOut.of("It paid $890M at half past two.")
    start = written.text.index("$890 million")
    assert written.quoted(start, start + len("$890 million")) == "$890M"
    start = written.text.index("2:30")
    assert written.quoted(start, start + len("2:30")) == "half past two"


@given(st.lists(st.sampled_from(PIECES), max_size=10).map(" ".join))
def test_each_character_comes_from_the_source_in_order(text):
    written = WrittenOut.of(text)
    assert written.quoted(0, len(written.text)) == text.strip() if written.text else not text
    spans = written.spans or ()
    assert len(spans) in (0, len(written.text)) and list(spans) == sorted(spans)


def test_emphasis_leaves_what_it_holds_in_its_place():
    written = WrittenOut.of("It **opened in 1976 with two lanes** and cost £5m.")
    start = written.text.index("1976")
    assert written.quoted(start, start + 4) == "1976"
