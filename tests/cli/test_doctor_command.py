"""``syncheck doctor``: what is installed, what does not go together, and what mends it."""

import sys

import pytest
from boundaries import ROOT
from command_runs import LLAMA
from packaging.requirements import Requirement

from syncheck.aligners.reader import network as reader_network
from syncheck.cli import doctor, main


@pytest.mark.parametrize("offline", [False, True])
def test_nothing_is_wrong_here(capsys, monkeypatch, offline):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    assert main(["doctor", "--model", str(LLAMA)]) == 0
    shown = capsys.readouterr().out
    assert "torch" in shown and "LlamaForCausalLM" in shown and ("unset HF_HUB_OFFLINE" in shown) == offline
    assert shown.endswith("nothing to mend\n")


def test_a_model_that_cannot_be_loaded_is_to_be_mended(capsys, tmp_path):
    assert main(["doctor", "--model", str(tmp_path)]) == 2
    assert f"bad   --model {tmp_path}" in capsys.readouterr().out


def test_missing_and_conflicting_packages_have_the_command_that_mends_them():
    required = [Requirement(line) for line in ("torch>=99", "no-such-package>=1", "numpy", "gone; extra == 'data'")]
    found = {finding.text: finding for finding in doctor.packages(required)}
    (torch,) = (finding for text, finding in found.items() if text.startswith("torch"))
    assert torch.state == "bad" and torch.remedy == "pip install 'torch>=99'"
    assert found["no-such-package is not installed"].remedy == "pip install 'no-such-package>=1'"
    assert not any("gone" in text for text in found)


@pytest.mark.parametrize(
    ("line", "state"), [("numpy", "ok"), ("no-such-package", "note"), ("numpy>=99", "bad"), ("numpy<1", "bad")]
)
def test_an_extra_may_be_absent_but_not_wrong(line, state):
    found = list(doctor.extras([Requirement(f"{line}; extra == 'data'")]))
    (data,) = (finding for finding in found if finding.text.split(":")[0] == "data")
    assert data.state == state and (state == "ok") == (data.remedy is None)


def test_a_torch_that_cannot_be_loaded_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["doctor"]) == 2
    assert "torch cannot be used" in capsys.readouterr().out


def test_the_reader_s_encoder_can_come_from_the_hub_or_in_packages(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(reader_network, "_packaged", list)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    documented = (ROOT / "docs" / "models.md").read_text(encoding="utf-8").replace(" \\\n     ", "")
    for command in (reader_network.INSTALL, reader_network.INSTALL_PACKAGES):
        assert f"{command}\n" in shown and f"$ {command}\n" in documented
