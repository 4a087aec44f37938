"""Languages: a sentence or context that the aligner does not read gets a status and never a score."""

import pytest

from syncheck import load_kit
from syncheck.testing import ScriptedAligner
from syncheck.text.words import foreign_language, readable

PASSAGE = "The bridge over the river was opened in 1932 by the mayor of the town."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Brücke über den Fluss wurde 1932 vom Bürgermeister eröffnet.", "de"),
        ("Мост через реку был открыт в 1932 году.", "ru"),
        ("東京は日本の首都です。", "ja"),
        (PASSAGE, None),
        ("Paris, 1932.", None),
        ("Sure!", None),
        ("1932", None),
        ("El Niño is a climate pattern.", None),
        ("Ein Bett kostet 38 Euro.", "de"),
        ("Le parking est payant.", "fr"),
        ("No se admiten perros.", "es"),
        ("Ha due corsie.", "it"),
        ("De toegang is gratis.", "nl"),
        ("La Scala opened again.", None),
        ("Attila conquered Constantinople.", None),
        ("Katerina D'Onofrio as Bárbara.", None),
        ("Stanislaus of Szczepanów.", None),
        ("The film La vie en rose is French.", None),
    ],
)
def test_only_what_is_surely_another_language_is_foreign(text: str, language: str | None) -> None:
    assert foreign_language(text, {"en"}) == language


def test_a_covered_language_is_not_foreign() -> None:
    assert foreign_language("Мост через реку был открыт в 1932 году.", {"en", "ru"}) is None
    assert foreign_language("Ein Bett kostet 38 Euro.", {"en", "de"}) is None


def test_a_short_sentence_is_read_as_likely_foreign_only_where_english_alone_is_covered() -> None:
    assert foreign_language("De toegang is gratis.", {"en"}) == "nl"
    assert foreign_language("De toegang is gratis.", {"en", "sv"}) is None


def test_a_short_sentence_in_another_language_has_no_score() -> None:
    monitor = load_kit("generic")
    given = {"question": "What does a bed cost?", "passages": ["A bed in the dormitory costs 38 euros."]}
    report = monitor.check(**given, answer="A bed costs 38 euros. Ein Bett kostet 38 Euro.")
    assert [s.status for s in report.sentences] == ["scored", "unsupported_language"]


def test_a_sentence_in_another_language_has_no_score_and_its_neighbours_have() -> None:
    monitor = load_kit("generic")
    given = {"question": "When was it opened?", "passages": [PASSAGE]}
    report = monitor.check(
        **given, answer="The bridge was opened in 1932. Die Brücke über den Fluss wurde 1932 eröffnet."
    )
    assert [s.status for s in report.sentences] == ["scored", "unsupported_language"]
    assert report.sentences[1].score is None and "'de'" in str(report.sentences[1].reason)


def test_a_context_in_another_language_leaves_every_sentence_without_a_score() -> None:
    monitor = load_kit("generic")
    given = {"question": "When?", "passages": ["Die Brücke über den Fluss wurde im Jahr 1932 eröffnet."]}
    report = monitor.check(**given, answer="The bridge was opened in 1932. It is long.")
    assert [s.status for s in report.sentences] == ["unsupported_language"] * 2


@pytest.mark.parametrize("languages", [None, frozenset({"en", "de"})])
def test_an_aligner_that_reads_the_language_or_does_not_say_is_asked(languages: frozenset[str] | None) -> None:
    monitor = load_kit("generic")
    monitor.aligner = ScriptedAligner({})
    if languages is not None:
        monitor.aligner.languages = languages
    given = {"question": "When?", "passages": ["Die Brücke über den Fluss wurde im Jahr 1932 eröffnet."]}
    report = monitor.check(**given, answer="Die Brücke über den Fluss wurde 1932 eröffnet.")
    assert [s.status for s in report.sentences] == ["scored"]


def test_passages_that_are_not_read_are_not_compared_and_what_they_may_support_says_so() -> None:
    german = "Der Turm neben der Brücke wurde im Jahr 1955 von der Stadt an einen Verein verkauft."
    monitor = load_kit("generic")
    given = {"question": "When was it opened?", "passages": [german, PASSAGE]}
    opened, sold = monitor.check(**given, answer="The bridge was opened in 1932. The tower was sold in 1955.").sentences
    assert (opened.status, opened.verdict, opened.remarks) == ("scored", "supported", ())
    assert opened.evidence is not None and opened.evidence.passage == 1
    assert (sold.verdict, sold.remarks) == ("unsupported", ("no_passage_touches", "passages_not_read"))
    assert (
        "a passage is in a language that the aligner does not read"
        in monitor.check(**given, answer=sold.text).to_html()
    )


@pytest.mark.parametrize(
    ("context", "language"),
    [
        (["Haus am Fluss", "Kirche", "Rathaus am Markt", "Museum und Garten"], "de"),  # each alone could be English
        (["Die Brücke wurde im Jahr 1932 eröffnet.", "Kirche 1932"], "de"),
        (["Die Brücke wurde im Jahr 1932 eröffnet.", "1932"], "de"),
        (["Мост через реку был открыт в 1932 году.", PASSAGE], None),
        (["Paris, 1932", "1932"], None),
        ([""], None),
    ],
)
def test_numbers_and_names_do_not_make_a_context_readable(context: list[str], language: str | None) -> None:
    passages, found = readable(context, {"en"})
    assert found == language
    assert found is None or list(passages) == context
