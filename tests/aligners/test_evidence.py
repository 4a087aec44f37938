"""Chunks cover the context; the chosen ones share the claim's words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.reading import EvidenceIndex, split_passages
from syncheck.reading.evidence import (
    MAX_CHUNK_CHARACTERS,
    MAX_CHUNK_WORDS,
    OVERLAP_WORDS,
    Chunk,
    distinct_words,
    split_to_fit,
)
from syncheck.text.sentences import SentenceCutter

TEXT = st.text(alphabet=st.sampled_from("abc .\n!?é東。」हिक\u0301"), max_size=400)


def test_chunks_are_sentences_with_their_passage():
    assert split_passages(["A cat sat. A dog ran.", "", "Rain\nfell."]) == [
        Chunk(0, "A cat sat."),
        Chunk(0, "A dog ran."),
        Chunk(2, "Rain"),
        Chunk(2, "fell."),
    ]


@pytest.mark.parametrize(
    ("passage", "sentences"),
    [
        ("东京是首都。真的吗？是！终｡", ["东京是首都。", "真的吗？", "是！", "终｡"]),
        ("「大。」『多！？』終", ["「大。」", "『多！？』", "終"]),
        ("。。Tokyo。Big. Yes。 終", ["。。", "Tokyo。", "Big.", "Yes。", "終"]),
    ],
)
def test_chinese_and_japanese_sentences_need_no_space_between_them(passage, sentences):
    assert [chunk.text for chunk in split_passages([passage])] == sentences


def test_long_sentence_becomes_overlapping_pieces():
    words = [f"w{i}" for i in range(100)]
    chunks = split_passages([" ".join(words)])
    assert [c.text.split()[0] for c in chunks] == ["w0", f"w{MAX_CHUNK_WORDS - OVERLAP_WORDS}"]
    assert [c.text.split()[-1] for c in chunks] == [f"w{MAX_CHUNK_WORDS - 1}", "w99"]


@given(st.lists(TEXT, max_size=4))
def test_chunks_hold_every_character_in_order(passages):
    chunks = split_passages(passages)
    for index, passage in enumerate(passages):
        held = "".join("".join(c.text.split()) for c in chunks if c.passage == index)
        expected = "".join(passage.split())
        # overlapping pieces repeat words, so the passage is a subsequence of what the chunks hold
        rest = iter(held)
        assert all(character in rest for character in expected)


@given(st.text(alphabet="ab ", min_size=1, max_size=3000))
@settings(max_examples=50)
def test_chunks_are_never_too_long(passage):
    for chunk in split_passages([passage]):
        assert 0 < len(chunk.text) <= MAX_CHUNK_CHARACTERS
        assert len(chunk.text.split()) <= MAX_CHUNK_WORDS


def test_best_prefers_rare_words_and_then_new_ones():
    index = EvidenceIndex(
        ["The town has a mill. The town has a church. The town has a harbour. Ships left for Lisbon."]
    )
    assert index.best("The town has a harbour and ships for Lisbon.", 2) == [3, 2]


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("东京是日本的首都。\n埃菲尔铁塔位于巴黎。", "埃菲尔铁塔位于法国巴黎。"),
        ("东京是日本的首都。埃菲尔铁塔位于巴黎。", "埃菲尔铁塔位于法国巴黎。"),
        ("ここは東京です。エッフェル塔はパリにあります。", "エッフェル塔はフランスのパリに立っています。"),
        ("แมวกินปลา\nหอไอเฟลอยู่ที่ปารีส", "หอไอเฟลตั้งอยู่ในกรุงปารีส"),
        ("बिल्ली सोती है।\nहिन्दी भाषा है।", "वह हिन्दी बोलता है।"),
    ],
)
def test_best_finds_words_of_scripts_without_spaces_and_with_marks(passage, claim):
    index = EvidenceIndex([passage])
    assert index.best(claim, 1) == [1] and len(index.chunks) == 2


def test_support_at_the_end_of_a_long_context_is_found():
    filler = "The mill ground corn for the valley. " * 2000
    index = EvidenceIndex([filler, "Then the comet of 1811 appeared."])
    assert index.best("A comet appeared in 1811.", 1) == [2000]


def test_no_shared_word_gives_the_first_chunk_and_no_chunk_gives_none():
    assert EvidenceIndex(["Cats sleep. Dogs bark."]).best("Rain fell", 3) == [0]
    assert EvidenceIndex([" "]).best("Rain fell", 3) == []


@given(st.lists(TEXT, max_size=3), TEXT, st.integers(1, 6))
def test_best_gives_distinct_chunks_up_to_the_count(passages, claim, count):
    index = EvidenceIndex(passages)
    chosen = index.best(claim, count)
    assert len(set(chosen)) == len(chosen) <= count
    assert all(0 <= i < len(index.chunks) for i in chosen)


def test_what_continues_a_sentence_is_quoted_with_it():
    index = EvidenceIndex(["It is open. From 4 p.m. to 10 p.m. on weekdays. Then not.\nnew line", "a second passage"])
    whole = "From 4 p.m. to 10 p.m. on weekdays."
    expected = ["It is open.", whole, whole, whole, "Then not.", "new line", "a second passage"]
    assert [index.quoted(chunk) for chunk in range(len(index.chunks))] == expected


def test_something_else_may_cut_the_passages():
    index = EvidenceIndex(["Dr. Lee is in. Mr. Fox is out.\nSo."], cut=SentenceCutter(("Dr.",)).texts)
    assert [chunk.text for chunk in index.chunks] == ["Dr. Lee is in.", "Mr.", "Fox is out.", "So."]


def test_what_is_quoted_stays_in_its_passage():
    index = EvidenceIndex(["Open to 4 p.m.", "or later. Open to 4 p.m. or later."])
    assert [index.quoted(chunk) for chunk in range(2)] == ["Open to 4 p.m.", "or later."]


def test_pieces_of_a_long_sentence_are_quoted_apart():
    index = EvidenceIndex([" ".join(f"word{number}" for number in range(150))])
    assert len(index.chunks) > 2
    assert [index.quoted(chunk) for chunk in range(len(index.chunks))] == [chunk.text for chunk in index.chunks]


def test_coverage_is_the_share_of_content_words():
    index = EvidenceIndex(["The bridge spans the river.", "Smith built it."])
    assert index.coverage("Smith built two bridges.") == 0.75
    assert index.coverage("It is so.") == 0.0


def test_a_number_with_marks_is_one_word():
    assert distinct_words("Weighs 1.5 kg in 10.2.1, at 9:30") == [
        "weigh",
        *("1.5", "kg", "in", "10.2.1", "at"),
        "9",
        "30",
    ]


def test_modal_verbs_do_not_choose_evidence():
    index = EvidenceIndex(["The gate opens to cars on Saturdays.", "Half plots carry cans.", "Dogs are welcome."])
    assert index.best("You can drive in on a Saturday.", 1) == [0]


def test_distinct_words_lower_case_without_plural_s():
    assert distinct_words("The cats' house, THE houses: this is 1990s glass.") == [
        "the",
        "cat",
        "house",
        "this",
        "is",
        "1990",
        "glas",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("巴黎、巴士 Paris2024年", ["巴", "黎", "士", "paris2024", "年"]),
        ("パリのtower", ["パ", "リ", "の", "tower"]),
        ("हिन्दी भाषा, २०२३", ["हिन्दी", "भाषा", "२०२३"]),
        ("كِتَابٌ", ["كِتَابٌ"]),
        ("กินปลา", ["กิ", "น", "ป", "ล", "า"]),
        ("cafe\u0301 CAF\u00c9 m\u0303ba", ["caf\u00e9", "m\u0303ba"]),
        ("1\ufe0f\u20e3 snake_case x\u00b2 \u0301", ["1", "snake", "case", "x\u00b2"]),
    ],
)
def test_distinct_words_of_any_script(text, words):
    assert distinct_words(text) == words


def test_words_are_found_in_other_notations():
    index = EvidenceIndex(["Opening hours\nFri: closed\nSat: 8:00 to 18:00\n\nThe hall seats 16 181 people.", "Key."])
    assert index.quoted(*index.best("The shop opens on Saturdays.", 1)) == "Sat: 8:00 to 18:00"
    assert index.quoted(*index.best("16,181 fit in.", 1)) == "The hall seats 16 181 people."


def test_split_to_fit_cuts_at_the_space_nearest_to_the_middle():
    assert split_to_fit("aa bb cc dd", lambda part: len(part) <= 5) == ["aa bb", "cc dd"]


@given(TEXT, st.integers(1, 20))
def test_split_to_fit_keeps_every_character_and_fits(text, most):
    parts = split_to_fit(text, lambda part: len(part) <= most)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(part) <= most for part in parts)
