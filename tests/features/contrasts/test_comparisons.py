import pytest

from syncheck.contrasts.contrast import Difference, contrast_with

BOATS = "The boat from Arden takes 35 minutes, compared with 70 minutes from Port Lowe."
PHONES = "The Vela 2 weighs 150 grams and the Vela 3 weighs 175 grams."
PLANS = "The canal will cost 30 million, compared with 12 million for the road."
MUSEUM = "The Stone Museum, opened in 1911, is 40 metres high; the Glass Museum, opened in 1954, is 55 metres high."


@pytest.mark.parametrize(
    ("sentence", "evidence", "word", "numbers"),
    [
        (
            "The boat from Port Lowe is faster than the one from Arden.",
            BOATS,
            "faster",
            "35 minutes, compared with 70 minutes",
        ),
        (
            "It takes longer from Arden than from Port Lowe.",
            BOATS,
            "longer",
            "35 minutes, compared with 70 minutes",
        ),
        (
            "Lake Ane is larger than Lake Ur.",
            "Lake Ur covers 300 square kilometres, while Lake Ane covers 120.",
            "larger",
            "300 square kilometres, while Lake Ane covers 120",
        ),
        (
            "Of the two lakes, Ane is the larger.",
            "Lake Ur covers 300 square kilometres, while Lake Ane covers 120.",
            "larger",
            "300 square kilometres, while Lake Ane covers 120",
        ),
        ("The Vela 2 is heavier than the Vela 3.", PHONES, "heavier", "150 grams and the Vela 3 weighs 175 grams"),
        ("The Vela 3 weighs less than the Vela 2.", PHONES, "less", "150 grams and the Vela 3 weighs 175 grams"),
        ("The Vela 3 isn't heavier than the Vela 2.", PHONES, "heavier", "150 grams and the Vela 3 weighs 175 grams"),
        (
            "Dahl ran faster than Mori.",
            "Mori won the 800 metres in 1:57.3, ahead of Eva Dahl in 1:58.9.",
            "faster",
            "1:57.3, ahead of Eva Dahl in 1:58.9",
        ),
        ("The road will cost more than the canal.", PLANS, "more", "30 million, compared with 12 million"),
        (
            "The canal will be less expensive than the road.",
            PLANS,
            "less expensive",
            "30 million, compared with 12 million",
        ),
        (
            "The tea is cheaper than the coffee.",
            "The coffee is £2, the tea £3.",
            "cheaper",
            "£2, the tea £3",
        ),
        (
            "Lida is warmer than Costa in May.",
            "In May it is 27 degrees in Costa and 19 in Lida.",
            "warmer",
            "27 degrees in Costa and 19",
        ),
        (
            "Orin's yearly profit was higher than Talbot's.",
            "Orin's yearly profit was 20 million euros, against 35 million at Talbot.",
            "higher",
            "20 million euros, against 35 million",
        ),
        (
            "Sales were higher in 2021 than in 2022.",
            "Sales rose to 5.1 million in 2022 from 4.8 million in 2021.",
            "higher",
            "5.1 million in 2022 from 4.8 million",
        ),
        (
            "The Glass Museum is older than the Stone Museum.",
            MUSEUM,
            "older",
            "1911, is 40 metres high; the Glass Museum, opened in 1954",
        ),
        (
            "The Stone Museum is higher than the Glass Museum.",
            MUSEUM,
            "higher",
            "40 metres high; the Glass Museum, opened in 1954, is 55 metres",
        ),
        (
            "The Glass Museum opened before the Stone Museum.",
            MUSEUM,
            "before",
            "1911, is 40 metres high; the Glass Museum, opened in 1954",
        ),
        ("Ada is older than Finn.", "Finn Holt, 52, and Ada Brand, 47, own it.", "older", "52, and Ada Brand, 47"),
        (
            "Finn is younger than Ada.",
            "Finn is 19 years old and Ada is 17.",
            "younger",
            "19 years old and Ada is 17",
        ),
        (
            "The grey hare is faster than the brown hare.",
            "The brown hare reaches 70 km/h, whereas the grey hare reaches 55 km/h.",
            "faster",
            "70 km/h, whereas the grey hare reaches 55 km",
        ),
        (
            "Kent has more pupils than Dover.",
            "Dover school has 600 pupils; Kent school has 450.",
            "more",
            "600 pupils; Kent school has 450",
        ),
        ("More forks than knives broke.", "In all, 12 knives and 5 forks broke.", "More", "12 knives and 5 forks"),
        (
            "It opens later on Fridays than on Sundays.",
            "It opens at 7:30 on Fridays and at 10:15 on Sundays.",
            "later",
            "7:30 on Fridays and at 10:15",
        ),
        (
            "The spring fair is later than the autumn fair.",
            "The spring fair is on 3 May 2024, the autumn fair on 12 May 2024.",
            "later",
            "3 May 2024, the autumn fair on 12 May 2024",
        ),
        (
            "The coast trail is shorter than the ridge trail.",
            "The coast trail and the ridge trail are 12 and 9 kilometres long respectively.",
            "shorter",
            "12 and 9 kilometres",
        ),
        (
            "The new house was cheaper than the old one.",
            "The old house cost 2 million, the new one 7.",
            "cheaper",
            "2 million, the new one 7",
        ),
        (
            "Overnight, Elva was warmer than Tula.",
            "Overnight it was minus 8 degrees in Elva and 2 degrees in Tula.",
            "warmer",
            "8 degrees in Elva and 2 degrees",
        ),
    ],
)
def test_comparison_that_two_numbers_contradict_is_found(sentence, evidence, word, numbers):
    assert Difference("comparison", word, numbers) in contrast_with(sentence, [evidence]).found
    assert numbers in evidence


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("The boat from Arden is faster than the one from Port Lowe.", BOATS),
        ("The boat from Port Lowe is not faster than the one from Arden.", BOATS),
        ("The Vela 3 is heavier than the Vela 2.", PHONES),
        ("The canal will cost more than the road.", PLANS),
        ("The Glass Museum is newer than the Stone Museum.", MUSEUM),
        ("The Glass Museum is higher than the Stone Museum.", MUSEUM),
        ("Kent has fewer pupils than Dover.", "Dover school has 600 pupils; Kent school has 450."),
        # The numbers may overlap, or measure something else.
        ("Riga lends more than Oslo.", "Riga lends up to ten, Oslo eight."),
        ("The road will be longer than the canal.", PLANS),
        ("The Vela 2 is faster than the Vela 3.", PHONES),
        ("The Arden boat leaves faster than the Lowe boat.", "The Lowe boat leaves at 9:15, the Arden boat at 10:05."),
        ("Reef is wider than Tarn.", "Tarn is 60 metres long and Reef is 40 metres long."),
        ("Reef is larger than Tarn.", "Tarn opened in 1990 and Reef in 1970."),
        ("Kent grew more than Dover.", "Dover fell by 6 percent and Kent rose by 4 percent."),
        # A third thing, a multiple, another time, a condition.
        ("Tarn is cheaper than Reef.", "Delivery: Tarn at once, Moss in 3 days, Reef in 2 days."),
        ("Ten single swims cost more than a card.", "A single swim costs 4 euros, a card costs 30 euros."),
        ("After the grant the pump is cheaper than the boiler.", "The pump costs 20 euros, the boiler 15 euros."),
        ("If it snows, the tea may be cheaper than the coffee.", "The coffee is £2, the tea £3."),
        ("Kent has more pupils now than in 1990.", "Kent has 500 pupils. In 1990, Dover had 600 pupils."),
    ],
)
def test_comparison_that_numbers_do_not_contradict_is_none(sentence, evidence):
    assert contrast_with(sentence, [evidence]).found == ()


def test_numbers_of_two_chunks_are_compared():
    chunks = ["The Onda tent weighs 900 grams.", "The Brisa tent weighs 1,200 grams."]
    found = contrast_with("The Onda tent is heavier than the Brisa tent.", chunks)
    assert found.found == (Difference("comparison", "heavier", "900 grams"),)
    assert found.chunk == 0
    assert contrast_with("The Onda tent is lighter than the Brisa tent.", chunks).found == ()


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        (
            "Lake Ur is larger than Lake Ane.",
            "Lake Ur, smaller than Lake Lom, covers 300 square kilometres; Lake Ane covers 120 square kilometres.",
        ),
        ("The coffee is dearer than the tea.", "The coffee is cheaper at 2 euros now, the tea 1 euro."),
    ],
)
def test_opposite_of_a_word_that_numbers_confirm_is_no_contrast(sentence, evidence):
    assert contrast_with(sentence, [evidence]).found == ()
    without_numbers = evidence.replace("120 square kilometres", "less").replace("1 euro", "as well")
    assert [found.kind for found in contrast_with(sentence, [without_numbers]).found] == ["comparison"]
