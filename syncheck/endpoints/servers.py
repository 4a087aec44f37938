"""Inference servers: requests to vLLM and SGLang for the log-probabilities of given tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syncheck.base.connection import Connection as Connection
from syncheck.base.errors import EndpointError

VLLM_EXCLUDED = -9999.0  # vLLM's -inf, which JSON lacks; SGLang writes null
NO_TOKEN = -1
_ROUNDING = 1e-9
_SAME = 1e-3
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, eq=False)
class KnownTokens:
    """What a server reports of the distributions that predicted T given tokens."""

    log_prob: NDArray[np.float64]
    """(T,) float64: log-probabilities of the given tokens, in nats, <= 0."""
    top_ids: NDArray[np.int64]
    """(T, k) int64: ids of the k likeliest tokens, the likeliest first; -1 fills a row for which fewer were reported
    than asked for, and its tokens need not be the likeliest."""
    top: NDArray[np.float64]
    """(T, k) float64: their log-probabilities in nats; NaN fills."""

    @classmethod
    def of(
        cls, token_ids: Sequence[int], log_prob: Sequence[float], top: Sequence[Mapping[int, float]], k: int
    ) -> KnownTokens:
        """Take the k likeliest tokens at each position from log-probabilities by token id.

        A given token that is the least likely of them is left out: it may be there only because it was given. If the
        two values of a token differ, ValueError is raised.
        """
        ids = np.full((len(log_prob), k), NO_TOKEN, np.int64)
        values = np.full((len(log_prob), k), np.nan)
        for row, (given, own, found) in enumerate(zip(token_ids, log_prob, top, strict=True)):
            if abs(found.get(given, own) - own) > _SAME:
                raise ValueError(f"two values of token {given}")
            least = min(found.values(), default=-inf)
            likeliest = {token: value for token, value in found.items() if token != given or value > least}
            best = sorted(likeliest.items(), key=lambda item: -item[1])[:k]
            ids[row, : len(best)] = [token for token, _ in best]
            values[row, : len(best)] = [value for _, value in best]
        return cls(np.array(log_prob, np.float64), ids, values)

    @property
    def largest_other(self) -> NDArray[np.float64]:
        """Log-probability (T,) that no token besides the likeliest exceeds; 0 where fewer were reported than asked."""
        lowest = self.top.min(axis=1, initial=0.0)  # NaN where there is one
        return np.where(np.isnan(lowest), 0.0, lowest)

    def joined(self, token_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Join ids and log-probabilities (T, k + 1) of the likeliest tokens and the given one, each once."""
        given = np.asarray(token_ids, np.int64)[:, None]
        own = np.where((self.top_ids == given).any(axis=1), np.nan, self.log_prob)
        return np.concatenate([self.top_ids, given], axis=1), np.concatenate([self.top, own[:, None]], axis=1)

    def check(self, token_ids: Sequence[int], *, vocab_size: int, error: float, name: str) -> None:
        """Refuse, with an EndpointError, what no distribution can have.

        ``error`` is the error of each log-probability, in nats, and ``name`` the server's, for the message.
        """
        count = len(token_ids)
        if self.log_prob.shape != (count,) or self.top.shape != self.top_ids.shape or len(self.top) != count:
            raise EndpointError(
                f"expected log-probabilities of {count} tokens from {name}; found the shapes {self.log_prob.shape}, "
                f"{self.top_ids.shape} and {self.top.shape}",
                status=None,
            )
        given = np.asarray(token_ids, np.int64)
        _, rows = self.joined(token_ids)
        is_told, is_given = ~np.isnan(self.top), self.top_ids == given[:, None]
        is_other = ~is_given.any(axis=1)  # a given token that is not among the likeliest
        ordered = np.sort(np.where(is_told, self.top_ids, -np.arange(1, 1 + self.top.shape[1])), axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(np.where(is_given, self.top - self.log_prob[:, None], 0.0))
            together = np.nansum(np.exp(rows), axis=1)
            left = 1.0 - np.nansum(np.minimum(np.exp(rows + error), 1.0), axis=1)
        room = (vocab_size - (~np.isnan(rows)).sum(axis=1)) * np.exp(np.minimum(self.largest_other + error, 0.0))
        is_outside = is_told & ((self.top_ids < 0) | (self.top_ids >= vocab_size))
        faults = {
            "NaN": np.isnan(self.log_prob) | (is_told != (self.top_ids != NO_TOKEN)).any(axis=1),
            "a log-probability above 0": (rows > error).any(axis=1) | (self.log_prob > error),
            "a token outside the vocabulary": is_outside.any(axis=1),
            "the same token twice": (ordered[:, 1:] == ordered[:, :-1]).any(axis=1),
            "two values of the given token": (apart > 2 * error).any(axis=1),
            "a given token above the likeliest": is_other & (self.log_prob > self.largest_other + 2 * error),
            "probabilities above 1 together": together > np.exp(error) + _ROUNDING,
            "less than 1 for all tokens together": left > room + _ROUNDING,
        }
        for fault, where in faults.items():
            if where.any():
                raise EndpointError(
                    f"expected log-probabilities of one distribution from {name}; found {fault} at token "
                    f"{where.argmax() + 1} of {count}. Check the server, and that it runs the monitor's model",
                    status=200,
                )


class ReplayServer(Protocol):
    """Protocol of an inference server that reports the log-probabilities of given tokens; ``name`` is for messages."""

    name: str

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Request the log-probabilities of tokens that follow a prompt, and the ``top`` likeliest at each position.

        Raises
        ------
        EndpointError
            If the server cannot be reached, refuses, or answers in an unexpected form or about other tokens.
        """


class VllmServer:
    """A vLLM server, asked through ``/v1/completions`` with ``prompt_logprobs``, which leaves its prefix cache unused.

    The ``connection`` has a ``base_url`` that ends in ``/v1``, and ``model`` is the server's name for the model, as
    listed at ``/v1/models``.

    Examples
    --------
    >>> VllmServer(Connection("http://localhost:8000/v1"), "my-model")  # doctest: +SKIP
    """

    def __init__(self, connection: Connection, model: str) -> None:
        self.name = f"{connection.base_url}#{model}"
        self._connection = connection
        self._model = model

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Request the log-probabilities of the tokens; see :class:`ReplayServer`."""
        options = {"max_tokens": 1, "temperature": 0, "prompt_logprobs": top}
        body = {"model": self._model, "prompt": [*prompt_ids, *token_ids], **options}
        answer = self._connection.post("/completions", body)
        try:
            told = answer["choices"][0]["prompt_logprobs"][len(prompt_ids) :]
            places = [_once((int(token), _vllm(entry["logprob"])) for token, entry in place.items()) for place in told]
            log_prob = [place[token] for place, token in zip(places, token_ids, strict=True)]
            return KnownTokens.of(token_ids, log_prob, places, top)
        except _MALFORMED as error:
            raise _unusable(self.name, "choices[0].prompt_logprobs", token_ids, error) from error


class SglangServer:
    """An SGLang server, asked through ``/generate`` with ``logprob_start_len``, which lets it use its prefix cache.

    The ``connection`` has a ``base_url`` without a path.

    Examples
    --------
    >>> SglangServer(Connection("http://localhost:30000"))  # doctest: +SKIP
    """

    def __init__(self, connection: Connection) -> None:
        self.name = connection.base_url
        self._connection = connection

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Request the log-probabilities of the tokens; see :class:`ReplayServer`."""
        start = len(prompt_ids) - 1  # the first one reported has no log-probability
        options = {"return_logprob": True, "logprob_start_len": start, "top_logprobs_num": top}
        sampling = {"max_new_tokens": 1, "temperature": 0}
        body = {"input_ids": [*prompt_ids, *token_ids], "sampling_params": sampling, **options}
        answer = self._connection.post("/generate", body)
        try:
            told = answer["meta_info"]["input_token_logprobs"][1:]
            likeliest = answer["meta_info"]["input_top_logprobs"][1:] if top else [[] for _ in told]
            if [entry[1] for entry in told] != list(token_ids) or len(likeliest) != len(told):
                raise ValueError("it reports other tokens")
            log_prob = [_sglang(entry[0]) for entry in told]
            places = [_once((_token(entry[1]), _sglang(entry[0])) for entry in place) for place in likeliest]
            return KnownTokens.of(token_ids, log_prob, places, top)
        except _MALFORMED as error:
            raise _unusable(self.name, "meta_info.input_token_logprobs", token_ids, error) from error


def _once(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    pairs = list(entries)
    by_token = dict(pairs)
    if len(by_token) < len(pairs):
        raise ValueError("it reports a token twice")
    return by_token


def _token(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no token id")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no log-probability")
    return float(value)


def _vllm(value: Any) -> float:
    number = _number(value)
    return -inf if number <= VLLM_EXCLUDED else number


def _sglang(value: Any) -> float:
    return -inf if value is None else _number(value)


def _unusable(name: str, expected: str, token_ids: Sequence[int], error: Exception) -> EndpointError:
    return EndpointError(
        f"expected {expected} of the {len(token_ids)} given tokens from {name}; found another form "
        f"({type(error).__name__}: {error}). Check that the server and the class that asks it belong together",
        status=200,
    )
