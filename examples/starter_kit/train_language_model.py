"""Train the starter kit's language model on Wikipedia: passages and a question in, an answer from the passages out.

    python examples/starter_kit/train_language_model.py --articles articles.jsonl.xz --output runs/lm
    torchrun --nproc-per-node 2 examples/starter_kit/train_language_model.py ...  # a process for each core

Trains its own tokenizer first. Saves every ``--save-every`` steps and resumes where it stopped; every batch
is drawn from the seed and the step number alone, so a resumed run sees what an uninterrupted one sees. Under
``torchrun`` the processes share each batch and average their gradients.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from resumable import restore_optimizer, save_progress
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from wikipedia_qa import ExampleMaker, QAExample, Substitution, load_articles

from syncheck.prompts import plain_prompt

PROMPT_WEIGHT = 0.3
CHARACTERS_PER_TOKEN = 3.0
POOL = 8
VOCABULARY = 4096
WINDOW = 2048
BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.05
WARM_UP_STEPS = 150
DECAY_SHARE = 0.3
FLOOR = 0.03


@dataclass(frozen=True, slots=True)
class Stage:
    """Batches of about ``batch_tokens`` at one of these lengths, up to ``until`` of the token budget."""

    until: float
    lengths: tuple[int, ...]
    batch_tokens: int


STAGES = (
    Stage(0.20, (128,), 3072),
    Stage(0.50, (128, 256, 256), 3072),
    Stage(0.75, (256, 512), 3072),
    Stage(1.00, (256, 256, 512, 1024), 4096),
)


@dataclass(frozen=True, slots=True)
class Process:
    """One of the processes that ``torchrun`` started to share a CPU; without it, the first of one."""

    rank: int
    processes: int

    @classmethod
    def join(cls) -> Process:
        """Join the other processes, if there are any."""
        process = cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
        if process.processes > 1:
            dist.init_process_group("gloo")
        return process

    def total(self, count: int) -> int:
        """Sum a count over the processes."""
        if self.processes == 1:
            return count
        counts = torch.tensor(count)
        dist.all_reduce(counts)
        return int(counts)


def train_tokenizer(examples: Iterable[QAExample]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE whose numbers are single digits."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    texts = (plain_prompt(e.question, e.passages) + " ".join(e.answer) for e in examples)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        padding_side="left",
        model_max_length=WINDOW,
    )


def new_model(seed: int) -> LlamaForCausalLM:
    """Build the untrained model: 8.9 M parameters."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=320,
        intermediate_size=896,
        num_hidden_layers=6,
        num_attention_heads=5,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config)


def encode(tokenizer: PreTrainedTokenizerFast, example: QAExample) -> tuple[list[int], list[float]]:
    """Token ids of prompt, answer and end of text, and the loss weight of each."""
    prompt = tokenizer(plain_prompt(example.question, example.passages))["input_ids"]
    answer = tokenizer(" ".join(example.answer), add_special_tokens=False)["input_ids"]
    return prompt + answer + [2], [PROMPT_WEIGHT] * len(prompt) + [1.0] * (len(answer) + 1)


