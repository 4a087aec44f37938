"""The starter kit's training of the aligner: hand-written claims, and which of them are held out."""

import pytest
import train_reader

CONTRADICTED, SUPPORTED, NOT_STATED = range(3)


@pytest.fixture
def read(tmp_path):
    """Read files of these texts, in the order of their names."""

    def of(*texts):
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
        return train_reader.load_written(tmp_path)

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


def test_a_context_with_many_claims_is_several_groups(read):
    claims = [f"+ Claim {number}." for number in range(14)]
    groups = read("\n".join(["P: One passage.", *claims]))
    assert [len(group.claims) for group in groups] == [6, 6, 2]
    assert {group.passages for group in groups} == {("One passage.",)}
    assert [f"+ {claim.text}" for group in groups for claim in group.claims] == claims


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
    groups = read("\n".join(f"P: Passage {number}.\n+ It is {number}.\n- It is not." for number in range(1200)))
    held_out = [group.passages for group in groups if train_reader.is_held_out(group)]
    assert 70 < len(held_out) < 130
    other = read("\n".join(f"P: Passage {number}.\nP: More.\n? Of something else." for number in range(1200)))
    assert [group.passages[:1] for group in other if train_reader.is_held_out(group)] == held_out
