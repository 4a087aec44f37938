"""Values of made-up facts: each with its other spellings, its implications and its contradictions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["KINDS_OF_VALUE", "Value", "draw_value"]

_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_TENS = {30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety"}
_MONTHS = (
    "January February March April May June July August September October November December"
).split()  # fmt: skip

_WORDS = {
    "first": "Anna Ben Carla David Elena Frank Grace Hassan Irene Jonas Karen Luis Maria Nadia Oscar Paula Quentin "
    "Rosa Samuel Tanya Ulrich Vera Walter Yusuf Zoe Mark Sarah Peter Lucy Ahmed Mei Kofi Priya Ivan Chloe Diego "
    "Hana Omar Julia Tom Emily George Laura Simon Nina Victor Amy Daniel Ruth",
    "last": "Adams Baker Costa Dubois Evans Fischer Garcia Hughes Ibrahim Jensen Kowalski Lopez Miller Novak Okafor "
    "Patel Quinn Rossi Schmidt Tanaka Urban Vogel Walsh Yamada Ziegler Brown Clarke Moreau Nielsen Park Singh "
    "Silva Turner Weber Wong Young Marsh Keller Lindgren Haddad",
    "city": "Paris Berlin Madrid Oslo Vienna Lisbon Prague Dublin Rome Athens Warsaw Helsinki Boston Chicago Denver "
    "Seattle Toronto Tokyo Osaka Seoul Lagos Nairobi Cairo Lima Bogota Santiago Sydney Perth Leeds Bristol Glasgow "
    "Munich Hamburg Lyon Turin Geneva Zurich Antwerp Riga Krakow Dallas Phoenix Mumbai Delhi Hanoi Manila",
    "country": "France Germany Spain Norway Austria Portugal Ireland Italy Greece Poland Finland Canada Japan Kenya "
    "Nigeria Egypt Peru Chile Australia Belgium Sweden Denmark Brazil Mexico India Vietnam Turkey Morocco",
    "name_head": "Stock Nova Bright Alt Green Ver Zen Lum Cor Tel Quant Med Solar Ax Bio Hel Fin Prim Orb Delt Clear "
    "Red Silver North East Stone Blue Rapid",
    "name_tail": "ly ix wave tech ora is line ium soft path gen works ware field craft pay net lab com link mark",
    "colour": "red blue green yellow black white orange purple brown grey",
    "weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "animal": "wolf otter falcon seal bear lynx heron salmon tortoise fox badger eagle bat deer hare",
    "drug": "ibuprofen aspirin paracetamol metformin warfarin amoxicillin naproxen cetirizine omeprazole loratadine "
    "codeine insulin",
    "material": "steel copper wood glass aluminium concrete plastic leather granite bamboo wool cotton",
    "team": "Rovers United Wanderers Eagles Tigers Hornets Falcons Bulls Sharks Lions Rangers Athletic Panthers Wolves",
    "food": "rice bread cheese fish beef lentils pasta apples nuts eggs milk potatoes spinach chocolate",
}
_PHRASES = {
    "job": "nurse,teacher,lawyer,engineer,painter,journalist,chemist,pilot,chef,architect,economist,dentist,farmer,"
    "translator,accountant,librarian,carpenter,photographer,plumber,biologist",
    "device": "the pump,the printer,the boiler,the camera,the battery,the drill,the router,the freezer,the engine,"
    "the sensor,the heater,the scanner,the valve,the mixer,the alarm",
    "room": "the kitchen,the library,the meeting room,the pool,the garden,the gym,the laboratory,the car park,"
    "the main hall,the cafeteria,the archive,the workshop",
    "group": "students,members,employees,visitors,tenants,patients,customers,drivers,children,volunteers,guests,"
    "residents,passengers,subscribers",
    "thing": "tickets,books,laptops,uniforms,meals,deposits,parcels,shoes,licences,tools,vouchers,software,furniture,"
    "gift cards,medicines,spare parts",
    "disease": "measles,malaria,asthma,diabetes,influenza,anaemia,migraine,pneumonia,eczema,gout,tuberculosis",
    "symptom": "a headache,fever,a dry mouth,nausea,a rash,dizziness,fatigue,a cough,stomach pain,joint pain",
    "measure": "sales,profits,exports,prices,wages,rents,the unemployment rate,production,attendance,the birth rate,"
    "water levels,emissions,traffic,membership,turnover,energy use",
    "place": "the old mill,the town hall,the harbour,the station,the castle,the stadium,the cathedral,the museum,"
    "the airport,the market,the lighthouse,the theatre,the central bridge",
    "topic": "climate change,trade,education,housing,public health,tax reform,migration,energy,road safety,farming",
    "sport": "tennis,chess,rugby,hockey,golf,swimming,cycling,football,basketball,volleyball,judo",
    "substance": "the gas,the powder,the liquid,the metal,the resin,the salt,the acid,the alloy,the oil,the dye",
    "relative": "boss,teacher,landlord,lawyer,doctor,godchild,tutor,agent,coach,grandchild,heir,assistant",
    "utility": "heating,water,electricity,internet,parking,cleaning,insurance,furniture",
    "weather": "fog,snow,a storm,ice,strong winds,heavy rain,a thunderstorm",
    "when": "before,after,during",
    "paper": "the report,the contract,the invoice,the permit,the application,the lease,the survey,the letter,"
    "the certificate,the complaint",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value in its spellings, the first the plainest; ``implied`` phrases hold of it and ``excluded`` ones do not."""

    spellings: tuple[str, ...]
    implied: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def draw_value(rng: random.Random, kind: str) -> Value:
    """Draw a value of a kind."""
    return KINDS_OF_VALUE[kind](rng)


