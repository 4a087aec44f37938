"""Monitors on disk and on the Hugging Face Hub: loaded for the model that they measure, pushed with a card."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from syncheck import checkpoint
from syncheck.aligners import Aligner
from syncheck.base.errors import CheckpointError, InputError, MismatchError, WrongTypeError, describe_failure
from syncheck.base.files import read_object
from syncheck.base.pretrained import fingerprint, require_tokenizer, same_weights
from syncheck.checkpoint import fetched, is_repository
from syncheck.config import MonitorConfig
from syncheck.features.schemas import needs_signals
from syncheck.monitor_base import MonitorParts
from syncheck.signals import LidReferences, require_watchable

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_CARD = """
# {title}

Scores every sentence of a retrieval-augmented answer for faithfulness to its passages: P(faithful), 1 is faithful.
A monitor of `syncheck` {version}, for {base}.

```python
from syncheck import Monitor

monitor = Monitor.from_pretrained({repo_id!r}, model=model, tokenizer=tokenizer)
report = monitor.score(monitor.prompt(question=question, context=passages), answer)
```

| | |
| --- | --- |
| features | `{schema}`, {features} of them |
| aggregator | {aggregator} |
| aligner | {aligner} |
| thresholds | `backtrack_threshold` {backtrack:.3f}, `prune_threshold` {prune:.3f} |
| trained on | {trained_on} |
| on held-out questions of its training | {compared} |

## Evaluation

