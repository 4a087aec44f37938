import pytest

from syncheck.contrasts.contrast import Difference, contrast_with

LIBRARY = [
    "The city library was founded in 1967 by Anna Keller.",
    "It holds 42,000 books and is closed on Mondays.",
    "Loans last three weeks and can be renewed twice.",
]


@pytest.mark.parametrize(
    ("sentence", "evidence", "kind", "words"),
    [
        ("The bridge opened in 1976.", "The bridge opened in 1967 after long delays.", "number", ("1976", "1967")),
        ("The maximum is 8 g in 24 hours.", "The maximum dose is 4 g in 24 hours.", "number", ("8", "4")),
        ("Hold it for thirty seconds.", "Hold it for ten seconds.", "number", ("thirty", "ten")),
        ("The red team won 9 games.", "The red team won 5 games and the blue team 9.", "number", ("9", "5")),
        ("Take 5 g of it daily.", "Take 5 mg of it daily.", "unit", ("g", "mg")),
        ("The fee is $20.", "The fee is €20.", "unit", ("$", "€")),
        (
            "It opens at 9 on weekdays.",
            "The pool opens at 6:30 on weekdays and at 9 on Sundays.",
            "number",
            ("9", "6:30"),
        ),
        ("Lyon won 2-1 on Sunday.", "On Sunday Lyon lost 2-1 to Nice.", "antonym", ("won", "lost")),
        ("He lives in Lyon with his wife.", "He lives in Paris with his wife.", "name", ("Lyon", "Paris")),
        ("Take it one hour after food.", "Take it two hours after food.", "number", ("one", "two")),
        ("Refunds are available here.", "Refunds are not available here.", "negation", ("", "not")),
        (
            "Opened software can be returned.",
            "Returns are accepted within 28 days if the seal is unbroken; opened software cannot be returned.",
            "negation",
            ("", "cannot"),
        ),
        (
            "The plan is unavailable in Spain.",
            "The plan is available in Spain.",
            "negation",
            ("unavailable", "available"),
        ),
        ("Sales fell in May.", "Sales rose in May.", "antonym", ("fell", "rose")),
        ("It costs more than 5 euros.", "It costs less than 5 euros.", "comparison", ("more", "less")),
        ("Pay before the visit.", "Pay after the visit.", "comparison", ("before", "after")),
        ("It shut before cracks were found.", "It shut after cracks were found.", "comparison", ("before", "after")),
        ("All members may vote.", "Some members may vote.", "quantifier", ("All", "Some")),
        ("Dogs are allowed.", "Dogs are not allowed in the museum, except guide dogs.", "negation", ("", "not")),
        ("The user can replace it.", "It cannot be replaced by the user.", "negation", ("", "cannot")),
        ("The company paid a dividend.", "The company did not pay a dividend.", "negation", ("", "not")),
        ("The plan is available.", "The plan is no longer available.", "negation", ("", "no")),
        ("Gas is included in the rent.", "Gas is excluded from the rent.", "antonym", ("included", "excluded")),
        ("Trains run from 6:00 to 21:00.", "Trains run from 6:00 to 23:00.", "number", ("21:00", "23:00")),
        ("It is four centimetres long.", "It is 3 cm long.", "number", ("four", "3")),
        ("2.6 million people live here.", "2.5 million people live here.", "number", ("2.6", "2.5")),
        ("**Parking:** 3 euros an hour", "Parking costs 2 euros an hour.", "number", ("3", "2")),
        ("Opened in 1989 by Lee", "In the year 1998 a clinic was opened by Anna Lee.", "number", ("1989", "1998")),
        ("Open until 7 p.m.", "It is open from 8 a.m. to 6 p.m. on weekdays.", "number", ("7", "6")),
        ("The rate rose to 4.9 in May.", "The rate rose to 5.3 in May from 4.9 in April.", "number", ("4.9", "5.3")),
        ("Laudo founded it.", "Keller founded it.", "name", ("Laudo", "Keller")),
        ("Tom founded it.", "Anna Keller founded it.", "name", ("Tom", "Keller")),
        ("Maria Keller founded it.", "Anna Keller founded it.", "name", ("Maria", "Anna")),
        ("The Omo River is long.", "The Bottego River is long.", "name", ("Omo", "Bottego")),
        (
            "Edith Carr restored the engine.",
            "Tomas Reid restored the engine. Volunteers led by Edith Carr cleared the line.",
            "name",
            ("Carr", "Reid"),
        ),
        ("Ben will take the minutes.", "Ben: OK, and Dev will take the minutes.", "name", ("Ben", "Dev")),
        (
            "Mira Okafor led the firm for 22 years.",
            "In 2018 Mira Okafor became head in the place of Paul Lindqvist, who had led the firm for 22 years.",
            "name",
            ("Okafor", "Lindqvist"),
        ),
        (
            "Paul Lindqvist succeeded Mira Okafor.",
            "Mira Okafor became head in 2018, succeeding Paul Lindqvist.",
            "order",
            ("Paul Lindqvist succeeded Mira Okafor", "Mira Okafor became head in 2018, succeeding Paul Lindqvist"),
        ),
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
            (
                "Hornbeam stands wet ground better than beech",
                "Beech stands wet ground better than hornbeam",
            ),
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
            "Jon Keller beat Mara Voss.",
            "Mara Voss beat the favourite, Jon Keller, by two seconds.",
            "order",
            ("Jon Keller beat Mara Voss", "Mara Voss beat the favourite, Jon Keller"),
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
        ("It must not exceed 30 kg.", "It weighs at least 30 kg.", "comparison", ("not exceed", "at least")),
        ("Prof. Ray founded the clinic.", "Amara Lee founded the clinic.", "name", ("Ray", "Lee")),
        ("All microbes feed on iron.", "Most of the microbes feed on iron.", "quantifier", ("All", "Most")),
        ("The lease begins on 1 May 2024.", "The lease begins on 1 March 2024.", "name", ("May", "March")),
        ("Staff park in front of the building.", "Staff park behind the building.", "antonym", ("front", "behind")),
        ("The pump is checked monthly.", "The pump is checked weekly.", "quantifier", ("monthly", "weekly")),
        (
            "The bakery sells 650 loaves on weekdays.",
            "The bakery sells 400 loaves on weekdays and 650 on Saturdays.",
            "number",
            ("650", "400"),
        ),
        (
            "Late books cost 50p a day, late films 10p.",
            "Late books cost 10p a day, late films 50p.",
            "number",
            ("50", "10"),
        ),
        (
            "Mill Hill was connected in June 2022.",
            "Mill Hill was connected in March 2021, Low Flats in June 2022.",
            "name",
            ("June", "March"),
        ),
        ("Rents rose in Oulu.", "Rents rose in Turku, while they fell in Oulu.", "name", ("Oulu", "Turku")),
        (
            "The path is dangerous in summer.",
            "The path is safe in summer but dangerous in winter.",
            "antonym",
            ("dangerous", "safe"),
        ),
        ("The contract ends before 2027.", "The contract does not end before 2027.", "negation", ("", "not")),
        ("The council will decide in May.", "The council will not decide before June.", "negation", ("", "not")),
        ("Members may not vote.", "Only members may vote.", "negation", ("not", "")),
        ("A will is valid without witnesses.", "A will is valid only with witnesses.", "negation", ("without", "")),
        ("The shop is not open daily.", "The shop is open daily except Mondays.", "negation", ("not", "")),
        ("The mill is open until 10 a.m.", "The mill is closed until 10 a.m.", "antonym", ("open", "closed")),
        ("Those who paid lose their seats.", "Those who have not paid lose their seats.", "negation", ("", "not")),
        ("Children over 12 travel free.", "Children under 12 travel free.", "comparison", ("over", "under")),
        ("The fee is non-refundable.", "The fee is refundable.", "negation", ("non", "")),
        (
            "Rest does more good than harm.",
            "Rest does more harm than good.",
            "order",
            ("good than harm", "harm than good"),
        ),
        (
            "The elbe is shorter than the oder.",
            "The elbe is longer than the oder.",
            "comparison",
            ("shorter", "longer"),
        ),
        ("Pupils must not bring phones.", "Pupils may bring phones.", "quantifier", ("must", "may")),
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
            "In case of fire, use the lift.",
            "Do not use the lift in case of fire; use the stairs.",
            "negation",
            ("", "not"),
        ),
        (
            "Pupils may leave whether or not a parent has signed.",
            "Pupils may leave if a parent has signed.",
            "negation",
            ("whether or not", "if"),
        ),
        ("Nora speaks Spanish.", "Nora speaks French.", "name", ("Spanish", "French")),
    ],
)
def test_the_words_that_differ_stand_side_by_side(sentence, evidence, kind, words):
    assert Difference(kind, *words) in contrast_with(sentence, [evidence]).found


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
            "The union includes Northern Ireland, Wales and England.",
            "The union includes England, Wales and Northern Ireland.",
        ),
        (
            "The Australian Football League has 18 clubs.",
            "The league has 18 clubs, and one in every state but the Australian Capital Territory.",
        ),
        ("Chief Justice Martha Koome spoke.", "Lady Justice Martha Koome, who is Chief Justice, spoke."),
        (
            "Oregon chose the Microbe in 2013 for its use to beer makers.",
            "Oregon chose the Microbe of the State of Oregon in 2013 for its use to beer makers.",
        ),
        (
            "Increasing the volume of the chest decreases the pressure in it.",
            "Increasing the volume increases the room for air, which causes a decrease in the pressure in it.",
        ),
        ("It tests 100 samples a day.", "It tests up to 120 samples a day."),
        ("It holds at least 3 people.", "It holds 4 people."),
        ("It holds at most 120 people.", "It holds up to 120 people."),
        ("Parking: 3 euros", "Parking costs 2 euros an hour, or 9 euros a day."),  # two of this unit
        ("2,500,000 people live here.", "2.5 million people live here."),
        ("Forty-five thousand people live here.", "45,000 people live here."),
        ("45 thousand people live here.", "45,000 people live here."),
        ("Two hundred and five people live here.", "205 people live here."),
        ("One hundred twenty people live here.", "120 people live here."),
        ("Anna founded it.", "Anna Keller founded it."),  # the same name
        ("In May Anna met Tom.", "In May Tom met Anna."),
        ("Novak found it in 2009.", "Marie Novak, a biologist from Brno, found it in 2009."),
        ("It runs for two years.", "It runs for 24 months."),
        ("Take 1.5 kg.", "Take 1500 g."),
        ("The frog is three centimetres long.", "The frog is 3 cm long."),
        ("Engineers founded it.", "Keller founded it."),  # no name
        ("Parking here: 3 euros", "Parking costs 2 hours and 2 dollars here."),
        ("3 euros", "It costs 2 euros."),  # nothing else is said
        ("Open until 6 p.m.", "It is open from 8 a.m. to 6 p.m. on weekdays."),
        ("On Saturdays, 650 loaves are sold.", "The bakery sells 400 loaves on weekdays and 650 on Saturdays."),
        ("The town had 7,000 inhabitants in 2020.", "In 2010 the town had 5,000 inhabitants; by 2020 it had 7,000."),
        ("One shop in Liege was closed.", "The firm opened three shops in Ghent and closed one in Liege."),
        ("In Oulu, rents fell.", "Rents rose in Turku, while they fell in Oulu."),
        ("Sweden won silver.", "Norway won gold, Sweden silver and Finland bronze."),
        ("At the mill, turn right.", "Turn left at the church and right at the mill."),
        ("In winter, the path is dangerous.", "The path is safe in summer but dangerous in winter."),
        ("The lamp turns off when it gets light.", "The lamp turns on when it gets dark and off when it gets light."),
        ("The second book was printed in Vienna.", "The first book was printed in Leipzig and the second in Vienna."),
        ("The contract ends in 2027.", "The contract does not end before 2027."),
        (
            "Install the driver before you plug in the mouse.",
            "Do not plug in the mouse before the driver is installed.",
        ),
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
        (
            "Theft with signs of a break-in is paid for.",
            "Theft is paid for whether or not there are signs of a break-in.",
        ),
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
        ("On Tuesday the shares rose.", "The shares fell on Monday and recovered on Tuesday."),
        ("Lee failed the exam.", "Kim passed the exam, but Lee did not."),
        ("Kim passed the exam.", "Both Kim and Lee passed the exam."),
        ("In case of fire, use the stairs.", "Do not use the lift in case of fire; use the stairs."),
        ("No room costs more than 120 euros.", "Rooms cost between 80 and 120 euros."),
        ("The office closes at 14 on Sundays.", "The office is open on Sundays from 10 to 14."),
        ("Are refunds available?", "Refunds are not available."),  # a question
        ("The fee is $20$ euros.", "The fee is 20 euros."),  # a formula
        ("The largest is Mira.", "Anor is the largest in summer, Mira, which grows in winter, the largest of all."),
    ],
)
def test_what_agrees_or_is_unrelated_has_no_contrast(sentence, evidence):
    assert contrast_with(sentence, [evidence]).found == ()


