"""Cost and precision of the signals themselves: tokenwise statistics and LID, without a model.

    python benchmarks/signals.py --threads 1
    python benchmarks/signals.py --device cuda

Tokenwise: one sentence of 26 tokens against vocabularies of 32,000 to 256,000, next to the textbook way (two
``log_softmax``, sums of products); errors are the largest absolute ones against float64 on the same logits. LID: 2,000
references at three layers, for one sentence and for eight at once; errors are the largest relative ones against
distances and logarithms in float64. Medians of repeated calls after a warm-up, and the fastest; on a GPU each is timed
until the device has finished, and LID is also run so that any wait of the host for the device is an error.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from machine import describe_machine
from torch import Tensor

from syncheck.signals import LidReferences, token_statistics

VOCABULARIES = (32_000, 128_256, 256_000)
SENTENCE_TOKENS = 26
REFERENCES = 2_000
LAYERS = (15, 16, 17)
WIDTHS = (768, 4_096)
SENTENCES = (1, 8)
NAMES = ("log_prob", "entropy", "kl")


def milliseconds(call: Callable[[], object], *, repeats: int, device: torch.device) -> tuple[float, float]:
    """Return the median and the least time of a call."""
    taken = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(1e3 * (time.perf_counter() - started))
    return statistics.median(taken[1:]), min(taken[1:])


def textbook(p: Tensor, q: Tensor, token_ids: Tensor) -> dict[str, Tensor]:
    """Compute the same from two log-softmaxes, in the dtype of the logits; no entry may be excluded."""
    log_p, log_q = p.log_softmax(-1), q.log_softmax(-1)
    share = log_p.exp()
    return {
        "log_prob": log_p.gather(-1, token_ids[:, None])[:, 0],
        "entropy": -(share * log_p).sum(-1),
        "kl": (share * (log_p - log_q)).sum(-1),
    }


def tokenwise(device: torch.device, *, repeats: int) -> None:
    """Print time and errors for each vocabulary and dtype."""
    print(f"\ntokenwise, {SENTENCE_TOKENS} tokens, both branches")
    print(f"{'vocabulary':>10} {'logits':>9} {'ms':>8} {'fastest':>8} {'textbook':>9}   error of {', '.join(NAMES)}")
    source = torch.Generator().manual_seed(0)
    for vocabulary in VOCABULARIES:
        p = 3 * torch.randn(SENTENCE_TOKENS, vocabulary, generator=source)
        q = p + torch.randn(SENTENCE_TOKENS, vocabulary, generator=source)
        token_ids = torch.randint(vocabulary, (SENTENCE_TOKENS,), generator=source)
        for dtype in (torch.float32, torch.bfloat16):
            given = p.to(device, dtype), q.to(device, dtype), token_ids.to(device)
            found, wanted = token_statistics(*given), textbook(given[0].double(), given[1].double(), given[2])
            errors = [(getattr(found, name) - wanted[name]).abs().max().item() for name in NAMES]
            median, least = milliseconds(lambda g=given: token_statistics(*g), repeats=repeats, device=device)
            plain, _ = milliseconds(
                lambda g=given: textbook(g[0].float(), g[1].float(), g[2]), repeats=repeats, device=device
            )
            shown = ", ".join(f"{error:.0e}" for error in errors)
            name = str(dtype).removeprefix("torch.")
            print(f"{vocabulary:>10} {name:>9} {median:>8.2f} {least:>8.2f} {plain:>9.2f}   {shown}")


def lid(device: torch.device, *, repeats: int) -> None:
    """Print time, memory read per second and error for each width and number of sentences."""
    print(f"\nLID, {REFERENCES} references at {len(LAYERS)} layers")
    print(f"{'width':>6} {'sentences':>9} {'ms':>8} {'fastest':>8} {'ms/sentence':>11} {'bank GB/s':>9}   error")
    source = torch.Generator().manual_seed(0)
    for width in WIDTHS:
        references = {layer: torch.randn(REFERENCES, width, generator=source) for layer in LAYERS}
        lid_references = LidReferences({layer: x.numpy() for layer, x in references.items()}, device=device)
        for sentences in SENTENCES:
            states = {layer: torch.randn(sentences, width, generator=source) for layer in LAYERS}
            wanted = torch.stack([exact_lid(references[k], states[k]) for k in LAYERS], 1)
            given = {layer: x.to(device) for layer, x in states.items()}
            error = ((lid_references.lid_of_states(given).cpu() - wanted) / wanted).abs().max().item()
            if device.type == "cuda":
                torch.cuda.set_sync_debug_mode("error")
                lid_references.lid_of_states(given)
                torch.cuda.set_sync_debug_mode("default")
            median, least = milliseconds(
                lambda b=lid_references, g=given: b.lid_of_states(g), repeats=repeats, device=device
            )
            rate = 4 * len(LAYERS) * REFERENCES * width / median / 1e6
            print(
                f"{width:>6} {sentences:>9} {median:>8.2f} {least:>8.2f} {median / sentences:>11.2f} {rate:>9.1f}"
                f"   {error:.0e}"
            )


def exact_lid(references: Tensor, states: Tensor) -> Tensor:
    """Levina and Bickel's estimate in float64, from differences."""
    distances = torch.stack([(references.double() - state.double()).norm(dim=1) for state in states])
    return (len(references) - 1) / (distances.amax(1, keepdim=True) / distances).log().sum(1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    print(", ".join(describe_machine(args.device, args.threads, "wall").values()))
    tokenwise(device, repeats=args.repeats)
    lid(device, repeats=args.repeats)


if __name__ == "__main__":
    main()
