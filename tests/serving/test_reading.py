"""Tokens and sentences of text that grows are those of the whole text, whatever the tokenizer rewrites."""

import random
import unicodedata
from dataclasses import replace

import pytest
from doubles import PASSAGES, QUESTION, REWRITINGS, rewriting
from nltk.tokenize.punkt import PunktSentenceTokenizer
from tokenizers import normalizers

from syncheck.decoding.scored import GrowingResponse
from syncheck.testing import scripted_monitor

REWRITTEN = {
    "nothing": normalizers.Sequence([]),
    **REWRITINGS,
}
TEXT = (
    " Scott is old, e.g. he has wings.\n\n- One item.\n- Two items.  It is ½ ﬁne. “Why?” he said... "
    "In the U.S. it costs "
    + unicodedata.normalize("NFD", "1,234.5 at the Café résumé. ")
    + "他是球员。他在农场长大，很好。 😀 is here. And so on, without an end"
)


@pytest.fixture(params=REWRITTEN)
def monitor(request, llama, make_monitor):
    return make_monitor(rewriting(llama, REWRITTEN[request.param]))


@pytest.fixture(scope="module")
def scripted():
    return scripted_monitor("Lyon is large.")


def in_pieces(text, size):
    chance = random.Random(size)
    while text:
        cut = chance.randint(1, 2 * size - 1)
        yield text[:cut]
        text = text[cut:]


@pytest.mark.parametrize("size", [1, 4, 30, 2000])
def test_tokens_and_sentences_are_those_of_the_whole(monitor, size):
    prompt, text = monitor.prompt(question=QUESTION, context=PASSAGES), TEXT * 3
    whole, growing = (
        monitor.read(prompt, text),
        GrowingResponse(monitor.model, monitor.tokenizer, prompt, segmenter=monitor.config.segmenter),
    )
    spans = [span for piece in in_pieces(text, size) for span in growing.feed(piece)]
    known = len(spans)
    spans += growing.finish()
    assert (spans, growing.text, growing.token_ids) == (whole.spans, whole.transcript.text, whole.token_ids)
    assert list(map(tuple, growing.char_spans)) == list(map(tuple, whole.transcript.char_spans))
    assert known > len(spans) / 2 or size == 2000


def test_a_slow_tokenizer_is_given_the_whole_text(llama, make_monitor):
    class Slow:
        """Tells no places."""

        is_fast = False

        def __init__(self, own):
            self._own = own

        def __call__(self, *args, return_offsets_mapping, **kwargs):
            assert not return_offsets_mapping
            return self._own(*args, **kwargs)

        def __getattr__(self, name):
            return getattr(self._own, name)

    prompt, text = make_monitor(llama).prompt(question=QUESTION, context=PASSAGES), "It is old. It is new. " * 4
    monitor = make_monitor(replace(llama, tokenizer=Slow(llama.tokenizer)))
    whole, growing = (
        monitor.read(prompt, text),
        GrowingResponse(monitor.model, monitor.tokenizer, prompt, segmenter=monitor.config.segmenter),
    )
    spans = [span for piece in in_pieces(text, 3) for span in growing.feed(piece)] + growing.finish()
    assert (spans, growing.token_ids) == (whole.spans, whole.token_ids)


@pytest.mark.parametrize(
    "piece", ["Dr. ", "A. ", "Smith J. A., Miller B. C. and Jones D. E., ", "and so on ", "1.2, 3. "]
)
def test_the_cost_is_linear_in_the_length(piece, scripted, monkeypatch):
    """Counted in characters that Punkt and the tokenizer read, of a text in which no sentence seems to end."""
    read = []

    def counted(owner, name):
        original = getattr(owner, name)

        def call(self, text, *args, **options):
            read.append(len(text))
            return original(self, text, *args, **options)

        monkeypatch.setattr(owner, name, call)

    counted(PunktSentenceTokenizer, "span_tokenize")
    counted(type(scripted.tokenizer), "__call__")
    prompt, costs = scripted.prompt(question=QUESTION, context=PASSAGES), []
    for length in (450, 3600):
        read.clear()
        growing = GrowingResponse(scripted.model, scripted.tokenizer, prompt, segmenter=scripted.config.segmenter)
        for text in in_pieces((piece * length)[:length], 10):
            growing.feed(text)
        growing.finish()
        costs.append(sum(read))
    assert costs[1] <= 9 * costs[0]  # 64 times if it were quadratic