@pytest.mark.parametrize(
    ("supported", "contradicted"),
    [
        ("Anna beat Mary in the final.", "Mary beat Anna in the final."),
        ("Mary was beaten by Anna in the final.", "Anna was beaten by Mary in the final."),
    ],
)
def test_exchanged_arguments_agree_less(supported, contradicted):
    evidence = ["In 2010 Anna beat Mary in the final."]
    first, second = contrast_with(supported, evidence), contrast_with(contradicted, evidence)
    assert first.agreement > second.agreement
    assert first.inverted < second.inverted


def test_a_contrast_counts_only_where_most_of_the_sentence_is_held():
    evidence = ["The bridge over the Avon opened in 1967."]
    assert contrast_with("The bridge opened in 1976.", evidence).count("number") == 1
    assert contrast_with("Parliament paid for the long bridge that opened in 1976.", evidence).found == ()


def test_a_number_that_another_chunk_has_is_no_contrast():
    assert contrast_with("Loans last two weeks.", [LIBRARY[2]]).count("number") == 1
    assert contrast_with("Loans last two weeks.", [LIBRARY[2], "Loans of films last two days."]).found == ()


REVENUE = "Revenue was 5 million euros in 2022 and 7 million euros in 2023."
CALLS = "In April 147 ships called at the port, in May 139 and in June 151."
PRICES = "Adults pay 12 euros, students 8 euros and children under six nothing."
TRAIN = "The train leaves Bern at 9:15 and arrives in Zurich at 10:12."
PARKING = "The long-stay car park costs 9 a day, or 45 for a week."
PEOPLE = "Anna Keller was appointed in 2015, and Paul Roth succeeded her in 2021."
VERSIONS = "Version 3.2 added dark mode; version 3.4 added offline maps."
RADIOS = "The Duo has a firm and a soft side; the Uno must not be turned over."
LIGHT = "Warm light is advised in the evening; cool light, rich in blue, keeps one awake."


