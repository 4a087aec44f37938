"""Two questions with the answers of two decoders, made up but of realistic size and shape."""

import re

import numpy as np

from syncheck.results import Answer, Case, Report
from syncheck.results.types import Evidence, RagPrompt, SentenceScore, TokenSignals

LIGHTHOUSE = (
    "The Kolmar lighthouse stands on a basalt skerry four kilometres off the coast. It was built between 1871 and "
    "1874 by the engineer Ada Lindqvist, and its lamp was first lit on 3 October 1874.",
    "The tower is 31 metres high. The light was automated in 1968, and the last keepers left the skerry the "
    "following spring.",
    "Since 2006 the keepers' house has been open to visitors from May to September. Boats leave from the harbour "
    "twice a day when the weather allows.",
)
DIET = (
    "Adult red pandas eat mainly bamboo leaves and shoots, which make up about 95 percent of their diet. They also "
    "take fruit, roots, eggs and small birds.",
    "Because bamboo is poor in energy, red pandas spend up to 13 hours a day looking for food and eating.",
)
BASE = {
    "min_prob": 0.31,
    "mean_prob": 0.78,
    "max_entropy": 2.4,
    "mean_entropy": 0.9,
    "lid_layer_1": 14.2,
    "lid_layer_2": 15.9,
    "lid_layer_3": 13.1,
    "mean_contrastive_kl": 2.9,
    "large_kl_pos": 6.0,
    "align_score": 0.9,
    "content_overlap": 0.8,
    "number_overlap": 1.0,
    "min_log_prob_gain": 0.7,
}
PULL = {
    "align_score": 0.45,
    "min_prob": 0.2,
    "mean_contrastive_kl": 0.14,
    "max_entropy": 0.1,
    "lid_layer_2": 0.05,
    "mean_prob": 0.06,
}


def sentence(text, score, response, token_start, token_end, *, evidence=None, seed=0, **more):
    """Features and attributions move with the score, so that the page tells one story."""
    rng = np.random.default_rng(seed)
    if score is None:
        return SentenceScore(text, *span(text, response), token_start, token_end, None, "not_checkable", {}, **more)
    trust = score - 0.7
    features = {k: float(v * np.exp(rng.normal(0, 0.1))) for k, v in BASE.items()}
    features["align_score"] = min(0.99, max(0.02, score + float(rng.normal(0, 0.05))))
    features["min_prob"] *= max(score, 0.1)
    features["large_kl_pos"] = float(rng.integers(0, 9))
    features["lid_layer_3"] = None if seed % 2 else features["lid_layer_3"]
    attribution = {k: trust * PULL.get(k, 0.02) + float(rng.normal(0, 0.012)) for k in features}
    return SentenceScore(
        text,
        *span(text, response),
        token_start,
        token_end,
        score,
        "scored",
        features,
        attribution=attribution,
        evidence=evidence,
        latency_ms=float(3 + rng.exponential(2)),
        verdict="supported" if score >= 0.85 else "doubtful" if score >= 0.7 else "unsupported",
        **more,
    )


def span(text, response):
    start = max(response.find(text), 0)
    return start, start + len(text)


def tokens_of(response, seed=0):
    rng = np.random.default_rng(seed)
    spans = [m.span() for m in re.finditer(r"\s*[\w']{1,6}|\s*[^\w\s]", response)]
    count = len(spans)
    log_prob = -rng.exponential(0.7, count)
    return TokenSignals(
        text=response,
        token_ids=rng.integers(10, 4000, count),
        char_spans=np.array(spans, dtype=np.int64).reshape(-1, 2),
        log_prob=log_prob.astype(np.float32),
        log_prob_without_context=(log_prob - rng.exponential(2, count)).astype(np.float32),
        entropy=rng.exponential(1.1, count).astype(np.float32),
        kl=rng.exponential(1.8, count).astype(np.float32),
    )


