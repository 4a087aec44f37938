"""The monitor that users make: watches a language model, and is trained."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from syncheck.aligners import Aligner
from syncheck.base.errors import LeftOutWarning
from syncheck.checkpoint import generic_aligner
from syncheck.config import KEPT, PRECISION, MonitorConfig
from syncheck.model_monitor import ModelMonitor

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.aggregators.monotone import MonotoneLogisticRegression
    from syncheck.labelling import LabelledResponse
    from syncheck.training.fit import TrainedKind


class Monitor(ModelMonitor):
    """Scores the sentences of a language model's answers for faithfulness to the retrieved context.

    Parameters
    ----------
    model, tokenizer
        A Hugging Face causal language model, which is put into evaluation mode, and its tokenizer.
    config
        Measurements and thresholds; None takes the schema ``syncheck.v6`` with the model's default layers. If config,
        aggregator and LID references are all None, the monitor scores any model's sentences from their text alone: as
        the bundled monitor ``generic`` (see :func:`syncheck.load_kit`), which assumes that half of the sentences are
        faithful; with the packaged reader or the bundled aligner as aligner, in the form that was trained with it;
        with another aligner, by its support alone.
    aggregator
        Turns the features of the config's schema into P(faithful); None leaves sentences without a score (status
        ``no_aggregator``).
    lid_references
        Reference activations for LID. Without them LID is not measured; a warning is logged if the aggregator expects
        it.
    aligner
        Scores sentences against the context; None leaves ``align_score`` unmeasured, except for ``generic``, which
        takes its own.
    trained_on
        Digests of the questions that the aggregator was trained on, so that an evaluation can refuse them; see
        :func:`syncheck.training.question_digests`.
    name
        Name of a bundled monitor, shown in reports.

    Raises
    ------
    UnsupportedModelError
        If the model is compiled or has an encoder; see :func:`syncheck.signals.require_watchable`.
    WrongTypeError
        If the model is no loaded model, the tokenizer no tokenizer, or the aligner no aligner.
    MismatchError
        If the aggregator expects features other than those of the config's schema, or another order.

    Notes
    -----
    Threads may share a monitor or a model; results are the same, to the last bit, as in a single thread. Different
    threads may advance a stream, but only one at a time. A watch belongs to the thread or asyncio task that enters its
    ``with`` block, or to a worker that runs in its context, as ``asyncio.to_thread`` arranges.

    While threads run, the model (weights, ``config``, device) and the truncation, padding and ``split_special_tokens``
    of the tokenizer must not change. Pass a ``generator`` to each call that samples: threads draw from torch's global
    source in an unpredictable order. Load models before threads start, since loading changes torch's default dtype for
    all of them.

    Examples
    --------
    >>> monitor = Monitor.from_pretrained("my-monitor", model=model, tokenizer=tokenizer)  # doctest: +SKIP
    >>> prompt = monitor.prompt(question="Who ...?", context=["passage", ...])  # doctest: +SKIP
    >>> report = monitor.generate(prompt, max_new_tokens=200)  # doctest: +SKIP
    >>> [(s.score, s.text) for s in report.sentences]  # doctest: +SKIP
    """

    @classmethod
    def fit(
        cls,
        records: Iterable[LabelledResponse | Mapping[str, Any]],
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        aggregator: TrainedKind | MonotoneLogisticRegression = "best",
        config: MonitorConfig | None = None,
        aligner: Aligner | None | Literal["generic"] = "generic",
        seed: int = 0,
        precision: float = PRECISION,
        kept: float = KEPT,
    ) -> Self:
        """Train a monitor on labelled responses.

        They need at least five groups, five faithful sentences and five unfaithful ones, because the thresholds are
        chosen by cross-validation with five folds, on out-of-fold scores; see
        :func:`syncheck.training.choose_thresholds`.

        Parameters
        ----------
        records
            Labelled responses, by this model or by others, also as dicts; see
            :func:`~syncheck.labelling.labelled_responses`.
        model, tokenizer
            The language model to watch, and its tokenizer.
        aggregator
            Kind of aggregator, or a monotone regression. ``"best"`` takes the one with the highest AUROC in grouped
            cross-validation if that is above the AUROC of ``generic`` beyond its interval, and otherwise ``"shrunk"``,
            or ``"generic"`` itself if that is no worse.
        config
            Features, sentences and prompts; None takes the defaults of :class:`~syncheck.MonitorConfig`.
        aligner
            Aligner of the monitor: ``"generic"`` takes that of ``Verifier()``, None leaves its features unmeasured.
        seed
            Seed of the aggregator and of the folds.
        precision
            Share of faithful sentences, in (0, 1], among those that get the verdict ``supported``.
        kept
            Share of the faithful sentences, in (0, 1], that stay above a decoder's tau_1; see
            :func:`syncheck.training.choose_thresholds`.

        Returns
        -------
        Monitor
            The ``comparison`` of its aggregator has the figures. A warning is logged if the chosen kind is not better
            beyond its interval, and one if the labels do not give the ``precision``.

        Raises
        ------
        InputError
            If the records cannot be used: there are too few, or none fits the window.
        TextGeneratorError
            If the aligner fails on a record.
        RecordError
            If a dict is not of the documented form, or labelled sentences overlap or do not lie in their response.

        Warns
        -----
        LeftOutWarning
            If responses are left out of training, for example because they do not fit the window or have no context.
        """
        from syncheck.aggregators.kinds import check_kind
        from syncheck.labelling.datasets import labelled_responses
        from syncheck.training.extract import measure
        from syncheck.training.fit import GENERIC_ROW, SHRUNK, fit_measured
        from syncheck.training.measured import left_out_lines
        from syncheck.training.sets import check_questions

        check_kind(aggregator, others=("best", SHRUNK, GENERIC_ROW))
        given = labelled_responses(records)
        check_questions(given)
        aligner = generic_aligner(model.device) if aligner == "generic" else aligner
        untrained = cls(model, tokenizer, config=config or MonitorConfig(), aligner=aligner)
        measured = measure(untrained, given)
        if lines := left_out_lines(measured):
            warnings.warn("not all responses are trained on\n" + "\n".join(lines), LeftOutWarning, stacklevel=2)
        options: dict[str, Any] = {"aggregator": aggregator, "seed": seed, "precision": precision, "kept": kept}
        trained = fit_measured(untrained, measured, **options)
        assert isinstance(trained, cls)
        return trained
