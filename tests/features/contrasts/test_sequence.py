"""Events that follow each other, and denials that leave out what they deny."""

import pytest

from syncheck.contrasts.contrast import contrast_with

PHONES = "When you change phones, move the app's accounts before you wipe the old one."
CABLES = "Drill first and then check with a detector whether cables are near."
RUNNER = "Lisa Brandt trained with Paolo Ferri for three years before she joined the national team."
BOOKS = "Members can borrow up to ten books for four weeks."
PRICES = "Students get a discount of 20 percent; pensioners get none."
CHALK = "Chalk is allowed in balls, loose chalk is not."
WORDS = "Such clauses begin with words like after, because, before, once, then and when."


def found(sentence, evidence):
    return [(c.kind, c.sentence, c.evidence) for c in contrast_with(sentence, [evidence]).found]


@pytest.mark.parametrize(
    ("sentence", "evidence", "contrast"),
    [
        ("Wipe the old phone before you move the app's accounts.", PHONES, ("order", "before", "before")),
        ("Move the accounts once you have wiped the old phone.", PHONES, ("order", "once", "before")),
        ("Check for cables before you drill.", CABLES, ("order", "before", "then")),
        (
            "Lisa Brandt joined the national team before she trained with Paolo Ferri.",
            RUNNER,
            ("order", "before", "before"),
        ),
        ("Members can borrow books for ten weeks.", BOOKS, ("number", "ten", "four")),
        ("Pensioners get a discount of 20 percent.", PRICES, ("negation", "", "pensioners get none")),
        ("Loose chalk is allowed.", CHALK, ("negation", "", "loose chalk is not")),
    ],
)
def test_a_reversed_sequence_and_a_short_denial_are_found(sentence, evidence, contrast):
    assert contrast in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Move the accounts before you wipe the old phone.", PHONES),
        ("After you have moved the accounts, wipe the old phone.", PHONES),
        ("Wipe the old phone after you have moved the accounts.", PHONES),
        ("Drill before you check for cables.", CABLES),
        ("Words like before and after begin such clauses, and so does because.", WORDS),
        ("Lisa Brandt trained with Paolo Ferri before she joined the team.", RUNNER),
        ("Members can borrow ten books for four weeks.", BOOKS),
        ("Chalk in balls is allowed.", CHALK),
        ("Students get a discount of 20 percent.", PRICES),
        ("Most of the shops stayed open last year.", "The chain closed 14 of its 60 shops last year and opened none."),
        ("Loose chalk is not allowed.", CHALK),
    ],
)
def test_what_is_told_in_the_same_order_is_no_contrast(sentence, evidence):
    assert found(sentence, evidence) == []


@pytest.mark.parametrize(
    ("sentence", "evidence", "contrast"),
    [
        (
            "Daehan sold its division to Arvex.",
            "Arvex said on Friday that it had sold its sensor division to the Korean group Daehan.",
            (
                "order",
                "Daehan sold its division to Arvex",
                "Arvex said on Friday that it had sold its sensor division to the Korean group Daehan",
            ),
        ),
    ],
)
def test_who_does_it_to_whom(sentence, evidence, contrast):
    assert contrast in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Arvex sold its division to Daehan.", "Arvex said that it had sold its division to the group Daehan."),
        ("Mary was beaten by Anna.", "Anna beat Mary."),
        ("Marx and Engels wrote it.", "It was written by Marx and Engels."),
        ("Ruiz said that Voss had beaten Berg.", "Voss had beaten Berg in training, said Ruiz."),
        ("Lena met Tom in Rome.", "In Rome, Tom met Lena."),
    ],
)
def test_the_same_roles_in_other_words(sentence, evidence):
    assert found(sentence, evidence) == []