def report(question, passages, parts, *, seed=0, seconds=None, stop="eos"):
    """``parts``: (sentence text, score, evidence passage, evidence text)."""
    response = " ".join(text for text, *_ in parts)
    tokens = tokens_of(response, seed)
    sentences, first = [], 0
    for i, (text, score, passage, quote) in enumerate(parts):
        end = span(text, response)[1]
        last = int(np.searchsorted(tokens.char_spans[:, 1], end, side="right"))
        evidence = None
        if quote is not None:
            evidence = Evidence(passage, quote, round(min(0.98, (score or 0) + 0.04), 2))
        reason = "no letter or digit" if score is None else None
        sentences.append(sentence(text, score, response, first, last, evidence=evidence, seed=seed + i, reason=reason))
        first = last
    prompt = RagPrompt(question, passages, "with", "without", (1, 2), (1,))
    return Report(prompt, response, tuple(sentences), tokens, stop, seconds)


def tried(text, score, start):
    return SentenceScore(text, start, start + len(text), 0, 0, score, "scored", {})


def demo_cases():
    built = LIGHTHOUSE[0].split(". ")[1]
    tower = "The tower is 31 metres high."
    auto = "The light was automated in 1968, and the last keepers left the skerry the following spring."
    bamboo = "Adult red pandas eat mainly bamboo leaves and shoots, which make up about 95 percent of their diet."
    hours = "Because bamboo is poor in energy, red pandas spend up to 13 hours a day looking for food and eating."
    q1, q2 = (
        "When was the Kolmar lighthouse built, and is it still manned?",
        "What do red pandas eat, and why so much of it?",
    )
    first = "The Kolmar lighthouse was built between 1871 and 1874 by Ada Lindqvist."
    greedy1 = report(
        q1,
        LIGHTHOUSE,
        [
            (first, 0.96, 0, built),
            ("Its tower of 31 metres was the tallest in the country when it opened.", 0.38, 1, tower),
            ("The last keepers left in 1968 after a storm destroyed the keepers' house.", 0.12, 1, auto),
            ("…", None, 0, None),
        ],
        seed=1,
        seconds=1.62,
    )
    fod1 = report(
        q1,
        LIGHTHOUSE,
        [
            (first, 0.96, 0, built),
            ("Its lamp was first lit on 3 October 1874.", 0.93, 0, built),
            ("The light was automated in 1968 and the last keepers left the following spring.", 0.89, 1, auto),
        ],
        seed=3,
        seconds=6.31,
    )
    greedy2 = report(
        q2,
        DIET,
        [
            ("Red pandas eat mainly bamboo leaves and shoots.", 0.94, 0, bamboo),
            ("They need about 20 kilograms of it every day, more than giant pandas do.", 0.27, 1, hours),
            ("Bamboo is poor in energy, so they spend up to 13 hours a day eating.", 0.88, 1, hours),
        ],
        seed=5,
        seconds=1.4,
    )
    fod2 = report(
        q2,
        DIET,
        [
            ("Red pandas eat mainly bamboo leaves and shoots.", 0.94, 0, bamboo),
            ("Bamboo makes up about 95 percent of their diet.", 0.91, 0, bamboo),
            ("It is poor in energy, so they eat for much of the day.", 0.73, 1, hours),
        ],
        seed=8,
        seconds=5.02,
    )
    dropped1 = (
        tried("Its tower of 31 metres was the tallest in the country when it opened.", 0.38, 70),
        tried("The tower was rebuilt in 1902.", 0.21, 70),
    )
    dropped2 = (tried("They need about 20 kilograms of it every day, more than giant pandas do.", 0.27, 47),)
    return [
        Case(q1, LIGHTHOUSE, (Answer("greedy", greedy1), Answer("FOD", fod1, dropped1))),
        Case(q2, DIET, (Answer("greedy", greedy2), Answer("FOD", fod2, dropped2))),
    ]
