"""Text generators: language models that answer prompts, here or at an endpoint, and SpanExtract, which uses one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from syncheck.aligners.protocol import OfNetwork, check_asked
from syncheck.base.chats import write_chat
from syncheck.base.connection import TIMEOUT_S, Connection
from syncheck.base.errors import EndpointError, InputError, TextGeneratorError
from syncheck.base.files import asset_text
from syncheck.base.pretrained import load_model
from syncheck.results.types import Support

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MAX_ANSWER_TOKENS = 512
SHOWN_CHARACTERS = 200

KEY = "hallucination list"


class TextGenerator(Protocol):
    """Protocol of a language model that answers a prompt; ``name`` is stored with what it labels."""

    name: str

    def __call__(self, prompt: str) -> str:
        """Extract the text of the answer; raise TextGeneratorError if there is none."""


class LocalTextGenerator(OfNetwork):
    """An instruction-tuned causal language model, decoded greedily, with the tokenizer's chat template if it has one.

    ``name`` is the folder or name that it was loaded from, and ``max_new_tokens`` limits the answer.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "local",
        max_new_tokens: int = MAX_ANSWER_TOKENS,
    ) -> None:
        self.name = name
        self._model, self._tokenizer, self._max_new_tokens = model, tokenizer, max_new_tokens

    @classmethod
    def load(cls, path: Path | str, *, device: str | torch.device = "cpu") -> LocalTextGenerator:
        """Load a checkpoint by folder or name: float32 on a CPU, its own type elsewhere."""
        return cls(*load_model(path, device), name=str(path))

    def __call__(self, prompt: str) -> str:
        """Answer a prompt; raise InputError if prompt and answer do not fit the model's window."""
        has_chat = self._tokenizer.chat_template is not None
        text = write_chat(self._tokenizer, [{"role": "user", "content": prompt}]) if has_chat else prompt
        ids = list(self._tokenizer(text, add_special_tokens=not has_chat, verbose=False)["input_ids"])
        window: int = self._model.config.get_text_config().max_position_embeddings
        if len(ids) + self._max_new_tokens > window:
            raise InputError(
                f"the prompt takes {len(ids)} tokens and the answer up to {self._max_new_tokens}, but the window of "
                f"{self.name!r} is {window}; pass less context or use a model with a longer window"
            )
        from transformers import GenerationConfig

        inputs = torch.tensor([ids], device=self._model.device)
        end = self._model.generation_config.eos_token_id
        pad = end[0] if isinstance(end, list) else end
        most = self._max_new_tokens
        greedy = GenerationConfig(do_sample=False, max_new_tokens=most, eos_token_id=end, pad_token_id=pad)
        with torch.inference_mode():
            output = self._model.generate(inputs, attention_mask=torch.ones_like(inputs), generation_config=greedy)
        return str(self._tokenizer.decode(output[0, len(ids) :], skip_special_tokens=True))


class EndpointTextGenerator:
    """A chat model at an OpenAI-compatible endpoint; every call sends the prompt there and nowhere else.

    ``base_url`` is the address to which ``/chat/completions`` is added, such as ``"http://localhost:8000/v1"``, and
    ``model`` the endpoint's name for the model. The key, sent as a bearer token, is ``api_key`` or, read at once, that
    of the environment variable ``api_key_variable``. ``timeout_s`` is the longest wait for a connection, and for each
    part of the answer, in seconds. A URL that is no HTTP address, two keys, and a variable that is not set raise
    InputError.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        api_key_variable: str | None = None,
        timeout_s: float = TIMEOUT_S,
        max_tokens: int = MAX_ANSWER_TOKENS,
    ) -> None:
        if api_key is not None and api_key_variable is not None:
            raise InputError("api_key and api_key_variable both provide a key; pass only one of them")
        if api_key_variable is not None:
            api_key = os.environ.get(api_key_variable)
            if not api_key:
                raise InputError(f"environment variable {api_key_variable!r} is not set; set it to the endpoint's key")
        self._connection = Connection(base_url, api_key=api_key, timeout_s=timeout_s, retries=0)
        self.name = f"{self._connection.base_url}#{model}"
        self._model, self._max_tokens = model, max_tokens

    def __call__(self, prompt: str) -> str:
        """Answer a prompt at temperature 0; TextGeneratorError if the endpoint does not answer as expected."""
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": self._max_tokens,
        }
        answer: Any = None
        try:
            answer = self._connection.post("/chat/completions", body)
            content = answer["choices"][0]["message"]["content"]
            if not isinstance(content, str):
                raise TypeError(f"the content is {content!r}")
        except EndpointError as error:
            raise TextGeneratorError(str(error)) from error
        except (LookupError, TypeError) as error:
            raise TextGeneratorError(
                f"{self._connection.base_url} gave no choices[0].message.content as chat completions have it, but "
                f"{json.dumps(answer)[:SHOWN_CHARACTERS]}"
            ) from error
        return content


class SpanAligner(OfNetwork):
    """Scores a claim 0 if a language model marks a span of it as unsupported, and 1 if it marks none (SpanExtract).

    ``evaluator`` is a :class:`LocalTextGenerator`, an :class:`EndpointTextGenerator`, or another
    :class:`TextGenerator`, and ``question`` the one that the claims answer; a monitor passes its own, see
    :meth:`about`.

    The model is asked about each claim alone, with the whole context, so that a sentence scores the same during
    generation and afterwards; the paper asks about the whole answer at once. The prompt is that of the paper for
    biographies (appendix C), for every task. The result has no evidence.
    """

    def __init__(self, evaluator: TextGenerator, *, question: str = "") -> None:
        self.name = f"spans:{evaluator.name}"
        self._model: TextGenerator = evaluator
        self._question = question

    def about(self, question: str) -> SpanAligner:
        """Bind the question that the claims answer."""
        return SpanAligner(self._model, question=question)

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim; see :class:`~syncheck.aligners.protocol.Aligner`. Without a context, all scores are 0.

        Raises TextGeneratorError if the evaluator cannot be reached, or its answer is not a list of spans of the claim.
        """
        check_asked(passages, claims)
        if not any(passage.strip() for passage in passages):
            return [Support(0.0, None) for _ in claims]
        context = "\n\n".join(passages)
        return [Support(0.0 if self._marked(context, claim) else 1.0, None) for claim in claims]

    def _marked(self, context: str, claim: str) -> list[str]:
        answer = self._model(
            asset_text("prompts/spans.txt").format(passages=context, question=self._question, answer=claim.strip())
        )
        spans = hallucinated_spans(answer)
        marked = [span for span in spans if _plain(span) and _plain(span) in _plain(claim)]
        if spans and not marked:
            raise TextGeneratorError(
                f"{self._model.name!r} marked {spans!r}, none of which is in the sentence {claim!r}; expected its "
                "exact words"
            )
        return marked


def hallucinated_spans(answer: str) -> list[str]:
    """Read the spans of the first JSON object in an answer that has a list of them, or raise TextGeneratorError."""
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{", answer):
        try:
            parsed, _ = decoder.raw_decode(answer, brace.start())
        except ValueError:
            continue
        if KEY in parsed:
            spans = parsed[KEY]
            if isinstance(spans, list) and all(isinstance(span, str) for span in spans):
                return spans
            break
    raise TextGeneratorError(
        f'expected an answer with a JSON object {{"{KEY}": [spans]}}; found {answer[:SHOWN_CHARACTERS]!r}'
    )


def _plain(text: str) -> str:
    """Normalise case and white space, which a language model may change when it quotes."""
    return " ".join(text.casefold().split())
