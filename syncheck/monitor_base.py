"""Parts of a monitor, their files, and the prompts, sessions and scorers that they make."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.aggregators.aggregator import check_schema
from syncheck.aligners import Aligner
from syncheck.aligners.protocol import at_effort, require_aligner
from syncheck.base.errors import CheckpointError, InputError, MismatchError, WrongTypeError
from syncheck.base.pretrained import fingerprint, require_tokenizer, same_weights
from syncheck.base.printable import summary
from syncheck.config import MonitorConfig
from syncheck.decoding import ScoredSession, SearchSession
from syncheck.decoding.session import GivenSession
from syncheck.features.schemas import feature_schema, needs_lid, needs_signals
from syncheck.prompts import build_prompt, prompt_from_messages
from syncheck.results.types import Effort, PromptBatch, RagPrompt
from syncheck.scoring import SentenceScorer
from syncheck.signals import LidReferences, check_window, require_watchable, take_turns_in_rotary
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)


class MonitorParts:
    """Base of :class:`syncheck.Monitor`, which describes the arguments: has all parts that measure and score sentences.

    Code that stores a monitor, replays responses, checks text or labels sentences takes any object of this class.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        config: MonitorConfig | None = None,
        aggregator: Aggregator | None = None,
        lid_references: LidReferences | None = None,
        aligner: Aligner | None = None,
        trained_on: Iterable[str] = (),
        name: str | None = None,
    ) -> None:
        require_watchable(model)
        require_tokenizer(tokenizer)
        require_aligner(aligner)
        if config is None and aggregator is None and lid_references is None:
            name, config, aggregator, aligner = checkpoint.generic_parts(aligner, model.device)
        take_turns_in_rotary(model)
        config = (config or MonitorConfig()).for_blocks(model.config.get_text_config().num_hidden_layers)
        self.layers = config.layers or ()
        self.schema = feature_schema(config.schema, self.layers)
        if aggregator is not None:
            check_schema(aggregator.schema, self.schema)
        self.trained_on = frozenset(trained_on)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.config = config
        self.aggregator = aggregator
        self.lid_references = None if lid_references is None else lid_references.to(model.device)
        self.aligner = aligner
        self.name = name
        if aggregator is not None and lid_references is None and needs_lid(config.schema):
            logger.warning("schema %r has LID, but there are no references; LID will not be measured", config.schema)

    def __repr__(self) -> str:
        aggregator = "no" if self.aggregator is None else self.aggregator.kind
        aligner = "no aligner" if self.aligner is None else type(self.aligner).__name__
        model = type(self.model).__name__
        return summary(self, f"{model}, {self.schema.version}, {aggregator} aggregator, {aligner}")

    def with_effort(self, effort: Effort) -> Self:
        """Copy this monitor with another effort of its aligner; see :meth:`Verifier.with_effort`."""
        return self.replaced(aligner=at_effort(self.aligner, effort))

    def with_prior(self, prior: float) -> Self:
        """Copy this monitor for text with another share of faithful sentences; see :meth:`Verifier.with_prior`."""
        if self.aggregator is None:
            raise InputError("a prior shifts scores, and this monitor has none; train it first")
        return self.replaced(aggregator=replace(self.aggregator, prior=prior))

    def replaced(self, **parts: Any) -> Self:  # noqa: ANN401
        """Copy this monitor with other parts, given as keyword arguments of the class."""
        own = ("config", "aggregator", "lid_references", "aligner", "trained_on", "name")
        return type(self)(self.model, self.tokenizer, **{name: getattr(self, name) for name in own} | parts)

    @overload
    def prompt(self, *, question: str, context: str | Sequence[str], system: str | None = None) -> RagPrompt: ...

    @overload
    def prompt(
        self,
        *,
        messages: Sequence[Mapping[str, str]],
        context: str | Sequence[str],
        without: Sequence[Mapping[str, str]] | None = None,
        question: str | None = None,
    ) -> RagPrompt: ...

    def prompt(
        self,
        *,
        context: str | Sequence[str] | None = None,
        question: str | None = None,
        system: str | None = None,
        messages: Sequence[Mapping[str, str]] | None = None,
        without: Sequence[Mapping[str, str]] | None = None,
    ) -> RagPrompt:
        """Build the pair of prompts of a question, or of a chat of your own.

        Parameters
        ----------
        context, question, system
            See :func:`syncheck.prompts.build_prompt`.
        messages, without
            A chat with the passages and the same without them; see :func:`syncheck.prompt_from_messages`.

        Raises
        ------
        InputError
            If neither a question nor messages are given, or ``system`` is given with messages, or ``without`` with a
            question alone; also as in these functions.
        WrongTypeError
            If there is no context; also as in these functions.
        PromptError
            As in these functions.
        """
        if context is None:
            raise WrongTypeError(
                "Monitor.prompt needs context=..., a string or a list of strings; found none. Pass the passages, or "
                "context='' if it is known that there are none"
            )
        if messages is not None:
            if system is not None:
                raise InputError("a system prompt is one of the messages; leave system out")
            return prompt_from_messages(
                self.tokenizer, messages=messages, context=context, without=without, question=question
            )
        if question is None or without is not None:
            raise InputError("pass question=..., or messages=[...] (and then, if you like, without=[...])")
        return build_prompt(
            self.tokenizer, question=question, context=context, template=self.config.template, system=system
        )

    def prompts(self, prompts: Iterable[RagPrompt | Mapping[str, Any]]) -> PromptBatch:
        """Collect the prompts of a batch, from :meth:`prompt` or mappings of its arguments.

        The result is a sequence of prompts, whose ``inputs(device)`` are padded on the left. No prompts raise
        InputError, and anything else among them WrongTypeError.
        """
        batch = PromptBatch(self.prompt(**given) if isinstance(given, Mapping) else given for given in prompts)
        return PromptBatch(rows_of(batch))

    def session(self, prompts: RagPrompt | Sequence[RagPrompt]) -> ScoredSession:
        """Make a session for a decoder of your own, with one row for each prompt; a context manager.

        A prompt that does not fit the model's window raises PromptError; no prompts, or longer ones that the model
        encodes differently, InputError.
        """
        rows = self._fitting(prompts)
        scorers = scorers_of(rows, self.scorer)
        return ScoredSession(SearchSession(self.model, self.tokenizer, rows, **self._measuring), scorers)

    def given_session(self, prompts: RagPrompt | Sequence[RagPrompt]) -> GivenSession:
        """Make a session that reads given responses to these prompts; errors as in :meth:`session`."""
        return GivenSession(self.model, self.tokenizer, self._fitting(prompts), **self._measuring)

    def scorer(self, prompt: RagPrompt) -> SentenceScorer:
        """Make the scorer for sentences of answers to one prompt."""
        return SentenceScorer(
            prompt, config=self.config, aggregator=self.aggregator, aligner=self.aligner, monitor=self.name
        )

    def save_pretrained(self, directory: str | Path) -> None:
        """Write config, aggregator and LID references to a folder, which is made if needed.

        The model and the aligner are named, not copied.
        """
        # One that reads text alone serves any model.
        model = fingerprint(self.model, self.tokenizer) if needs_signals(self.config.schema) else None
        checkpoint.write(directory, self, model=model, lid_references=self.lid_references)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | Path,
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        aligner: Aligner | None = None,
        revision: str | None = None,
        **hub_options: Any,
    ) -> Self:
        """Load a monitor that :meth:`save_pretrained` wrote; runs no code from there.

        Parameters
        ----------
        model, tokenizer
            The model that the monitor was trained with, and its tokenizer.
        directory, aligner, revision, **hub_options
            As in :meth:`Verifier.from_pretrained`, whose errors this raises too.

        Raises
        ------
        MismatchError
            If the monitor was trained with another model, tokenizer or aligner.
        """
        require_watchable(model)
        require_tokenizer(tokenizer)
        folder = checkpoint.fetched(directory, revision=revision, **hub_options)
        stored = checkpoint.read(folder)
        if needs_signals(stored.config.schema):
            _check_model(folder, stored.values["model"] or {}, fingerprint(model, tokenizer))
        aligner = stored.aligner(aligner, device=model.device)
        has_references = stored.values["lid_references"]
        return cls(
            model,
            tokenizer,
            config=stored.config,
            aggregator=stored.aggregator(),
            lid_references=_references(folder, stored.config, model) if has_references else None,
            aligner=aligner,
            trained_on=stored.trained_on,
            name=stored.name,
        )

    @cached_property
    def verifier(self) -> Verifier:
        """Scores text alone: as this monitor does if it needs no signals, otherwise as the bundled verifier."""
        if needs_signals(self.config.schema):
            return Verifier(self.aligner, device=self.model.device)
        return Verifier(
            self.aligner,
            config=self.config,
            aggregator=self.aggregator,
            trained_on=self.trained_on,
            name=self.name,
        )

    @property
    def reads_signals(self) -> bool:
        """True if its scores need the model's signals, or if it has none and measures alone."""
        return self._asks_model(False)

    def _asks_model(self, signals: bool) -> bool:
        """Tell whether the model has to read a given text: its signals are wanted, or there are no scores without."""
        return signals or self.aggregator is None or needs_signals(self.config.schema)

    @property
    def _measuring(self) -> dict[str, Any]:
        return {"layers": self.layers, "lid_references": self.lid_references, "segmenter": self.config.segmenter}

    def _fitting(self, prompts: RagPrompt | Sequence[RagPrompt]) -> list[RagPrompt]:
        """List the prompt of each row, after checking that it fits the window and before its passages are read."""
        rows = rows_of(prompts)
        check_window(self.model, max(len(prompt.with_context_ids) for prompt in rows) + 1)
        return rows


