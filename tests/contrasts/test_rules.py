"""Rules of contrasts: what they say of a sentence beside one chunk, and where they are silent."""

import pytest

from syncheck.contrasts.contrast import contrast_with, with_answers
from syncheck.contrasts.rules import Difference

LIBRARY = [
    "The city library was founded in 1967 by Anna Keller.",
    "It holds 42,000 books and is closed on Mondays.",
    "Loans last three weeks and can be renewed twice.",
]


@pytest.mark.parametrize(
    ("sentence", "evidence", "kind", "words"),
    [
        ("The bridge opened in 1976.", "The bridge opened in 1967 after long delays.", "number", ("1976", "1967")),
        ("It opened in 1903.", "The mill opened in 1803.", "number", ("1903", "1803")),  # it: what the chunk names
        ("The maximum is 8 g in 24 hours.", "The maximum dose is 4 g in 24 hours.", "number", ("8", "4")),
        ("Hold it for thirty seconds.", "Hold it for ten seconds.", "number", ("thirty", "ten")),
        ("The red team won 9 games.", "The red team won 5 games and the blue team 9.", "number", ("9", "5")),
        ("Take 5 g of it daily.", "Take 5 mg of it daily.", "unit", ("g", "mg")),
        ("The fee is $20.", "The fee is €20.", "unit", ("$", "€")),
        ("Take it one hour after food.", "Take it two hours after food.", "number", ("one", "two")),
        ("Refunds are available here.", "Refunds are not available here.", "negation", ("", "not")),
        ("Sales fell in May.", "Sales rose in May.", "antonym", ("fell", "rose")),
        ("All members may vote.", "Some members may vote.", "quantifier", ("All", "Some")),
        ("The user can replace it.", "It cannot be replaced by the user.", "negation", ("", "cannot")),
        ("The company paid a dividend.", "The company did not pay a dividend.", "negation", ("", "not")),
        ("Trains run from 6:00 to 21:00.", "Trains run from 6:00 to 23:00.", "number", ("21:00", "23:00")),
        ("About 60% of members voted.", "41% of members voted.", "number", ("60", "41")),
        ("It is four centimetres long.", "It is 3 cm long.", "number", ("four", "3")),
        ("**Parking:** 3 euros an hour", "Parking costs 2 euros an hour.", "number", ("3", "2")),
        ("The rate rose to 4.9 in May.", "The rate rose to 5.3 in May from 4.9 in April.", "number", ("4.9", "5.3")),
        (
            "Electric trains were replaced by steam trains in 1934.",
            "Steam trains were replaced by electric ones in 1934.",
            "order",
            ("Electric trains were replaced by steam trains", "Steam trains were replaced by electric ones"),
        ),
        (
            "Hornbeam stands wet ground better than beech.",
            "Beech stands wet ground better than hornbeam.",
            "order",
            ("Hornbeam stands wet ground better than beech", "Beech stands wet ground better than hornbeam"),
        ),
        (
            "Mira Okafor became chief executive in 2009.",
            "Mira Okafor joined as a test driver in 2009 and became its chief executive in 2018.",
            "number",
            ("2009", "2018"),
        ),
        ("Children under five pay.", "Children under five travel free.", "antonym", ("pay", "free")),
        (
            "Anyone under 18 can open the account.",
            "The account cannot be opened by anyone under 18.",
            "negation",
            ("", "cannot"),
        ),
        (
            "Sweden beat Norway.",
            "Norway beat Sweden in the final.",
            "order",
            ("Sweden beat Norway", "Norway beat Sweden"),
        ),
        (
            "The landlord pays the tenant.",
            "The tenant pays the landlord a deposit.",
            "order",
            ("landlord pays the tenant", "tenant pays the landlord"),
        ),
        ("Mary beat Anna.", "Mary was beaten by Anna.", "order", ("Mary beat Anna", "Mary was beaten by Anna")),
        (
            "Gold is lighter than tin.",
            "Tin is lighter than gold.",
            "order",
            ("Gold is lighter than tin", "Tin is lighter than gold"),
        ),
        (
            "The pilot asked the captain to turn.",
            "The captain had asked the pilot to turn.",
            "order",
            ("pilot asked the captain", "captain had asked the pilot"),
        ),
        ("It tests 130 samples a day.", "It tests up to 120 samples a day.", "number", ("130", "120")),
        ("It holds at least 5 people.", "It holds 4 people.", "number", ("5", "4")),
        ("It holds at most 100 people.", "It holds 120 people.", "number", ("100", "120")),
        ("It holds at least 120 people.", "It holds up to 120 people.", "comparison", ("at least", "up to")),
        ("All microbes feed on iron.", "Most of the microbes feed on iron.", "quantifier", ("All", "Most")),
        ("Staff park in front of the building.", "Staff park behind the building.", "antonym", ("front", "behind")),
        ("The pump is checked monthly.", "The pump is checked weekly.", "quantifier", ("monthly", "weekly")),
        (
            "The bakery sells 650 loaves on weekdays.",
            "The bakery sells 400 loaves on weekdays and 650 on Saturdays.",
            "number",
            ("650", "400"),
        ),
        ("The contract ends before 2027.", "The contract does not end before 2027.", "negation", ("", "not")),
        ("The mill is open until 10 a.m.", "The mill is closed until 10 a.m.", "antonym", ("open", "closed")),
        ("Those who paid lose their seats.", "Those who have not paid lose their seats.", "negation", ("", "not")),
        ("Children over 12 travel free.", "Children under 12 travel free.", "comparison", ("over", "under")),
        ("The fee is non-refundable.", "The fee is refundable.", "negation", ("non", "")),
        ("Most of the houses have a cellar.", "Few of the houses have a cellar.", "quantifier", ("Most", "Few")),
        ("The box holds three rows of six eggs.", "The box holds two rows of six eggs.", "number", ("three", "two")),
        ("Half of the 90 seats are free.", "Half of the 80 seats are free.", "number", ("90", "80")),
        ("The plan costs 5 euros a year.", "The plan costs 2 euros a year, or 3 with calls.", "number", ("5", "2")),
        ("The meeting starts at 3:30 p.m.", "The meeting starts at 14:30.", "number", ("3:30", "14:30")),
        (
            "The room is closed on Sundays.",
            "The room is open daily; the desk is unstaffed on Sundays.",
            "antonym",
            ("closed", "open"),
        ),
        ("The office is closed from 10 to 14.", "The office is open from 10 to 14.", "antonym", ("closed", "open")),
        (
            "Students pay 12 euros.",
            "Adults pay 12 euros, students 8 euros and children under six nothing.",
            "number",
            ("12", "8"),
        ),
        (
            "Adults pay 8 euros.",
            "Adults pay 12 euros, students 8 euros and children under six nothing.",
            "number",
            ("8", "12"),
        ),
        (
            "The train arrives in Zurich at 9:15.",
            "The train leaves Bern at 9:15 and arrives in Zurich at 10:12.",
            "number",
            ("9:15", "10:12"),
        ),
        (
            "A week in the long-stay car park costs 9.",
            "The long-stay car park costs 9 a day, or 45 for a week.",
            "number",
            ("9", "45"),
        ),
        (
            "Paul Roth was appointed in 2015.",
            "Anna Keller was appointed in 2015, and Paul Roth succeeded her in 2021.",
            "number",
            ("2015", "2021"),
        ),
        (
            "Dark mode came with version 3.4.",
            "Version 3.2 added dark mode; version 3.4 added offline maps.",
            "number",
            ("3.4", "3.2"),
        ),
        (
            "Warm light keeps one awake because it is rich in blue.",
            "Warm light is advised in the evening; cool light, rich in blue, keeps one awake.",
            "antonym",
            ("Warm", "cool"),
        ),
        (
            "All of the cottages are let.",
            "Some of the keepers' cottages are let to visitors.",
            "quantifier",
            ("All", "Some"),
        ),
        ("The mill was built in 1903.", "The mill was built in 1803.", "number", ("1903", "1803")),
        ("Take 0.05 mg a day.", "Take 0.5 mg a day.", "number", ("0.05", "0.5")),
        (
            "Revenue rose to 890 billion dollars.",
            "Revenue rose to 890 million dollars.",
            "number",
            ("890 billion", "890 million"),
        ),
        ("Each account gets 500 GB of storage.", "Each account gets 500 MB of storage.", "unit", ("GB", "MB")),
        ("The crossing takes 15 hours.", "The crossing takes 1.5 hours.", "number", ("15", "1.5")),
        ("The stadium seats 16,811 people.", "The stadium seats 16 181 people.", "number", ("16,811", "16 181")),
        (
            "Visitors must be at most 18 years old.",
            "Visitors must be at least 18 years old.",
            "comparison",
            ("at most", "at least"),
        ),
        ("The shop opens at 9 p.m.", "The shop opens at 9 a.m.", "unit", ("p.m", "a.m")),
        (
            "The lease ends on 21 March 2025.",
            "The lease ends on 12 March 2025.",
            "number",
            ("21 March 2025", "12 March 2025"),
        ),
        ("It reaches speeds of 95 km/h.", "It reaches speeds between 80 and 90 km/h.", "number", ("95", "80 and 90")),
        ("Take it three times a day.", "Take it twice a day.", "number", ("three", "twice")),
        ("It was founded in the 1930s.", "It was founded in the 1830s.", "number", ("1930s", "1830s")),
        (
            "No more than 3 bags are allowed.",
            "No fewer than 3 bags are allowed.",
            "comparison",
            ("No more than", "No fewer than"),
        ),
        ("2.6 million people live here.", "2.5 million people live here.", "number", ("2.6 million", "2.5 million")),
        (
            "Students pay 12 euros.",
            "Adults pay 12 euros, students 8 euros and children nothing.",
            "number",
            ("12", "8"),
        ),
        ("Parking is free.", "Is parking free? No.", "negation", ("", "No")),
        ("Pets are not allowed.", "Are pets allowed? Yes, always.", "negation", ("not", "Yes")),
        ("No pets are never allowed.", "Are pets allowed? Yes.", "negation", ("No", "Yes")),
    ],
)
def test_the_words_that_differ_stand_side_by_side(sentence, evidence, kind, words):
    assert Difference(kind, *words) in contrast_with(sentence, [evidence]).differences


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("The bridge opened in 1967.", "The bridge opened in 1967 after long delays."),
        ("The shop is not open on Sunday.", "The shop is closed on Sunday."),
        ("No more than four tablets may be taken.", "At most four tablets may be taken."),
        ("Loans last 3 weeks.", "Loans last three weeks."),
        ("Visitors do not pay.", "Visitors do not pay, and members do not either."),
        ("The total was 42000.", "The total was 42,000."),
        ("Mary was beaten by Anna.", "Anna beat Mary."),
        ("Cats sleep.", "The treaty was never signed in 1919."),
        ("Shipping is refunded if the item was faulty.", "Shipping is not refunded unless the item was faulty."),
        ("Guide dogs are allowed.", "Dogs are not allowed, except guide dogs."),
        ("The shop sells bread.", "The shop sells not only bread but also cake."),
        ("The fee covers lunch.", "The fee is not limited to lunch; it covers all meals."),
        ("The museum is open.", "No, the museum is open."),
        ("New books can be renewed.", "New books can be renewed online; films cannot be renewed."),
        ("One may enter two at a time.", "You may enter two at a time."),
        ("The one with two doors is blue.", "The car with two doors is blue."),
        ("Salt is soluble in water.", "Salt is soluble in water, oil is not. Salt melts at 801 degrees."),
        ("Take it with water instead of milk.", "Do not take it with milk, take it with water."),
        ("It is impossible to repair the pump.", "It is not possible to repair the pump."),
        ("The device does not stop.", "If the device does not stop, the device is faulty."),
        ("About 2 million people live there.", "1.9 million people live there."),
        ("More than 9 people came.", "Exactly 12 people came."),
        ("He waited two hours.", "He waited 30 minutes or two hours."),
        ("Anna met Tom.", "Tom met Anna."),
        ("They flew to Peru, Chile and Cuba.", "They flew to Chile, Cuba and Peru."),
        ("Dr. Osei wrote the report.", "The report was written by Dr. Osei."),
        ("It was approved by seven votes to two.", "They approved the plan by seven votes to two."),
        ("The bridge is closed.", "A bridge in Lyon that is open to cars was sold."),
        ("On Sundays it opens at nine.", "The pool opens at 6:30 on weekdays and at 9 on Sundays."),
        ("Velox was bought by Kern in 2011.", "Velox was founded in 1998 and sold to Kern in 2011."),
        ("Lyon won 2-1 on Sunday.", "On Sunday Nice lost 2-1 to Lyon."),
        ("Tom beat Mary.", "Mary lost the final, in which Tom beat her."),
        ("Cracks were found before it was closed.", "It was closed after cracks were found."),
        ("Keller trained Berg.", "Keller, whom Voss had trained, trained Berg."),
        ("May visitors park in March?", "In March visitors may park."),
        ("The lease lasts three years.", "The lease lasts 36 months, and ends with three months' notice."),
        ("You must be at least 18 to open the account.", "The account cannot be opened by anyone under 18."),
        ("Students pay no fee.", "The fee is waived for students."),
        (
            "Passenger trains stopped in 1951.",
            "It was closed to passengers in 1951, and the last goods train ran in 1963.",
        ),
        ("Marxism was first developed by Karl Marx.", "Marxism, first developed by Karl Marx, spread."),
        ("Nine acids are essential.", "Nine of the 20 acids are essential."),
        ("Café Frân opened in Lyon.", "The Fran opened in Lyon in May."),
        (
            "The Australian Football League has 18 clubs.",
            "The league has 18 clubs, and one in every state but the Australian Capital Territory.",
        ),
        ("Chief Justice Martha Koome spoke.", "Lady Justice Martha Koome, who is Chief Justice, spoke."),
        (
            "Oregon chose the Microbe in 2013 for its use to beer makers.",
            "Oregon chose the Microbe of the State of Oregon in 2013 for its use to beer makers.",
        ),
        ("It tests 100 samples a day.", "It tests up to 120 samples a day."),
        ("It holds at least 3 people.", "It holds 4 people."),
        ("It holds at most 120 people.", "It holds up to 120 people."),
        ("Parking: 3 euros", "Parking costs 2 euros an hour, or 9 euros a day."),
        ("2,500,000 people live here.", "2.5 million people live here."),
        ("Forty-five thousand people live here.", "45,000 people live here."),
        ("45 thousand people live here.", "45,000 people live here."),
        ("Two hundred and five people live here.", "205 people live here."),
        ("One hundred twenty people live here.", "120 people live here."),
        ("Anna founded it.", "Anna Keller founded it."),
        ("In May Anna met Tom.", "In May Tom met Anna."),
        ("Novak found it in 2009.", "Marie Novak, a biologist from Brno, found it in 2009."),
        ("It runs for two years.", "It runs for 24 months."),
        ("Take 1.5 kg.", "Take 1500 g."),
        ("The frog is three centimetres long.", "The frog is 3 cm long."),
        ("Engineers founded it.", "Keller founded it."),
        ("Parking here: 3 euros", "Parking costs 2 hours and 2 dollars here."),
        ("3 euros", "It costs 2 euros."),
        ("Open until 6 p.m.", "It is open from 8 a.m. to 6 p.m. on weekdays."),
        ("On Saturdays, 650 loaves are sold.", "The bakery sells 400 loaves on weekdays and 650 on Saturdays."),
        ("One shop in Liege was closed.", "The firm opened three shops in Ghent and closed one in Liege."),
        ("In Oulu, rents fell.", "Rents rose in Turku, while they fell in Oulu."),
        ("Sweden won silver.", "Norway won gold, Sweden silver and Finland bronze."),
        ("At the mill, turn right.", "Turn left at the church and right at the mill."),
        ("In winter, the path is dangerous.", "The path is safe in summer but dangerous in winter."),
        ("The second book was printed in Vienna.", "The first book was printed in Leipzig and the second in Vienna."),
        ("The contract ends in 2027.", "The contract does not end before 2027."),
        ("Children may not use the sauna.", "Only adults may use the sauna."),
        ("People who are not members cannot vote.", "Only members may vote."),
        ("Goggles are not needed in Hall A.", "Goggles are needed only in Hall B."),
        ("On Mondays, the shop is not open.", "The shop is open daily except Mondays."),
        ("The pool is closed on Tuesdays.", "Except for Tuesdays, the pool is open daily."),
        ("Rooms on the first floor have no balcony.", "All rooms have a balcony except those on the first floor."),
        ('There is no large bag of "Puppy".', 'All kinds but "Puppy" are sold in large bags.'),
        ("On Mondays the mill opens at 10 a.m.", "The mill is closed until 10 a.m. on Mondays."),
        ("Smoking is allowed on the terrace.", "Smoking is allowed nowhere but on the terrace."),
        ("Books cannot be returned.", "Books cannot be returned; films can, whether or not they were opened."),
        ("Films can be returned within a week.", "Books cannot be returned; films can within a week."),
        ("The cook was dismissed.", "The cook, who had told nobody, was dismissed."),
        ("Those who have paid keep their seats.", "Those who have not paid lose their seats."),
        ("People who register can vote.", "People who do not register cannot vote."),
        ("If it does not rain, we eat outside.", "If it rains, we eat inside."),
        ("He passed the exam.", "He did not fail the exam."),
        ("Peter Rusk was not found guilty.", "Peter Rusk was acquitted."),
        ("The mill stays open until eight.", "No mill may close before eight; the mill has a bell."),
        ("No member failed to get the letter.", "All members got the letter."),
        ("The fee is non-refundable.", "The fee is not refundable."),
        ("More than 20 people may not enter.", "At most 20 people may enter."),
        ("Children over 12 do not travel free.", "Children under 12 travel free."),
        ("The oder is shorter than the elbe.", "The elbe is longer than the oder."),
        ("The inn has fewer guests in May than in June.", "The inn has more guests in June than in May."),
        ("Not all bats eat insects.", "Most bats eat insects."),
        ("Most of the houses have no cellar.", "Few of the houses have a cellar."),
        ("Most islanders live there.", "Almost all of the islanders live there."),
        ("When both players are unable to move, nobody wins.", "When neither player can move, nobody wins."),
        ("The bag must not be dropped.", "The bag may be washed and must not be dropped."),
        ("Witnesses may not inherit.", "Witnesses must not inherit."),
        ("Longer stays must be agreed.", "Moorings may be used for three nights; longer stays are to be agreed."),
        ("Thirty pupils play an instrument.", "A third of the 90 pupils play an instrument."),
        ("Thirty employees did not strike.", "Two thirds of the 90 employees voted to strike."),
        ("Two burn holes cost 20 euros.", "Burn holes cost 10 euros each."),
        ("Together, the two plans cost 5 euros.", "The plans cost 2 and 3 euros."),
        ("The box holds twelve eggs.", "The box holds two rows of six eggs."),
        ("It starts at 2:30 p.m.", "It starts at 14:30."),
        ("It starts at 9 p.m.", "It starts at 21:00."),
        ("Porto and Lisbon are cities of Portugal.", "Lisbon and Porto are cities of Portugal."),
        ("Nora does not speak Spanish.", "Nora speaks French rather than Spanish."),
        ("Lee failed the exam.", "Kim passed the exam, but Lee did not."),
        ("Kim passed the exam.", "Both Kim and Lee passed the exam."),
        ("In case of fire, use the stairs.", "Do not use the lift in case of fire; use the stairs."),
        ("No room costs more than 120 euros.", "Rooms cost between 80 and 120 euros."),
        ("Are refunds available?", "Refunds are not available."),
        ("The fee is $20$ euros.", "The fee is 20 euros."),
        ("The largest is Mira.", "Anor is the largest in summer, Mira, which grows in winter, the largest of all."),
        ("In 2023 revenue was 7 million euros.", "Revenue was 5 million euros in 2022 and 7 million euros in 2023."),
        (
            "Revenue rose from 5 million to 7 million euros.",
            "Revenue was 5 million euros in 2022 and 7 million euros in 2023.",
        ),
        ("The port saw 147 ships in April.", "In April 147 ships called at the port, in May 139 and in June 151."),
        ("A student ticket costs 8 euros.", "Adults pay 12 euros, students 8 euros and children under six nothing."),
        (
            "Adults pay 12 euros, unlike students.",
            "Adults pay 12 euros, students 8 euros and children under six nothing.",
        ),
        ("The train arrives in Zurich at 10:12.", "The train leaves Bern at 9:15 and arrives in Zurich at 10:12."),
        ("A week in the long-stay car park costs 45.", "The long-stay car park costs 9 a day, or 45 for a week."),
        ("Paul Roth was appointed in 2021.", "Anna Keller was appointed in 2015, and Paul Roth succeeded her in 2021."),
        ("Offline maps came with version 3.4.", "Version 3.2 added dark mode; version 3.4 added offline maps."),
        ("Staff above 50 have 30 days.", "Employees under 30 get 25 days of leave, those over 50 get 30 days."),
        ("He was born on June 5, 1915.", "Eugene Ost (June 5, 1915 – May 3, 2005) was an architect, born in Linz."),
        ("Use a 70 percent alcohol wipe or a cloth.", "Use a 70 percent alcohol wipe, 75 percent ethanol, or a cloth."),
        (
            "The north tower is 25 metres taller than the south tower.",
            "The north tower is 120 metres tall and the south tower 95 metres.",
        ),
        ("Doctors work in two shifts.", "Nurses work in three shifts, doctors in two."),
        ("Doctors work in shifts.", "Nurses work in three shifts, doctors in two."),
        (
            "An order of 400 euros is shipped by courier.",
            "Orders up to 120 euros are shipped by post; larger ones are shipped by courier.",
        ),
        ("A member aged 45 pays 20 euros.", "Members under 30 pay 10 euros; all others pay 20 euros."),
        (
            "The Tarrant 500 has a range of 120 km.",
            "The Tarrant 300 has a range of 80 km, the Tarrant 500 a range of 120 km.",
        ),
        (
            "The Tarrant 500 goes farther than the 300 with its 80 km.",
            "The Tarrant 300 has a range of 80 km, the Tarrant 500 a range of 120 km.",
        ),
        ("The shop sells bread.", "The shop opens at eight and sells bread until noon."),
        ("The quarry at Ness was closed.", "The quarry at Tor cuts granite; the one at Ness was closed in 1974."),
        ("The church is west of the river.", "The school stands east of the river and the church west of it."),
        ("Some of the staff were offered jobs.", "About 120 of the 180 staff were offered jobs."),
        ("Not all of the cottages are let.", "Some of the keepers' cottages are let to visitors."),
        ("Bakers from all over the world made cakes.", "Many other bakers around the world made cakes."),
        ("All of the shops were closed.", "In May 60 of the 60 shops were closed."),
        ("Most of the shops were closed.", "In May 40 of the 60 shops were closed."),
        ("Most of the households refused.", "Of the 40 households, 11 signed and 29 refused."),
        ("Few of the shops were closed.", "In May 14 of the 60 shops were closed."),
        ("All members came to the meeting in May.", "Some members voted against it."),
        ("It costs $890 million.", "It costs $890M."),
        ("16 181 people came.", "16,181 people came."),
        ("1'234 people came.", "1,234 people came."),
        ("It is 85 km long.", "It is between 80 and 90 km long."),
        ("It opened on March 12, 2025.", "It opened on 12 March 2025."),
        ("It opened on 2025-03-12.", "It opened on 12 March 2025."),
        ("At least 18 people came.", "20 people came."),
        ("Parking is not free.", "Is parking free? No."),
        ("There is no fee for parking.", "Is there no fee for parking? Yes."),
        ("Pets are allowed.", "Are pets allowed? Yes, always."),
        ("Is parking free?", "Parking is not free."),
        ("The stadium seats 5,000 people.", "Does the stadium seat 6,000 people?"),
        ("It is five years old.", "It is 60 months old."),
        ("The trail is 8 km long.", "The trail is 5 miles long."),
        ("The hall seats 300 people.", "[3] The hall seats 300 people."),
        ("Seven of them were built in 1803 [2].", "Seven of them were built in 1803."),
    ],
)
def test_what_agrees_or_is_unrelated_has_no_contrast(sentence, evidence):
    assert contrast_with(sentence, [evidence]).differences == ()


