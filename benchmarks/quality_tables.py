"""Tables of the comparison of decoders: the paper's Table 2, every figure with its interval, and the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decoding import DecoderFigures, Estimate, EvaluatedAnswer, decoder_figures, difference

from syncheck.evaluation.metrics import with_interval
from syncheck.evaluation.tables import aligned

Answers = Mapping[str, Sequence[EvaluatedAnswer]]


def layout_of_table_2(answers: Answers) -> list[str]:
    """Faithfulness and informativeness by task, and their mean over the tasks."""
    tasks = list(dict.fromkeys(each.task for given in answers.values() for each in given))
    found = [decoder_figures(_of_task(answers, task), longest=1) for task in tasks]
    head = ["", *(cell for task in tasks for cell in (task, "")), *(["Average", ""] if len(tasks) > 1 else [])]
    names = ["Method", *["Faith.", "Info."] * (len(head) // 2)]
    rows = [head, names]
    for name in answers:
        pairs = [(figures[name].faithfulness.value, figures[name].informativeness.value) for figures in found]
        if len(tasks) > 1:
            pairs.append((_mean([pair[0] for pair in pairs]), _mean([pair[1] for pair in pairs])))
        rows.append([name, *(cell for faith, info in pairs for cell in (_number(faith, ".3f"), f"{info:.1f}"))])
    return aligned(rows)


def figures_table(figures: Mapping[str, DecoderFigures]) -> list[str]:
    """Every mean with its interval."""
    head = ["Method", "faithfulness", "propositions", "supported", "sentences", "tokens", "tokens decoded", "seconds"]
    rows = [[*head, "backtracked", "empty", "near-repeats"]]
    for name, f in figures.items():
        cells = [_cell(f.faithfulness), _cell(f.informativeness, ".2f"), _cell(f.supported, ".2f")]
        cells += [_cell(f.sentences, ".2f")]
        cells += [_cell(f.tokens, ".0f"), _cell(f.sampled_tokens, ".0f"), _cell(f.seconds, ".2f")]
        rows.append([name, *cells, _cell(f.backtracked, ".2f"), f"{f.empty} of {f.prompts}", f"{f.repeats}"])
    return aligned(rows)


def cut_table(figures: Mapping[str, DecoderFigures]) -> list[str]:
    """Faithfulness@L: of the first L sentences."""
    longest = max(len(found.faithfulness_at) for found in figures.values())
    rows = [["Method", *(f"faithfulness@{n}" for n in range(1, longest + 1))]]
    rows += [[name, *map(_cell, found.faithfulness_at)] for name, found in figures.items()]
    return aligned(rows)


def differences_table(answers: Answers, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Each pair's decoder against its baseline."""
    head = ["against", "faithfulness", "relative", "where both answer", "unfaithful share", "propositions"]
    rows = [["", *head, "relative", "supported", "sentences kept"]]
    for name, baseline in pairs:
        d = difference(name, baseline, answers)
        cells = [_cell(d.faithfulness, "+.3f"), _cell(d.faithfulness_relative, "+.1%")]
        cells += [_cell(d.faithfulness_where_both, "+.3f"), _cell(d.unfaithful_share, ".2f")]
        cells += [_cell(d.informativeness, "+.2f"), _cell(d.informativeness_relative, "+.1%")]
        rows.append([name, baseline, *cells, _cell(d.supported, "+.2f"), _cell(d.sentences_kept, ".1%")])
    return aligned(rows)


def _of_task(answers: Answers, task: str) -> dict[str, list[EvaluatedAnswer]]:
    return {name: [each for each in given if each.task == task] for name, given in answers.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _cell(estimate: Estimate, spec: str = ".3f") -> str:
    return with_interval(estimate.value, estimate.low, estimate.high, spec)


def _number(value: float, spec: str) -> str:
    return "-" if value != value else f"{value:{spec}}"
