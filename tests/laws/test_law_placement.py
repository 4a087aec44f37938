"""Models that are quantised, split over processes or run by continuous batching: their own forward is the reference."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from doubles import LAYERS
from families import family
from first_principles import NATS, SIGNALS, from_scratch
from torch import nn
from transformers import ContinuousBatchingConfig, GenerationConfig
from watched import TEXT, RecordingMonitor, scripted

from syncheck import Monitor, MonitorConfig
from syncheck.base.errors import UnsupportedModelError
from syncheck.base.pretrained import same_weights, weights_sha256

deprecated = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
]


class Int8Linear(nn.Module):
    """Weights of a byte each, with a scale for each output."""

    def __init__(self, linear):
        super().__init__()
        scale = linear.weight.detach().abs().amax(dim=1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("weight", (linear.weight.detach() / scale).round().to(torch.int8))

    def forward(self, states):
        return nn.functional.linear(states, self.weight.to(states.dtype) * self.scale.to(states.dtype))


def by_hand(model):
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear) and name != "lm_head":
                setattr(module, name, Int8Linear(child))
    return model


def by_torch(model, dtype=torch.float16):
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=dtype)


def by_torchao(model):
    torchao = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    torchao.quantize_(model, torchao.Int8WeightOnlyConfig())
    return model


@pytest.fixture
def plain():
    found = family("llama")
    return replace(found, model=found.recipe.build())  # to be quantised in place


@pytest.mark.parametrize("quantised", [by_hand, pytest.param(by_torch, marks=deprecated), by_torchao])
def test_quantised_weights(plain, quantised):
    before = weights_sha256(plain.model)
    small = replace(plain, model=quantised(plain.model))
    monitor, prompt = RecordingMonitor.of(small), small.prompt()
    (ids,), script = scripted(small, TEXT)
    live = monitor.generate(prompt, logits_processor=script, max_new_tokens=len(ids)).tokens
    replayed = monitor.score(prompt, response_token_ids=ids).tokens
    own = from_scratch(small, prompt, ids)
    for name in SIGNALS:
        np.testing.assert_allclose(getattr(live, name), getattr(own, name), atol=NATS, err_msg=name)
        np.testing.assert_allclose(getattr(replayed, name), getattr(own, name), atol=NATS, err_msg=name)
    after = weights_sha256(small.model)
    assert after == weights_sha256(small.model)
    assert not same_weights(before, after), "a quantised copy is another model"


@pytest.mark.parametrize("dtype", [pytest.param(torch.qint8, marks=deprecated)])
def test_activations_that_are_rounded_together_are_refused(plain, dtype):
    with pytest.raises(UnsupportedModelError, match="int8"):
        RecordingMonitor.of(plain, by_torch(plain.model, dtype))


def test_an_answer_of_continuous_batching_is_measured_when_it_is_there(golden, make_monitor):
    """Its loop runs in a thread of its own and packs all sequences into one row: a watch sees no token of it."""
    monitor = make_monitor(golden)
    prompts = [
        monitor.prompt(question="Who?", context=[text]) for text in ("Angus Scott is a farmer.", "It is a river.")
    ]
    alone = [monitor.generate(prompt, max_new_tokens=9) for prompt in prompts]
    config = GenerationConfig(max_new_tokens=9, do_sample=False, eos_token_id=1, pad_token_id=2)
    small = ContinuousBatchingConfig(num_blocks=8, max_batch_tokens=256)  # else it takes most of the memory
    with monitor.attach(prompts[0]) as watch:
        out = golden.model.generate_batch(
            [list(p.with_context_ids) for p in prompts], generation_config=config, continuous_batching_config=small
        )
        ids = [answer.generated_tokens for answer in out.values()]
        assert watch.sentences == ()
    report = watch.report([[*prompts[0].with_context_ids, *ids[0]]])
    assert ids == [found.tokens.token_ids.tolist() for found in alone]
    for found, wanted in ((report, alone[0]), (monitor.score(prompts[1], response_token_ids=ids[1]), alone[1])):
        for name in SIGNALS:
            np.testing.assert_allclose(getattr(found.tokens, name), getattr(wanted.tokens, name), atol=NATS)


SPLIT = """
import json, os, sys

import torch
import torch.distributed
from transformers import AutoModelForCausalLM, AutoTokenizer, DistributedConfig

from syncheck import Monitor, MonitorConfig
from syncheck.base.pretrained import weights_sha256

folder, monitor, out = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder, distributed_config=DistributedConfig(tp_plan="auto")).eval()
split = Monitor.from_pretrained(monitor, model=model, tokenizer=AutoTokenizer.from_pretrained(folder))
prompt = split.prompt(question="Who?", context=["Angus Scott is a farmer."])
live = split.generate(prompt, max_new_tokens=12, do_sample=True, generator=torch.Generator().manual_seed(3))
again = split.score(prompt, response_token_ids=live.tokens.token_ids.tolist())
found = {
    "shape": list(model.model.layers[0].mlp.gate_proj.weight.to_local().shape),
    "weights": weights_sha256(model),
    "reports": [live.to_dict(), again.to_dict()],
}
with open(f"{out}-{os.environ['RANK']}.json", "w") as file:
    json.dump(found, file)
torch.distributed.destroy_process_group()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="gloo and torchrun as on Linux")
def test_a_model_that_is_split_over_two_processes(llama, tmp_path):
    """Tensor parallel: each process has half of the weights, and all of them measure the same."""
    config = MonitorConfig(schema="syncheck.v3", layers=LAYERS)
    whole = Monitor(llama.model, llama.tokenizer, config=config, lid_references=llama.lid_references)
    whole.save_pretrained(tmp_path / "monitor")
    (tmp_path / "split.py").write_text(SPLIT)
    folder = Path(__file__).parents[1] / "golden" / "signals" / "llama"
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(tmp_path / "split.py")]
    found = subprocess.run(
        [sys.executable, *command, str(folder), str(tmp_path / "monitor"), str(tmp_path / "out")],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr.decode()[-3000:]
    ranks = [json.loads((tmp_path / f"out-{rank}.json").read_text()) for rank in range(2)]
    shape = llama.model.model.layers[0].mlp.gate_proj.weight.shape
    assert [rank["shape"] for rank in ranks] == [[shape[0] // 2, shape[1]]] * 2
    assert ranks[0]["weights"] == ranks[1]["weights"] == weights_sha256(llama.model)
    prompt = whole.prompt(question="Who?", context=["Angus Scott is a farmer."])
    ids = [token["id"] for token in ranks[0]["reports"][0]["tokens"]]
    wanted = whole.score(prompt, response_token_ids=ids).to_dict()
    for rank in ranks:
        for report in rank["reports"]:
            assert [token["id"] for token in report["tokens"]] == ids
            for token, other in zip(report["tokens"], wanted["tokens"], strict=True):
                assert [token[name] for name in SIGNALS] == pytest.approx([other[n] for n in SIGNALS], abs=NATS)
            for sentence, other in zip(report["sentences"], wanted["sentences"], strict=True):
                assert sentence["features"] == pytest.approx(other["features"], abs=1e-3, nan_ok=True)
