"""Settings of the decoders, and the thresholds that apply with a monitor."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from syncheck import Monitor, Report, SentenceScore, Verifier, closest_evidence
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import check_choice, check_count, check_share

ABSTENTION = "The passages do not let me say more."
"""Text of an answer in which no sentence passed, and end of one that abstains from more."""

QUOTATION = "Passage {number} says: \u201c{text}\u201d"
"""Text in place of an answer in which no sentence passed, or after one that says too little, with
``on_exhausted="quote"``; one for each passage."""
_BOLD = re.compile(r" ?\*\*+(?= )|\*\*+")
"""Marks of bold type in Markdown, which a quotation leaves out, since a part may have only one of the two."""
_AFTER_MARK = " *_\n"  # what may stand behind the mark at the end of a sentence
MOST_QUOTED = 2
"""Largest number of parts of the passages that are quoted."""

OnExhausted = Literal["stop", "abstain", "annotate", "quote"]
"""Action when no continuation passes. ``stop``: the answer ends after its last passing sentence. ``abstain``: it ends
with a message. ``annotate``: the best continuation of the round is kept and marked, and decoding continues. ``quote``:
as ``stop``, but the one or two parts of the passages that most likely answer the question
(:func:`syncheck.closest_evidence`) follow an answer that is empty, claims nothing ("Which rivers?"), or of which no
sentence is nearly as relevant to the question."""


def check_strength(value: object, name: str) -> None:
    """Refuse anything but a number (WrongTypeError) that is finite and at least 0 (InputError)."""
    if not 0 <= _number(value, name) < math.inf:
        raise InputError(f"{name} must be finite and at least 0; found {value}")


def check_sampling(*, temperature: object, top_p: object) -> None:
    """Refuse a temperature that is not finite and above 0, and a nucleus outside (0, 1]; errors as above."""
    if not 0 < _number(temperature, "temperature") < math.inf or not 0 < _number(top_p, "top_p") <= 1:
        raise InputError(
            f"temperature must be finite and above 0, and top_p in (0, 1]; found {temperature} and {top_p}"
        )


def _number(value: object, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise WrongTypeError(f"{name} must be a number; found {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Parameters that the search and repair share; InputError or WrongTypeError for a value that cannot be used."""

    backtrack_threshold: float | None = None
    """tau_1 in [0, 1]: a greedy sentence that scores lower is taken back. None takes the monitor's own."""
    prune_threshold: float | None = None
    """tau_2 in [0, 1]: a sampled sentence or a branch that scores lower is dropped. None takes the monitor's own, and
    in repair tau_1 if that is higher. It may be below tau_1 (the README of the published code has 0.8 and 0.7): what
    replaces a rejected sentence may then score lower than that one."""
    exact_names: bool = False
    """True also rejects sentences with a name that is nearly, but not quite, a name of the passages; see
    :func:`fod.altered_names`. True in repair."""
    guards: bool = False
    """True also rejects sampled sentences and branches, whatever their score, that are cut off at the limit of tokens,
    repeat the content of an earlier sentence, or, in place of a greedy sentence that claims something, claim nothing,
    are beside the question (``least_relevance``) or refuse to answer; a refusal passes if it is judged that the
    passages lack the answer. False in the search; True in repair, where an answer also ends with its last complete
    sentence, and without the announcement of what does not follow ("It is open from:")."""
    least_relevance: float = 0.1
    """Relevance to the question, in [0, 1], that such sentences need with ``guards``; 0 turns this off. See
    :meth:`syncheck.Verifier.rated`."""
    lookup: int = 16
    """Largest number of tokens that are drafted from the passages and read in one forward pass, to save time; 0 turns
    this off. See :class:`syncheck.decoding.PromptLookup`."""
    max_sentences: int = 32
    """Largest number of sentences in an answer."""
    on_exhausted: OnExhausted = "stop"
    """Action when no continuation of a round passes; Algorithm 1 stops there."""
    message: str = ABSTENTION
    """Text of an answer in which no sentence passed, and end of one that abstains from more, whole even beyond
    ``max_new_tokens``; empty for none."""

    def __post_init__(self) -> None:
        for name in ("backtrack_threshold", "prune_threshold"):
            if getattr(self, name) is not None:
                check_share(getattr(self, name), name)
        check_count(self.max_sentences, "max_sentences")
        check_count(self.lookup, "lookup", least=0)
        check_share(self.least_relevance, "least_relevance")
        check_choice(self.on_exhausted, "on_exhausted", OnExhausted)

    def completion(self, report: Report) -> tuple[str, str]:
        """Choose the text that follows an answer that says too little, and why it then stops; "" for any other."""
        if self.on_exhausted == "quote":
            said = [sentence.text for sentence in report.sentences if may_claim(sentence)]
            question, passages = report.prompt.question, report.prompt.passages
            quotes = [
                QUOTATION.format(number=evidence.passage + 1, text=_BOLD.sub("", evidence.text).strip())
                for evidence in closest_evidence(question, passages, count=MOST_QUOTED, said=said)
            ]
            if quotes:
                return " ".join(quotes), "quoted"
        return ("" if report.response.strip() else self.message), "abstained"


