"""Markdown tables of the cost benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from comparison import PLAIN, SIGNALS, WAYS, Cost, Setting
from replay import FULL, Replay
from replay import SIGNALS as REPLAY_SIGNALS
from workload import Subject

FLOAT_BYTES = 4


def time_table(subject: Subject, setting: Setting, costs: Mapping[str, Cost]) -> str:
    """Write the times of one setting."""
    plain = costs[PLAIN]
    lines = [
        f"{_name(subject)}: {_setting(setting)}, {setting.tokens} new tokens, {setting.rounds} round(s); plain "
        f"generate takes {np.median(plain.ms_per_token):.1f} ms a step",
        "",
        "| times plain generate | first token | decode | quartiles | of the sums | turns |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, cost in costs.items():
        low, middle, high = np.percentile(cost.decode, [25, 50, 75])
        lines.append(
            f"| {name} | {np.median(cost.first):.2f} | {middle:.2f} | {low:.2f} to {high:.2f} "
            f"| {cost.seconds[0] / cost.seconds[1]:.2f} | {len(cost.decode)} |"
        )
    return "\n".join(lines) + "\n"


def summary_table(subject: Subject, settings: Sequence[Setting], costs: Sequence[Mapping[str, Cost]]) -> str:
    """Write decode time and peak memory of all settings side by side."""
    lines = [
        f"{_name(subject)}: decode time relative to plain generate (quartiles), and peak memory above its own",
        "",
        "| | " + " | ".join(_setting(setting) for setting in settings) + " |",
        "| --- |" + " --- |" * len(settings),
    ]
    lines += [f"| {name} | " + " | ".join(_cell(name, found) for found in costs) + " |" for name in WAYS]
    return "\n".join(lines) + "\n"


def _cell(name: str, costs: Mapping[str, Cost]) -> str:
    if name not in costs:
        return ""
    cost, plain = costs[name], costs[PLAIN]
    parts = []
    if name == PLAIN and cost.ms_per_token:
        parts.append(f"{np.median(cost.ms_per_token):.1f} ms a step")
    elif cost.decode:
        low, middle, high = np.percentile(cost.decode, [25, 50, 75])
        parts.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
    if cost.peak_mb is not None and plain.peak_mb is not None:
        parts.append(f"{cost.peak_mb:.0f} MB" if name == PLAIN else f"{cost.peak_mb - plain.peak_mb:+.0f} MB")
    return ", ".join(parts)


def length_table(subject: Subject, context: int, peaks: Mapping[int, Sequence[float]]) -> str:
    """Write the peaks for answers of several lengths, next to the memory of all logits of the answer."""
    vocabulary = subject.model.config.vocab_size
    lines = [
        f"{_name(subject)}: peak memory, MB; context {context:,}, batch 1",
        "",
        f"| new tokens | {PLAIN} | {SIGNALS} | difference | tokens x vocabulary, float32, would add |",
        "| --- | --- | --- | --- | --- |",
    ]
    for tokens, (plain, watched) in peaks.items():
        added = tokens * vocabulary * FLOAT_BYTES / 1e6
        lines.append(f"| {tokens} | {plain:.1f} | {watched:.1f} | {watched - plain:+.1f} | {added:.0f} |")
    return "\n".join(lines) + "\n"


def replay_table(subject: Subject, replay: Replay) -> str:
    """Write the cost of scoring a given answer, and the gain of a batch."""
    lines = [
        f"{_name(subject)}: {replay.tokens} given tokens over a context of {replay.context:,}, median (quartiles)",
        "",
        "| | times the two forward passes it needs |",
        "| --- | --- |",
    ]
    for name in (REPLAY_SIGNALS, FULL):
        low, middle, high = np.percentile(replay.ratios(name), [25, 50, 75])
        lines.append(f"| {name} | {middle:.2f} ({low:.2f} to {high:.2f}) |")
    single, batch = np.median(replay.one_by_one), np.median(replay.together)
    lines += [
        "",
        f"{replay.answers} such answers: {replay.answers / single:.2f} a second one by one, "
        f"{replay.answers / batch:.2f} in one batch of score_batch, {single / batch:.2f} times as many",
    ]
    return "\n".join(lines) + "\n"


def _name(subject: Subject) -> str:
    return f"{subject.name}, {str(subject.model.dtype).removeprefix('torch.')}"


def _setting(setting: Setting) -> str:
    return f"context {setting.context:,}, batch {setting.batch}"
