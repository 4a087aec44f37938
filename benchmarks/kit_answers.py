"""Labelled answers of the kit's model: make them, and write those of a part as labelled JSON Lines.

    python benchmarks/kit_answers.py answer --wikipedia articles.jsonl.xz --ragtruth ragtruth-qa --output answers.jsonl
    python benchmarks/kit_answers.py records --part open --wikipedia articles.jsonl.xz --ragtruth ragtruth-qa \
        --output open.jsonl
    python benchmarks/kit_answers.py penalties --wikipedia articles.jsonl.xz --ragtruth ragtruth-qa

``benchmarks/kit_answers`` holds questions, ids of tokens and labels. Passages that were written for it are there too;
those of Wikipedia and RAGTruth are rebuilt from the files of these sources and left out without them. ``penalties``
answers the questions of ``settings``, which have no labels, greedily with several repetition penalties, and prints how
often the answers go round in loops and how far they keep to the words of the passages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from tqdm import tqdm
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from syncheck.kit import kit_language_model
from syncheck.labelling import load_ragtruth
from syncheck.prompts import build_prompt
from syncheck.text.words import ContextLexicon, content_words, share, words

FOLDER = Path(__file__).parent / "kit_answers"
Part = Literal["settings", "demo", "open", "tuning", "spare", "blind"]
"""``settings``: the questions on which prompt and repetition penalty were chosen. ``demo``: those of the demo.
``open``: to train and choose on. ``tuning``: to choose the thresholds of decoders on. ``spare``: labelled, unused.
``blind``: a third, to report on."""
Way = Literal["greedy", "sampled"]
MAX_NEW_TOKENS = 72
PENALTIES = (1.0, 1.05, 1.1, 1.2, 1.3)
LOOPED = 1 / 3
"""Share of repeated word quadruples from which an answer goes round in a loop."""
TEMPERATURE, TOP_P, LIKELIEST = 0.6, 0.9, 200
"""Of sampled answers; tokens are drawn from the likeliest 200 at most."""


@dataclass(frozen=True)
class QuestionSet:
    """Passages and the questions that were asked about them."""

    name: str
    source: str
    kind: str
    part: Part
    passages: tuple[str, ...]
    questions: tuple[str, ...]


def load_questions(wikipedia: Path | None, ragtruth: Path | None) -> list[QuestionSet]:
    """Read the sets whose passages are at hand."""
    articles = _paragraphs(wikipedia)
    asked = {r.group: r for r in load_ragtruth(ragtruth)} if ragtruth else {}
    sets = []
    for entry in _lines(FOLDER / "questions.jsonl"):
        questions = entry.get("questions")
        if entry["source"] == "written":
            passages = [passage["text"] for passage in entry["passages"]]
        elif entry["source"] == "wikipedia":
            passages = [articles.get((p["title"], p["sha256"]), "") for p in entry["passages"]]
        else:
            record = asked.get(entry["source_id"])
            passages, questions = (list(record.passages), [record.question]) if record else ([""], [])
        if all(passages):
            sets.append(
                QuestionSet(
                    entry["set"], entry["source"], entry["kind"], entry["part"], tuple(passages), tuple(questions)
                )
            )
    return sets


def digest(passage: str) -> str:
    """Compute the digest that names a passage of Wikipedia."""
    return hashlib.sha256(passage.encode()).hexdigest()[:16]


def _paragraphs(path: Path | None) -> dict[tuple[str, str], str]:
    if path is None:
        return {}
    wanted = {
        passage["title"]
        for entry in _lines(FOLDER / "questions.jsonl")
        if entry["source"] == "wikipedia"
        for passage in entry["passages"]
    }
    texts = {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for article in map(json.loads, lines):
            if article["title"] in wanted:
                texts |= {(article["title"], digest(p.strip())): p.strip() for p in article["text"].split("\n")}
    return texts


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def labelled_records(
    part: Part, tokenizer: PreTrainedTokenizerBase, sets: Sequence[QuestionSet]
) -> Iterator[Mapping[str, Any]]:
    """Yield the labelled answers of a part as ``syncheck.labelling.load_jsonl`` reads them.

    A sentence about which the two readings disagree has no label. Groups are sets of passages.
    """
    by_name = {one.name: one for one in sets if one.part == part}
    for answer in _lines(FOLDER / "answers.jsonl"):
        asked = by_name.get(answer["set"])
        if asked is None:
            continue
        text = tokenizer.decode(answer["ids"])
        sentences = [text[start:end] for start, end, *_ in answer["sentences"]]
        labels = [_label(first, second) for _, _, first, second in answer["sentences"]]
        yield {
            "id": f"{answer['set']}-{answer['question']}-{answer['way']}",
            "group": asked.name,
            "question": asked.questions[answer["question"]],
            "context": list(asked.passages),
            "response": text,
            "sentences": sentences,
            "labels": labels,
            "generator": answer["way"],
            "task": asked.kind,
        }


def _label(first: str, second: str) -> int | str | None:
    names = {"F": 1, "U": 0, "N": "no claim"}
    return names[first] if first == second else None


@torch.inference_mode()
def answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    asked: QuestionSet,
    ways: Sequence[Way] = ("greedy", "sampled"),
) -> Iterator[Mapping[str, Any]]:
    """Answer each question in these ways, all in one batch that shares the passages' keys and values."""
    prompts = [
        list(build_prompt(tokenizer, question=question, context=asked.passages).with_context_ids)
        for question in asked.questions
    ]
    shared = next(
        n for n in range(min(map(len, prompts)) - 1, 0, -1) if all(ids[:n] == prompts[0][:n] for ids in prompts)
    )
    cache = DynamicCache()
    model(input_ids=torch.tensor([prompts[0][:shared]]), past_key_values=cache, logits_to_keep=1)
    rows = [ids for ids in prompts for _ in ways]
    cache.batch_repeat_interleave(len(rows))
    rest = [ids[shared:] for ids in rows]
    longest, end = max(map(len, rest)), model.generation_config.eos_token_id
    tokens = torch.tensor([[end] * (longest - len(ids)) + ids for ids in rest])
    mask = torch.tensor([[1] * shared + [0] * (longest - len(ids)) + [1] * len(ids) for ids in rest])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, shared:]
    seen = torch.zeros(len(rows), model.config.vocab_size, dtype=torch.bool)
    for row, ids in enumerate(rows):
        seen[row, ids] = True
    penalty = model.generation_config.repetition_penalty
    generator = torch.Generator().manual_seed(int.from_bytes(asked.name.encode(), "little") % 2**31)
    is_greedy = torch.tensor([way == "greedy" for _ in prompts for way in ways])
    written: list[list[int]] = [[] for _ in rows]
    ended = [False] * len(rows)
    for _ in range(MAX_NEW_TOKENS):
        logits = (
            model(
                input_ids=tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, logits_to_keep=1
            )
            .logits[:, -1]
            .float()
        )
        logits = torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)
        likely, order = (logits / TEMPERATURE).softmax(-1).topk(LIKELIEST)
        likely = torch.where(likely.cumsum(-1) - likely < TOP_P, likely, 0.0)
        drawn = order.gather(-1, torch.multinomial(likely, 1, generator=generator))[:, 0]
        chosen = torch.where(is_greedy, logits.argmax(-1), drawn)
        for row, token in enumerate(chosen.tolist()):
            ended[row] |= token == end
            if not ended[row]:
                written[row].append(token)
        if all(ended):
            break
        seen[torch.arange(len(rows)), chosen] = True
        tokens = chosen[:, None]
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], 1)
        positions = positions[:, -1:] + 1
    for row, ids in enumerate(written):
        yield {
            "set": asked.name,
            "question": row // len(ways),
            "way": ways[row % len(ways)],
            "ids": ids,
            "ended": ended[row],
        }


