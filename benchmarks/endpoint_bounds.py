"""Share of sentences whose score's bounds decide at a threshold, against the number of likeliest tokens a server tells.

    python benchmarks/kit_answers.py records --part open $DATA --output open.jsonl
    syncheck features --schema syncheck.v6 --line-breaks lists --abbreviations english --data open.jsonl \
        --output open.parquet
    python benchmarks/endpoint_bounds.py --train open.parquet

Aggregators are trained on labelled answers of the kit's model. It then answers some of the questions anew; its answers
are measured exactly, and as a server that tells the k likeliest tokens would, in this process. A column for each
threshold has the share of sentences whose bounds lie on one side of it; ``inside`` that of exact scores within the
bounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from syncheck import Monitor, MonitorConfig, load_kit
from syncheck.aggregators import Aggregator
from syncheck.aggregators.kinds import AggregatorKind
from syncheck.endpoints import EndpointReplay, KnownTokens
from syncheck.labelling.responses import prompt_of
from syncheck.training import labelled_set, read_parquet

SCHEMA = "paper-no-lid.v1"
KINDS: tuple[AggregatorKind, ...] = ("lr", "xgb", "ensemble")
KNOWN = (1, 4, 20, 100, 1000)
THRESHOLDS = (0.7, 0.85, 0.9, 0.95)


class LocalServer:
    """A model in this process that tells what a server would."""

    name = "local"

    def __init__(self, monitor: Monitor, most: int) -> None:
        self._model, self._most = monitor.model, most
        self._known: dict[tuple[int, ...], KnownTokens] = {}

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Return the log-probabilities of the tokens and of the likeliest in each place."""
        key = (*prompt_ids, -1, *token_ids)
        if key not in self._known:
            self._known[key] = self._read(prompt_ids, token_ids)
        whole = self._known[key]
        return KnownTokens(whole.log_prob, whole.top_ids[:, :top], whole.top[:, :top])

    def _read(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> KnownTokens:
        ids = torch.tensor([[*prompt_ids, *token_ids]])
        with torch.inference_mode():
            rows = self._model(input_ids=ids).logits[0, len(prompt_ids) - 1 : -1].double().log_softmax(-1)
        best = rows.topk(self._most, dim=-1)
        own = rows.gather(-1, torch.tensor(token_ids)[:, None])[:, 0]
        return KnownTokens(own.numpy(), best.indices.numpy(), best.values.numpy())


def main(words: Sequence[str] | None = None) -> None:
    """Train, answer, bound, print a line for each kind and k."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, metavar="FILE", help="measured sentences, Parquet")
    parser.add_argument("--questions", type=int, default=30, help="(%(default)s)")
    parser.add_argument("--tokens", type=int, default=80, help="longest answer (%(default)s)")
    parser.add_argument("--known", type=int, nargs="+", default=KNOWN, metavar="K", help="(%(default)s)")
    parser.add_argument("--thresholds", type=float, nargs="+", default=THRESHOLDS, metavar="T", help="(%(default)s)")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    kit = load_kit("generation")
    bare = Monitor(kit.model, kit.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=kit.aligner)
    server = LocalServer(bare, max(args.known))
    training = labelled_set(read_parquet(args.train), "strict")
    columns = [training.measured.schema.names.index(name) for name in bare.schema.names]
    X = training.measured.values[training.used][:, columns]
    records = {record.group: record for record in training.measured.records}
    prompts = [prompt_of(bare, record) for record in list(records.values())[: args.questions]]
    responses = [report.response for report in bare.generate(prompts, max_new_tokens=args.tokens)]
    print(f"{len(responses)} answers; {SCHEMA}, trained on {len(X)} sentences")
    print("| aggregator | k |", *(f"{t:g} |" for t in args.thresholds), "inside | median width |")
    print("| --- |" + " --- |" * (len(args.thresholds) + 3))
    for kind in KINDS:
        monitor = Monitor(
            kit.model,
            kit.tokenizer,
            config=bare.config,
            aggregator=Aggregator.fit(X, training.y, schema=bare.schema, kind=kind),
            aligner=kit.aligner,
        )
        exact = [s.score for p, r in zip(prompts, responses, strict=True) for s in monitor.score(p, r).sentences]
        for k in args.known:
            found = EndpointReplay(monitor, server, top=k, workers=1).certify(prompts, responses)
            sentences = [sentence for answer in found for sentence in answer]
            pairs = [(s, e) for s, e in zip(sentences, exact, strict=True) if e is not None]
            shares = [np.mean([s.reaches(t) is not None for s, _ in pairs]) for t in args.thresholds]
            inside = np.mean([s.low - 1e-6 <= e <= s.high + 1e-6 for s, e in pairs])
            width = np.median([s.high - s.low for s, _ in pairs])
            row = [kind, str(k), *(f"{share:.0%}" for share in shares), f"{inside:.1%}", f"{width:.3f}"]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
