"""``syncheck generate``: answers by any of the decoders; ``syncheck demo``: answers of the kit's model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import syncheck
from syncheck import corpus, decoding
from syncheck.base.errors import InputError, NotReadyError
from syncheck.base.printable import printable
from syncheck.cli import options as kinds
from syncheck.cli.monitors import monitor_with_model, read_passages
from syncheck.cli.options import DECODERS, OF_A_WRITER, Options, add_files, add_model, count, flag, named, say, share
from syncheck.cli.record_runs import answer_records
from syncheck.corpus.records import Work
from syncheck.report import render_html, render_sentence, wants_colour
from syncheck.results import Answer, Case, Report
from syncheck.results.types import SentenceScore

_OF_SAMPLES = ("temperature", "top_p", "beam_size", "samples_per_step", "until")
_OF_BRANCHES = ("branches", "max_skips", "alpha", "plausibility")
"""Options of fod that only one value of ``--propose`` has."""

_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "greedy": (),
    "sample": ("temperature", "top_p"),
    "cad": ("alpha", "plausibility"),
    "fod": (
        *("backtrack_threshold", "prune_threshold", "max_sentences", "on_exhausted", "message", "propose", "guards"),
        *(*_OF_SAMPLES, *_OF_BRANCHES),
    ),
    "fod-backtrack": ("backtrack_threshold", "max_sentences", "message"),
    "abstain": ("backtrack_threshold", "message"),
    "rerank": ("temperature", "top_p", "samples", "reward"),
    "best-of-n": ("temperature", "top_p", "samples", "reward"),
    "flare": ("flare_threshold", "max_retrievals", "passages"),
}
"""Options of each decoder; one that is not given is None."""


def generate_options(add: Options) -> None:
    """Add the options of ``generate``; those of a decoder are None unless given: the defaults are the decoder's own."""
    add_model(add, default=OF_A_WRITER)
    add_files(add)
    add("--prior SHARE")
    group = add.group("answers")
    group("--decoder = greedy", "decoding method", choices=DECODERS)
    group("--max-new-tokens N = 256")
    group("--seed SEED = 0", "seed for sampling, the same for each record")
    group("--temperature T", "for sample (1), fod, rerank and best-of-n (0.9)", type=kinds.positive)
    group("--top-p P", "for sample (1), fod, rerank and best-of-n (0.95)", type=kinds.positive_share)
    _add_search(add)
    group = add.group("reranking and best of N", "for --decoder rerank and best-of-n")
    group("--samples N", "number of answers to choose from (6)")
    group("--reward mean|lowest", "choose by an answer's mean or lowest score (mean)")
    group = add.group("contrast", "for --decoder cad, and for fod with --propose branch")
    group("--alpha ALPHA", "strength of the contrast with the distribution without the passages (cad: 0.5; fod: 0.5)")
    group(
        "--plausibility SHARE",
        "drop tokens with less than this share of the highest probability (cad: 0, none; fod: 0.02)",
        type=float,
    )
    group = add.group("FLARE", "for --decoder flare, which needs the first two options")
    group("--flare-threshold P", "retrieve if a token's probability is below this", type=share)
    group("--passages FILE", "text file with the texts to retrieve from, one per paragraph")
    group("--max-retrievals N", "largest number of retrievals per answer (8)")


def add_thresholds(group: Options, first: str, second: str) -> None:
    """Add the thresholds of FOD, named for the help."""
    for name, threshold in (("backtrack", first), ("prune", second)):
        group(f"--{name}-threshold SCORE", f"{threshold}: 0 to 1 (the monitor's own)", type=share)


def _add_search(add: Options) -> None:
    group = add.group("FOD", "for --decoder fod, fod-backtrack and abstain")
    add_thresholds(group, "tau 1, for all three", "tau 2, for fod")
    group(
        "--propose sample|branch",
        "what fod does with a sentence below tau 1: search over sampled sentences (sample), or rewrite it from "
        "its first token or cut it short, and hide it if that fails (branch) (sample)",
    )
    group(
        "--guards yes|no",
        "for fod: reject candidates that claim nothing, are cut off, repeat, refuse or are beside the question, "
        "whatever their score (no), with --propose branch (yes)",
    )
    group(
        "--branches M",
        "with --propose branch: number of the least certain tokens, besides the first, that are replaced (0)",
        type=int,
    )
    group("--max-skips N", "with --propose branch: largest number of hidden sentences per answer (2)", type=int)
    group("--beam-size K", "number of answers that fod keeps after each round (2)", type=count)
    group("--samples-per-step S", "number of sentences that fod samples per round (6)", type=count)
    group("--until any|all", "for fod: stop when any kept beam has ended, or when all have (any)")
    group("--max-sentences N", "for fod and fod-backtrack: largest number of sentences (32)")
    group(
        "--on-exhausted stop|abstain|annotate|quote",
        "for fod: what to do when no candidate sentence passes (stop), with --propose branch (quote)",
    )
    group(
        "--message TEXT",
        "for fod, fod-backtrack and abstain: text of an answer of which no sentence passes, and end of one with "
        "--on-exhausted abstain (The passages do not let me say more.)",
    )


