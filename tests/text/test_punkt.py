"""Without options: NLTK's untrained Punkt on the whole text, and what that is in named cases."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
from whole_texts import bounds, cut, responses, segment, sentences, texts, widths_of_tokens

from syncheck.text.sentences import IncrementalSegmenter, Punkt
from syncheck.text.sentences.boundaries import MAX_SENTENCE_TOKENS, SegmenterConfig

CASES = {
    "plain": ("Paris is big. Is that so? Yes!", ["Paris is big.", "Is that so?", "Yes!"]),
    "abbreviations": ("Dr. Smith left at 5 p.m. on Monday.", ["Dr.", "Smith left at 5 p.m.", "on Monday."]),
    "initials": ("By J. R. Bach. A. Lee too.", ["By J. R. Bach.", "A. Lee too."]),
    "decimals": ("It grew by 3.5 percent. Version 2.0.1 is out.", ["It grew by 3.5 percent.", "Version 2.0.1 is out."]),
    "numbers": ("In 1990. the end. In 1990. The end.", ["In 1990. the end.", "In 1990.", "The end."]),
    "ellipses": ("Well... he left. Wait ... what?", ["Well... he left.", "Wait ... what?"]),
    "spaced ellipses": ("And . . . then. No.", ["And .", ".", ".", "then.", "No."]),
    "quotes": ('He said "Stop." Then "Why?" she asked.', ['He said "Stop."', 'Then "Why?"', "she asked."]),
    "curly quotes": ("\u201cNo.\u201d \u00abFin.\u00bb \u2018So.\u2019 It is.", None),
    "brackets": ("(It is late.) [See below.] Then (as said) it ended.", None),
    "nested closers": ('("He left.") Then.', ['("He left.")', "Then."]),
    "list": ("1. Mix it.\n2. Bake it.\n- Eat", ["1.", "Mix it.", "2.", "Bake it.", "- Eat"]),
    "lines": ("No full stop\nnor here\n\nnor here", ["No full stop\nnor here\n\nnor here"]),
    "links": ("See https://a.example/x.y?q=1. Or b.example. End", None),
    "link in brackets": ("Go (see a.example/x.) Then mail me@b.example! Done.", None),
    "cjk": ("東京は大きい。人。 Tokyo is big. 東京！", None),
    "emoji": ("Great \U0001f600. \U0001f469\u200d\U0001f467 came! \U0001f44d\U0001f3fd Bye.", None),
    "spaces": ("  First.\u00a0Second.\u3000Third.   Fourth.  ", None),
    "dashes": ("He left. -- She stayed. - So be it. \u2014 End.", None),
    "marks": ('Really?!? "Yes!!!" ...No. ?! .5 is half. !', None),
    "never ends": ("and so on " * 30, [("and so on " * 30).strip()]),
    "blank": (" \n ", []),
    "empty": ("", []),
}


def punkt_bounds(text):
    """What Punkt says of the finished text, without the white space at the sides."""
    found = []
    for start, stop in PunktSentenceTokenizer().span_tokenize(text):
        piece = text[start:stop]
        if piece.strip():
            found.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
    return found


PIECES = """
    a B Dr No p.m e.g U.S . ? ! .. ... 5 3.5 - -- , ; : " ' ) ( ] ” ’ » _ é É ß 東 。 x-Dr # @ * & ` ² 1,000 -.5
""".split()
SPACES = [" ", "\n", "\n\n", "\t", "\x1c", "\u00a0", "\u3000", "\u2028"]


@settings(deadline=None, max_examples=1000)
@given(words=st.lists(st.sampled_from(PIECES + SPACES), max_size=25))
@pytest.mark.parametrize(("always", "before_numbers"), [((), ()), (("dr", "p.m", "e.g", "u.s"), ("no",))])
def test_punkt_is_that_of_nltk(words, always, before_numbers):
    parameters = PunktParameters()
    parameters.abbrev_types |= set(always)
    parameters.collocations |= {(word, "##number##") for word in before_numbers}
    text = "".join(words)
    assert list(Punkt(always, before_numbers).spans(text)) == list(
        PunktSentenceTokenizer(parameters).span_tokenize(text)
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("widths", [[1], [2], [3, 1], [5], [0, 4], [400]])
def test_sentences_are_those_of_punkt_on_the_whole_text(name, widths):
    response, expected = CASES[name]
    spans = segment(cut(response, widths))
    assert bounds(spans) == punkt_bounds(response)
    assert expected is None or texts(response, spans) == expected


@settings(deadline=None, max_examples=200)
@given(
    response=responses | st.text(alphabet=" .?!,-\"')a1A\n\u00a0\u3000\u2028\u201d:`(", max_size=30),
    widths=widths_of_tokens,
)
@example(response='It was "so." Then', widths=[3])
@example(response="a.\u00a0(b. C", widths=[1])
@example(response="e.(b. C d", widths=[4])
@example(response="By J. Smith.) So", widths=[1])
@example(response='".... \u3000.]!x. y', widths=[1])
@example(response="... ?,x", widths=[1])
@example(response="?'\u2028a].... ]'\u3000b. c", widths=[1])
@example(response="??\u201d?\n'a", widths=[1])
@example(response="\n.\u201da.\nb", widths=[1])
def test_any_text_is_cut_as_punkt_cuts_the_whole_of_it(response, widths):
    assert bounds(segment(cut(response, widths))) == punkt_bounds(response)


def test_a_boundary_waits_for_ascii_white_space():
    """Without it a later full stop of the same word would count, and the first not."""
    segmenter = IncrementalSegmenter(SegmenterConfig())
    tokens = ["So", ".", "\u00a0b", "\u00a0c", "\u00a0d", " ", "e", " f"]
    assert [index for index, token in enumerate(tokens) if segmenter.push(token)] == [6]


def test_the_defaults_are_those_of_the_paper_with_a_limit():
    assert SegmenterConfig() == SegmenterConfig(max_tokens=MAX_SENTENCE_TOKENS)
    assert sentences("Mr. Bach\n\n東。京, so") == ["Mr.", "Bach\n\n東。京, so"]
    assert [span.token_end for span in segment(["so "] * 300, SegmenterConfig())] == [256, 300]
