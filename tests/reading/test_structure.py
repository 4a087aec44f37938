"""Tables, records, lists, questions, code and markup of passages are worded anew to be read, and quoted as given."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncheck.reading import EvidenceIndex, split_passages
from syncheck.reading.claim import in_structure
from syncheck.reading.tags import quotation
from syncheck.text.sentences import SentenceCutter


def read(passage: str) -> list[str]:
    return [chunk.text for chunk in split_passages([passage], cut=SentenceCutter(("Dr.", "p.m.~")).texts)]


MARKDOWN = """Prices 2024

| Plan | Storage | Price (EUR) |
|:-----|--------:|:-----------:|
| Basic | 10 GB | 2.50 |
| **Pro** \\| Team | 1 TB |  |

Plans renew every month. Cancel any time."""
ALIGNED = """Name        Role            Office
----------  --------------  ------
Anna Beck   Head of sales   Oslo
Jo Ruiz                     Bergen"""
DICTIONARY = "{'name': \"Joe's\", 'attributes': {'WiFi': None},\n 'review': [{'stars': 4.0, 'text': 'cut off he"
YAML = """server:
  port: 8080
  hosts:
    - a.example
    - b.example
users:
  - name: ann
    age: 4
  - name: bob
    age: 5
debug: false"""
MARKUP = """<h2>Parking &amp; access</h2>
<p>There are <b>40</b> spaces.<br>All free. See <a href="https://x.org/p">a plan</a>.</p>
<table><tr><th>Day</th><th>Hours</th></tr><tr><td>Mon</td><td>9&ndash;5</td></tr></table>"""
BOXED = """┌──────┬────┐
│ Plan │ kg │
├──────┼────┤
│ A7   │ 3  │
└──────┴────┘"""
SPACED = """Prices
<table>
  <thead>
    <tr> <th></th> <th>Swim</th>
      <th>Card</th> </tr>
  </thead>
  <tbody>
    <tr><td>Adult</td><td>&pound;6</td>
      <td>&pound;58</td></tr>
    <tr>
      <td>Family</td><td>&pound;17</td><td>&ndash;</td>
    </tr>
    <tr><td>Under 4</td><td colspan="2">free</td></tr>
  </tbody>
</table>
<table><tr><td><p>Lockers cost a pound.</p><p>Towels too.</p></td></tr></table>"""


LONG_ROW = f"Cake (Dish) has No. 2, Kind {'very ' * 30}sweet."
LONG_ROWS = [f"Pie (Dish) has Made of {'eggs ' * 29}eggs.", f"Pie (Dish) has For {'us ' * 19}us."]


NEWS = (
    """## v2 (2025)
### Added
- Dark mode
- Export to CSV

### Removed
- `--old` flag
1. Run it.

The price includes:

* breakfast
* a bike. It has a lock.

