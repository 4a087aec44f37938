"""Sentences in the notation of the texts beside them."""

import pytest

from syncheck.contrasts.parsing import in_notation_of, parse


@pytest.mark.parametrize(
    ("sentence", "text", "read"),
    [
        ("It starts at half past two.", "Doors open at 14:30.", "It starts at 14:30."),
        ("It takes 90 minutes.", "Allow 1.5 h for the way.", "It takes 1.5 hours."),
        ("It costs 50 euros a month.", "The desk is \u20ac50/month.", "It costs \u20ac50 a month."),
        ("It costs 50 euros a week.", "The desk is \u20ac50/month.", "It costs 50 euros a week."),
        ("It costs 50 pounds.", "A card is £50/€60.", "It costs £50."),  # the euros are no divisor
        ("It closes at 2 p.m.", "Saturday: 10:00 to 14:00", "It closes at 14:00."),
        ("It opens at 10 a.m.", "Saturday: 10:00-14:00", "It opens at 10:00."),
        ("It opens at 8 a.m.", "It is open between 8:00 and 17:00.", "It opens at 8:00."),
        ("50 percent voted.", "Half of the members voted.", "Half voted."),
        ("It was signed on May 3rd, 2021.", "Signed: 2021-05-03.", "It was signed on 3 May 2021."),
        ("It reaches 85 km/h.", "Its speed is between 80 and 90 km/h.", "It reaches between 80 and 90 km/h."),
        ("It paid 1.2 million euros.", "The fund paid 1,204,000 euros.", "It paid 1,204,000 euros."),
        ("The chairs cost 89.", "12 chairs at 89.00", "The chairs cost 89.00."),  # no time of day
        ("Roughly 41% voted, nearly 900 of them here.", "41.2 % voted, 888 here.", "41.2 % voted, 888 of them here."),
        ("More than 300 people came, fewer than 20 left.", "312 came and 19 left.", "312 people came, 19 left."),
        ("It costs less than 13 euros.", "It is 12.80 euros.", "It costs 12.80 euros."),
        ("Keep it at minus 5 degrees Celsius.", "Store at −5 °C.", "Keep it at -5 degrees Celsius."),
    ],
)
def test_quantities_are_written_as_the_text_writes_them(sentence, text, read):
    assert in_notation_of(parse(sentence), [parse(text)]) == read


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("It takes “90” minutes.", "It takes 90 minutes."),  # the same writing: left as it is, quotation marks too
        ("It takes 80 minutes.", "Allow 1.5 h for the way."),
        ("It costs 100 euros.", "It costs 80 to 120 euros."),  # a price may not be any within a range
        ("At least 18 came.", "18 came."),
        ("About 60% voted.", "56 % voted."),
        ("About half of the members voted.", "52 % voted in May."),
        ("About 50 % of the members voted.", "52 % voted in May, 49 % in June."),
        ("More than 300 came.", "300 came, 299 left, 400 were asked."),
        ("More than 300 came.", "340 came, 310 left."),
        ("At least 70 came.", "80 came."),  # nobody rounds so
        ("It fails above 10 MB.", "It fails over 10 MB."),
        ("Passage 2 says so.", "Two passages say so."),
        ("It is 25 miles long.", "It is 40 km long."),  # nearly the same only
        ("It starts at 2 pm.", "It starts at 2 am."),
        ("It opens at 8:00 on Fridays.", "Mon-Thu: 8:00 to 17:00"),  # the end of a range is said as it is
        ("It reaches 80 km/h.", "Its speed is between 80 and 90 km/h."),
    ],
)
def test_what_no_text_says_stays_as_it_is(sentence, text):
    assert in_notation_of(parse(sentence), [parse(text)]) == sentence
