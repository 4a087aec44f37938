import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import TOKENIZERS, ids_of

from syncheck.text.sentences import Detokenizer

TEXTS = [
    "Plain words, and more.",
    " leading and trailing ",
    "na\u00efve caf\u00e9 e\u0301",
    "\u6771\u4eac\u306f\u5927\u304d\u3044\u3002",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd!",
    "line\n\n  indent\ttab",
]


def stream(detokenizer, ids):
    return [detokenizer.push(token_id) for token_id in ids] + [detokenizer.flush()]


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_are_the_text(tokenizer, text):
    prompt = ids_of(tokenizer, "Tell me:\n")
    ids = ids_of(tokenizer, text)
    assert "".join(stream(Detokenizer(tokenizer, prompt), ids)) == text
    decoded = tokenizer.decode(prompt + ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert decoded == "Tell me:\n" + text


def test_without_a_prompt_the_text_is_the_decoded_one(tokenizer):
    for text in TEXTS:
        ids = ids_of(tokenizer, text)
        expected = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert "".join(stream(Detokenizer(tokenizer, []), ids)) == expected


def test_a_character_comes_with_the_token_that_completes_it(tokenizer):
    ids = ids_of(tokenizer, "a\U0001f600\u00e9b")
    assert len(ids) == 8
    assert stream(Detokenizer(tokenizer, [ids[0]]), ids) == ["a", "", "", "", "\U0001f600", "", "\u00e9", "b", ""]


def test_special_tokens_have_no_text(tokenizer):
    a, b = ids_of(tokenizer, "ab")
    end = tokenizer.eos_token_id
    assert stream(Detokenizer(tokenizer, [a]), [a, end, b, end, end]) == ["a", "", "b", "", "", ""]


def test_the_first_space_is_kept_after_a_prompt():
    tokenizer = TOKENIZERS["byte fallback"]
    ids = ids_of(tokenizer, " an a")
    assert stream(Detokenizer(tokenizer, ids_of(tokenizer, "b")), ids) == [" an", " a", ""]


def test_unfinished_bytes_come_as_replacement_characters_at_the_end():
    tokenizer = TOKENIZERS["byte level"]
    ids = ids_of(tokenizer, "a\U0001f600")[:3]
    detokenizer = Detokenizer(tokenizer, [])
    assert stream(detokenizer, ids) == ["a", "", "", "\ufffd"]
    assert detokenizer.flush() == ""


def test_bad_bytes_do_not_take_back_what_was_given():
    tokenizer = TOKENIZERS["byte fallback"]
    (b,) = ids_of(tokenizer, "b")
    ids = [*ids_of(tokenizer, "\u6771"), ids_of(tokenizer, "\u6771")[0], b]
    assert "".join(stream(Detokenizer(tokenizer, [b]), ids)) == "\u6771\ufffdb"


def test_a_prompt_of_characters_in_many_bytes_leaves_no_trace():
    tokenizer = TOKENIZERS["byte fallback"]
    prompt = ids_of(tokenizer, "\u6771\U0001f600" * 5)
    ids = ids_of(tokenizer, " an\u6771")
    assert stream(Detokenizer(tokenizer, prompt), ids) == [" an", "", "", "\u6771", ""]


def test_a_character_begun_in_the_prompt_is_text_of_the_response():
    tokenizer = TOKENIZERS["byte level"]
    ids = ids_of(tokenizer, "a\u00e9b")
    assert stream(Detokenizer(tokenizer, ids[:2]), ids[2:]) == ["\u00e9", "b", ""]


@settings(deadline=None)
@given(
    text=st.text(alphabet="an ,.\n\u00e9\u6771\U0001f600", max_size=60),
    at=st.integers(0, 60),
    name=st.sampled_from([*TOKENIZERS]),
)
def test_a_fresh_start_goes_on_with_the_same_text(text, at, name):
    tokenizer = TOKENIZERS[name]
    prompt = ids_of(tokenizer, "Tell:")
    ids = ids_of(tokenizer, text)
    detokenizer = Detokenizer(tokenizer, prompt)
    head = [detokenizer.push(token_id) for token_id in ids[:at]]
    tail = stream(detokenizer, ids[at:])
    assert "".join(head + tail) == text
    if all(head[-1:]):
        assert stream(Detokenizer(tokenizer, prompt + ids[:at]), ids[at:]) == tail