def demo_options(add: Options) -> None:
    """Add the options of ``demo``."""
    add("--question TEXT", "your own question; needs --context (six bundled questions)")
    add("--context FILE", "text file with the passages for --question, one per paragraph")
    add("--report FILE = report.html", "file for the HTML page")
    add("--max-new-tokens N = 96")
    add("--seed SEED = 0", "seed for the sampling of FOD's search")


def generate(args: argparse.Namespace) -> int:
    """Answer the questions of a file; returns the exit code."""
    options = _chosen_options(args)
    if args.decoder == "flare" and not options.keys() >= {"flare_threshold", "passages"}:
        raise InputError("--decoder flare needs --flare-threshold P and --passages FILE to retrieve from")
    monitor = monitor_with_model(args, "generation")
    if args.decoder in ("fod", "fod-backtrack", "abstain") and monitor.aggregator is None:
        raise NotReadyError(
            f"--decoder {args.decoder} needs a trained monitor; pass --monitor DIR, or leave --model out"
        )
    work = (_plain if args.decoder in ("greedy", "sample") else _by_fod)(monitor, args, options)
    return 2 if answer_records(args, monitor, work, lambda lines: [corpus.answer(line, work) for line in lines]) else 0


def _chosen_options(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the decoder's options that were given, by name; refuse those of other decoders."""
    every = dict.fromkeys(name for options in _OPTIONS.values() for name in options)
    given = {name: value for name in every if (value := getattr(args, name)) is not None}
    if foreign := [name for name in given if name not in _OPTIONS[args.decoder]]:
        takers = {name: ", ".join(one for one, options in _OPTIONS.items() if name in options) for name in foreign}
        of = "; ".join(f"{flag(name)} is for {takers[name]}" for name in foreign)
        raise InputError(f"--decoder {args.decoder} does not use these options of other decoders: {of}. Leave them out")
    other = _OF_SAMPLES if args.propose == "branch" else _OF_BRANCHES
    if args.decoder == "fod" and (unused := ", ".join(flag(name) for name in given if name in other)):
        way = f"--decoder fod with --propose {args.propose or 'sample'}"
        raise InputError(f"{way} does not use {unused}; leave it out")
    return given


def _plain(monitor: syncheck.Monitor, args: argparse.Namespace, options: dict[str, Any]) -> Work:
    sampling: dict[str, Any] = {"do_sample": args.decoder == "sample"}
    if args.decoder == "sample":  # without these generate would take those of the model's own generation config
        sampling |= {"temperature": 1.0, "top_p": 1.0}

    def work(record: dict[str, Any]) -> dict[str, Any]:
        generator = decoding.seeded_generator(monitor.model, args.seed)
        asked = sampling | options | {"generator": generator, "max_new_tokens": args.max_new_tokens}
        return _answer(record, monitor.generate(corpus.prompt_for(monitor, record), **asked))

    return work


def _by_fod(monitor: syncheck.Monitor, args: argparse.Namespace, options: dict[str, Any]) -> Work:
    generator = decoder(monitor, args.decoder, options)
    asked = named(args, "seed max_new_tokens") | {"return_dict_in_generate": True, "do_sample": False}

    def work(record: dict[str, Any]) -> dict[str, Any]:
        output = generator.generate(corpus.prompt_for(monitor, record), **asked)
        return _answer(record, output.report) | {"trace": _trace(output)}

    return work


def decoder(monitor: syncheck.Monitor, name: str, options: dict[str, Any]) -> Any:  # noqa: ANN401 - fod is not imported here
    """Build the decoder; options that were not given have the decoder's defaults."""
    import fod

    models = (monitor.model, monitor.tokenizer, monitor)
    other = {"abstain": {"backtrack_threshold": "threshold"}, "flare": {"flare_threshold": "threshold"}}.get(name, {})
    given = {other.get(option, option): value for option, value in options.items()}
    if name == "fod":
        config = fod.RepairConfig if given.pop("propose", None) == "branch" else fod.FODConfig
        given |= {"guards": given["guards"] == "yes"} if "guards" in given else {}
        return fod.FODGenerator(*models, config=config(**given))
    if name == "flare":
        passages = read_passages(given.pop("passages"), option="--passages")
        return fod.FLAREGenerator(*models, retriever=fod.PassageIndex(passages), **given)
    generators: dict[str, Any] = {"fod-backtrack": fod.BacktrackGenerator, "abstain": fod.AbstainGenerator}
    generators |= {name: fod.BestOfNGenerator for name in ("rerank", "best-of-n")} | {"cad": fod.CADGenerator}
    return generators[name](*models, **given)


def _answer(record: dict[str, Any], report: Report) -> dict[str, Any]:
    row = {"id": record.get("id"), "question": report.prompt.question, "response": report.response}
    return row | {"sentences": corpus.sentence_dicts(report), "stop": report.stop}


def _trace(output: Any) -> dict[str, Any]:
    """Build the trace of an answer, as far as its decoder reports one."""
    trace: dict[str, Any] = {"sampled_tokens": output.sampled_tokens, "dropped": _brief(output.dropped)}
    if output.message is not None:
        trace["message"] = output.message
    if output.thresholds is not None:
        trace["thresholds"] = asdict(output.thresholds)
    if (search := output.get("search")) is not None:
        trace |= {
            "backtracked": search.backtracked,
            "marked": list(output.marked),
            "hidden": [asdict(span) for span in output.report.hidden],
            "rounds": [
                {
                    "candidates": [_brief(c.sentences) for c in step.candidates],
                    "passed": len(step.passed),
                    "kept": [beam.faithfulness for beam in step.beams],
                }
                for step in search.rounds
            ],
            "tree": [node.to_dict() for node in output.trace],
        }
    if "rewards" in output:
        trace |= {"rewards": list(output.rewards), "chosen": output.chosen}
    if "retrievals" in output:
        trace["retrievals"] = [{"query": r.query.text, "passages": list(r.passages)} for r in output.retrievals]
    return trace


def _brief(sentences: tuple[SentenceScore, ...]) -> list[dict[str, Any]]:
    return [{"text": s.text, "score": s.score, "status": s.status, "reason": s.reason} for s in sentences]


def demo(args: argparse.Namespace) -> int:
    """Answer the demo questions, show each sentence as it comes, and write the page; returns the exit code."""
    import fod
    from syncheck.kit import demo_questions, load_kit

    if (args.question is None) != (args.context is None):
        raise InputError("--question and --context go together; pass both, or neither for the bundled questions")
    if args.question is None:
        questions = [(q.question, list(q.passages)) for q in demo_questions()]
    else:
        questions = [(args.question, read_passages(args.context, option="--context"))]
    monitor = load_kit("generation")
    generator = fod.FODGenerator(monitor.model, monitor.tokenizer, monitor, propose="branch")
    length = {"max_new_tokens": args.max_new_tokens}
    cases, target = [], Path(args.report)
    for question, passages in questions:
        prompt = monitor.prompt(question=question, context=passages)
        say(f"Q: {printable(question)}\n")
        answers = (
            _shown("greedy", monitor.stream(prompt, do_sample=False, **length)),
            _shown("FOD, branches", generator.stream(prompt, seed=args.seed, **length)),
        )
        cases.append(Case(question, prompt.passages, answers))
    target.write_text(render_html(cases, title="syncheck demo: greedy and faithfulness-oriented decoding"), "utf-8")
    say(f"Report: {target.resolve()}\n")
    return 0


def _shown(label: str, events: Iterable[syncheck.Event]) -> Answer:
    """Show the sentences of an answer as they come, and return it."""
    colour, number, is_empty, event = wants_colour(sys.stdout), 0, True, None
    say(f"-- {label}\n")
    for event in events:
        is_empty &= event.type not in ("sentence", "notice")
        if event.type == "sentence":
            number += 1
            say(render_sentence(number, event.sentence, colour=colour))
        elif event.type == "notice":
            say(f"     (given instead: {printable(event.text.strip())})\n")
    assert event is not None and event.type == "end"
    say("     (no sentence)\n\n" if is_empty else "\n")
    output = event.output
    tried = {} if output is None else {"dropped": output.dropped, "trace": output.trace}
    return Answer(label, event.report, **tried)
