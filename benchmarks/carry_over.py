"""Features that separate supported from unsupported sentences on a source that took no part in training.

    python benchmarks/carry_over.py --ragtruth ragtruth-qa --attribution attribution-pairs --support support-pairs
    python benchmarks/carry_over.py --ragtruth ragtruth-qa --attribution attribution-pairs --support support-pairs \
        --aligner reader --tables table-pairs

Leaves out RAGTruth QA, HAGRID, Stanford GenSearch, AttrScore, DeFacto and FRANK in turn, trains on the other five, and
prints the AUROC on the one left out with 95 % bootstrap intervals over questions or contexts. A label is of
a whole claim. Of DeFacto and FRANK only the contexts count that the bundled aligner was not trained on.
With ``--tables``, claims that were not written by a model that copies count too: written claims (``claims/unseen``),
those about infoboxes (InfoTabS alpha1) and the open half of ``long_contexts.jsonl``. Each source is then left out of a
training in which all the others have the same weight, as in that of ``generic-reader``, beside the reader alone and the
best of the features that only count words. The aligner's answers are kept in ``--cache``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine
from numpy.typing import NDArray
from sources_left_out import OVERLAPS, left_out_matrix, left_out_scores, single_scores, with_best
from tqdm import tqdm

from syncheck.aggregators import Aggregator
from syncheck.aggregators.kinds import PRIOR_WEIGHT, PRIOR_WEIGHTS
from syncheck.aggregators.monotone import MonotoneLogisticRegression
from syncheck.aligners import Aligner, IndexedAligner, load_aligner, weights_of
from syncheck.contrasts.parsing import in_notation_of, parse
from syncheck.features.schemas import feature_schema
from syncheck.features.sentence import text_features
from syncheck.reading.claim import statement
from syncheck.reading.evidence import BEST_CHUNKS, ContextChunks, EvidenceIndex
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, SentenceCutter
from syncheck.text.words import ContextLexicon, packaged_rarity

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from claim_files import WRITTEN, load_written  # noqa: E402
from contrast_pairs import SUPPORTED  # noqa: E402
from long_contexts import load_questions  # noqa: E402
from support_pairs import SupportPair, load_pairs, part_of, ragtruth_pairs  # noqa: E402
from train_aggregators import even_rows, reader_aggregator  # noqa: E402

Floats = NDArray[np.float64]

ATTRIBUTION = ("hagrid", "stanfordgensearch", "attrscoregensearch")
HELD_OUT = ("defacto", "frank")
HEAVIER = (1.0, 2.0)
"""Prior weights of the aligner that are tried beside its own; ``generic-reader`` has the last."""


def load_sources(ragtruth: Path, attribution: Path, support: Path) -> list[SupportPair]:
    """Read the six sources; citation marks are not part of a claim."""
    pairs = ragtruth_pairs(ragtruth)
    for source in ATTRIBUTION:
        pairs += [replace(p, claim=statement(p.claim)) for p in load_pairs(attribution, source)]
    for source in HELD_OUT:
        pairs += [p for p in load_pairs(support, source) if part_of(p.passages[0]) != "train"]
    return pairs


def load_written_sources(tables: Path) -> list[SupportPair]:
    """Read the sources whose claims do not copy: written ones, those about infoboxes, and about long contexts."""
    pairs = [
        SupportPair(group.passages, claim.text, int(claim.label == SUPPORTED), "written", group.group)
        for group in load_written(WRITTEN / "unseen")
        for claim in group.claims
    ]
    pairs += [replace(pair, source="infoboxes") for pair in load_pairs(tables, "infotabs-alpha1")]
    for asked in load_questions("open"):
        passages = tuple(asked["passages"])
        pairs += [
            SupportPair(passages, statement(sentence["text"]), sentence["label"], "long contexts", asked["id"])
            for sentence in asked["answer"]
        ]
    return pairs


def sampled(pairs: Sequence[SupportPair], most: int) -> list[SupportPair]:
    """Draw at most so many pairs of each label of each source."""
    rng, cells = random.Random(0), defaultdict(list)
    for pair in pairs:
        cells[pair.source, pair.label].append(pair)
    return [pair for cell in cells.values() for pair in (rng.sample(cell, most) if len(cell) > most else cell)]


def even_scores(X: Floats, y: NDArray[np.int64], sources: Sequence[str]) -> Floats:
    """Score each source by an aggregator in whose training all the others have the same weight, (N,)."""
    schema, names = feature_schema("syncheck.v5", ()), np.asarray(sources)
    scores = np.empty(len(y))
    for source in np.unique(names):
        others = np.flatnonzero(names != source)
        rows = others[even_rows(y[others], names[others])]
        fitted = Aggregator.fit(X[rows], y[rows], schema=schema, kind=reader_aggregator(schema))
        scores[names == source] = fitted.score(X[names == source])
    return scores


def supports_of(pairs: Sequence[SupportPair], aligner: Aligner, cache: Path | None) -> Floats:
    """Return the aligner's scores and log-odds of support, (N, 2); all claims about one context are asked at once.

    As when an answer is scored, claims are asked in the notation of their passages.
    """
    known: dict[str, list[float | None]] = json.loads(cache.read_text()) if cache is not None and cache.exists() else {}
    own = str(weights_of(aligner))
    read = list(as_read(pairs))
    keys = [
        sha256("\0".join([own, *p.passages, claim]).encode()).hexdigest() for p, claim in zip(pairs, read, strict=True)
    ]
    missing: dict[tuple[str, ...], dict[str, str]] = {}
    for pair, claim, key in zip(pairs, read, keys, strict=True):
        if key not in known:
            missing.setdefault(pair.passages, {})[key] = claim
    for passages, claims in tqdm(missing.items(), desc="aligner", mininterval=5):
        asked = list(claims.values())
        if isinstance(aligner, IndexedAligner):
            found = aligner.align_indexed(index_of(passages), asked)
        else:
            found = aligner.align(passages, asked)
        known |= {key: [s.score, s.log_odds] for key, s in zip(claims, found, strict=True)}
    if cache is not None:
        cache.write_text(json.dumps(known))
    return np.array([known[key] for key in keys], np.float64)


def as_read(pairs: Sequence[SupportPair]) -> Iterator[str]:
    """Yield each claim with its quantities written as its passages write them."""
    index, reading, passages = None, parse, ()
    for pair in pairs:
        if index is None or pair.passages != passages:
            index, reading, passages = index_of(pair.passages), lru_cache(parse), pair.passages
        best = index.best(statement(pair.claim), BEST_CHUNKS)
        yield in_notation_of(reading(pair.claim), [reading(index.chunks[n].text) for n in best])


def index_of(passages: Sequence[str]) -> EvidenceIndex:
    """Cut the passages as the bundled generic monitors do."""
    return EvidenceIndex(passages, cut=SentenceCutter(ENGLISH_ABBREVIATIONS).texts)


def measured(pairs: Sequence[SupportPair], log_odds: Floats, *, reads: bool) -> Floats:
    """Return the text features (N, F); beside an aligner that ``reads``, the ledger says which contrasts count."""
    rarity = packaged_rarity()
    rows = []
    contexts: dict[tuple[str, ...], tuple[EvidenceIndex, ContextChunks, ContextLexicon]] = {}
    for pair, logit in zip(tqdm(pairs, desc="features", mininterval=5), log_odds, strict=True):
        if pair.passages not in contexts:
            index = index_of(pair.passages)
            chunks = ContextChunks.from_texts([chunk.text for chunk in index.chunks])
            contexts = {pair.passages: (index, chunks, ContextLexicon.from_passages(pair.passages))}
        index, chunks, lexicon = contexts[pair.passages]
        best = index.best(pair.claim, BEST_CHUNKS)
        read = logit if reads else None
        found = text_features(
            pair.claim, logit=logit, read=read, chunks=chunks, best=best, lexicon=lexicon, rarity=rarity
        )
        rows.append(list(found.values()))
    return np.array(rows)


def systems_of(X: Floats, packaged: Floats, y: NDArray[np.int64], sources: Sequence[str]) -> Mapping[str, Floats]:
    """Return the scores (N,) of each system."""
    schema = feature_schema("syncheck.v5", ())
    names, alone = schema.names, single_scores(X, schema)
    found = {name: alone[name] for name in OVERLAPS if name in alone}
    found |= {"aligner": packaged, "aligner, log-odds": alone["align_logit"]}
    parts = {
        "counting": [name for name in names if name not in ("contrasts", "closeness")],
        "and closeness": [name for name in names if name != "contrasts"],
        "and contrasts": names,
        "the same without the network": [name for name in names if name != "align_logit"],
    }
    for system, chosen in parts.items():
        own = X[:, [names.index(name) for name in chosen]]
        found[system] = left_out_scores(own, y, sources, names=chosen)
    unfitted = MonotoneLogisticRegression(
        directions=schema.directions,
        prior_weights=[PRIOR_WEIGHTS.get(name, PRIOR_WEIGHT) for name in names],
        strength=1e6,
    )
    found["weights not fitted"] = left_out_scores(X, y, sources, aggregator=unfitted)
    for weight in HEAVIER:
        weights = [weight if name == "align_logit" else PRIOR_WEIGHTS.get(name, PRIOR_WEIGHT) for name in names]
        heavier = MonotoneLogisticRegression(directions=schema.directions, prior_weights=weights)
        system = f"and contrasts, the aligner's prior weight {weight:g}"
        found[system] = left_out_scores(X, y, sources, names=names, aggregator=heavier)
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, required=True, metavar="DIR")
    parser.add_argument("--attribution", type=Path, required=True, metavar="DIR")
    parser.add_argument("--support", type=Path, required=True, metavar="DIR")
    parser.add_argument("--tables", type=Path, metavar="DIR", help="claims about infoboxes; see above")
    parser.add_argument("--sample", type=int, metavar="N", help="so many claims of each label of a source (all)")
    parser.add_argument("--aligner", default="bundled", metavar="NAME", help="(%(default)s)")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="the aligner's answers by pair, read and written")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    parser.add_argument("--resamples", type=int, default=1000, help="(%(default)s)")
    args = parser.parse_args(words)
    pairs = load_sources(args.ragtruth, args.attribution, args.support)
    if args.tables is not None:
        pairs += load_written_sources(args.tables)
    if args.sample is not None:
        pairs = sampled(pairs, args.sample)
    aligner = load_aligner(args.aligner)
    if aligner is None:
        parser.error("expected an aligner; found none")
    packaged, log_odds = supports_of(pairs, aligner, args.cache).T
    X = measured(pairs, log_odds, reads=aligner.name == "reader")
    y, sources = np.array([pair.label for pair in pairs]), [pair.source for pair in pairs]
    groups = np.array([pair.group for pair in pairs])
    known = describe_machine("cpu", torch.get_num_threads(), "wall-clock")
    print(", ".join(known[name] for name in ("date", "chip", "threads", "versions")))
    print(f"{len(pairs)} pairs, {args.resamples} resamples, seed {args.seed}\n")
    if args.tables is None:
        systems = systems_of(X, packaged, y, sources)
    else:
        alone = single_scores(X, feature_schema("syncheck.v5", ()))
        systems = {name: alone[name] for name in OVERLAPS if name in alone}
        systems |= {"aligner, log-odds": alone["align_logit"], "trained on the others": even_scores(X, y, sources)}
    matrix = left_out_matrix(systems, y, groups, sources, draws=args.resamples, seed=args.seed)
    if args.tables is not None:
        matrix = with_best(matrix, [name for name in OVERLAPS if name in systems], "best count of words")
    print(matrix.to_text())


if __name__ == "__main__":
    main()