def may_claim(sentence: SentenceScore) -> bool:
    """Tell whether a sentence is more than a phrase, a heading, a question, or the announcement of what follows."""
    is_asked = sentence.text.rstrip(_AFTER_MARK).endswith("?")
    return sentence.status != "not_a_claim" and not is_asked and not announces(sentence)


def announces(sentence: SentenceScore) -> bool:
    """Tell whether a sentence announces what follows, as "It is open from:" does."""
    return sentence.text.rstrip(_AFTER_MARK).endswith(":")


Until = Literal["any", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FODConfig(DecoderConfig):
    """Parameters of Algorithm 1 (paper, section 3.3): the sentences after the first failing one are searched for."""

    beam_size: int = 2
    """K: number of beams kept after each round (paper, Table 2)."""
    samples_per_step: int = 6
    """S: number of sentences sampled in a round; each beam gets ceil(S / K) (paper, Table 2)."""
    temperature: float = 0.9
    """Temperature of sampled sentences, above 0 (published code; the paper gives none)."""
    top_p: float = 0.95
    """Nucleus of sampled sentences, in (0, 1] (published code)."""
    until: Until = "any"
    """Stop when any kept beam has ended (the paper's choice), or when all have."""

    def __post_init__(self) -> None:
        DecoderConfig.__post_init__(self)  # super() fails in a dataclass with slots
        for name in ("beam_size", "samples_per_step"):
            check_count(getattr(self, name), name)
        check_sampling(temperature=self.temperature, top_p=self.top_p)
        check_choice(self.until, "until", Until)

    @property
    def samples_per_beam(self) -> int:
        """Number of samples for each beam of a round, ceil(S / K)."""
        return -(-self.samples_per_step // self.beam_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairConfig(DecoderConfig):
    """Parameters of repair by branching: a failing sentence is rewritten from its first token, cut short, or hidden.

    Decoding is greedy again after it, not random; see :func:`fod.repair`.
    """

    exact_names: bool = True
    """As in the search, but True."""
    guards: bool = True
    """As in the search, but True."""
    on_exhausted: OnExhausted = "quote"
    """As in the search, but an answer that says too little quotes the passages."""
    alpha: float = 0.5
    """Strength, at least 0, with which the context's influence on tokens is amplified; 0 turns it off (Shi et al.,
    2024, "Trusting your evidence", section 4). Scores are those of the raw logits."""
    plausibility: float = 0.02
    """Share, in [0, 1], of the likeliest token's probability with the context; tokens below it are excluded, unless
    processors of ``generate`` exclude all the others."""
    branches: int = 0
    """Number of tokens of a sentence that are replaced, the least certain ones, each in a copy of it, besides the
    first."""
    cuts: int = 1
    """Number of further tokens at which the sentence is cut short, where a full stop is plausible."""
    repair_from: float = 0.4
    """Geometric mean, in [0, 1], of the probabilities of a greedy sentence's tokens below which no branches are tried:
    the model guesses there, and the sentence is hidden at once. 0 always tries them."""
    max_skips: int = 2
    """Number of failing sentences that may be hidden: the model continues after them, but the answer leaves them
    out."""
    opening_relevance: float = 0.3
    """Relevance to the question, in [0, 1], that greedy sentences need with ``guards`` as long as the answer claims
    nothing; others are hidden at once, since a model that copies beside the question goes on beside it. Sentences
    that open with a pronoun, or of up to four words and a full stop, pass, and all do if no part of the passages has a
    relevance of 0.5. 0 turns this off."""
    clear_pronouns: bool = True
    """True also rejects sentences that open with a pronoun whose noun is hidden; see :func:`fod.loose_pronoun`."""

    def __post_init__(self) -> None:
        DecoderConfig.__post_init__(self)
        for name in ("branches", "cuts", "max_skips"):
            check_count(getattr(self, name), name, least=0)
        check_strength(self.alpha, "alpha")
        for name in ("plausibility", "repair_from", "opening_relevance"):
            check_share(getattr(self, name), name)


SEARCH, REPAIR = FODConfig(), RepairConfig()
"""The default parameters; the default thresholds are those of :class:`syncheck.MonitorConfig`."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Scores that the released sentences of a decoder must reach."""

    backtrack: float
    """tau_1 in [0, 1], for greedy sentences; for all sentences if the decoder has only one threshold."""
    prune: float | None = None
    """tau_2 in [0, 1], for sampled sentences and branches; None if the decoder has neither."""


def decoder_thresholds(monitor: Monitor | Verifier, config: FODConfig | RepairConfig) -> Thresholds:
    """Choose tau_1 and tau_2: those of the config, otherwise the monitor's own."""
    tau_1, tau_2, saved = config.backtrack_threshold, config.prune_threshold, monitor.config
    tau_1 = saved.backtrack_threshold if tau_1 is None else tau_1
    if tau_2 is None:
        tau_2 = max(tau_1, saved.prune_threshold) if isinstance(config, RepairConfig) else saved.prune_threshold
    return Thresholds(tau_1, tau_2)