{evaluation}
"""


def model_card(
    monitor: MonitorParts,
    repo_id: str,
    *,
    evaluation: Mapping[str, Any] | str | Path | None = None,
    base_model: str | None = None,
    licence: str | None = None,
) -> str:
    """Write the model card of a monitor, with metadata and the tables of its evaluation."""
    from huggingface_hub import ModelCardData

    if needs_signals(monitor.config.schema) and not base_model:
        base_model = str(monitor.model.config.name_or_path)
        if not is_repository(base_model):
            raise InputError(
                "the card of this monitor must name the repository of the model that it measures, which is not known "
                "here; pass base_model='owner/name'"
            )
    aligner = None if monitor.aligner is None else monitor.aligner.name
    if aligner is not None and Path(aligner).exists():
        raise InputError(
            f"the monitor's aligner is {aligner!r} on this machine, which other machines do not have; push the "
            "aligner too, and train the monitor with the name of the aligner's repository"
        )
    metadata = ModelCardData(
        base_model=base_model,
        library_name="syncheck",
        license=licence,
        metrics=None if evaluation is None else ["roc_auc"],
        tags=["faithfulness", "hallucination-detection", "rag"],
    )
    aggregator = "none" if monitor.aggregator is None else monitor.aggregator.kind
    text = _CARD.format(
        title=repo_id.rpartition("/")[2],
        version=version("syncheck"),
        base="any model, whose answers it reads as text" if base_model is None else f"`{base_model}`",
        repo_id=repo_id,
        schema=monitor.schema.version,
        features=len(monitor.schema.names),
        aggregator=f"`{aggregator}`",
        aligner="none" if aligner is None else f"`{aligner}`",
        backtrack=monitor.config.backtrack_threshold,
        prune=monitor.config.prune_threshold,
        trained_on=f"{len(monitor.trained_on)} digests of questions" if monitor.trained_on else "not recorded",
        compared="not recorded" if monitor.aggregator is None else _compared(monitor.aggregator.comparison),
        evaluation="Not evaluated." if evaluation is None else "\n\n".join(_tables(evaluation)),
    )
    return f"---\n{metadata.to_yaml()}\n---\n{text}"


def _compared(comparison: Mapping[str, Any] | None) -> str:
    """Write what an aggregator was chosen among, with the AUROC of each."""
    if comparison is None:
        return "not recorded"
    aurocs = ", ".join(f"`{name}` {figures[0]:.3f}" for name, figures in comparison["auroc"].items())
    return f"AUROC of {aurocs}; `{comparison['chosen']}` was chosen"


def _tables(evaluation: Mapping[str, Any] | str | Path) -> list[str]:
    """Draw a Markdown table for each set of an evaluation, over all sentences of the set."""
    if isinstance(evaluation, str | Path):
        evaluation = read_object(Path(evaluation))
    if not isinstance(evaluation, Mapping):
        raise WrongTypeError(
            f"evaluation must be the JSON of `syncheck evaluate`, or its file; found {type(evaluation).__name__}"
        )
    tables = []
    for name, table in evaluation.items():
        rows = table.get("rows") if isinstance(table, Mapping) else None
        if not rows:
            continue
        try:
            tables.append("\n".join(_table(name, [row for row in rows if row["subset"] == "all"])))
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"evaluation[{name!r}] is not a table of `syncheck evaluate`; pass its --output"
            ) from error
    if not tables:
        raise InputError("evaluation holds no table; pass the JSON that `syncheck evaluate --output FILE` wrote")
    return tables


def _table(name: str, rows: list[Mapping[str, Any]]) -> list[str]:
    return [
        f"{name} set: {rows[0]['sentences']} sentences, {rows[0]['unfaithful']} unfaithful; 95 % intervals.\n",
        "| system | AUROC | average precision (unfaithful) | expected calibration error |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row['system']} | {_figure(row, 'auroc', '')} | {_figure(row, 'auprc', 'auprc_')} "
            f"| {_figure(row, 'ece', 'ece_')} |"
            for row in rows
        ),
    ]


def _figure(row: Mapping[str, Any], name: str, prefix: str) -> str:
    value, low, high = row[name], row[f"{prefix}low"], row[f"{prefix}high"]
    if value is None:
        return "-"
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


class StoredMonitor(MonitorParts):
    """Base of :class:`syncheck.Monitor`: saves to and loads from a folder, on this machine or on the Hub."""

    def save_pretrained(self, directory: str | Path) -> None:
        """Write config, aggregator and LID references to a folder, which is made if needed.

        The model and the aligner are named, not copied.
        """
        checkpoint.write(
            directory,
            config=self.config,
            aggregator=self.aggregator,
            aligner=self.aligner,
            trained_on=self.trained_on,
            # One that reads text alone serves any model.
            model=fingerprint(self.model, self.tokenizer) if needs_signals(self.config.schema) else None,
            lid_references=self.lid_references,
        )

    def push_to_hub(
        self,
        repo_id: str,
        *,
        evaluation: Mapping[str, Any] | str | Path | None = None,
        base_model: str | None = None,
        licence: str | None = None,
        private: bool | None = None,
        revision: str | None = None,
        commit_message: str | None = None,
        token: str | bool | None = None,
    ) -> str:
        """Upload the files that :meth:`save_pretrained` writes, with a model card, to the Hugging Face Hub.

        Parameters
        ----------
        repo_id
            ``owner/name``; created if it does not exist.
        evaluation
            For the card: the JSON of ``syncheck evaluate --output``, or the path of its file.
        base_model
            For the card: the repository of the monitored model. None takes the name by which the model was loaded, and
            no name for a monitor that reads text alone.
        licence
            For the card: an identifier known to the Hub, such as ``apache-2.0``.
        private
            True makes a new repository private; None takes the owner's default.
        revision
            A branch, created if it does not exist; None is the main one.
        commit_message
            None takes "Upload monitor".
        token
            Access token; None takes that of ``hf auth login``.

        Returns
        -------
        str
            Hash of the commit, which :meth:`from_pretrained` takes as ``revision``.

        Raises
        ------
        CheckpointError
            If the Hub cannot be reached or refuses the upload.
        InputError
            If the model's repository is not known, the aligner is a folder on this machine, or the evaluation has no
            table.
        WrongTypeError
            If the evaluation has the wrong type.
        """
        import huggingface_hub

        card = model_card(self, repo_id, evaluation=evaluation, base_model=base_model, licence=licence)
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            (Path(folder) / "README.md").write_text(card, encoding="utf-8")
            try:
                huggingface_hub.create_repo(repo_id, private=private, token=token, exist_ok=True)
                if revision is not None:
                    huggingface_hub.create_branch(repo_id, branch=revision, token=token, exist_ok=True)
                commit = huggingface_hub.upload_folder(
                    repo_id=repo_id,
                    folder_path=folder,
                    commit_message=commit_message or "Upload monitor",
                    revision=revision,
                    token=token,
                )
            except (OSError, ValueError) as error:
                raise CheckpointError(
                    f"cannot push to {repo_id!r}: {describe_failure(error)}. Log in with `hf auth login`, or pass a "
                    "token that may write there"
                ) from error
        return str(commit.oid)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | Path,
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        aligner: Aligner | None = None,
        trusted: Collection[str] = (),
        revision: str | None = None,
        **hub_options: Any,
    ) -> Self:
        """Load a monitor that :meth:`save_pretrained` or :meth:`push_to_hub` wrote; runs no code from there.

        Parameters
        ----------
        model, tokenizer
            The model that the monitor was trained with, and its tokenizer.
        directory, aligner, trusted, revision, **hub_options
            As in :meth:`Verifier.from_pretrained`, whose errors this raises too.

        Raises
        ------
        MismatchError
            If the monitor was trained with another model, tokenizer or aligner.
        """
        require_watchable(model)
        require_tokenizer(tokenizer)
        folder = fetched(directory, revision=revision, **hub_options)
        stored = checkpoint.read(folder)
        if needs_signals(stored.config.schema):
            _check_model(folder, stored.values["model"] or {}, fingerprint(model, tokenizer))
        aligner = stored.aligner(aligner, device=model.device)
        has_references = stored.values["lid_references"]
        return cls(
            model,
            tokenizer,
            config=stored.config,
            aggregator=stored.aggregator(trusted=trusted),
            lid_references=_references(folder, stored.config, model) if has_references else None,
            aligner=aligner,
            trained_on=stored.trained_on,
            name=stored.name,
        )


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
