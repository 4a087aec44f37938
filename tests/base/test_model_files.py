"""Files of models: whole or refused."""

import hashlib
import os

import pytest

from syncheck.base.errors import CheckpointError
from syncheck.base.pretrained import ModelFile

CONTENT = bytes(range(256)) * 4096
FILE = ModelFile(hashlib.sha256(CONTENT).hexdigest(), "get it again")


def test_the_whole_file_passes_and_another_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "model").write_bytes(CONTENT)
    FILE.check(tmp_path / "model")
    (tmp_path / "model").write_bytes(CONTENT[:-1])
    with pytest.raises(CheckpointError, match="model is not the file that was published.*get it again"):
        FILE.check(tmp_path / "model")


@pytest.mark.parametrize("damage", ["gone", "a folder", "a pipe", "a link to nothing"])
def test_what_is_no_file_is_refused(tmp_path, damage):
    path = tmp_path / "model"
    if damage == "a folder":
        path.mkdir()
    elif damage == "a pipe":
        os.mkfifo(path)
    elif damage == "a link to nothing":
        path.symlink_to("nowhere")
    with pytest.raises(CheckpointError, match="model"):
        FILE.check(path)
