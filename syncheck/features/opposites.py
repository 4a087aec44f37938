"""Opposites: small hand-made lists of English words that reverse a statement, and of units that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

NEGATORS = frozenset(
    "not no non never none nobody nothing nowhere neither without cannot hardly rarely fail fails failed refuse "
    "refuses refused lack lacks lacked unable".split()
)
"""Words that deny what follows, besides all words that end in n't."""

NOT_DENYING = frozenset(
    "only just merely simply solely limited necessarily mentioned stated specified clear known until all every always "
    "everyone entirely fully completely exactly quite very so too".split()
)
"""Words that, shortly after a negator, show that it does not deny the whole statement."""

BLOCKERS = frozenset(
    "avoid avoids avoided avoiding prevent prevents prevented preventing unlikely impossible rather instead against "
    "nor deny denies denied stop stops stopped ban bans banned forbid forbids forbidden prohibit prohibits prohibited "
    "exclude excludes excluded waive waives waived free exempt".split()
)
"""Words that may reverse a statement as a negator does, so that no negation is missing next to them."""

EXCEPT = frozenset("unless except excepting excluding until apart".split())
"""Words before an exception to a denial."""

SYMMETRIC = frozenset(
    "and or with near between both as meet meets met marry married marries play plays played join joined equal equals "
    "like resemble resembles border borders bordered".split()
)
"""Words whose two sides may be exchanged."""

CONVERSE = frozenset("win wins won lose loses lost before after".split())
"""Words whose opposite says the same from the other side: "A lost to B", "B won"; "A before B", "B after A"."""

NEGATIVE_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")

OppositeKind = Literal["antonym", "comparison", "quantifier"]

_OPPOSITES = """
antonym: accept accepts accepted approve approves approved /
    reject rejects rejected refuse refuses refused deny denied
antonym: rise rises rose risen increase increases increased grow grows grew grown climb climbed up /
    fall falls fell fallen decrease decreases decreased decline declines declined drop drops dropped shrink shrank down
antonym: win wins won / lose loses lost
antonym: gain gains gained / lose loses lost
antonym: keep keeps kept retain retained / lose loses lost discard discarded
antonym: open opens opened / close closes closed shut locked
antonym: start starts started begin begins began begun / end ends ended finish finished stop stops stopped
antonym: pass passes passed succeed succeeded / fail fails failed
antonym: allow allows allowed permit permits permitted /
    forbid forbids forbidden prohibit prohibits prohibited ban banned
antonym: include includes included including / exclude excludes excluded excluding
antonym: arrive arrives arrived / leave leaves left depart departs departed
antonym: enter enters entered / exit exits exited leave left
antonym: push pushes pushed / pull pulls pulled
antonym: support supports supported back backed / oppose opposes opposed
antonym: love loves loved like liked / hate hates hated dislike disliked
antonym: expand expands expanded / contract contracts contracted
antonym: improve improves improved / worsen worsens worsened
antonym: strengthen strengthened / weaken weakened
antonym: raise raises raised lift lifted / lower lowers lowered cut cuts reduce reduces reduced
antonym: add adds added / remove removes removed subtract subtracted
antonym: survive survives survived / die dies died
antonym: required mandatory compulsory / optional voluntary
antonym: free waive waives waived / pay pays paid charge charges charged
antonym: true correct right / false incorrect wrong
antonym: safe harmless / dangerous harmful unsafe
antonym: hot warm / cold cool
antonym: wet / dry
antonym: full / empty
antonym: fill fills filled / empty empties emptied
antonym: soften softens softened / harden hardens hardened
antonym: sharp / blunt dull
antonym: alive / dead
antonym: public / private
antonym: indoor indoors / outdoor outdoors
antonym: male men man / female women woman
antonym: positive / negative
antonym: profit profits / loss losses
antonym: entrance / exit
antonym: guilty / innocent acquitted
antonym: day daytime morning / night nighttime evening
antonym: north northern / south southern
antonym: east eastern / west western
antonym: left / right
antonym: inside within / outside beyond
antonym: same / different
antonym: behind rear / front
antonym: upstairs / downstairs
antonym: upstream / downstream
antonym: internal internally / external externally
antonym: import imports imported / export exports exported
antonym: attach attaches attached / detach detaches detached
antonym: heat heats heated / cool cools cooled
antonym: domestic / foreign
antonym: horizontal / vertical
antonym: light / dark
antonym: weekday weekdays / weekend weekends
antonym: summer / winter
antonym: spring / autumn
antonym: sunrise / sunset
antonym: easy easier / difficult hard harder
antonym: temporary / permanent
antonym: present / absent
antonym: refundable / nonrefundable
comparison: more greater higher larger bigger above over exceed exceeds exceeded / less fewer lower smaller below under
comparison: most highest largest biggest maximum greatest top / least lowest smallest minimum bottom
comparison: longer longest / shorter shortest
comparison: older oldest / younger youngest newer newest
comparison: faster fastest quicker / slower slowest
comparison: better best / worse worst
comparison: earlier earliest before prior preceded / later latest after
comparison: early / late
comparison: first / last final
comparison: taller tallest / shorter shortest
comparison: heavier heaviest / lighter lightest
comparison: cheaper cheapest / dearer pricier costlier
comparison: high / low
comparison: long / short
comparison: large big / small little
comparison: old / young new
comparison: strong / weak
comparison: fast quick / slow
comparison: heavy / light
comparison: near nearer nearest / far farther farthest
comparison: wide wider widest / narrow narrower narrowest
comparison: deep deeper deepest / shallow shallower shallowest
comparison: thick thicker thickest / thin thinner thinnest
comparison: ahead / behind
comparison: double doubled doubles / halve halved halves half
quantifier: all every each both everyone always entire whole / some few several certain sometimes partly none
quantifier: all every everyone always everything / none never nobody nothing
quantifier: all every everyone always / most mostly
quantifier: many most majority / few minority
quantifier: always usually often / never rarely seldom
quantifier: only solely exclusively / everyone everybody anyone anybody
quantifier: both / either neither
quantifier: must shall / may might
quantifier: once / twice
quantifier: daily / weekly monthly yearly annually
quantifier: weekly / monthly yearly annually
quantifier: monthly / yearly annually
"""


