"""Watched = scored: text that arrives in pieces has the sentences, tokens and signals of the whole."""

import cuts
import pytest
from doubles import PASSAGES, QUESTION
from hypothesis import example, given, settings
from hypothesis import strategies as st

ANSWER = "Lyon is large. It is in Spain. It has a river. Ann met Bob there in 1999."


def test_both_branches_of_watched_text_are_measured_as_in_a_replay(any_family, make_monitor):
    if any_family.name.endswith("longrope"):
        pytest.skip("prompt and answer would cross the length at which it encodes again, which is refused")
    monitor = make_monitor(any_family, schema="paper-no-lid.v1")
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    with monitor.watch_text(prompt) as watch:
        for character in ANSWER:
            watch.feed(character)
        watch.close()
    watched, whole = watch.report.tokens, monitor.score(prompt, ANSWER).tokens
    assert watched.log_prob == pytest.approx(whole.log_prob, abs=1e-3)
    assert watched.log_prob_without_context == pytest.approx(whole.log_prob_without_context, abs=1e-3)
    assert watched.kl == pytest.approx(whole.kl, abs=1e-3)


@settings(max_examples=120)
@given(
    tokenizer=st.sampled_from(sorted(cuts.known_tokenizers())),
    options=st.sampled_from(sorted(cuts.OPTIONS)),
    limit=st.sampled_from(cuts.LIMITS),
    text=st.lists(st.sampled_from(cuts.ATOMS), min_size=1, max_size=12).map("".join),
    places=st.lists(st.integers(0, 100), max_size=12),
    model_reads=st.booleans(),
)
@example("merged bytes", "cjk", 256, ". \u3002<s>\n", [1], False)
@example("byte level", "default", 256, "It is big. <s>The moon.", [12], False)
@example("byte fallback", "default", 256, "<s>", [1], False)
@example("slow", "default", 256, "It is big.  <pad> No.", [14], True)
@example("slow", "abbreviations", 256, "? 1982.\u3000\t</s><tool>", [12, 15], False)
def test_special_tokens_cut_anywhere_change_nothing(tokenizer, options, limit, text, places, model_reads):
    monitor = cuts.monitor_of(tokenizer, options, limit, model_reads=model_reads)
    pieces = cuts.cut(text, [min(place, len(text)) for place in places])
    assert cuts.differences(monitor, text, pieces, model_reads=model_reads) == []


@pytest.mark.parametrize("tokenizer", sorted(cuts.known_tokenizers()))
@pytest.mark.parametrize("special", cuts.SPECIAL)
def test_a_special_token_cut_at_every_place(tokenizer, special):
    monitor = cuts.monitor_of(tokenizer, "all", 256, model_reads=False)
    text = f"It is big.{special} The moon\u3002{special}Yes {special}"
    for place in range(len(text)):
        assert cuts.differences(monitor, text, cuts.cut(text, [place]), model_reads=False) == []
    reading = cuts.monitor_of(tokenizer, "all", 256, model_reads=True)
    sentences = reading.score(reading.prompt(question=QUESTION, context=PASSAGES), text, signals=True).sentences
    ends = {"<tool>": "", "</s>": "It is big."}  # a token within text, and the end of the answer
    assert sentences[0].text.startswith(ends.get(special, f"It is big.{special}"))
