"""The types that pass between stages: frozen, natural logarithms, half-open spans counted from 0.

T is a number of tokens, F a number of features, H the width of a hidden state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncheck.base.errors import PromptError
from syncheck.base.printable import counted, quoted, summary

if TYPE_CHECKING:
    import torch

__all__ = [
    "Citation",
    "CitationStatus",
    "Contrast",
    "ContrastKind",
    "Evidence",
    "FeatureSchema",
    "PromptBatch",
    "Query",
    "RagPrompt",
    "Remark",
    "SentenceFeatures",
    "SentenceScore",
    "SentenceSignals",
    "SentenceSpan",
    "Status",
    "Support",
    "TokenSignals",
    "Verdict",
    "WITHOUT_CLAIM",
]

Status = Literal[
    "scored",
    "no_aggregator",
    "no_context",
    "not_checkable",
    "not_a_claim",
    "degenerate",
    "unsupported_language",
    "failed",
]
"""Only ``scored`` has a score. ``no_aggregator``: the monitor has no aggregator, so only features were measured.
``no_context``: the context is empty. ``not_checkable``: the sentence has no letter or digit, or no token of its own, or
it is a bare yes or no. ``not_a_claim``: it is only a heading ("## Overview"), a question, a phrase of conversation ("I
hope this helps!") or a reference to passages. ``degenerate``: it repeats a word, or a sentence before it.
``unsupported_language``: the sentence or the context is in a language that the aligner does not read. ``failed``: the
model or the aligner gave no usable result. A monitor with the paper's features alone scores bare answers, sentences
without a claim and degenerate ones, as the paper does."""
WITHOUT_CLAIM: frozenset[Status] = frozenset({"not_checkable", "not_a_claim"})
"""Statuses of sentences that cannot be wrong: thresholds let them pass, and count them as unchecked."""
Effort = Literal["fast", "balanced", "thorough"]
"""How much an aligner reads for a claim; see :class:`syncheck.aligners.ReaderAligner`."""
EFFORTS: tuple[Effort, ...] = get_args(Effort)
Verdict = Literal["supported", "doubtful", "unsupported", "contradicted"]
"""A score in words, by the monitor's thresholds; see :class:`SentenceScore`."""
ContrastKind = Literal["negation", "number", "unit", "antonym", "comparison", "quantifier", "order", "row", "reading"]
"""Kinds of disagreement in wording between a sentence and a passage; ``reading`` is that of an aligner that reads."""
Remark = Literal["says_not_stated", "no_passage_touches", "passages_not_read"]
"""Remarks on a sentence beside its score; see :class:`SentenceScore`."""
CitationStatus = Literal["supported", "misattributed", "fabricated", "unresolved"]
"""``supported``: the cited passage supports the sentence. ``misattributed``: it does not. ``fabricated``: there is no
such passage. ``unresolved``: it is not known which passage is meant, or it could not be compared with the sentence."""

FloatArray = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Query:
    """A question and the passages that its answers are checked against."""

    question: str
    passages: tuple[str, ...]
    """Empty for an empty context."""

    def __repr__(self) -> str:
        return summary(self, quoted(self.question), counted(len(self.passages), "passage"))

    @property
    def has_context(self) -> bool:
        """True if any passage has more than white space."""
        return any(passage.strip() for passage in self.passages)


@dataclass(frozen=True, slots=True)
class RagPrompt(Query):
    """A query as two prompts of a language model, with and without the passages.

    An empty prompt, and two equal ones with passages (every KL would then be 0), raise PromptError.
    """

    with_context: str
    without_context: str
    with_context_ids: tuple[int, ...]
    without_context_ids: tuple[int, ...]
    system: str | None = field(default=None, compare=False)
    """System prompt that ``Monitor.prompt`` was given with the question, if any."""

    def __post_init__(self) -> None:
        if not self.with_context_ids or not self.without_context_ids:
            raise PromptError("a prompt has no tokens; pass a question, or prompts that are not empty")
        if self.has_context and self.with_context_ids == self.without_context_ids:
            raise PromptError(
                "the prompts with and without the context are equal, so no signal could show what the context "
                "changes; pass a second prompt that leaves the passages out"
            )

    def __repr__(self) -> str:
        given = f"{counted(len(self.passages), 'passage')}, {counted(len(self.with_context_ids), 'token')}"
        return summary(self, quoted(self.question), given)

    def inputs(self, device: str | torch.device = "cpu") -> dict[str, torch.Tensor]:
        """Build ``input_ids`` and ``attention_mask``, both (1, T) int64, of the prompt with the context."""
        return PromptBatch((self,)).inputs(device)


class PromptBatch(tuple[RagPrompt, ...]):
    """Prompts of one batch, from ``Monitor.prompts``; accepted wherever a list of prompts is."""

    __slots__ = ()

    def inputs(self, device: str | torch.device = "cpu") -> dict[str, torch.Tensor]:
        """Build ``input_ids`` and ``attention_mask``, both (B, T) int64, of the prompts with the context.

        Shorter rows are padded on the left with their own first token, which the mask hides.
        """
        import torch

        rows = [prompt.with_context_ids for prompt in self]
        width = max(map(len, rows), default=0)
        ids = [[*[row[0]] * (width - len(row)), *row] for row in rows]
        mask = [[*[0] * (width - len(row)), *[1] * len(row)] for row in rows]
        tensors = (torch.tensor(values, dtype=torch.long, device=device) for values in (ids, mask))
        return dict(zip(("input_ids", "attention_mask"), tensors, strict=True))


@dataclass(frozen=True, slots=True)
class TokenSignals:
    """Signals of each token of a response; NaN where no language model was run."""

    text: str
    """The response."""
    token_ids: NDArray[np.int64]
    """(T,) int64."""
    char_spans: NDArray[np.int64]
    """(T, 2) int64: characters of each token in ``text``; empty for special tokens and unfinished characters."""
    log_prob: FloatArray
    """(T,) float32: ln p(token | question, context, tokens before), nats, <= 0."""
    log_prob_without_context: FloatArray
    """(T,) float32: the same without the context; NaN if there is no context."""
    entropy: FloatArray
    """(T,) float32: entropy of the distribution with the context, nats, in [0, ln V]."""
    kl: FloatArray
    """(T,) float32: KL(with context || without context), nats, >= 0; NaN if there is no context."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @classmethod
    def concatenate(
        cls, parts: Sequence[TokenSignals | SentenceSignals], *, text: str, char_spans: ArrayLike
    ) -> TokenSignals:
        """Join the signals of consecutive parts of a response, such as its sentences; no parts give no tokens.

        ``char_spans``, (T, 2), are the characters of all T tokens in ``text``, the response.
        """

        def column(name: str, dtype: type[np.generic]) -> NDArray[Any]:
            return np.concatenate([np.empty(0, dtype), *(getattr(part, name) for part in parts)], dtype=dtype)

        token_ids = column("token_ids", np.int64)
        return cls(
            text=text,
            token_ids=token_ids,
            char_spans=np.asarray(char_spans, np.int64).reshape(len(token_ids), 2),
            **{name: column(name, np.float32) for name in ("log_prob", "log_prob_without_context", "entropy", "kl")},
        )

    def __repr__(self) -> str:
        return summary(self, counted(len(self), "token"), quoted(self.text))


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """Characters and tokens of one sentence; the sentences of a response partition its tokens."""

    index: int
    """Position of the sentence in the response, from 0."""
    start: int
    end: int
    """From ``start`` to here: its characters, half-open, without the white space around it."""
    token_start: int
    token_end: int
    """From ``token_start`` to here: its tokens, half-open."""
    truncated: bool = False
    """True if the sentence was cut at the token limit, before its end."""


@dataclass(frozen=True, slots=True)
class SentenceSignals:
    """One sentence as it was decoded or replayed: its tokens' signals and its last token's activations."""

    text: str
    """The sentence without the white space around it."""
    span: SentenceSpan
    token_ids: NDArray[np.int64]
    """(T,) int64."""
    log_prob: FloatArray
    log_prob_without_context: FloatArray
    entropy: FloatArray
    kl: FloatArray
    """(T,) float32 each: as in :class:`TokenSignals`."""
    activations: Mapping[int, FloatArray] = field(default_factory=dict)
    """(H,) float32 by tapped decoder block: its output at the last token that carries text of the sentence."""
    lid: Mapping[int, float] = field(default_factory=dict)
    """Their local intrinsic dimension, >= 0, by decoder block; NaN where undefined, empty if it was not measured."""

    def __repr__(self) -> str:
        return summary(self, counted(len(self.token_ids), "token"), quoted(self.text))


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """A versioned list of features. A released version never changes."""

    version: str
    names: tuple[str, ...]
    """Column order of every feature matrix."""
    units: tuple[str, ...]
    """Unit and range of each feature."""
    directions: tuple[int, ...]
    """+1 if higher is more faithful, -1 if lower is, 0 if neither is expected."""


@dataclass(frozen=True, slots=True)
class SentenceFeatures:
    """The features of one sentence: ``values`` is (F,) float64; NaN means not measured, and 0 is a measured 0."""

    schema: FeatureSchema
    values: NDArray[np.float64]

    def __repr__(self) -> str:
        measured = np.count_nonzero(~np.isnan(self.values))
        return summary(self, f"{self.schema.version}, {measured} of {len(self.values)} measured")

    def to_dict(self) -> dict[str, float | None]:
        """Convert to a dictionary of values by name, with None for those that were not measured."""
        return {n: None if isnan(v) else v for n, v in zip(self.schema.names, self.values.tolist(), strict=True)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The part of the context that supports a sentence best: passage index from 0, text, support in [0, 1]."""

    passage: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """A disagreement in wording: words of a sentence where a passage has others, or none."""

    kind: ContrastKind
    sentence: str
    """The words of the sentence; ``""`` if only the passage has such words, for instance a negation."""
    evidence: str
    """The words of the passage or its title; ``""`` if only the sentence has such words."""
    passage: int
    """Index of the passage, from 0."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A source that a sentence names, and whether it supports the sentence."""

    marker: str
    """The mark as it is written, which may name several sources: "[2, 3]"."""
    start: int
    end: int
    """Its characters in the response, half-open."""
    passage: int | None
    """Index of the passage that it names, from 0; None if there is none or it is not known."""
    status: CitationStatus
    better: int | None = None
    """Index of a passage that does support the sentence, if the cited one does not; None without one."""


@dataclass(frozen=True, slots=True)
class Support:
    """An aligner's result for one claim."""

    score: float
    """Support by the context, in [0, 1]."""
    evidence: Evidence | None
    """The best part of the context."""
    log_odds: float | None = None
    """Log-odds of support, in nats, before any calibration; None if the aligner has none."""
    contradicted: float | None = None
    """P(contradicted by the evidence) in [0, 1]; None if the aligner does not distinguish "contradicted" from "not
    stated"."""


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """One sentence of a response with its score."""

    text: str
    """The sentence without the white space around it."""
    start: int
    end: int
    """Its characters in the response, half-open."""
    token_start: int | None
    token_end: int | None
    """Its tokens in the response, half-open; None for text that no language model's tokenizer has read."""
    score: float | None
    """P(faithful) in [0, 1]; None unless ``status`` is ``scored``."""
    status: Status
    features: Mapping[str, float | None]
    """Values by name; None means not measured."""
    reason: str | None = None
    """Why there is no score; None with a score, or if only the aggregator is missing."""
    attribution: Mapping[str, float] = field(default_factory=dict)
    """What each feature contributes to the score, in nats of log-odds, above 0 for faithful; see
    ``Aggregator.attribution``. Empty without an aggregator."""
    evidence: Evidence | None = None
    latency_ms: float | None = None
    """Milliseconds from the moment the sentence was known to be complete to its score; that of the whole batch if
    several were scored together. None for a given response."""
    truncated: bool = False
    """True if the sentence was cut at the token limit."""
    verdict: Verdict | None = None
    """The score in words, by the monitor's two thresholds of verdicts: ``supported`` at or above the higher one,
    ``doubtful`` between the two, and below the lower one ``contradicted`` if there are contrasts or the aligner finds
    that the evidence says otherwise, else ``unsupported``. None without a score."""
    remarks: tuple[Remark, ...] = ()
    """``says_not_stated``: the sentence is a refusal, or says that the passages do not state something.
    ``no_passage_touches``: no passage has any of its content words. ``passages_not_read``: it is not ``supported``, but
    some passages are in a language that the aligner does not read, so they were not compared with it."""
    contrasts: tuple[Contrast, ...] = ()
    """Disagreements, word by word, with the part of the context that agrees best with the sentence. They are looked for
    only in English sentences, and if no feature counts them, only in those below ``supported``."""
    citations: tuple[Citation, ...] = ()
    """The sources that it names, in order; empty unless they were checked, see :meth:`syncheck.Verifier.cited`."""
    relevance: float | None = None
    """P(answers some of what was asked) in [0, 1]; None unless it was rated, see :meth:`syncheck.Verifier.rated`."""

    def __repr__(self) -> str:
        return summary(self, self.score, self.verdict or self.status, quoted(self.text))

    def moved(self, *, characters: int, tokens: int) -> SentenceScore:
        """Shift a copy of the sentence by so many characters and tokens."""
        by = characters
        cited = tuple(replace(one, start=one.start + by, end=one.end + by) for one in self.citations)
        moved = replace(self, start=self.start + by, end=self.end + by, citations=cited)
        if self.token_start is None or self.token_end is None:
            return moved
        return replace(moved, token_start=self.token_start + tokens, token_end=self.token_end + tokens)
