"""Groups of claims about made-up rooms, by source, and the encoder of the reader's texts."""

from importlib.resources import files

from contrast_pairs import CONTRADICTED, SUPPORTED, Claim, ContrastGroup
from reader_data import Encoder
from tokenizers import Tokenizer


def reader_encoder():
    folder = files("syncheck") / "assets" / "reader"
    return Encoder(Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8")))


def groups_by_source():
    def group(name, source):
        passages = tuple(f"{name} has {number} rooms with doors and windows." for number in range(6))
        claims = [
            Claim(f"{name} has {number} {kind}.", label, "j")
            for number in range(8)
            for kind, label in (("rooms", SUPPORTED), ("cellars", CONTRADICTED))
        ]
        return ContrastGroup(passages, tuple(claims), source, name)

    return {
        source: [group(f"{source.title()} {number}", source) for number in range(12)]
        for source in ("matched", "written", "edits")
    }
