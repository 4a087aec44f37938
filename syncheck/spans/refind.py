"""REFIND (Lee and Yu, SemEval-2025 Task 3): tokens whose probability depends most on the retrieved texts.

``CSR(t_i) = ln p(t_i | D, q, t_<i) / (ln p(t_i | q, t_<i) + 1e-8)``; a token is hallucinated if its CSR is at least
delta. Above 1 the references make it less likely than it is without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from syncheck.base.errors import InputError, PromptError
from syncheck.base.files import asset_text
from syncheck.base.pretrained import load_pretrained
from syncheck.config import MonitorConfig
from syncheck.model_monitor import ModelMonitor
from syncheck.prompts import prompt_from_texts
from syncheck.results.spans import SpanItem, SpanLabels, labels_of
from syncheck.results.types import Floats, TokenSignals
from syncheck.signals import window_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def refind_prompt(question: str, passages: tuple[str, ...]) -> str:
    """Write REFIND's prompt (appendix A.1) for a question over passages; without passages, one without references."""
    prompt = asset_text("prompts/refind.txt" if passages else "prompts/refind_without.txt")
    return prompt.format(question=question, references="\n".join(passages))


Measure = Callable[[SpanItem], TokenSignals]
"""Function that returns the signals of an item's tokens, such as :class:`TokenReplay`."""


class TokenReplay:
    """Measures responses of any model with a causal language model and REFIND's prompts; texts are never cut.

    The passages that fit the model's window are read, in order, and :meth:`left_out` returns the others.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._monitor = ModelMonitor(model, tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))

    def __call__(self, item: SpanItem) -> TokenSignals:
        """Measure the signals of the response's tokens in this model's vocabulary.

        Without passages, ``log_prob_without_context`` and ``kl`` are NaN. If question and response do not fit the
        model's window, or no passage fits with them, PromptError is raised.
        """
        passages, left_out = self._divided(item)
        if left_out and not passages:
            raise PromptError(
                f"none of the {len(left_out)} retrieved texts fits the model's window of "
                f"{window_of(self._monitor.model)} tokens with question and response, which take "
                f"{self._tokens(item, ())}; pass shorter texts, or a model with a longer window"
            )
        prompt = prompt_from_texts(
            self._monitor.tokenizer,
            question=item.question,
            context=passages,
            with_context=refind_prompt(item.question, passages),
            without_context=refind_prompt(item.question, ()),
        )
        return self._monitor.score(prompt, item.response).tokens

    def left_out(self, item: SpanItem) -> tuple[int, ...]:
        """Find the passages that are not read, by index from 0: those that do not fit with the earlier ones that do."""
        return self._divided(item)[1]

    def fits(self, item: SpanItem) -> bool:
        """Tell whether the item can be measured, with at least one of its passages if it has any."""
        passages, left_out = self._divided(item)
        window = window_of(self._monitor.model)
        return bool(passages or not left_out) and (window is None or self._tokens(item, passages) <= window)

    def _divided(self, item: SpanItem) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """List the passages that are read, and the indices of the others."""
        window = window_of(self._monitor.model)
        if window is None or self._tokens(item, item.passages) <= window:
            return item.passages, ()
        kept: tuple[str, ...] = ()
        left_out: tuple[int, ...] = ()
        for i, text in enumerate(item.passages):
            if self._tokens(item, (*kept, text)) <= window:
                kept += (text,)
            else:
                left_out += (i,)
        return kept, left_out

    def _tokens(self, item: SpanItem, passages: tuple[str, ...]) -> int:
        tokenizer = self._monitor.tokenizer
        prompt = tokenizer(refind_prompt(item.question, passages), verbose=False)["input_ids"]
        return len(prompt) + len(tokenizer(item.response, add_special_tokens=False, verbose=False)["input_ids"])


DEFAULT_DELTA = 0.2  # the paper gives none; of the values 0.1 to 0.4 in its Figure 3, results are steadiest here


_FLOOR = 1e-8


class RefindDetector:
    """Detector that marks the characters of tokens whose context sensitivity ratio (CSR) reaches a threshold.

    Both log-probabilities are those of the measuring model; in the paper, the one without references is that of the
    model that wrote the response. The soft label of a token is CSR / (1 + CSR), which keeps the order. Without
    passages, the ratio is 1, and every token is marked with the usual thresholds. A threshold ``delta`` that is not a
    number of at least 0 raises InputError.
    """

    name = "refind-replay"

    def __init__(self, measure: Measure, *, delta: float = DEFAULT_DELTA) -> None:
        if isinstance(delta, bool) or not isinstance(delta, int | float) or not delta >= 0:
            raise InputError(f"a threshold of a ratio must be a number of at least 0; found {delta!r}")
        self._measure, self._delta = measure, delta

    def detect(self, item: SpanItem) -> SpanLabels:
        """Label a response; see :class:`~syncheck.results.SpanDetector`."""
        return marked_from(self.ratios(item), self._delta)

    def ratios(self, item: SpanItem) -> Floats:
        """Compute the ratio of every character, (C,) float64, >= 0: the highest of the tokens that it belongs to."""
        signals = self._measure(item)
        without = signals.log_prob_without_context.astype(np.float64)  # (T,)
        with_context = signals.log_prob.astype(np.float64)
        known = np.isfinite(with_context) & np.isfinite(without)
        ratio = np.divide(with_context, without + _FLOOR, out=np.ones(len(signals)), where=known & (without != -_FLOOR))
        highest = np.zeros(len(item.response))
        for (start, stop), value in zip(signals.char_spans, ratio, strict=True):
            # The floor turns the sign of a log-probability that is nearly 0.
            highest[start:stop] = np.maximum(highest[start:stop], max(value, 0.0))
        return highest


def marked_from(ratios: Floats, delta: float) -> SpanLabels:
    """Label characters with these ratios: hard where the ratio is at least delta."""
    return labels_of(ratios / (1 + ratios), ratios >= delta)


SentenceEncoder = Callable[[Sequence[str]], Floats]
"""Function that embeds N texts as vectors (N, D) float64 of length 1, so that their product is the cosine; a text with
nothing to encode may have the vector 0."""


class LetterEncoder:
    """Encoder by hashed counts of letter trigrams, without a checkpoint; it compares spelling, not meaning."""

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Embed N texts as vectors (N, 32768) float64."""
        from sklearn.feature_extraction.text import HashingVectorizer

        counted = HashingVectorizer(
            analyzer="char_wb", ngram_range=(3, 3), n_features=2**15, alternate_sign=False, norm="l2"
        )
        return np.asarray(counted.transform(list(texts)).toarray(), dtype=np.float64)


