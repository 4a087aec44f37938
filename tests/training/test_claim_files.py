"""The starter kit's written claims: how their files are read, what they count for, and which are held out."""

import claim_files
import pytest
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, Claim, ContrastGroup


@pytest.fixture
def read(tmp_path):
    """Read files of these texts, in the order of their names."""

    def of(*texts):
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
        return claim_files.load_written(tmp_path)

    return of


def test_written_claims_have_the_passages_before_them(read):
    first, second = read(
        "P: The café opened in 1967.\nIt has two rooms.\n\nP:  Tom owns it.\n+ Tom has a café.\n- It opened in 1976. \n"
        "? It serves tea.\n\nP: Rain fell.\n+ It rained.\n"
    )
    assert first.passages == ("The café opened in 1967.\nIt has two rooms.", "Tom owns it.")
    assert [(claim.text, claim.label) for claim in first.claims] == [
        ("Tom has a café.", SUPPORTED),
        ("It opened in 1976.", CONTRADICTED),
        ("It serves tea.", NOT_STATED),
    ]
    assert (second.passages, [claim.text for claim in second.claims]) == (("Rain fell.",), ["It rained."])
    assert {group.source for group in (first, second)} == {"written"}


def test_all_claims_about_a_context_are_one_group(read):
    claims = [f"+ Claim {number}." for number in range(14)]
    (group,) = read("\n".join(["P: One passage.", *claims]))
    assert group.passages == ("One passage.",)
    assert [f"+ {claim.text}" for claim in group.claims] == claims


def test_files_are_read_in_order_and_others_are_left_alone(read, tmp_path):
    (tmp_path / "README.md").write_text("No claims.")
    assert [group.passages for group in read("P: A.\n+ B.\n", "P: C.\n- D.\n")] == [("A.",), ("C.",)]


@pytest.mark.parametrize(
    "text",
    [
        "+ A claim before any passage.",
        "A line before any passage.",
        "P: A.\n+ B.\nC.",
        "P: A.\n+ B.\n* C.",
        "P: A.\n+ B.\n+C.",
        "P: A.\n+ B.\n\nP: C.",
    ],
)
def test_a_line_that_is_none_of_the_format_is_refused_by_name(read, text):
    with pytest.raises(ValueError, match=r"0\.txt"):
        read(text)


def test_one_context_in_twelve_is_held_out_whatever_is_claimed(read):
    groups = read("\n".join(f"P: Passage {number}.\n+ It is {number}.\n- Not {number}." for number in range(1200)))
    held_out = [group.passages for group in groups if claim_files.is_held_out(group)]
    assert 70 < len(held_out) < 130
    other = read("\n".join(f"P: Passage {number}.\nP: More.\n? Of {number}." for number in range(1200)))
    assert [group.passages[:1] for group in other if claim_files.is_held_out(group)] == held_out


def test_a_context_is_held_out_with_its_twins(read):
    held_out = next(f"P: {n}.\n" for n in range(1200) if claim_files.is_held_out(*read(f"P: {n}.\n+ A.\n")))
    trained = next(f"P: {n}.\n" for n in range(1200) if not claim_files.is_held_out(*read(f"P: {n}.\n+ A.\n")))
    groups = read(f"{held_out}+ A.\n+ B.\n\n{trained}- B.\n+ C.\n\n{trained}- C.\n\n{trained}+ A.\n")
    assert [claim_files.is_held_out(group) for group in groups] == [True, True, True, False]


def test_a_written_group_counts_for_the_source_of_its_file():
    groups = [ContrastGroup(("A.",), (Claim("B.", SUPPORTED, letter),), "written", "") for letter in "aikjtuvwz"]
    assert [claim_files.source_of(group) for group in groups] == [
        "written", "written", "matched", "matched", "matched", "answers", "answers", "matched", "matched",
    ]  # fmt: skip
