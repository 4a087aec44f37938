"""Test doubles with exact behaviour, for code that uses a monitor: no download, no training, no randomness.

Start with :func:`scripted_monitor`. Its model writes given answers with probabilities that can be worked out on paper,
and its sentences have the scores that the test gives. The aligners work with any model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from syncheck.aggregators import Aggregator
from syncheck.base.errors import InputError
from syncheck.config import MonitorConfig
from syncheck.features.schemas import feature_schema
from syncheck.monitor import Monitor
from syncheck.results.types import Evidence, Support

__all__ = [
    "ScriptedAligner",
    "ScriptedModel",
    "WordAligner",
    "scripted_monitor",
    "word_tokenizer",
]

_END = "</s>"
_SCHEMA = "paper-no-lid.v1"
_EXACT = 2.0**40
"""Added to the mean square under the root of a norm, and its root taken back by the weight: the norm changes nothing,
to the last bit."""


def scripted_monitor(
    answers: Mapping[str, float] | str, *, supports: Mapping[str, float] | None = None, **probabilities: float
) -> Monitor:
    """Build a monitor whose model writes given answers and whose sentences have given scores.

    Parameters
    ----------
    answers, probabilities
        As in :class:`ScriptedModel`.
    supports
        Sentences with their scores in [0, 1]; the score of any other sentence is the share of its words that occur in
        the passages. See :class:`ScriptedAligner`.

    Raises
    ------
    InputError
        As in :class:`ScriptedModel`.

    Examples
    --------
    >>> monitor = scripted_monitor("Lyon is large. It is in Spain.", supports={"It is in Spain.": 0.1})
    >>> prompt = monitor.prompt(question="Where is Lyon?", context="Lyon is large. It is in France.")
    >>> monitor.generate(prompt, max_new_tokens=20).sentences
    (<SentenceScore 1.00 supported "Lyon is large.">, <SentenceScore 0.10 unsupported "It is in Spain.">)
    """
    texts = [answers] if isinstance(answers, str) else list(answers)
    tokenizer = word_tokenizer(texts)
    return Monitor(
        ScriptedModel(tokenizer, answers, **probabilities),
        tokenizer,
        config=MonitorConfig(schema=_SCHEMA),
        aggregator=Aggregator.from_signal("align_score", schema=feature_schema(_SCHEMA, ())),
        aligner=ScriptedAligner(supports or {}),
    )


def word_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Build a tokenizer with one token for each word of these texts, including the space before it.

    Other text is encoded byte by byte, so that every text can be encoded and decoded again.
    """
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = dict.fromkeys(word for text in texts for word, _ in split.pre_tokenize_str(text))
    pieces = dict.fromkeys([_END, *sorted(pre_tokenizers.ByteLevel.alphabet()), *words])
    tokenizer = Tokenizer(BPE({piece: i for i, piece in enumerate(pieces)}, [], ignore_merges=True))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_END)