def collate(rows: Sequence[tuple[list[int], list[float]]]) -> tuple[Tensor, Tensor]:
    """Right-pad encoded examples. Returns ids and loss weights, both (B, T); weight 0 is padding."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([row + [0] * (width - len(row)) for row, _ in rows])
    weights = torch.tensor([row + [0.0] * (width - len(row)) for _, row in rows])
    return ids, weights


def losses(model: nn.Module, ids: Tensor, weights: Tensor, *, bf16: bool) -> tuple[Tensor, Tensor]:
    """Return the weighted training loss and the mean loss on answer tokens alone, in nats."""
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=bf16):
        logits = model(input_ids=ids).logits[:, :-1]  # (B, T - 1, V)
    kept = weights[:, 1:].flatten()  # (B * (T - 1),)
    nats = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    answer = kept == 1.0
    return (nats * kept).sum() / kept.sum(), nats[answer].mean().detach()


def draw_batch(
    maker: ExampleMaker, tokenizer: PreTrainedTokenizerFast, stage: Stage, *, seed: int, step: int, process: Process
) -> tuple[Tensor, Tensor]:
    """Draw this process's share of one step's batch: the batch from the seed and the step number alone."""
    rng = random.Random(f"{seed}-{step}")
    length = rng.choice(stage.lengths)
    count = max(1, stage.batch_tokens // length)
    characters = int(length * CHARACTERS_PER_TOKEN)
    pool = [encode(tokenizer, maker.draw(rng, characters)) for _ in range(POOL * count)]
    pool.sort(key=lambda row: len(row[0]))
    start = rng.randrange(count - 1, len(pool))  # neighbours in length, so that little is padding
    batch = [pool[start]]
    for row in reversed(pool[:start]):
        if len(batch) >= process.processes and (len(batch) + 1) * len(pool[start][0]) > stage.batch_tokens:
            break
        batch.append(row)
    return collate(batch[process.rank :: process.processes])


def learning_rate(step: int, share: float, peak: float) -> float:
    """Linear warm-up, constant, then linear to ``FLOOR`` of the peak over the last ``DECAY_SHARE``."""
    warm = min(1.0, (step + 1) / WARM_UP_STEPS)
    left = min(1.0, (1.0 - share) / DECAY_SHARE)
    return peak * warm * (FLOOR + (1 - FLOOR) * max(left, 0.0))


def start(
    output: Path, packed: Path | None, maker: ExampleMaker, seed: int
) -> tuple[dict[str, float], PreTrainedTokenizerFast, LlamaForCausalLM]:
    """Return progress, tokenizer and model: of the interrupted run, else as packed, else new."""
    progress = {"step": 0, "tokens": 0, "seconds": 0.0}
    progress_file = output / "progress.json"
    if progress_file.exists():
        progress, packed = json.loads(progress_file.read_text()), output
    if packed:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(packed)
        return progress, tokenizer, LlamaForCausalLM.from_pretrained(packed, dtype=torch.float32)
    rng = random.Random(seed)
    return progress, train_tokenizer(maker.draw(rng, 1200) for _ in range(12000)), new_model(seed)


@torch.inference_mode()
def evaluate(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, examples: Sequence[QAExample], *, bf16: bool
) -> float:
    """Mean answer loss in nats a token over batches of eight held-out examples."""
    model.eval()
    batches = (collate([encode(tokenizer, e) for e in examples[i : i + 8]]) for i in range(0, len(examples), 8))
    values = [losses(model, ids.to(model.device), kept.to(model.device), bf16=bf16)[1].item() for ids, kept in batches]
    model.train()
    return sum(values) / len(values)


def main() -> None:
    """Train until the token budget is spent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--tokens", type=float, default=6.8e6)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument(
        "--packed", type=Path, help="a packed model to go on from, with new examples and a new schedule"
    )
    parser.add_argument("--device", type=torch.device, default="cpu")
    parser.add_argument("--compile", action="store_true", help="compile the model; needs a C++ compiler on a CPU")
    parser.add_argument(
        "--bf16", action="store_true", help="bfloat16 autocast; slow on processors without AVX512_BF16 or AMX"
    )
    args = parser.parse_args()
    process = Process.join()
    if process.processes > 1 and args.device.type != "cpu":
        parser.error("several processes share a CPU; on an accelerator run one, without torchrun")
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)  # attention's gradients hold many; a processor takes twice as long over them

    articles = load_articles(args.articles, "train")
    maker = ExampleMaker(articles, Substitution(articles))
    heldout_maker = ExampleMaker(load_articles(args.articles, "aggregator"), None)
    heldout_rng = random.Random(args.seed)
    heldout = [heldout_maker.draw(heldout_rng, 700) for _ in range(64)]

    progress, tokenizer, model = start(args.output, args.packed, maker, args.seed)
    model.to(args.device)
    if args.compile and args.bf16 and args.device.type == "cpu":
        model.set_attn_implementation("eager")  # its products are bfloat16 too: a third faster than the fused kernel
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}],
        lr=args.learning_rate,
        betas=BETAS,
        fused=True,
    )
    if progress["step"]:
        restore_optimizer(args.output, optimizer)

    if args.compile:
        model.compile(dynamic=True)
    trained = DistributedDataParallel(model) if process.processes > 1 else model

    model.train()
    log = (args.output / "losses.jsonl").open("a")
    bar = tqdm(
        total=int(args.tokens),
        initial=int(progress["tokens"]),
        unit=" tokens",
        mininterval=5,
        disable=process.rank > 0,
    )
    started = time.monotonic() - progress["seconds"]
    recent: list[float] = []
    while progress["tokens"] < args.tokens:
        share = progress["tokens"] / args.tokens
        stage = STAGES[-1] if args.packed else next(s for s in STAGES if share < s.until)
        batch = draw_batch(maker, tokenizer, stage, seed=args.seed, step=progress["step"], process=process)
        ids, weights = (tensor.to(args.device) for tensor in batch)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(progress["step"], share, args.learning_rate)
        loss, answer_loss = losses(trained, ids, weights, bf16=args.bf16)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        optimizer.zero_grad()
        recent.append(answer_loss.item())
        spent = process.total(int((weights > 0).sum()))
        progress["step"] += 1
        progress["tokens"] += spent
        progress["seconds"] = time.monotonic() - started
        bar.update(spent)
        due = progress["step"] % args.save_every == 0 or progress["tokens"] >= args.tokens
        if due and process.rank == 0:
            value = evaluate(model, tokenizer, heldout, bf16=args.bf16)
            entry = {**progress, "length": stage.lengths[-1], "train": sum(recent) / len(recent), "heldout": value}
            log.write(json.dumps(entry) + "\n")
            log.flush()
            recent.clear()
            tokenizer.save_pretrained(args.output)
            model.save_pretrained(args.output)
            save_progress(args.output, optimizer, progress)
    bar.close()
    if process.rank == 0:
        run = {**progress, **vars(args), "processes": process.processes, "stages": [asdict(s) for s in STAGES]}
        (args.output / "run.json").write_text(json.dumps(run, default=str, indent=2))
    if process.processes > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
