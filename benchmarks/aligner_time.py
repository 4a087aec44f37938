"""Time for the support of one sentence: an aligner on answers to questions, as a monitor calls it.

    python benchmarks/aligner_time.py --ragtruth ragtruth-qa --threads 2

The sentences of each answer are scored at once, as they are when an answer is scored, which also reads the passages;
then each is scored alone, as it is while an answer is generated. Printed are medians and quartiles, over sentences and
over answers.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine
from nltk.tokenize.punkt import PunktSentenceTokenizer
from tqdm import tqdm

from syncheck import load_aligner
from syncheck.aligners import IndexedAligner
from syncheck.labelling import load_records
from syncheck.reading import EvidenceIndex
from syncheck.text.sentences import is_checkable


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, required=True, metavar="DIR", help="the corpus as published")
    parser.add_argument("--aligner", default="bundled", help="as syncheck.load_aligner takes it (%(default)s)")
    parser.add_argument("--answers", type=int, default=100, help="the first ones (%(default)s)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    aligner = load_aligner(args.aligner)
    alone, together = [], []
    punkt = PunktSentenceTokenizer()
    for record in tqdm(load_records(args.ragtruth)[: args.answers], unit="answer", disable=None, leave=False):
        sentences = [text for text in punkt.tokenize(record.response) if is_checkable(text)]
        if not sentences:
            continue
        since = time.perf_counter()
        index = EvidenceIndex(record.passages)
        ask = (
            partial(aligner.align_indexed, index)
            if isinstance(aligner, IndexedAligner)
            else partial(aligner.align, record.passages)
        )
        ask(sentences)
        together.append((time.perf_counter() - since) / len(sentences))
        for sentence in sentences:
            since = time.perf_counter()
            ask([sentence])
            alone.append(time.perf_counter() - since)
    print(", ".join(describe_machine("cpu", args.threads, "wall").values()), end="\n\n")
    print("| milliseconds a sentence | median | quartiles | of |\n| --- | --- | --- | --- |")
    for name, seconds, unit in (("one by one", alone, "sentences"), ("an answer at once", together, "answers")):
        low, middle, high = 1e3 * np.percentile(seconds, [25, 50, 75])
        print(f"| {name} | {middle:.1f} | {low:.1f} to {high:.1f} | {len(seconds)} {unit} |")


if __name__ == "__main__":
    main()