class ScriptedModel(LlamaForCausalLM):  # type: ignore[misc]
    """A causal language model of two small blocks that writes given answers after any prompt.

    It finds the longest end of the text so far that is the beginning of an answer and continues that answer: with its
    next token, or, if several answers begin so, with their next tokens by weight; after the last token, with the end
    of text. If no end of the text begins an answer, all answers begin.

    Parameters
    ----------
    tokenizer
        From :func:`word_tokenizer`, or any tokenizer with an end-of-text token.
    answers
        Answers with their weights, above 0; a string is the only answer.
    seen, unseen
        Probability, between 0 and 1, of the answer's next token: ``seen`` if the token occurs in the text before it,
        passages and question included, ``unseen`` if it does not. The rest is spread evenly over all V tokens, so that
        the token of a single answer has the probability ``seen + (1 - seen) / V``. Tokens that occur only in the
        passages are therefore likelier with the context.

    Raises
    ------
    InputError
        If there is no answer, a weight is not above 0, or a probability is not between 0 and 1.

    Notes
    -----
    It is a Llama with cache, masks and hooks. The keys and values of its first block are the ids of the tokens, so that
    the text before a token is read from the cache, however the cache was cut back, forked or padded.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        answers: Mapping[str, float] | str,
        *,
        seen: float = 0.999,
        unseen: float = 0.99,
    ) -> None:
        weights = {answers: 1.0} if isinstance(answers, str) else answers
        if not weights or min(weights.values()) <= 0 or not (0 < seen < 1 and 0 < unseen < 1):
            raise InputError(
                "expected answers with weights above 0, and probabilities between 0 and 1; found "
                f"{dict(weights)}, seen={seen}, unseen={unseen}"
            )
        end: Any = tokenizer.eos_token_id
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=2,
            num_attention_heads=1,
            num_key_value_heads=1,
            max_position_embeddings=4096,
            rms_norm_eps=_EXACT,
            attn_implementation="sdpa",
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=end,
        )
        super().__init__(config)
        self._scripts = [
            ((*tokenizer(text, add_special_tokens=False).input_ids, end), weight) for text, weight in weights.items()
        ]
        self._probabilities = (seen, unseen)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
            first = self.model.layers[0]
            first.input_layernorm.weight.fill_(_EXACT**0.5)
            first.self_attn.v_proj.weight[0, 0] = 1.0
            self.model.embed_tokens.weight[:, 0] = torch.arange(config.vocab_size)
        self.eval()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Run the Llama and replace its logits with scripted ones; arguments and result are those of a Llama."""
        output = super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
            logits_to_keep=logits_to_keep,
            **kwargs,
        )
        ids = input_ids
        if output.past_key_values is not None:
            ids = output.past_key_values.layers[0].values[:, 0, :, 0].long()  # (B, columns)
        fed = input_ids.shape[1]
        kept = range(fed - logits_to_keep if logits_to_keep else 0, fed)
        before = ids.shape[1] - fed
        visible = [[_visible(attention_mask, row, n, before + n) for n in kept] for row in range(len(ids))]
        logits = [
            [self.next_logits(ids[row][columns].tolist()) for columns in seen] for row, seen in enumerate(visible)
        ]
        output.logits = torch.tensor(logits, dtype=self.dtype, device=input_ids.device)
        return output

    def next_logits(self, token_ids: Sequence[int]) -> list[float]:
        """Compute the log-probability of each of the V tokens after a text, in nats, below 0."""
        expected = self._expected(tuple(token_ids))
        total = sum(expected.values())
        size = self.config.vocab_size
        seen, unseen = self._probabilities
        sure = sum(w / total * (seen if token in token_ids else unseen) for token, w in expected.items())
        shares = [(1 - sure) / size] * size
        for token, weight in expected.items():
            shares[token] += weight / total * (seen if token in token_ids else unseen)
        return [log(probability) for probability in shares]

    def _expected(self, ids: tuple[int, ...]) -> dict[int, float]:
        longest = max(len(script) for script, _ in self._scripts) - 1
        for length in range(min(longest, len(ids)), -1, -1):
            end = ids[len(ids) - length :]
            shares: dict[int, float] = {}
            for script, weight in self._scripts:
                if len(script) > length and script[:length] == end:
                    shares[script[length]] = shares.get(script[length], 0.0) + weight
            if shares:
                return shares
        raise AssertionError("every text ends with the empty text, which begins all answers")


def _visible(mask: Tensor | None, row: int, query: int, last: int) -> Tensor:
    """Find the indices of the columns that a token sees: up to its own, except those that the mask hides."""
    if mask is None:
        return torch.arange(last + 1)
    shown = mask[row, 0, query] if mask.ndim == 4 else mask[row]
    return shown[: last + 1].bool().nonzero()[:, 0]


class WordAligner:
    """Aligner whose support is the share of the claim's words that occur in the passages."""

    name = "words"

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Compute the share of each claim, in [0, 1], with the first passage as evidence."""
        known = set(re.findall(r"\w+", " ".join(passages).lower()))
        hits = [[word in known for word in re.findall(r"\w+", claim.lower())] for claim in claims]
        return [Support(sum(f) / len(f), Evidence(0, passages[0], sum(f) / len(f))) for f in hits]


@dataclass
class ScriptedAligner(WordAligner):
    """Aligner with given supports: ``supports`` maps claims to [0, 1]; others get that of :class:`WordAligner`.

    ``asked`` has the claims of each call so far; a claim is the text of a sentence as it is in a report.
    """

    supports: Mapping[str, float]
    asked: list[tuple[str, ...]] = field(default_factory=list)

    name = "scripted"

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Look up the support of each claim, with the first passage as evidence."""
        self.asked.append(tuple(claims))
        scores = [
            self.supports.get(claim, support.score)
            for claim, support in zip(claims, super().align(passages, claims), strict=True)
        ]
        return [Support(score, Evidence(0, passages[0], score)) for score in scores]
