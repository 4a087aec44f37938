"""Judged answers of known faithfulness."""

from decoding import DecodedAnswer, EvaluatedAnswer, JudgedProposition, Verdict


def answer(text="A b.", *, decoder="d", ends=None, tokens=4, sampled=4, seconds=1.0, backtracked=False):
    ends = tuple(i + 1 for i, letter in enumerate(text) if letter == ".") if ends is None else ends
    scores = (0.9,) * len(ends)
    return DecodedAnswer(decoder, text, ends, scores, tokens, sampled, seconds, backtracked)


def judged(prompt, cut=(), *, decoder="d", task="t", **options):
    """An answer whose first 1, 2, ... sentences have (propositions, of these faithful) as ``cut`` says."""
    text = " ".join(["A b."] * len(cut))
    count, faithful = cut[-1] if cut else (0, 0)
    supports = [0.9] * faithful + [0.1] * (count - faithful)
    propositions = tuple(JudgedProposition(f"p{i}", support) for i, support in enumerate(supports))
    given = answer(text, decoder=decoder, **options)
    return EvaluatedAnswer(prompt, task, given, Verdict(propositions, faithful, tuple(cut)))