_BATCH = 16


class CheckpointEncoder:
    """Encoder by the mean last hidden states of a Hugging Face model; E5 models need the ``prefix`` ``"query: "``."""

    def __init__(self, name: str, *, prefix: str = "", device: str = "cpu") -> None:
        self._tokenizer: Any = load_pretrained(AutoTokenizer, name, what="a tokenizer")
        self._model = load_pretrained(AutoModel, name, what="an encoder").to(device).eval()
        self._prefix = prefix

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Floats:
        """Embed N texts as vectors (N, H) float64."""
        vectors = []
        for start in range(0, len(texts), _BATCH):
            batch = [self._prefix + text for text in texts[start : start + _BATCH]]
            given = self._tokenizer(batch, padding=True, return_tensors="pt", verbose=False)
            tokens, window = given["input_ids"].shape[1], self._tokenizer.model_max_length
            if tokens > window:
                raise InputError(f"a text takes {tokens} tokens, but the encoder's window is {window}; split it")
            given = given.to(self._model.device)
            states = self._model(**given).last_hidden_state  # (N, T, H)
            mask = given["attention_mask"][:, :, None]
            means = (states * mask).sum(1) / mask.sum(1)  # (N, H)
            vectors.append(torch.nn.functional.normalize(means.double(), dim=-1).cpu().numpy())
        return np.concatenate(vectors) if vectors else np.zeros((0, self._model.config.hidden_size))