def repeated(text: str) -> float:
    """Compute the share of word quadruples that occurred before in the text, in [0, 1]."""
    read = words(text)
    quadruples = list(zip(*(read[n:] for n in range(4)), strict=False))
    return 1 - len(set(quadruples)) / len(quadruples) if quadruples else 0.0


def compare_penalties(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sets: Sequence[QuestionSet]
) -> Iterator[str]:
    """Answer greedily with each penalty; yield a row of what the answers are like."""
    own = [one for one in sets if one.part == "settings"]
    yield "penalty  answers  in loops  quadruples repeated  words of the passages  tokens  ended"
    for penalty in PENALTIES:
        model.generation_config.repetition_penalty = penalty
        rows = []
        for asked in tqdm(own, desc=f"penalty {penalty}", unit=" sets"):
            lexicon = ContextLexicon.from_passages(asked.passages)
            for answer in answers(model, tokenizer, asked, ["greedy"]):
                text = tokenizer.decode(answer["ids"])
                held = share(content_words(text), lexicon.words)
                rows.append((repeated(text) >= LOOPED, repeated(text), held, len(answer["ids"]), answer["ended"]))
        loops, again, held, tokens, ended = np.nanmean(np.array(rows, dtype=float), axis=0)
        yield (
            f"{penalty:<7}  {len(rows):<7}  {round(loops * len(rows)):<8}  {again:<19.3f}  {held:<21.3f}  "
            f"{tokens:<6.1f}  {ended:.2f}"
        )


def main() -> None:
    """Make answers, write labelled records, or compare penalties."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("answer", "records", "penalties"))
    parser.add_argument("--part", choices=("open", "blind"), default="open")
    parser.add_argument("--wikipedia", type=Path, help="articles as JSON Lines, .xz")
    parser.add_argument("--ragtruth", type=Path, help="folder of RAGTruth")
    parser.add_argument("--output", type=Path, help="file to write; not of penalties")
    args = parser.parse_args()
    if args.output is None and args.what != "penalties":
        parser.error("--output is missing")
    sets = load_questions(args.wikipedia, args.ragtruth)
    model, tokenizer = kit_language_model()
    if args.what == "records":
        lines = [json.dumps(r, ensure_ascii=False) for r in labelled_records(args.part, tokenizer, sets)]
        args.output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{len(lines)} answers")
        return
    if args.what == "penalties":
        print(*compare_penalties(model, tokenizer, sets), sep="\n")
        return
    model = model.to(torch.bfloat16)
    done = {entry["set"] for entry in _lines(args.output)} if args.output.exists() else set()
    with args.output.open("a", encoding="utf-8") as file:
        for asked in tqdm([s for s in sets if s.part in ("open", "blind") and s.name not in done], unit=" sets"):
            file.writelines(json.dumps(answer) + "\n" for answer in answers(model, tokenizer, asked))
            file.flush()


if __name__ == "__main__":
    main()
