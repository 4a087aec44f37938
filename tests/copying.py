"""A small trained language model that copies from passages, with its monitor: real weights for laws and quick tests."""

import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from syncheck import Monitor
from syncheck.aligners import load_aligner

FOLDER = Path(__file__).parent / "copying_model"
QUESTIONS = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
"""Records with ``question`` and ``passages`` from articles that the model was not trained on."""
MODEL = FOLDER / "language_model"
MONITOR = FOLDER / "monitor"


def copying_model(device="cpu"):
    """Load the model, in float32, and its tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(MODEL, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, local_files_only=True)
    return model.to(device).eval(), tokenizer


def copying_monitor(device="cpu"):
    """Load the monitor that was trained for it, with the bundled aligner."""
    model, tokenizer = copying_model(device)
    aligner = load_aligner("bundled", device=device)
    return Monitor.from_pretrained(MONITOR, model=model, tokenizer=tokenizer, aligner=aligner)
