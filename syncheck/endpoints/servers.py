"""Inference servers: requests to vLLM and SGLang for the log-probabilities of given tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syncheck.base.connection import Connection as Connection
from syncheck.base.errors import EndpointError

VLLM_EXCLUDED = -9999.0
"""Value that vLLM writes for -inf, which JSON lacks; SGLang writes null."""
NO_TOKEN = -1

_MALFORMED = (LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True, slots=True, eq=False)
class KnownTokens:
    """What a server reports of the distributions that predicted T given tokens."""

    log_prob: NDArray[np.float64]
    """(T,) float64: log-probabilities of the given tokens, in nats, <= 0."""
    top_ids: NDArray[np.int64]
    """(T, k) int64: ids of the k likeliest tokens, the likeliest first; -1 fills a row that has fewer."""
    top: NDArray[np.float64]
    """(T, k) float64: their log-probabilities in nats; NaN fills."""

    @classmethod
    def of(cls, log_prob: Sequence[float], top: Sequence[Mapping[int, float]], k: int) -> KnownTokens:
        """Take the k likeliest tokens at each position from log-probabilities by token id."""
        ids = np.full((len(log_prob), k), NO_TOKEN, np.int64)
        values = np.full((len(log_prob), k), np.nan)
        for row, found in enumerate(top):
            best = sorted(found.items(), key=lambda item: -item[1])[:k]
            ids[row, : len(best)] = [token for token, _ in best]
            values[row, : len(best)] = [value for _, value in best]
        return cls(np.array(log_prob, np.float64), ids, values)


class ReplayServer(Protocol):
    """Protocol of an inference server that reports the log-probabilities of given tokens; ``name`` is for messages."""

    name: str

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Return the log-probabilities of tokens that follow a prompt, and the ``top`` likeliest at each position.

        Raises
        ------
        EndpointError
            If the server cannot be reached, refuses, or answers in an unexpected form or about other tokens.
        """


class VllmServer:
    """A vLLM server, asked through ``/v1/completions`` with ``prompt_logprobs``.

    The server does not use its prefix cache for such requests, so each one encodes its prompt again.

    Parameters
    ----------
    connection
        Connection whose ``base_url`` ends in ``/v1``.
    model
        The server's name for the model, as listed at ``/v1/models``.

    Examples
    --------
    >>> VllmServer(Connection("http://localhost:8000/v1"), "my-model")  # doctest: +SKIP
    """

    def __init__(self, connection: Connection, model: str) -> None:
        self.name = f"{connection.base_url}#{model}"
        self._connection = connection
        self._model = model

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Return the log-probabilities of the tokens; see :class:`ReplayServer`."""
        body = {
            "model": self._model,
            "prompt": [*prompt_ids, *token_ids],
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": top,
        }
        answer = self._connection.post("/completions", body)
        try:
            told = answer["choices"][0]["prompt_logprobs"][len(prompt_ids) :]
            places = [{int(token): _vllm(entry["logprob"]) for token, entry in place.items()} for place in told]
            log_prob = [place[token] for place, token in zip(places, token_ids, strict=True)]
        except _MALFORMED as error:
            raise _unusable(self.name, "choices[0].prompt_logprobs", token_ids, error) from error
        return KnownTokens.of(log_prob, places, top)


class SglangServer:
    """An SGLang server, asked through ``/generate`` with ``logprob_start_len``, which lets it use its prefix cache.

    Parameters
    ----------
    connection
        Connection whose ``base_url`` has no path.

    Examples
    --------
    >>> SglangServer(Connection("http://localhost:30000"))  # doctest: +SKIP
    """

    def __init__(self, connection: Connection) -> None:
        self.name = connection.base_url
        self._connection = connection

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Return the log-probabilities of the tokens; see :class:`ReplayServer`."""
        body = {
            "input_ids": [*prompt_ids, *token_ids],
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
            "logprob_start_len": len(prompt_ids) - 1,  # the first of those told has no log-probability
            "top_logprobs_num": top,
        }
        answer = self._connection.post("/generate", body)
        try:
            told = answer["meta_info"]["input_token_logprobs"][1:]
            likeliest = answer["meta_info"]["input_top_logprobs"][1:] if top else [[] for _ in told]
            if [entry[1] for entry in told] != list(token_ids) or len(likeliest) != len(told):
                raise ValueError("it reports other tokens")
            log_prob = [_sglang(entry[0]) for entry in told]
            places = [{int(entry[1]): _sglang(entry[0]) for entry in place} for place in likeliest]
        except _MALFORMED as error:
            raise _unusable(self.name, "meta_info.input_token_logprobs", token_ids, error) from error
        return KnownTokens.of(log_prob, places, top)


def _vllm(value: Any) -> float:
    return -inf if value <= VLLM_EXCLUDED else float(value)


def _sglang(value: Any) -> float:
    return -inf if value is None else float(value)


def _unusable(name: str, expected: str, token_ids: Sequence[int], error: Exception) -> EndpointError:
    return EndpointError(
        f"expected {expected} of the {len(token_ids)} given tokens from {name}; found another form "
        f"({type(error).__name__}: {error}). Check that the server and the class that asks it belong together",
        status=200,
    )