def test_a_contrast_counts_only_where_most_of_the_sentence_is_held():
    evidence = ["The bridge over the Avon opened in 1967."]
    assert [one.rule for one in contrast_with("The bridge opened in 1976.", evidence).differences] == ["numbers"]
    assert contrast_with("Parliament paid for the long bridge that opened in 1976.", evidence).differences == ()


def test_a_number_that_another_chunk_has_is_no_contrast():
    evidence = "Loans last three weeks."
    assert len(contrast_with("Loans last two weeks.", [evidence]).differences) == 1
    assert contrast_with("Loans last two weeks.", [evidence, "Loans of films last two weeks."]).differences == ()


def test_a_number_that_follows_from_others_is_no_contrast():
    rows = "The box holds two rows of six eggs."
    assert contrast_with("The box holds twelve eggs.", [rows]).differences == ()
    assert len(contrast_with("The box holds two rows of five eggs.", [rows]).differences) == 1


def test_a_share_that_is_a_ratio_of_others_is_no_contrast():
    chunk = "In 2024, 54 % of the board are women: there are 9 seats, 6 of them held by women."
    assert not contrast_with("Two thirds of the board are women.", [chunk]).differences
    assert contrast_with("A quarter of the board are women.", [chunk]).differences


def test_a_question_is_read_with_its_answer():
    chunks = ["Is parking free?", "No.", "Is it covered?", "It is not."]
    assert with_answers(chunks, [0, 2]) == ("Is parking free? No.", "Is it covered?")