@pytest.mark.parametrize(
    ("sentence", "evidence", "words"),
    [
        ("In 2022 revenue was 7 million euros.", REVENUE, ("7", "5")),
        ("In May 151 ships called at the port.", CALLS, ("151", "139")),
        ("Students pay 12 euros.", PRICES, ("12", "8")),
        ("Adults pay 8 euros.", PRICES, ("8", "12")),
        ("The train arrives in Zurich at 9:15.", TRAIN, ("9:15", "10:12")),
        ("A week in the long-stay car park costs 9.", PARKING, ("9", "45")),
        ("Paul Roth was appointed in 2015.", PEOPLE, ("2015", "2021")),
        ("Dark mode came with version 3.4.", VERSIONS, ("3.4", "3.2")),
        ("The Uno has a firm side, while the Duo must not be turned over.", RADIOS, ("Uno", "Duo")),
        ("Warm light keeps one awake because it is rich in blue.", LIGHT, ("Warm", "cool")),
    ],
)
def test_facts_that_are_crossed_contrast(sentence, evidence, words):
    assert words in [(found.sentence, found.evidence) for found in contrast_with(sentence, [evidence]).found]


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("In 2023 revenue was 7 million euros.", REVENUE),
        ("Revenue rose from 5 million to 7 million euros.", REVENUE),
        ("The port saw 147 ships in April.", CALLS),
        ("A student ticket costs 8 euros.", PRICES),
        ("Adults pay 12 euros, unlike students.", PRICES),
        ("The train arrives in Zurich at 10:12.", TRAIN),
        ("A week in the long-stay car park costs 45.", PARKING),
        ("Paul Roth was appointed in 2021.", PEOPLE),
        ("Offline maps came with version 3.4.", VERSIONS),
        ("Staff above 50 have 30 days.", "Employees under 30 get 25 days of leave, those over 50 get 30 days."),
        ("The Uno must not be turned over, while the Duo has a soft side.", RADIOS),
        ("Cool light keeps one awake.", LIGHT),
        ("He was born on June 5, 1915.", "Eugene Ost (June 5, 1915 – May 3, 2005) was an architect, born in Linz."),
        ("Use a 70 percent alcohol wipe or a cloth.", "Use a 70 percent alcohol wipe, 75 percent ethanol, or a cloth."),
        (
            "Gently wipe hard surfaces with a 70 percent isopropyl wipe.",
            "Using a 70 percent isopropyl wipe, 75 percent ethyl wipe, or cloths, you may gently wipe hard surfaces.",
        ),
        (
            "The north tower is 25 metres taller than the south tower.",
            "The north tower is 120 metres tall and the south tower 95 metres.",
        ),
    ],
)
def test_facts_that_are_told_as_they_are_do_not_contrast(sentence, evidence):
    assert contrast_with(sentence, [evidence]).found == ()


