"""The ``syncheck`` command: reads arguments, calls a command, turns errors into exit codes.

Exit codes: 0 done, 1 ``--fail-under`` missed, 2 bad usage or input or a failure of any kind, 130 interrupted by
Ctrl-C, 141 the reader of the output left (``| head``); the last two as a shell reports them of any program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import get_args

from syncheck import __version__
from syncheck.cli.decoder_options import add_decoding
from syncheck.cli.endings import INTERRUPTED, one_line_logs, reader_left
from syncheck.cli.options import (
    add_ablation,
    add_aligner,
    add_conversion,
    add_corpus,
    add_evaluation,
    add_extraction,
    add_gate,
    add_labels,
    add_transfer,
)
from syncheck.cli.options import count as _count
from syncheck.cli.outputs import check_files, held
from syncheck.cli.span_options import add_opening, add_spans, add_spans_score
from syncheck.config import DEFAULT_SCHEMA, AggregatorKind, LineBreaks
from syncheck.errors import describe_failure

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = _parser().parse_args(argv)
    try:
        with one_line_logs():
            check_files(args)
            with held(args):
                code = _run(args)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        return reader_left()
    except KeyboardInterrupt:
        sys.stderr.write(f"\nsyncheck {args.command}: interrupted{_kept(args)}\n")
        return INTERRUPTED
    except Exception as error:  # exit code 1 means a missed threshold, so nothing may end with a traceback
        sys.stderr.write(f"syncheck {args.command}: {describe_failure(error)}\n")
        return 2


def _kept(args: argparse.Namespace) -> str:
    """Say what an interrupted run leaves behind, and how to go on."""
    if args.command in ("score", "generate") and args.output != "-":
        return f"; {args.output} holds what was answered, and the same command with --resume goes on after it"
    if args.command == "features":
        return "; the same command goes on after the parts that are finished"
    return ""


def _run(args: argparse.Namespace) -> int:
    command = _command(args.command)
    from transformers.utils.logging import disable_progress_bar

    from syncheck.cli.monitors import check_device

    if not sys.stderr.isatty():
        disable_progress_bar()
    check_device(getattr(args, "device", "cpu"))
    return int(command(args))


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    # Imported here, so that --help does not wait for torch.
    from syncheck.cli import ablate, calibrate, convert_aligner, demo, evaluate, generate, score, spans, train, transfer

    table: dict[str, Callable[[argparse.Namespace], int]] = {
        "demo": demo.run,
        "score": score.run,
        "spans": spans.spans,
        "spans-score": spans.score,
        "generate": generate.run,
        "train": train.train,
        "features": train.features,
        "evaluate": evaluate.run,
        "ablate": ablate.run,
        "transfer": transfer.run,
        "calibrate": calibrate.run,
        "convert-aligner": convert_aligner.run,
    }
    return table[name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="syncheck", description="Score every sentence of a RAG answer for faithfulness."
    )
    parser.add_argument("--version", action="version", version=f"syncheck {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(commands.add_parser("demo", help="answer questions with the bundled model, greedily and by FOD"))
    _add_score(commands.add_parser("score", help="score given responses, sentence by sentence"))
    add_spans(commands.add_parser("spans", help="mark the wrong characters of responses, in any language"))
    add_spans_score(commands.add_parser("spans-score", help="score predicted spans: IoU and correlation"))
    _add_generate(commands.add_parser("generate", help="answer questions and score the answers"))
    _add_train(commands.add_parser("train", help="train a monitor on labelled responses"))
    _add_features(commands.add_parser("features", help="measure labelled responses once, for train and evaluate"))
    _add_evaluate(
        commands.add_parser("evaluate", help="compute the AUROC of a monitor's signals on labelled responses")
    )
    _add_ablate(commands.add_parser("ablate", help="compute the AUROC without each signal in turn"))
    _add_transfer(commands.add_parser("transfer", help="train on one generator, task or file and test on another"))
    _add_calibrate(commands.add_parser("calibrate", help="calibrate scores and choose a threshold on held-out data"))
    add_conversion(
        commands.add_parser("convert-aligner", help="convert an AlignScore .ckpt to a folder of safetensors")
    )
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--question", metavar="TEXT", help="a question of your own; needs --context (six bundled questions)"
    )
    parser.add_argument("--context", metavar="FILE", help="text file whose paragraphs are the passages for --question")
    parser.add_argument("--report", default="report.html", metavar="FILE", help="file for the HTML page (%(default)s)")
    parser.add_argument(
        "--max-new-tokens",
        type=_count,
        default=160,
        metavar="N",
        help="largest number of tokens in an answer (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed for the sampling of FOD (%(default)s)")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="DIR_OR_ID", help="causal language model (the bundled one)")
    group.add_argument(
        "--monitor",
        metavar="DIR",
        help="a monitor trained for --model, or generic, the bundled one that reads text alone (the kit's own)",
    )
    group.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (%(default)s)")
    add_aligner(parser, "for a --model without --monitor (bundled)")


def _add_segmenter(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "sentences", "by default those of NLTK's untrained Punkt; only for a --model without --monitor"
    )
    group.add_argument(
        "--abbreviations", choices=("english",), help="words whose full stop does not end a sentence (none)"
    )
    group.add_argument("--line-breaks", choices=get_args(LineBreaks), help="which line breaks end a sentence (none)")
    group.add_argument(
        "--cjk-stops", action="store_true", help="let Chinese and Japanese full stops end sentences (off)"
    )
    group.add_argument(
        "--clauses", action="store_true", help="let commas, semicolons and colons end sentences too (off)"
    )
    group.add_argument("--sentences-together", type=_count, metavar="N", help="treat N sentences as one (1)")


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", default="-", metavar="FILE", help="JSON Lines file, or - for standard input (%(default)s)"
    )
    parser.add_argument(
        "--output", default="-", metavar="FILE", help="JSON Lines file, or - for standard output (%(default)s)"
    )


def _add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue after what --output already answers; refused if records, models or options changed (off)",
    )


def _add_score(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_segmenter(parser)
    _add_files(parser)
    parser.add_argument("--tokens", action="store_true", help="also write the signals of every token (off)")
    parser.add_argument(
        "--sentences",
        choices=("found", "given"),
        default="found",
        help="find the sentences in the response, or take those given in the record (%(default)s)",
    )
    parser.add_argument(
        "--lid-reference",
        metavar="FILE",
        help="reference activations for a --model without --monitor: arrays layer_<k>, (T, H) (none: LID is null)",
    )
    add_opening(parser)
    add_gate(parser)
    _add_resume(parser)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_segmenter(parser)
    _add_files(parser)
    _add_resume(parser)
    add_decoding(parser)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", required=True, metavar="PATH", help="RAGTruth folder, labelled JSON Lines, or the output of features"
    )
    add_corpus(parser)
    _add_segmenter(parser)
    parser.add_argument("--seed", type=int, default=0)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="DIR_OR_ID", help="causal language model (the bundled one)")
    add_aligner(parser, "(bundled)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    _add_data(parser)
    add_labels(parser)
    parser.add_argument(
        "--aggregator",
        choices=(*get_args(AggregatorKind), "best"),
        default="best",
        help="kind of aggregator; best chooses by grouped cross-validation (%(default)s)",
    )
    parser.add_argument("--schema", default=DEFAULT_SCHEMA, help="feature schema (%(default)s)")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="plot of the AUROC of each kind on held-out folds, in the format of the ending: .png, .svg, ...",
    )
    parser.add_argument("--output", required=True, metavar="DIR")


def _add_features(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_segmenter(parser)
    parser.add_argument("--data", required=True, metavar="PATH", help="RAGTruth folder, or labelled JSON Lines")
    parser.add_argument("--schema", help=f"features of a --model without --monitor ({DEFAULT_SCHEMA})")
    parser.add_argument("--output", required=True, metavar="FILE", help="Parquet file with one row per sentence")
    add_extraction(parser)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_data(parser)
    parser.add_argument("--schema", help=f"features of a --model without --monitor ({DEFAULT_SCHEMA})")
    add_evaluation(parser)


def _add_ablate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_segmenter(parser)
    add_ablation(parser)


def _add_transfer(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_segmenter(parser)
    add_transfer(parser)


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_data(parser)
    add_labels(parser)
    parser.add_argument("--method", choices=("isotonic", "platt"), default="isotonic")
    parser.add_argument(
        "--risk",
        type=_risk,
        default=0.05,
        help="largest share of released sentences that may be unfaithful (%(default)s); 'none' chooses no threshold",
    )
    parser.add_argument("--confidence", type=_open_share, help="probability that --risk is not exceeded (0.9)")
    parser.add_argument(
        "--every-sentence",
        action="store_true",
        help="choose the threshold on all sentences, which must be independent of each other, instead of one random "
        "sentence of each question",
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="reliability diagram, in the format of the ending: .png, .svg, ..."
    )
    parser.add_argument("--output", metavar="DIR", help="folder for the calibrated monitor")


def _risk(text: str) -> float | None:
    return None if text == "none" else _open_share(text)


def _open_share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and below 1; found {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