def _read(text: str) -> Mapping[str, tuple[tuple[OppositeKind, frozenset[str]], ...]]:
    found: dict[str, list[tuple[OppositeKind, frozenset[str]]]] = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        name, _, words = line.partition(": ")
        kind = cast(OppositeKind, name)
        first, second = (frozenset(side.split()) for side in words.split("/"))
        for side, other in ((first, second), (second, first)):
            for word in side:
                found.setdefault(word, []).append((kind, other - side))
    return {word: tuple(pairs) for word, pairs in found.items()}


OPPOSITES = _read(_OPPOSITES)
"""Opposites of each word, by kind."""

_UNITS = """
mg milligram milligrams / g gram grams / kg kilogram kilograms kilo kilos / lb lbs pound pounds / oz ounce ounces /
    tonne tonnes ton tons
mm millimetre millimetres millimeter millimeters / cm centimetre centimetres centimeter centimeters /
    m metre metres meter meters /
    km kilometre kilometres kilometer kilometers / mile miles / ft foot feet / inch inches / yard yards
ml millilitre millilitres milliliter milliliters /
    l litre litres liter liters / gallon gallons / cup cups / tablespoon tablespoons / teaspoon teaspoons
second seconds sec / minute minutes min mins / hour hours hr hrs / day days / week weeks /
    month months / year years / decade decades / century centuries
hundred / thousand / million / billion / trillion / percent
am / pm
dollar dollars / euro euros / pence cents cent / pounds pound / yen
celsius / fahrenheit
kb kilobyte kilobytes / mb megabyte megabytes / gb gigabyte gigabytes / tb terabyte terabytes
daily / weekly / monthly / yearly annually
"""
UNITS: Mapping[str, tuple[int, int]] = {
    word: (group, number)
    for group, line in enumerate(_UNITS.replace("\n    ", " ").strip().splitlines())
    for number, names in enumerate(line.split("/"))
    for word in names.split()
}
"""Quantity and number of each unit; different units of the same quantity contradict each other."""

_SIZES: Mapping[str, Mapping[str, float]] = {
    "mass": {"mg": 1, "g": 1e3, "kg": 1e6},
    "length": {"mm": 1, "cm": 10, "m": 1e3, "km": 1e6},
    "volume": {"ml": 1, "l": 1e3},
    "time": {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800},
    "months": {"month": 1, "year": 12, "decade": 120, "century": 1200},
}
SIZES: Mapping[str, tuple[str, float]] = {
    word: (quantity, size)
    for quantity, sizes in _SIZES.items()
    for name, size in sizes.items()
    for word, unit in UNITS.items()
    if unit == UNITS[name]
}
"""Quantity and size of units that can be converted into each other."""

_VERBS = """
pay paid / say said / make made / take took taken / give gave given / meet met / buy bought / sell sold / keep kept /
leave left / lose lost / win won / hold held / find found / send sent / spend spent / build built / go went gone goes /
come came / see saw seen / begin began begun / write wrote written / know knew known / grow grew grown /
rise rose risen / fall fell fallen / choose chose chosen / speak spoke spoken / teach taught / bring brought /
think thought / tell told / get got gotten / become became / run ran / drive drove driven / eat ate eaten /
wear wore worn / lend lent / feel felt / lead led / stand stood / break broke broken / catch caught / do did done does /
draw drew drawn / drink drank drunk / fly flew flown / forget forgot forgotten / hear heard / hide hid hidden /
sleep slept / steal stole stolen / swim swam swum / throw threw thrown / beat beaten / bear bore born borne
"""
IRREGULAR: Mapping[str, str] = {
    form: forms[0] for forms in (verb.split() for verb in _VERBS.split("/")) for form in forms
}
"""Infinitive of each form of an irregular verb."""

TITLES = frozenset("mr mrs ms dr sir dame lord lady prof professor honorable honourable chief justice".split())
"""Words before names that are not part of them."""
CALENDAR = frozenset(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
"""Months and days of the week, which take the place of no other names."""
