"""Times FOD before a running vLLM that serves the kit's model: waits, tokens, repairs, and what its cache spares.

Write the model to a folder, and serve it in vLLM's own environment (``benchmarks/vllm_parity.py`` says how that is
made), here with one thread on a processor:

    python -c "from syncheck.kit import kit_language_model as kit
    for part in kit(): part.save_pretrained('/tmp/kit-model')"
    OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 /tmp/vllm/bin/python \
        -m vllm.entrypoints.openai.api_server --model /tmp/kit-model --served-model-name kit --dtype float32 \
        --host 127.0.0.1 --port 8000 --max-model-len 4096
    python benchmarks/upstream_fod.py --url http://127.0.0.1:8000/v1 --questions 20

The questions are those of the open part of ``benchmarks/kit_answers`` whose passages were written for it, one of each
set. Each is answered by a plain stream, then with every way of repair; seconds are those of a client, medians over the
questions. The plain stream comes first, and leaves the prompt in the server's cache. What came from there is read from
the server's own counters, since a request that is cancelled reports none.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import httpx
import torch
from kit_answers import QuestionSet, load_questions
from machine import describe_machine

from fod import Budget, FODConfig, RepairPolicy, UpstreamFOD
from syncheck import EndEvent, SentenceEvent, Verifier
from syncheck.results import ContinuationRequest
from syncheck.serving.repairing import ServerContinuations
from syncheck.serving.upstream import Upstream

WAYS: tuple[RepairPolicy, ...] = ("mark", "drop", "search")
_COUNTERS = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Answered:
    """An answer: seconds to its first sentence and to its end, and what the server wrote for it."""

    first: float
    total: float
    written: int
    requests: int = 1
    streamed: int = 0
    """Sentences of the stream that were scored."""
    failing: int = 0
    """Those below tau 1."""
    replaced: int = 0
    """Sentences of the answer that stage 2 of the search has written."""
    stop: str = ""


def main(words: Sequence[str] | None = None) -> None:
    """Answer the questions in each way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="kit", help="the server's name of the model (%(default)s)")
    parser.add_argument("--questions", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--tokens", type=int, default=72, help="longest answer (%(default)s)")
    parser.add_argument("--samples", type=int, default=6, help="of a round of the search (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="most rounds of an answer (%(default)s)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="(all)")
    args = parser.parse_args(words)
    torch.set_num_threads(1)
    conditions = ", ".join(describe_machine("cpu", 1, "wall").values())
    print(f"{conditions}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    asyncio.run(_compared(args))


async def _compared(args: argparse.Namespace) -> None:
    upstream, verifier = Upstream(args.url, timeout=600.0), Verifier()
    sets = [one for one in load_questions(None, None) if one.part == "open"][: args.questions]
    answers: dict[str, list[Answered]] = defaultdict(list)
    cached: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    try:
        for number, one in enumerate(sets, 1):
            for way in ("plain", *args.ways):
                before = await _counters(args.url)
                if way == "plain":
                    answers[way].append(await _plain(upstream, verifier, one, args))
                else:
                    answers[way].append(await _repaired(upstream, verifier, one, way, args))
                after = await _counters(args.url)
                cached[way] = [cached[way][n] + after[n] - before[n] for n in (0, 1)]
            print(f"{number} of {len(sets)}, load {os.getloadavg()[0]:.1f}", flush=True)
    finally:  # of those so far, if it is interrupted
        await upstream.close()
        _print_table(answers, cached, args)


def _print_table(
    answers: Mapping[str, Sequence[Answered]], cached: Mapping[str, Sequence[int]], args: argparse.Namespace
) -> None:
    names = ("streamed", "failing", "replaced")
    print(f"\nat most {args.tokens} tokens, {args.samples} samples, {args.rounds} rounds")
    print("way     answers   first  total  tokens  requests  from cache  below tau 1  replaced  ended by a budget")
    for way, each in answers.items():
        asked, hits = cached[way]
        streamed, failing, replaced = (sum(getattr(one, name) for one in each) for name in names)
        print(
            f"{way:8}{len(each):7}{median(one.first for one in each):8.1f}{median(one.total for one in each):7.1f}"
            f"{sum(one.written for one in each) / len(each):8.0f}{sum(one.requests for one in each) / len(each):10.1f}"
            f"{hits / max(asked, 1):12.0%}"
            + f"{failing:7} of {streamed:3}{replaced:10}{sum(one.stop == 'budget' for one in each):19}"
            * bool(streamed)
        )


def _chat(one: QuestionSet, args: argparse.Namespace) -> dict[str, Any]:
    content = "\n\n".join([*one.passages, f"Answer from these passages. {one.questions[0]}"])
    return {"model": args.model, "messages": [{"role": "user", "content": content}], "max_tokens": args.tokens}


async def _plain(upstream: Upstream, verifier: Verifier, one: QuestionSet, args: argparse.Namespace) -> Answered:
    """Stream an answer, as a client without any check; its first sentence has arrived when the next one begins."""
    started, written, first, text = time.perf_counter(), 0, 0.0, ""
    async for piece in ServerContinuations(upstream, _chat(one, args))(ContinuationRequest()):
        text += piece.text
        written = max(written, int((piece.usage or {}).get("completion_tokens", 0)))
        if not first and len(verifier.cut(text)) > 1:
            first = time.perf_counter() - started
    total = time.perf_counter() - started
    return Answered(first or total, total, written)


async def _repaired(
    upstream: Upstream, verifier: Verifier, one: QuestionSet, way: RepairPolicy, args: argparse.Namespace
) -> Answered:
    config = FODConfig(samples_per_step=args.samples) if way == "search" else None
    decoder = UpstreamFOD(
        verifier,
        ServerContinuations(upstream, _chat(one, args)),
        repair=way,
        config=config,
        budget=Budget(rounds=args.rounds),
    )
    started, first = time.perf_counter(), 0.0
    async for event in decoder.stream_async(question=one.questions[0], passages=list(one.passages)):
        now = time.perf_counter() - started
        if not first and isinstance(event, (SentenceEvent, EndEvent)):
            first = now
        if isinstance(event, EndEvent):
            output = event.output
    result, kept = output.search, len(output.report.sentences)
    dropped = [sentence for sentence in output.dropped if not sentence.truncated]  # not what the limit cut off
    replaced = kept - len(result.greedy.sentences) if way == "search" else 0
    streamed = kept - replaced + len(dropped)
    spent, failing = output.spent, len(dropped) + len(output.marked)
    return Answered(first, now, spent.completion_tokens, spent.requests, streamed, failing, replaced, result.stop)


async def _counters(url: str) -> Sequence[int]:
    """Read how many tokens the server has looked for in its prefix cache, and how many it had."""
    async with httpx.AsyncClient() as client:
        told = (await client.get(url.removesuffix("/v1") + "/metrics", timeout=60.0)).text
    values: Mapping[str, str] = dict(_COUNTERS.findall(told))
    return [int(float(values[name])) for name in ("queries", "hits")]


if __name__ == "__main__":
    main()
