"""The rules take any text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.contrasts.contrast import contrast_with

WORDS = (
    "the a not only all some most none every one two 14 1990 of by was were is may who which before after then and but "
    "while , ; . ( ) rather than instead if unless even whether or without sold beat wrote built open closed more less "
    "Anna Lee Rome Monday shop shops members card cat dog said lost in on at to from n't cannot nobody either both "
    "twice March 3 5% $ € million kg grams am p.m. per hour at least between up ? Yes No [3] 16,181 °C - ² ③ m² 10³ ½"
).split()
texts = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(sentence=texts, chunks=st.lists(texts, max_size=3))
def test_contrasts_are_of_words_of_the_sentence_and_its_evidence(sentence, chunks):
    found = contrast_with(sentence, chunks)
    assert found.chunk < len(chunks)
    assert 0 <= found.closeness <= 1.5
    for contrast in found.differences:
        assert contrast.sentence in sentence
        assert contrast.evidence in chunks[found.chunk]
