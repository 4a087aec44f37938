"""Text generators: language models that answer prompts, here or at an endpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from syncheck.base.chats import write_chat
from syncheck.base.connection import TIMEOUT_S, Connection
from syncheck.base.errors import EndpointError, InputError, TextGeneratorError
from syncheck.base.pretrained import load_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MAX_ANSWER_TOKENS = 512
SHOWN_CHARACTERS = 200


class TextGenerator(Protocol):
    """Protocol of a language model that answers a prompt; ``name`` is stored with what it labels."""

    name: str

    def __call__(self, prompt: str) -> str:
        """Extract the text of the answer; raise TextGeneratorError if there is none."""


class LocalTextGenerator:
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