def number_word(number: int) -> str | None:
    """Spell a whole number below a hundred."""
    if number <= 20:
        return _NUMBER_WORDS[number]
    if number >= 100:
        return None
    tens, ones = number // 10 * 10, number % 10
    word = _TENS.get(tens, "twenty")
    return f"{word}-{_NUMBER_WORDS[ones]}" if ones else word


def _quantity(rng: random.Random, number: int, unit: str, *, more: tuple[str, ...] = ()) -> Value:
    """Spell a number with its unit (``{}`` is where the number goes), and bound it from both sides."""
    word = number_word(number)
    plain = f"{number:,}"
    spellings = tuple(unit.format(n) for n in (plain, *((word,) if word else ()))) + more
    step = max(1, number // rng.choice((3, 4, 10)))
    low, high = number - step, number + step
    if low < 1:
        return Value(spellings, (unit.format(f"fewer than {high:,}"),), (unit.format(f"more than {high:,}"),))
    return Value(
        spellings,
        (unit.format(f"more than {low:,}"), unit.format(f"over {low:,}"), unit.format(f"fewer than {high:,}"),
         unit.format(f"at least {low:,}"), unit.format(f"at most {high:,}")),
        (unit.format(f"more than {high:,}"), unit.format(f"over {high:,}"), unit.format(f"fewer than {low:,}"),
         unit.format(f"at least {high:,}"), unit.format(f"at most {low:,}")),
    )  # fmt: skip


def _count(rng: random.Random) -> Value:
    number = rng.choice((rng.randint(2, 20), rng.randint(21, 99), rng.randint(100, 999), rng.randint(1000, 90000)))
    more: tuple[str, ...] = ()
    if number >= 1000:
        rounded = round(number, -2)
        more = tuple(
            f"{word} {rounded:,}" for word in ("about", "around", "roughly", "nearly")[: 3 + (rounded > number)]
        )
    return _quantity(rng, number, "{}", more=more)


def _duration(rng: random.Random) -> Value:
    forms = {
        7: ("days", ("a week", "one week")), 14: ("days", ("two weeks", "a fortnight")), 21: ("days", ("three weeks",)),
        24: ("hours", ("a day", "one day")), 48: ("hours", ("two days",)), 12: ("months", ("a year", "one year")),
        18: ("months", ("a year and a half",)), 60: ("minutes", ("an hour", "one hour")),
        90: ("minutes", ("an hour and a half",)), 30: ("minutes", ("half an hour",)), 6: ("months", ("half a year",)),
    }  # fmt: skip
    if rng.random() < 0.4:
        number = rng.choice(sorted(forms))
        unit, more = forms[number]
        return _quantity(rng, number, f"{{}} {unit}", more=more)
    unit = rng.choice(("days", "hours", "months", "years", "minutes", "weeks"))
    return _quantity(rng, rng.randint(2, 45), f"{{}} {unit}")


def _money(rng: random.Random) -> Value:
    if rng.random() < 0.35:
        number = rng.randint(2, 90)
        scale = rng.choice(("million", "billion"))
        sign, word = rng.choice((("$", "dollars"), ("€", "euros"), ("£", "pounds")))
        low, high = max(1, number // 2), number * 2
        return Value(
            (f"{number} {scale} {word}", f"{sign}{number} {scale}"),
            (f"more than {low} {scale} {word}" if low < number else f"less than {high} {scale} {word}",
             f"less than {high} {scale} {word}"),
            (f"more than {high} {scale} {word}", f"less than {low} {scale} {word}"),
        )  # fmt: skip
    number = rng.choice((rng.randint(2, 99), 50 * rng.randint(2, 40), 1000 * rng.randint(2, 90)))
    sign, word = rng.choice((("$", "dollars"), ("€", "euros"), ("£", "pounds")))
    return _quantity(rng, number, f"{{}} {word}", more=(f"{sign}{number:,}",))


def _percent(rng: random.Random) -> Value:
    named = {50: "half", 25: "a quarter", 75: "three quarters", 20: "a fifth", 10: "a tenth"}
    number = rng.choice((rng.choice(sorted(named)), rng.randint(2, 97)))
    return _quantity(rng, number, "{} percent", more=(f"{number}%", f"{number} per cent"))


def _year(rng: random.Random) -> Value:
    year = rng.randint(1850, 2023)
    gap = rng.randint(1, 12)
    return Value(
        (f"in {year}",),
        (f"before {year + gap}", f"after {year - gap}", f"in the {year // 10 * 10}s"),
        (f"before {year - gap}", f"after {year + gap}", f"in the {year // 10 * 10 + rng.choice((-20, -10, 10, 20))}s"),
    )


def _date(rng: random.Random) -> Value:
    month, day = rng.randrange(12), rng.randint(1, 28)
    name, other = _MONTHS[month], _MONTHS[(month + rng.randint(1, 11)) % 12]
    return Value((f"on {day} {name}", f"on {name} {day}"), (f"in {name}",), (f"in {other}", f"on {day} {other}"))


def _clock(rng: random.Random) -> Value:
    hour = rng.randint(1, 11)
    half = rng.choice(("am", "pm"))
    return Value(
        (f"{hour} {half}", f"{hour}:00 {half}", f"{hour + 12 * (half == 'pm')}:00"),
        (),
        (f"{hour} {'am' if half == 'pm' else 'pm'}",),
    )


def _unit(rng: random.Random) -> Value:
    unit, low, high = rng.choice((
        ("{} metres", 2, 900), ("{} kilometres", 2, 900), ("{} kg", 2, 300), ("{} litres", 2, 200),
        ("{} grams", 2, 900), ("{} square metres", 10, 900), ("{} tonnes", 2, 500), ("{} degrees", 2, 95),
        ("{} watts", 5, 900),
    ))  # fmt: skip
    return _quantity(rng, rng.randint(low, high), unit)


def _measured(unit: str, low: int, high: int) -> Callable[[random.Random], Value]:
    return lambda rng: _quantity(rng, rng.randint(low, high), unit)


def _plain(draw: Callable[[random.Random], Value]) -> Callable[[random.Random], Value]:
    """Draw without bounds: "at most more than 4 g" says nothing."""
    return lambda rng: Value(draw(rng).spellings)


def _day(rng: random.Random) -> Value:
    month, day = rng.choice(_MONTHS), rng.randint(1, 28)
    return Value((f"{day} {month}", f"{month} {day}"))


def _since(rng: random.Random) -> Value:
    return Value((f"since {rng.randint(1950, 2018)}",))


def _dose(rng: random.Random) -> Value:
    return _quantity(
        rng, rng.choice((2, 4, 5, 8, 10, 20, 25, 40, 50, 100, 200, 400, 500, 800)), "{} " + rng.choice(("mg", "ml"))
    )


def _person(rng: random.Random) -> Value:
    first, last = rng.choice(_WORDS["first"].split()), rng.choice(_WORDS["last"].split())
    return Value((f"{first} {last}",))


def _company(rng: random.Random) -> Value:
    name = rng.choice(_WORDS["name_head"].split()) + rng.choice(_WORDS["name_tail"].split())
    return Value((name + rng.choice(("", "", "", " Group", " Ltd", " Labs")),))


def _listed(words: list[str]) -> Callable[[random.Random], Value]:
    return lambda rng: Value((rng.choice(words),))


KINDS_OF_VALUE: dict[str, Callable[[random.Random], Value]] = {
    "person": _person, "company": _company, "count": _count, "duration": _plain(_duration), "money": _money,
    "percent": _percent, "year": _year, "date": _date, "clock": _clock, "unit": _unit, "dose": _plain(_dose),
    "day": _day, "since": _since, "fee": _plain(_money), "limit": _plain(_measured("{} degrees", 2, 95)),
    "temperature": _measured("{} degrees", 2, 900), "distance": _measured("{} kilometres", 2, 400),
    "weight": _measured("{} kg", 2, 300), "minute": _plain(_measured("{}", 2, 90)),
    "age": _plain(_measured("{}", 30, 99)),
    **{kind: _listed(_WORDS[kind].split()) for kind in (
        "city", "country", "colour", "weekday", "animal", "drug", "material", "team", "food", "first")},
    **{kind: _listed(listed.split(",")) for kind, listed in _PHRASES.items()},
}  # fmt: skip
"""Functions that draw a value of each kind."""