@pytest.mark.parametrize(
    ("sentence", "evidence", "words"),
    [
        ("It is open on Mondays.", "The museum is open daily except Mondays.", [("Mondays", "except")]),
        ("Guide dogs are allowed.", "Dogs are not allowed, except guide dogs.", []),
        ("It is closed on Mondays.", "The museum is open daily except Mondays.", []),
        ("It is open daily except Mondays.", "The museum is open daily except Mondays.", []),
        ("You may camp at Linn.", "Camping is forbidden except at Linn.", []),
        ("It is open until six.", "The museum is open until six.", []),
    ],
)
def test_what_is_said_of_an_exception_contrasts(sentence, evidence, words):
    assert [(found.sentence, found.evidence) for found in contrast_with(sentence, [evidence]).found] == words


def test_a_number_or_name_that_stands_elsewhere_contrasts_where_the_chunk_tells_the_rest():
    chunks = [
        "The first model went on sale in 2016 in Weimar.",
        "Its makers offered the idea to Lucas in Jena in 2014.",
    ]
    for sentence, kind in (("The first model went on sale in 2014.", "number"), ("It went on sale in Jena.", "name")):
        assert contrast_with(sentence, chunks).count(kind) == 1
    told = [chunks[0], "Of the other model, sales began in 2014."]
    assert contrast_with("The model was for sale from 2014.", told).count("number") == 0