**Room 5**
- 12 seats
- """
    + 13 * "word "
)


@pytest.mark.parametrize(
    ("passage", "last"),
    [
        ("- Breakfast from seven to\n  ten in the lounge\n- Parking is free", "- Parking is free"),
        ("Check-out: 11 am\n\n- Pets allowed", "- Pets allowed"),
        ("# Guide\n```\n# install\n```\n## Notes\n- a word", "Guide, Notes: a word"),
        ("#\tGuide\n- a word", "Guide: a word"),
        ("## C# #\n- LINQ", "C#: LINQ"),
        ("# " + 13 * "word " + "\n- short", "- short"),
        ("- first\n\n" + 50 * "- one more\n\n" + "- last", "- last"),
    ],
)
def test_what_is_no_heading_of_an_item_is_not_read_with_it(passage, last):
    assert read(passage)[-1] == last


def test_a_short_item_is_read_with_the_headings_that_it_stands_under():
    assert read(NEWS) == [
        *("## v2 (2025)", "### Added", "v2 (2025), Added: Dark mode", "v2 (2025), Added: Export to CSV"),
        *("### Removed", "v2 (2025), Removed: `--old` flag", "1.", "Run it."),
        *("The price includes:", "The price includes: breakfast", "The price includes: a bike."),
        *("The price includes: It has a lock.", "**Room 5**", "Room 5: 12 seats", f"- {13 * 'word '}".strip()),
    ]


def test_a_short_key_with_its_value_is_read_with_the_headings_that_it_stands_under():
    room = f"## Rooms\n### Elm\nSeats: 12\nProjector: yes\nRules: {12 * 'word '}\n\nContact\nName: Ann Bo\nPhone: 5512"
    assert read(room) == [
        *(
            "## Rooms",
            "### Elm",
            "Rooms, Elm: Seats: 12",
            "Rooms, Elm: Projector: yes",
            f"Rules: {12 * 'word '}".strip(),
        ),
        *("Contact", "Contact: Name: Ann Bo", "Contact: Phone: 5512"),
    ]


@pytest.mark.parametrize(
    ("passage", "chunks"),
    [
        (
            MARKDOWN,
            [
                "Prices 2024",
                "Basic (Plan) has Storage 10 GB, Price (EUR) 2.50.",
                "**Pro** | Team (Plan) has Storage 1 TB, Price (EUR) none.",
                "Plans renew every month.",
                "Cancel any time.",
            ],
        ),
        (
            SPACED,
            [
                "Prices",
                *(
                    "Adult has Swim £6, Card £58.",
                    "Family has Swim £17, Card none.",
                    "Under 4 has Swim free, Card none.",
                ),
                *("Lockers cost a pound.", "Towels too."),
            ],
        ),
        ("| Plan | API |\n|---|---|\n| Basic | - |", ["Basic (Plan) has API none."]),
        ("Sat | 9 to 5\nSun | \u2014", ["Sat: 9 to 5", "Sun: none"]),
        (
            "<table><tr><th>Day</th><th>Court</th><th><p>Fee</p></th></tr>\n<tr><td rowspan='2'><p>Monday</p></td>"
            "<td>A</td><td>8</td></tr>\n<tr><td>B</td><td>6</td></tr></table>",
            ["Monday (Day) has Court A, Fee 8.", "Monday (Day) has Court B, Fee 6."],
        ),
        (
            "<dl>\n<dt>Fees:</dt>\n<dd>5</dd>\n<dd>2 for children</dd><dt>Dogs</dt><dd>no</dd></dl>",
            ["Fees: 5; 2 for children", "Dogs: no"],
        ),
        (
            "<h2>Visit</h2><ul>\n<li>Fees\n  <ul><li>Adult 5</li>\n<li><p>Child 2</p></li></ul>\n</li><li>Dogs</li>"
            "</ul>",
            ["Visit", "Visit: Fees", "Visit: Fees: Adult 5", "Visit: Fees: Child 2", "Visit: Dogs"],
        ),
        (
            BOXED,
            ["A7 (Plan) has kg 3."],
        ),
        ("| Name |\n| Ann Lee |", ["Name", "Ann Lee"]),
        (
            "name, role, office\nAnn, clerk, Oslo\nBen, cook, Moss",
            ["Ann (name) has role clerk, office Oslo.", "Ben (name) has role cook, office Moss."],
        ),
        (
            "Oslo, Moss, Bergen\nLyon, Nice, Paris\nRome, Turin, Milan",
            ["Oslo, Moss, Bergen", "Lyon, Nice, Paris", "Rome, Turin, Milan"],
        ),
        (
            '{"id": 1, "name": "Kettle"}\n{"id": 2, "name": "Iron"}',
            ["Kettle (name) has id 1.", "Iron (name) has id 2."],
        ),
        (
            "**Can I bring my dog?**\nSorry, no. It bites.\n\n**Is it far?**\nYes.",
            ["Can I bring my dog? Sorry, no. It bites.", "Is it far? Yes."],
        ),
        (
            "It is returned, unless:\n  (a) it is dirty; or\n  (b) keys\n      are missing.",
            [
                "It is returned, unless:",
                "It is returned, unless: it is dirty; or",
                "It is returned, unless: keys are missing.",
            ],
        ),
        ("- Prices:\n  | Plan | kg |\n  |---|---|\n  | A7 | 3 |", ["- Prices:", "A7 (Plan) has kg 3."]),
        ("- Run:\n  ```\n  pip install x\n  ```", ["- Run:", "pip install x"]),
        ("What is 2**3? It is 8.", ["What is 2**3? It is 8."]),
        ("1. **Is it far?** No, two miles.", ["1.", "Is it far? No, two miles."]),
        (
            "<table><tr><th rowspan=2>Day</th><th colspan=2>Price</th></tr><tr><th>Adult</th><th>Child</th></tr>"
            "<tr><td>Mon</td><td>5</td><td>9<br>to\n 12</td></tr></table><p>So.</p>",
            ["Mon (Day) has Price Adult 5, Price Child 9 to  12.", "So."],
        ),
        (
            "<table><tr><th>Dish</th><th>EUR</th></tr><tr><th colspan=2>Dinner</th></tr><tr><td>Steak</td><td>30</td>"
            "</tr></table>",
            ["Dish: Dinner", "Steak (Dish) has EUR 30."],
        ),
        (
            "<table><tr><th>Plan</th><th>Features</th></tr><tr><td>Basic</td><td><ul><li>API</li><li>SSO</li></ul></td>"
            "</tr></table>",
            ["Basic (Plan) has Features API ; SSO."],
        ),
        (
            "<table><tr><td rowspan=3>Mon</td><td>A</td></tr></table>Fees<table><tr><td>Caf&eacute; &amp; Bar<td>5"
            "<tr><td>Pool<td>3</table> The end.",
            ["Mon | A |", "Fees", "Café & Bar: 5", "Pool: 3", "The end."],
        ),
        ("- Breakfast from seven to\n  ten. In bed.\n- Lunch", ["Breakfast from seven to ten.", "In bed.", "- Lunch"]),
        (
            ALIGNED,
            ["Anna Beck (Name) has Role Head of sales, Office Oslo.", "Jo Ruiz (Name) has Role none, Office Bergen."],
        ),
        (
            "City | Zone | Fare\nOslo | 1 | 39\nMoss | 4 | 120",
            ["Oslo (City) has Zone 1, Fare 39.", "Moss (City) has Zone 4, Fare 120."],
        ),
        ("+----+----+\n| ID | kg |\n+====+====+\n| a7 | 3. |\n+----+----+", ["a7 (ID) has kg 3."]),
        (
            "Item\t2022\t2023\nRent\t5\t6\nFood\t\t7",
            ["Rent (Item) has 2022: 5, 2023: 6.", "Food (Item) has 2022: none, 2023: 7."],
        ),
        (
            "Monday     9.00 to 17.00\nTuesday    closed\nFriday     9.00 to 12.00",
            ["Monday: 9.00 to 17.00", "Tuesday: closed", "Friday: 9.00 to 12.00"],
        ),
        (
            'id,name,price\n1,"Kettle, steel",24.90\n2,Toaster,31.00',
            ["Kettle, steel (name) has id 1, price 24.90.", "Toaster (name) has id 2, price 31.00."],
        ),
        ('{"title": ["In Rainbows"], "Label": ["XL", "TBD"]}', ["title: In Rainbows", "Label: XL; TBD"]),
        (
            'It says: {"open": true, "at": [{"day": "Mon. 1", "h": []}, {"day": "Tue"}]} and no more.',
            ["It says:", "open: true", "Mon. 1 (at day) has h [].", "at day: Tue", "and no more."],
        ),
        (DICTIONARY, ["name: Joe's", "attributes WiFi: None", "4.0 (review stars) has text cut off he."]),
        (
            '{"plans": [{"no": 1, "plan_name": "Pro", "2024": 5, "for": ["a", "b"]}, {"x": {"y": 1}}]}',
            ["Pro (plans plan name) has no 1, 2024: 5, for a; b.", "plans 2 x y: 1"],
        ),
        (f"No.,Dish,Kind\n1,Soup,hot\n2,Cake,{'very ' * 30}sweet", ["Soup (Dish) has No. 1, Kind hot.", LONG_ROW]),
        ("|Dish|Made of|For|\n|--|--|--|\n|Pie|" + "eggs " * 30 + "|" + "us " * 20 + "|", LONG_ROWS),
        ('{"a": 1}\n{"a": "x. Y"}\n', ["1 a: 1", "2 a: x. Y"]),
        ('["alpha", "beta", 3]', ["alpha; beta; 3"]),
        (
            YAML,
            [
                *("server port: 8080", "server hosts: a.example; b.example"),
                *("ann (users name) has age 4.", "bob (users name) has age 5.", "debug: false"),
            ],
        ),
        (
            "Label: XL Recordings. TBD\n**Hours:** 9 a.m. to 5 p.m. Mon.",
            ["Label: XL Recordings. TBD", "**Hours:** 9 a.m. to 5 p.m. Mon."],
        ),
        (
            MARKUP,
            [
                "Parking & access",
                "There are 40 spaces.",
                "All free.",
                "See a plan (https://x.org/p).",
                "Mon (Day) has Hours 9–5.",
            ],
        ),
        (
            "Is parking free? No. Is breakfast included? Yes, until 10.",
            ["Is parking free? No.", "Is breakfast included? Yes, until 10."],
        ),
        ("Q: Can I pay by card?\nA: Only above 10 EUR.", ["Q: Can I pay by card? A: Only above 10 EUR."]),
        (
            "> Hi, is court B playable?\n\nNot yet. The drain was replaced, but clay needs two dry weeks. Court A is.",
            ["Hi, is court B playable? Not yet. The drain was replaced, but clay needs two dry weeks. Court A is."],
        ),
        (
            "> Hello team. When do you open?\nAt six.\n> > Can I park?\n> No.\nSee you!\n> Is it far?",
            ["Hello team.", "When do you open? At six.", "Can I park? No.", "See you!", "Is it far?"],
        ),
        ("Can I park?\n> No.", ["Can I park?", "No."]),
        ("## What is the deposit?\n\n200 EUR. It is paid back.", ["## What is the deposit? 200 EUR. It is paid back."]),
        (
            "We have 20 rooms. Is there a pool? No. It closed.",
            ["We have 20 rooms.", "Is there a pool? No.", "It closed."],
        ),
        (
            "- Rooms:\n  - Double: 80 EUR. For two.\n  - Single\n    * with bath: 60 EUR\n- Pool: closed",
            [
                "- Rooms:",
                "Rooms: Double: 80 EUR.",
                "Rooms: For two.",
                "Rooms: Single",
                "Rooms: Single: with bath: 60 EUR",
                "- Pool: closed",
            ],
        ),
        ("Run:\n```python\nx = foo. Bar()\n```\nDone. Over.", ["Run:", "python", "x = foo. Bar()", "Done.", "Over."]),
        ('```json\n{"tls": {"on": true}}\n```', ["tls on: true"]),
        ("### 3. Fees\nNone.", ["### 3. Fees", "None."]),
    ],
)
def test_structure_is_worded_so_that_each_part_can_be_read_by_itself(passage, chunks):
    assert read(passage) == chunks


@pytest.mark.parametrize(
    "passage",
    [
        "Use the <b> tag, or write <br> for breaks. 5 < 6 & 7 > 3.",
        "He came, saw it,\nand left, quickly.\nThen, he, slept.",
        "See [1] and [2]. {Braces} and [a list] are words. Set {x: 1}.",
        "Anna: I will come to the station. Bring the wine and bread.\nBen: Fine by me, see you then. I will be there.",
        "He left.  She stayed.\nNobody knew why.  It rained all day and night.",
        "What is a ledger? " + "It is a book that holds every payment of a firm in order. " * 5,
        "What now?\nNobody at the harbour office had an answer to that on the day of the storm",
        "- one item. Two.\n- another item",
        "Note: the pool is closed on Mondays. Children must be accompanied by adults.",
        "A | B is a choice. So is B | C.",
    ],
)
def test_prose_is_cut_as_before(passage):
    cut = SentenceCutter(()).texts
    expected = [sentence for line in passage.splitlines() for sentence in cut(line)]
    chunks = split_passages([passage], cut=cut)
    assert [chunk.text for chunk in chunks] == expected and {chunk.place for chunk in chunks} == {None}


@pytest.mark.parametrize(
    ("passage", "claim", "quote"),
    [
        (MARKDOWN, "Basic costs 2.50.", "| Basic | 10 GB | 2.50 |"),
        (YAML, "Its hosts are a.example and b.example.", "- a.example\n    - b.example"),
        (DICTIONARY, "WiFi: None", "'WiFi': None"),
        (MARKUP, "There are 40 spaces.", "There are <b>40</b> spaces."),
        ("Q: Can I pay by card?\r\nA: No cards.", "Pay by card", "Q: Can I pay by card?\r\nA: No cards."),
        ('```json\r\n{"a": 1,\r\n "tls": true}\r\n```', "tls true", '{"a": 1,\r\n "tls": true}'),
        ('{"x": "' + "word " * 50 + '", "cup": {"fee": 15}}', "The fee is 15.", '{"fee": 15}'),
        ('{"fee": 15, "text": "' + "word " * 50 + '"}', "The fee is 15.", '"fee": 15'),
        ('{"fee":15,"text":"' + "word-" * 200 + '"}', "The fee is 15.", '"fee":15'),
    ],
)
def test_evidence_is_quoted_as_the_passage_has_it(passage, claim, quote):
    index = EvidenceIndex(["Elsewhere.", passage])
    (best,) = index.best(claim, 1)
    assert index.quoted(best) == quote and quote in passage


@given(
    st.lists(
        st.sampled_from(
            [*"\n:;-{}[]?\"'<>`# ", "\n- ", "\n  - ", "a", "b c", "Dd.", "7", "<p>", "&amp;", "No. ", "Is x? "]
        ),
        max_size=60,
    )
)
def test_no_word_is_lost_and_every_place_is_in_its_passage(parts):
    passage = "".join(parts)
    chunks = split_passages([passage])
    words = re.findall(r"\w+", passage.replace("<p>", " ").replace("&amp;", " ").replace(r"\"", " "))
    assert set(words) - {"p", "json"} <= set(re.findall(r"\w+", " ".join(chunk.text for chunk in chunks)))
    for chunk in chunks:
        if chunk.place is not None:
            assert 0 <= chunk.place[0] < chunk.place[1] <= len(passage)


@pytest.mark.parametrize(
    "line",
    [
        '{"a":\n',
        "[[1,\n",
        "a: 1\n",
        "a | b\nc | d | e\n",
        "x, y\n",
        "- a\n",
        "- a\n\n",
        "# b\n- a\n\n",
        "<b>",
        "<!-- ",
        "a\tb\n",
        "Is it? No. ",
        "-" * 50 + "\n",
        "k:\n  - v\n",
        "&amp;",
        "```\n",
        '"x": [\n',
    ],
)
def test_reading_time_grows_with_the_passage(line):
    started = time.perf_counter()
    split_passages([line * (40_000 // len(line))])
    assert time.perf_counter() - started < 4


@pytest.mark.parametrize(
    ("sentence", "earlier", "stated"),
    [
        ('{"in_stock": true}', [], "In stock."),
        ('{"in_stock": false}', [], "Not in stock."),
        ('"isOpen": False}', ['{"name": "Mill",'], "Not is open."),
        ('"pets allowed": "true",', ['{"rooms": 3,'], "Pets allowed."),
        ('"in_stock": false}]', ['[{"name": "Lamp", "price": 2},', '{"name": "Desk",'], "Desk: not in stock"),
        ('{"tags": [true, false]}', [], "tags: true; false"),
        ('{"warranty": null}', [], ""),
        ('{"open": 1}', [], "open: 1"),
    ],
)
def test_true_and_false_state_or_deny_their_key(sentence, earlier, stated):
    assert in_structure(sentence, earlier) == stated


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("<tr><td>Adult</td><td>6.80</td></tr>", "Adult | 6.80"),
        ("Adult</td><td>6.80</td><td>8.20", "Adult | 6.80 | 8.20"),  # begins and ends within a cell
        ("<li>Dogs <b>welcome</b>, on a lead", "Dogs welcome, on a lead"),
        ("<tr><th>Ticket</th><th>Price</th></tr>", "Ticket | Price"),
        ("&pound;6.80&nbsp;each<br>from May", "£6.80 each from May"),
        ("| Adult | 6.80 |", "| Adult | 6.80 |"),
        ("No fee for the first\n> replacement.", "No fee for the first replacement."),
        ("Use the <b> tag if a < b.", "Use the <b> tag if a < b."),
    ],
)
def test_a_quotation_has_no_tags(part, shown):
    assert quotation(part) == shown


@pytest.mark.parametrize(
    ("passage", "units"),
    [
        (  # a margin has broken the lines, and a word
            "You hand the receipt in within fourteen jour-\nneys as long as it is stamped by the\nDirector of Works. "
            "It is paid\nwithin two weeks.\n\nMilk, lukewarm\nbutter, soft",
            [
                "You hand the receipt in within fourteen journeys as long as it is stamped by the Director of Works.",
                "It is paid",
                "within two weeks.",
                "Milk, lukewarm",
                "butter, soft",
            ],
        ),
        (  # a mail that is quoted
            "> Hi Dana,\n>\n> We do not charge for the first\n> replacement within two years of the purchase.\n\nBye",
            ["Hi Dana,", "We do not charge for the first replacement within two years of the purchase.", "Bye"],
        ),
        (  # keys whose values stand in line
            "Owner:        Storage team\nSchedule:     02:30 UTC\nRetention:    14 dailies",
            ["Owner: Storage team", "Schedule: 02:30 UTC", "Retention: 14 dailies"],
        ),
        ("| | |\n|:--|:--|\n| Height | 31 m |\n| Width | 3 m |", ["Height: 31 m", "Width: 3 m"]),
        (  # a title between the rows
            "Test         Result   Ref\nIron         6        15 - 150\nCHEMISTRY\nZinc          0.8     0.5 - 0.9",
            [
                "Iron (Test) has Result 6, Ref 15 - 150.",
                "CHEMISTRY",
                "Zinc (Test) has Result 0.8, Ref 0.5 - 0.9.",
            ],
        ),
        (
            "Basic plan\n\u2705 Mail\n\u274c Phone support\n",
            ["Basic plan", "Basic plan: Mail: yes", "Basic plan: Phone support: no"],
        ),
        ("\u2714\ufe0f Own towels. \n\u2717 Dogs", ["Own towels: yes", "Dogs: no"]),
        (  # a line broken before a number
            "Plots in the north are paid by May and cost\n40 EUR a year, or\n9 EUR a week.\nNews of the week\n5 tips",
            [
                "Plots in the north are paid by May and cost 40 EUR a year, or 9 EUR a week.",
                "News of the week",
                "5 tips",
            ],
        ),
        (
            "<style>.a{color:red}</style><p>Open <time datetime='x'>9:00</time> <button>Buy</button></p>"
            "<script>var x = '<p>no</p>';</script>",
            ["Open 9:00 Buy"],
        ),
        (
            '[{"id": 1, "name": "Tomas", "bag": {"checked": 0}}, {"id": 2, "name": "Ines", "bag": {"checked": 2}}]',
            ["name: Tomas", "Tomas id: 1", "Tomas bag checked: 0", "name: Ines", "Ines id: 2", "Ines bag checked: 2"],
        ),
    ],
)
def test_text_as_people_paste_it(passage, units):
    assert read(passage)[: len(units)] == units


def test_a_broken_sentence_is_quoted_with_its_lines():
    passage = "> We do not charge for the first\n> replacement within two years."
    (chunk,) = split_passages([passage], cut=SentenceCutter(("Dr.",)).texts)
    assert chunk.quoted_from([passage]) == "We do not charge for the first\n> replacement within two years."


@pytest.mark.parametrize("following", ["1. A towel is needed", "time: two hours"])
def test_what_begins_an_item_or_a_key_does_not_go_on_with_the_line_above(following):
    above = "Bring all that you need for a night in the hut,"
    assert read(f"{above}\n{following}")[0] == above
