"""How often the bounds of a score decide at a threshold, against the number of likeliest tokens a server tells.

    python benchmarks/endpoint_bounds.py --questions 30

The bundled model answers bundled questions; its answers are measured exactly, and then as a server that tells the k
likeliest tokens would, in this process. Monitors are trained on planted labels: each sentence of the answers with its
own question's passages (faithful) and with another's (not), so that the scores spread as real ones do. ``decided`` is
the share of sentences whose bounds lie on one side of the threshold; ``inside`` that of exact scores within the bounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from syncheck import Monitor, MonitorConfig, RagPrompt
from syncheck.aggregators import Aggregator
from syncheck.config import AggregatorKind
from syncheck.endpoints import EndpointReplay, KnownTokens
from syncheck.kit import demo_questions, load_kit

SCHEMA = "paper-no-lid.v1"
KINDS: tuple[AggregatorKind, ...] = ("lr", "xgb", "ensemble")
KNOWN = (1, 4, 20, 100, 1000)


class LocalServer:
    """A model in this process that tells what a server would."""

    name = "local"

    def __init__(self, monitor: Monitor) -> None:
        self._model = monitor.model

    def replay(self, prompt_ids: Sequence[int], token_ids: Sequence[int], *, top: int) -> KnownTokens:
        """Return the log-probabilities of the tokens and of the likeliest in each place."""
        ids = torch.tensor([[*prompt_ids, *token_ids]])
        with torch.inference_mode():
            rows = self._model(input_ids=ids).logits[0, len(prompt_ids) - 1 : -1].double().log_softmax(-1)
        best = rows.topk(top, dim=-1)
        own = rows.gather(-1, torch.tensor(token_ids)[:, None])[:, 0]
        return KnownTokens(own.numpy(), best.indices.numpy(), best.values.numpy())


def planted(monitor: Monitor, prompts: Sequence[RagPrompt], responses: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of answers with their own passages, and with those of another question."""
    rows, labels = [], []
    for label, shift in ((1, 0), (0, 1)):
        for place, response in enumerate(responses):
            passages = prompts[(place + shift) % len(prompts)].passages
            prompt = monitor.prompt(question=prompts[place].question, context=passages)
            for sentence in monitor.score(prompt, response, signals=True).sentences:
                if sentence.status in ("scored", "no_aggregator"):
                    rows.append([np.nan if v is None else v for v in sentence.features.values()])
                    labels.append(label)
    return np.array(rows), np.array(labels)


def main(words: Sequence[str] | None = None) -> None:
    """Answer, train, bound, print a line for each kind and k."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30, help="(%(default)s)")
    parser.add_argument("--tokens", type=int, default=80, help="longest answer (%(default)s)")
    parser.add_argument("--known", type=int, nargs="+", default=KNOWN, metavar="K", help="(%(default)s)")
    parser.add_argument("--threshold", type=float, default=0.7, help="(%(default)s)")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    kit = load_kit("generation")
    bare = Monitor(kit.model, kit.tokenizer, config=MonitorConfig(schema=SCHEMA), aligner=kit.aligner)
    questions = demo_questions()[: args.questions]
    prompts = [bare.prompt(question=q.question, context=q.passages) for q in questions]
    responses = [report.response for report in bare.generate(prompts, max_new_tokens=args.tokens)]
    X, y = planted(bare, prompts, responses)
    print(f"{len(y)} sentences, {int(y.sum())} with their own passages; {SCHEMA}; threshold {args.threshold}")
    print("| aggregator | k | decided | inside | median width |", "| --- | --- | --- | --- | --- |", sep="\n")
    for kind in KINDS:
        monitor = Monitor(
            kit.model,
            kit.tokenizer,
            config=bare.config,
            aggregator=Aggregator.fit(X, y, schema=bare.schema, kind=kind),
            aligner=kit.aligner,
        )
        exact = [s.score for p, r in zip(prompts, responses, strict=True) for s in monitor.score(p, r).sentences]
        for k in args.known:
            found = EndpointReplay(monitor, LocalServer(monitor), top=k, workers=1).certify(prompts, responses)
            sentences = [sentence for answer in found for sentence in answer]
            pairs = [(s, e) for s, e in zip(sentences, exact, strict=True) if e is not None]
            decided = np.mean([s.reaches(args.threshold) is not None for s, _ in pairs])
            inside = np.mean([s.low - 1e-6 <= e <= s.high + 1e-6 for s, e in pairs])
            width = np.median([s.high - s.low for s, _ in pairs])
            print(f"| {kind} | {k} | {decided:.0%} | {inside:.0%} | {width:.3f} |", flush=True)


if __name__ == "__main__":
    main()