def test_a_name_that_another_chunk_tells_the_same_of_is_no_contrast():
    sentence = "The first flight to Lyon was led by Okafor in May."
    other = "The first flight to Lyon was led by Reid in May."
    assert contrast_with(sentence, [other, "Okafor owns the shop."]).found == (Difference("name", "Okafor", "Reid"),)
    assert contrast_with(sentence, [other, "Led by Okafor, a flight to Lyon failed."]).found == ()


def test_the_chunk_that_agrees_best_is_the_one_compared():
    found = contrast_with("Loans last three weeks.", LIBRARY)
    assert (found.chunk, found.found) == (2, ())


def test_a_sentence_that_the_chunk_repeats_agrees_in_full():
    assert contrast_with(LIBRARY[0], LIBRARY).agreement == pytest.approx(1.5)


def test_without_chunks_nothing_agrees():
    found = contrast_with("Loans last three weeks.", [])
    assert (found.chunk, found.agreement, found.found) == (-1, 0.0, ())


@pytest.mark.parametrize("sentence", ["", "...", "一二三。", "\u0301", "5", "by", "no", "%"])
def test_any_text_is_read(sentence):
    for chunks in (LIBRARY, [sentence], [""]):
        assert contrast_with(sentence, chunks).chunk >= 0


def test_a_word_with_a_small_letter_elsewhere_is_no_name_at_the_start_of_a_sentence():
    evidence = "Rye bread costs 4.20 euros, spelt bread 5.10."
    assert contrast_with("Spelt bread costs 5.10 euros.", [evidence]).found == ()
    assert [c.kind for c in contrast_with("Laudo baked it.", ["Keller baked it."]).found] == ["name"]