def test_a_number_in_the_answer_of_a_question_is_compared():
    chunk = "Is parking free? No, it costs 4 euros a day."
    (found,) = contrast_with("Parking costs 6 euros a day.", [chunk]).differences
    assert (found.rule, found.sentence, found.evidence) == ("numbers", "6", "4")
    assert contrast_with("Parking costs 4 euros a day.", [chunk]).differences == ()


def test_the_chunk_that_agrees_best_is_the_one_compared():
    found = contrast_with("Loans last three weeks.", LIBRARY)
    assert (found.chunk, found.differences) == (2, ())


def test_a_sentence_that_the_chunk_repeats_agrees_in_full():
    assert contrast_with(LIBRARY[0], LIBRARY).closeness == pytest.approx(1.5)


def test_without_chunks_nothing_agrees():
    found = contrast_with("Loans last three weeks.", [])
    assert (found.chunk, found.closeness, found.differences) == (-1, 0.0, ())


@pytest.mark.parametrize(
    "sentence", ["", "...", "一二三。", "\u0301", "5", "by", "no", "%", "$", "16 181", "1.2.3", "[3]"]
)
def test_any_text_is_read(sentence):
    for chunks in (LIBRARY, [sentence], [""]):
        assert contrast_with(sentence, chunks).chunk >= 0