def scorers_of(prompts: Sequence[RagPrompt], make: Callable[[RagPrompt], SentenceScorer]) -> list[SentenceScorer]:
    """Make a scorer for each prompt; equal prompts share one."""
    scorers = {prompt: make(prompt) for prompt in prompts}
    return [scorers[prompt] for prompt in prompts]


def require_prompt(prompt: object) -> None:
    """Raise WrongTypeError for anything but a prompt."""
    if not isinstance(prompt, RagPrompt):
        raise WrongTypeError(f"prompt must be a RagPrompt, from monitor.prompt(...); found {type(prompt).__name__}")


def rows_of(prompts: RagPrompt | Sequence[RagPrompt]) -> list[RagPrompt]:
    """Convert one or several prompts to a list, which must not be empty."""
    rows = [prompts] if isinstance(prompts, RagPrompt) or not isinstance(prompts, Sequence) else list(prompts)
    if not rows:
        raise InputError("expected at least one prompt; found an empty list")
    for prompt in rows:
        require_prompt(prompt)
    return rows


def _references(directory: Path, decided: MonitorConfig, model: PreTrainedModel) -> LidReferences:
    """Read the references and check that they are of this model's activations at the monitor's layers."""
    path = directory / checkpoint.REFERENCES
    try:
        lid_references = LidReferences.load(path, device=str(model.device))
    except InputError as error:
        raise CheckpointError(f"{path} holds no references that can be used: {error}") from error
    width = model.config.get_text_config().hidden_size
    shapes = {layer: tuple(array.shape) for layer, array in lid_references.references.items()}
    layers = decided.layers or ()
    if set(layers) - set(shapes) or any(shape[1] != width for shape in shapes.values()):
        raise MismatchError(
            f"{path} must hold references of layers {list(layers)}, {width} wide as the model is; found the "
            f"shapes {shapes} by layer. Train the monitor again for this model"
        )
    return lid_references


def _check_model(directory: Path, expected: dict[str, Any], found: dict[str, Any]) -> None:
    different = [key for key in found if key != "weights_sha256" and expected.get(key) != found[key]]
    saved, own = expected.get("weights_sha256"), found["weights_sha256"]
    if saved is not None and own is not None and not same_weights(saved, own):
        different.append("weights_sha256")
    if different:
        detail = ", ".join(f"{key}: expected {expected.get(key)!r}, found {found[key]!r}" for key in different)
        raise MismatchError(
            f"{directory} was trained for another model or tokenizer ({detail}). Load that model, or train a monitor "
            "for this one with Monitor.fit"
        )
