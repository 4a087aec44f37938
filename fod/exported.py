"""Export of FOD: a folder whose ``custom_generate/generate.py`` is run by ``model.generate``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from fod.drop_in import check_ids, prompts_of
from fod.generator import FODGenerator, FODOutput
from syncheck import Monitor, RagPrompt
from syncheck.base.errors import InputError, WrongTypeError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GENERIC = "generic"
_FIRST_LINE = '"""Faithfulness-oriented decoding (FOD), written by `syncheck export-generate`."""'
_FOLDER = "custom_generate"
_PARAMETERS = ("backtrack_threshold", "prune_threshold", "beam_size", "samples_per_step", "propose")
_MODULE = """{first_line}

import fod
import syncheck  # transformers looks here for what has to be installed

MONITOR = {monitor}
REVISION = {revision}


def generate(model, **arguments):
    arguments.setdefault("monitor", MONITOR)
    arguments.setdefault("monitor_revision", REVISION)
    return fod.custom_generate(model, **arguments)
"""
_REQUIREMENTS = "syncheck>={version}\n"
_CARD = """---
library_name: transformers
tags:
- custom_generate
- faithfulness
---

# Faithfulness-oriented decoding

Each sentence of an answer is scored for faithfulness to the passages while it is written; one that scores too low is
taken back, and the search continues from there. Needs `pip install syncheck`. Monitor: {described}.

```python
outputs = model.generate(
    custom_generate=REPO_OR_FOLDER,
    trust_remote_code=True,
    tokenizer=tokenizer,
    question="When did the bridge open?",
    context=["The Avon bridge opened in 1967. It has two lanes."],
    max_new_tokens=200,
)
```

| argument | |
| --- | --- |
| `question`, `context`, `tokenizer` | the question and its passages, from which the prompt is built |
| `prompt` | in their place: a prompt from `monitor.prompt(...)`, or a list of them |
| `monitor`, `monitor_revision` | a `syncheck.Monitor` of this model, or the folder or repository of one |
| `seed` | of all sampling |
| {parameters} | as of `fod.FODGenerator` |
| `streamer` | is given the prompt and then sentences, each when it can no longer be taken back |
| `return_dict_in_generate` | returns the ids with the report of all sentences and their scores |

All other arguments are those of `model.generate`.
"""


def custom_generate(
    model: PreTrainedModel,
    *,
    prompt: RagPrompt | Sequence[RagPrompt] | None = None,
    question: str | None = None,
    context: str | Sequence[str] | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    monitor: Monitor | str = GENERIC,
    monitor_revision: str | None = None,
    inputs: Tensor | None = None,
    input_ids: Tensor | None = None,
    attention_mask: Tensor | None = None,
    **kwargs: Any,
) -> Tensor | FODOutput | list[FODOutput]:
    """Serve ``model.generate(custom_generate=DIR, trust_remote_code=True, ...)`` for an exported folder.

    Parameters
    ----------
    prompt
        From ``monitor.prompt``, with a context, or a list of them.
    question, context
        Question and passages, in place of ``prompt``.
    tokenizer
        The model's tokenizer; not needed if ``monitor`` is a :class:`syncheck.Monitor`, which has its own.
    monitor, monitor_revision
        A monitor of this model; ``"generic"`` for the bundled one; or a folder or repository, and its revision, that
        :meth:`syncheck.Monitor.from_pretrained` loads. Loading takes a moment: for many calls, pass a
        :class:`syncheck.Monitor`.
    inputs, input_ids, attention_mask
        The ids of the prompt with their mask, or None.
    **kwargs
        Arguments of :meth:`FODGenerator.generate`, and parameters of :class:`FODGenerator`, by name.

    Returns
    -------
    Tensor, FODOutput or list of FODOutput
        As :meth:`FODGenerator.generate`.

    Raises
    ------
    InputError
        If neither a prompt nor question, context and tokenizer are given, or the ids are not those of the prompt.
    WrongTypeError
        If ``monitor`` is neither a monitor nor a name.
    """
    known = _monitor_of(model, tokenizer, monitor, monitor_revision)
    if prompt is None:
        if question is None or context is None:
            raise InputError("FOD needs the passages: pass question= and context=, or prompt= from monitor.prompt(...)")
        prompt = known.prompt(question=question, context=context)
    elif question is not None or context is not None:
        raise InputError("pass either prompt=, or question= and context=")
    ids = inputs if input_ids is None else input_ids
    if ids is not None:
        check_ids(ids, attention_mask, prompts_of(prompt))
    parameters = {name: kwargs.pop(name) for name in _PARAMETERS if name in kwargs}
    given = {name: value for name, value in kwargs.items() if value is not None}
    generator = FODGenerator(model, known.tokenizer, known, **parameters)
    return generator.generate(prompt, **given)


def _monitor_of(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, monitor: Monitor | str, revision: str | None
) -> Monitor:
    if isinstance(monitor, Monitor):
        return monitor
    if not isinstance(monitor, str | Path):
        raise WrongTypeError(f"monitor must be a Monitor, or the name of one; found {type(monitor).__name__}")
    if tokenizer is None:
        raise InputError("pass the model's tokenizer as tokenizer=, or a syncheck.Monitor as monitor=")
    if monitor == GENERIC:
        return Monitor(model, tokenizer)
    return Monitor.from_pretrained(monitor, model=model, tokenizer=tokenizer, revision=revision)


def export_generate(
    directory: str | Path, *, monitor: str | Path = GENERIC, monitor_revision: str | None = None
) -> None:
    """Write a folder in the Hub's ``custom_generate`` form that makes FOD the ``generate`` of any model.

    Parameters
    ----------
    directory
        The folder, which is created if needed; its name is then the argument ``custom_generate``.
    monitor, monitor_revision
        ``"generic"`` for the bundled monitor; a repository with a monitor, and its revision; or a monitor's folder,
        which is not copied and must stay where it is.

    Raises
    ------
    InputError
        If a file is in the way that this function did not write, or that was changed since, or if the folder cannot be
        written.
    """
    name = str(Path(monitor).resolve()) if Path(monitor).is_dir() else str(monitor)
    values = {
        "first_line": _FIRST_LINE,
        "monitor": repr(name),
        "revision": repr(monitor_revision),
        "version": version("syncheck"),
        "described": "the bundled `generic`" if name == GENERIC else f"`{name}`",
        "parameters": ", ".join(f"`{parameter}`" for parameter in _PARAMETERS),
    }
    target = Path(directory) / _FOLDER
    files = {
        target / "generate.py": _MODULE,
        target / "requirements.txt": _REQUIREMENTS,
        Path(directory) / "README.md": _CARD,
    }
    for path, template in files.items():
        if (path.exists() or path.is_symlink()) and not _is_written_from(template, path):
            raise InputError(
                f"{str(path)!r} exists and is not as syncheck writes it; move it elsewhere, or pass another folder"
            )
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, template in files.items():
            path.write_text(template.format_map(values), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {error.filename!r}: {error.strerror}; pass another folder") from error


def _is_written_from(template: str, path: Path) -> bool:
    """Tell whether a file is this template with any values of any version, and nothing else."""
    fixed = (re.escape(text) for text, *_ in Formatter().parse(template))
    try:
        return path.is_file() and re.fullmatch(".*".join(fixed), path.read_text(encoding="utf-8")) is not None
    except (OSError, ValueError):  # ValueError: not UTF-8 text
        return False
