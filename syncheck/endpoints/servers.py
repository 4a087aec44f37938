"""Inference servers: requests to vLLM and SGLang for the log-probabilities of given tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syncheck.base.connection import Connection as Connection
from syncheck.base.errors import EndpointError

VLLM_EXCLUDED = -9999.0  # vLLM's -inf, which JSON lacks; SGLang writes null
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


class ReplayServer(Protocol):
    """Protocol of an inference server that reports the log-probabilities of given tokens; ``name`` is for messages."""

    name: str

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> NDArray[np.float64]:
        """Request the log-probabilities (T,) of T tokens that follow a prompt: float64, in nats, -inf if excluded.

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

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> NDArray[np.float64]:
        """Request the log-probabilities of the tokens; see :class:`ReplayServer`."""
        options = {"max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        body = {"model": self._model, "prompt": [*prompt_ids, *token_ids], **options}
        answer = self._connection.post("/completions", body)
        try:
            told = answer["choices"][0]["prompt_logprobs"][len(prompt_ids) :]
            places = zip(told, token_ids, strict=True)
            return np.array([_vllm(place[str(token)]["logprob"]) for place, token in places], np.float64)
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

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> NDArray[np.float64]:
        """Request the log-probabilities of the tokens; see :class:`ReplayServer`."""
        start = len(prompt_ids) - 1  # the first one reported has no log-probability
        options = {"return_logprob": True, "logprob_start_len": start, "top_logprobs_num": 0}
        sampling = {"max_new_tokens": 1, "temperature": 0}
        body = {"input_ids": [*prompt_ids, *token_ids], "sampling_params": sampling, **options}
        answer = self._connection.post("/generate", body)
        try:
            told = answer["meta_info"]["input_token_logprobs"][1:]
            if [entry[1] for entry in told] != list(token_ids):
                raise ValueError("it reports other tokens")
            return np.array([_sglang(entry[0]) for entry in told], np.float64)
        except _MALFORMED as error:
            raise _unusable(self.name, "meta_info.input_token_logprobs", token_ids, error) from error


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
