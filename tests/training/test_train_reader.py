"""The starter kit's training of the reader: the network, its loss, the run, and what is packed and reported."""

import random
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import reader_data
import reader_pruning
import torch
import train_reader
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED, Claim, ContrastGroup
from reader_data import UNLABELLED
from reader_pruning import Kept, as_arrays, from_arrays, kept_of, pruned_updates, worths
from transformers import MPNetConfig, MPNetModel

from syncheck.aligners.reader import network as reader_network
from syncheck.aligners.reader.aligner import PassageWindows
from syncheck.aligners.reader.layers import NORM_EPS
from syncheck.aligners.reader.network import BEGIN, END


@pytest.fixture(scope="module")
def mpnet():
    """An MPNet of two layers with random weights, which are large enough to tell places apart."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 514}
    config = MPNetConfig(vocab_size=30527, num_hidden_layers=2, initializer_range=0.2, layer_norm_eps=NORM_EPS, **sizes)
    return MPNetModel(config, add_pooling_layer=False).eval()


LEFT = [Kept(torch.tensor([0, 3]), torch.arange(1, 48, 2)), Kept(torch.tensor([1, 2, 3]), torch.arange(40))]


@pytest.fixture(params=[None, LEFT], ids=["whole", "pruned"])
def kept(request):
    """What is left of both layers."""
    return request.param


def with_updates(mpnet, kept=None):
    """Make a reader on an encoder, with random updates."""
    reader = train_reader.trainable(deepcopy(mpnet), seed=0, layers=2, read_once=1, kept=kept).eval()
    for name, parameter in reader.trained.items():
        if name.endswith(".up"):
            torch.nn.init.normal_(parameter, std=0.05)
    return reader


@pytest.fixture
def tiny(mpnet, kept):
    return with_updates(mpnet, kept)


@pytest.fixture
def unpruned(mpnet):
    return with_updates(mpnet)


def rows_of(*lengths):
    """Make rows with so many tokens of passages, a chunk of at most 50 after another, and of claims."""
    rng = random.Random(0)
    rows = []
    for premise, claim in lengths:
        tokens = rng.sample(range(1000, 9000), premise)
        windows = PassageWindows([tokens[start : start + 50] for start in range(0, premise, 50)])
        parts = windows.parts(range(len(windows.lengths)), 50)
        joint = [parts[0], *parts[1::2]]
        asked = rng.sample(range(1000, 9000), claim)
        rows.append(reader_data.Row(windows, parts, joint, parts, asked, SUPPORTED, "j", 0))
    return rows


@torch.inference_mode()
def test_a_padded_batch_is_judged_like_each_claim_alone(tiny):
    rows = rows_of((7, 3), (350, 12), (1, 1), (40, 30))
    alone = torch.cat([tiny(reader_data.collated([row])) for row in rows])
    assert alone.std(0).min() > 0.01
    assert tiny(reader_data.collated(rows)).numpy() == pytest.approx(alone.numpy(), abs=1e-4)


@torch.inference_mode()
def test_a_reader_of_one_text_is_mpnet_and_reads_the_mark_before_the_claim_and_the_mean_over_it(mpnet):
    (row,) = rows_of((140, 9))
    reader = train_reader.trainable(deepcopy(mpnet), seed=0, layers=2, read_once=0).eval()
    ids = torch.tensor([[BEGIN, *row.windows.ids[0], END, *row.claim, END]])
    states = mpnet(input_ids=ids).last_hidden_state[0]
    read = torch.cat([states[141], states[142:].mean(0)])
    expected = reader.verdict(torch.tanh(reader.hidden(read)))
    assert reader(reader_data.collated([row]))[0].numpy() == pytest.approx(expected.numpy(), abs=1e-5)


@torch.inference_mode()
def test_a_reader_of_one_text_reads_more_of_the_passages(mpnet):
    (row,) = rows_of((140, 9))
    narrow = replace(row, seen=row.seen[:2], joint=row.seen[:2])
    once, whole = (
        train_reader.trainable(deepcopy(mpnet), seed=0, layers=2, read_once=number).eval() for number in (1, 0)
    )
    assert torch.equal(*(whole(reader_data.collated([given])) for given in (row, narrow)))
    assert not torch.allclose(*(once(reader_data.collated([given])) for given in (row, narrow)), atol=1e-3)


@torch.inference_mode()
def test_in_bfloat16_it_judges_nearly_the_same(mpnet, kept, tiny):
    halved = train_reader.trainable(deepcopy(mpnet).bfloat16(), seed=0, layers=2, read_once=1, kept=kept).eval()
    halved.load_state_dict({name: p for name, p in tiny.named_parameters() if p.requires_grad}, strict=False)
    batch = reader_data.collated(rows_of((7, 3), (150, 12)))
    found = halved(batch)
    assert found.dtype == torch.float32
    assert found.numpy() == pytest.approx(tiny(batch).numpy(), abs=0.05)


def test_only_updates_and_the_head_are_trained_and_only_the_outputs_of_sublayers_are_dropped_out(tiny):
    trained = {name.rpartition(".")[2] if "encoder" in name else name
               for name, p in tiny.named_parameters() if p.requires_grad}  # fmt: skip
    assert trained == {"down", "up", "hidden.weight", "hidden.bias", "verdict.weight", "verdict.bias"}
    assert sum(isinstance(module, train_reader.Updated) for module in tiny.modules()) == 6 * 2
    dropped = {name for name, module in tiny.named_modules() if isinstance(module, torch.nn.Dropout)}
    assert dropped == {"encoder.embeddings.dropout"} | {
        f"encoder.encoder.layer.{layer}.{half}.dropout"
        for layer in range(2)
        for half in ("attention.attn", "attention", "output")
    }


def test_the_loss_is_lower_where_claims_of_one_context_are_ordered_rightly():
    labels = torch.tensor([SUPPORTED, UNSUPPORTED])
    logits = torch.tensor([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], requires_grad=True)
    same, other = (train_reader.loss_of(logits, labels, torch.tensor(contexts)) for contexts in ([0, 0], [0, 1]))
    gap = train_reader.support_margin(logits).detach().diff().item()
    assert (same - other).item() == pytest.approx(train_reader.PAIR_WEIGHT * torch.tensor(gap).exp().log1p().item())
    other.backward()
    assert logits.grad[0, SUPPORTED] < 0 < logits.grad[1, SUPPORTED]
    assert logits.grad[1, CONTRADICTED] == pytest.approx(logits.grad[1, NOT_STATED].item())


@pytest.fixture
def small(monkeypatch):
    """Pools of few groups and batches of few tokens."""
    monkeypatch.setattr(reader_data, "POOL_GROUPS", 3)
    monkeypatch.setattr(reader_data, "BATCH_TOKENS", 2500)


def test_a_run_that_was_resumed_is_the_one_without_interruption(encoder, groups, mpnet, unpruned, small, tmp_path):
    def begun(name):
        (tmp_path / name).mkdir(exist_ok=True)
        model = train_reader.trainable(deepcopy(mpnet), seed=3, layers=2, read_once=1).train()
        run = train_reader.Run(model, tmp_path / name, minutes=9, seed=3, teacher=unpruned)
        return run, run.batches(reader_data.Pools(groups, encoder, seed=3, unlabelled=True), workers=0)

    whole, batches = begun("whole")
    losses = [whole.step(next(batches)) for _ in range(5)]
    assert whole.progress["pool"] > 0
    for steps in (2, 3):
        run, batches = begun("parts")
        for _ in range(steps):
            loss = run.step(next(batches))
        run.save()
    assert run.told() == whole.told()
    assert loss.item() == losses[-1].item()
    for name, value in whole.average.items():
        assert torch.equal(run.average[name], value)
        assert torch.equal(run.trained[name], whole.trained[name])


def test_a_step_learns_from_the_verdicts_of_a_teacher(mpnet, unpruned, tmp_path):
    model = train_reader.trainable(deepcopy(mpnet), seed=3, layers=2, read_once=1).eval()
    batch = reader_data.collated(rows_of((40, 9), (70, 20)))
    labels, contexts = torch.from_numpy(batch.labels), torch.from_numpy(batch.contexts)
    expected = train_reader.loss_of(model(batch), labels, contexts, unpruned(batch)).item()
    assert expected != pytest.approx(train_reader.loss_of(model(batch), labels, contexts).item(), rel=0.01)
    loss = train_reader.Run(model, tmp_path, minutes=1, seed=0, teacher=unpruned).step(batch)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_the_running_mean_follows_quickly_at_first_and_the_rate_rises_and_falls(unpruned, tmp_path):
    run = train_reader.Run(unpruned, tmp_path, minutes=1, seed=0)
    before = {name: p.detach().clone() for name, p in run.trained.items()}
    batch = reader_data.collated(rows_of((7, 3)))

    def rate(step, seconds):
        run.progress |= {"step": step, "seconds": seconds}
        run.step(batch)
        return run.optimizer.param_groups[0]["lr"] / train_reader.LEARNING_RATES["whole"]

    rates = [rate(0, 0)]
    for name, value in run.average.items():
        assert torch.allclose(value, before[name].lerp(run.trained[name].detach(), 10 / 11), atol=1e-6)
    rates += [rate(*at) for at in ((29, 0), (100, 0), (100, 12), (100, 36), (100, 60))]
    assert rates == pytest.approx([1 / 60, 0.5, 1, 1, 0.5, train_reader.LEAST_RATE])


def test_a_run_saves_what_it_learnt_when_its_time_is_up_and_goes_no_further(
    encoder, groups, unpruned, small, tmp_path, monkeypatch
):
    monkeypatch.setattr(train_reader.signal, "signal", lambda *_: None)
    run = train_reader.Run(unpruned, tmp_path, minutes=1e-9, seed=0)
    pools = reader_data.Pools(groups, encoder, seed=0)
    for _ in range(2):
        train_reader.train(run, pools, [], save_minutes=1, workers=0)
        assert train_reader.Run(unpruned, tmp_path, minutes=1e-9, seed=0).progress == run.progress
        assert run.progress["step"] == 1
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


def test_what_is_packed_are_the_updates_of_each_matrix_and_the_head(tiny):
    names = {name for name, p in tiny.named_parameters() if name.endswith((".down", ".up"))}
    trained = {name: p.detach() for name, p in tiny.named_parameters() if p.requires_grad}
    arrays = train_reader.packed(trained)
    for name in names:
        matrix, _, factor = name.removeprefix("encoder.encoder.").rpartition(".")
        tiny.encoder.encoder.get_submodule(matrix)
        value = arrays[f"{matrix}.{factor}.int8"] * arrays[f"{matrix}.{factor}.step"]
        assert value.numpy() == pytest.approx(trained[name].numpy(), abs=0.01)
    assert len(arrays) == 2 * len(names) + 4


@torch.inference_mode()
def test_what_is_packed_reads_like_what_was_trained(mpnet, kept, tiny, monkeypatch):
    monkeypatch.setattr(train_reader, "LAYERS", 2)
    monkeypatch.setattr(train_reader, "READ_ONCE", 1)
    rows = rows_of((40, 9), (270, 20), (1, 1), (25, 30))
    arrays = train_reader.packed({name: p.detach() for name, p in tiny.trained.items()}) | as_arrays(tiny.kept)
    in_float = train_reader.in_float(mpnet.state_dict(), arrays, 2, 1)
    largest = train_reader.largest_inputs(in_float, rows)
    rounded = reader_network._network(mpnet.state_dict(), arrays | largest, 2, 1).eval()
    exact = torch.cat([tiny(reader_data.collated([row])) for row in rows])
    found = {
        name: torch.cat([network.judge([train_reader.text_of(network, row)]) for row in rows])
        for name, network in (("in float", in_float), ("rounded", rounded))
    }
    errors = {name: (logits - exact).square().mean().sqrt() / exact.std(0).mean() for name, logits in found.items()}
    assert errors["in float"] < 0.1  # of the updates alone
    assert errors["rounded"] < 0.2
    untrained = train_reader.trainable(deepcopy(mpnet), seed=0, layers=2, read_once=1, kept=kept).eval()
    untrained.hidden, untrained.verdict = tiny.hidden, tiny.verdict
    before = torch.cat([untrained(reader_data.collated([row])) for row in rows])
    assert (before - exact).square().mean().sqrt() > 0.5 * exact.std(0).mean()


@torch.inference_mode()
def test_the_largest_inputs_are_those_of_windows_and_claims(mpnet, tiny, monkeypatch):
    monkeypatch.setattr(train_reader, "LAYERS", 2)
    monkeypatch.setattr(train_reader, "READ_ONCE", 1)
    rows = rows_of((40, 9), (70, 20))
    arrays = train_reader.packed({name: p.detach() for name, p in tiny.trained.items()}) | as_arrays(tiny.kept)
    largest = train_reader.largest_inputs(train_reader.in_float(mpnet.state_dict(), arrays, 2, 1), rows)
    assert set(largest) == {
        f"layer.{layer}.{name}.largest"
        for layer in range(2) for name in ("query_key_value", "attended", "inner", "outer")
    }  # fmt: skip
    texts = [([BEGIN, *row.windows.ids[0]], 0) for row in rows]
    texts += [([END, *row.claim, END], len(row.windows.ids[0]) + 1) for row in rows]
    embedded = [
        mpnet.embeddings(input_ids=torch.tensor([ids]), position_ids=torch.arange(len(ids))[None] + first + 2)
        for ids, first in texts
    ]
    expected = torch.stack([each[0].abs().amax(0) for each in embedded]).amax(0)
    assert largest["layer.0.query_key_value.largest"].numpy() == pytest.approx(expected.numpy(), rel=1e-5)


def test_what_is_not_labelled_counts_only_by_the_verdicts_of_another_reader():
    labels, contexts = torch.tensor([SUPPORTED, UNLABELLED, CONTRADICTED]), torch.zeros(3)
    logits = torch.tensor([[0.0, 1.0, 0.0], [3.0, -1.0, 0.0], [0.5, 0.0, 0.0]])
    other = torch.cat([logits[:1], torch.zeros(1, 3), logits[2:]])
    alone = [train_reader.loss_of(given, labels, contexts) for given in (logits, other)]
    assert alone[0] == alone[1]
    assert alone[0].item() == pytest.approx(
        train_reader.loss_of(logits[::2], labels[::2], contexts[::2]).item(), rel=1e-6
    )
    agreeing, not_agreeing = (train_reader.loss_of(given, labels, contexts, logits) for given in (logits, other))
    assert agreeing.item() == pytest.approx(train_reader.LABEL_WEIGHT * alone[0].item())
    assert not_agreeing > agreeing + 0.1


def test_a_second_run_begins_with_the_first_layers_of_the_first_one(mpnet, tmp_path, monkeypatch):
    monkeypatch.setattr(train_reader, "encoder_on", lambda device: deepcopy(mpnet))
    monkeypatch.setattr(train_reader, "LAYERS", 1)
    args = SimpleNamespace(device="cpu", seed=0, start=tmp_path, teacher=None, share=None)
    first, _ = train_reader.whole(args)
    for parameter in first.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.1)
    run = train_reader.Run(first, tmp_path, minutes=1, seed=0)
    run.average = {name: parameter.detach() for name, parameter in run.trained.items()}
    run.save()
    model, teacher = train_reader.started(args, pools=None)
    batch = reader_data.collated(rows_of((40, 9), (70, 20)))
    assert torch.equal(teacher(batch), first.eval()(batch))
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    learnt = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert {name.split(".")[3] for name in learnt if name.startswith("encoder")} == {"0"}
    assert all(torch.equal(parameter, run.average[name]) for name, parameter in learnt.items())


def test_the_worth_of_heads_and_neurons_is_the_mean_square_of_the_slope_by_their_factor(unpruned):
    batches = [reader_data.collated(rows_of(*sizes)) for sizes in (((40, 9), (70, 20)), ((7, 3),))]
    found = worths(unpruned, 1, batches, train_reader.loss_of)
    last = unpruned.encoder.encoder.layer[1]

    def slope(batch, module, columns):
        losses = []
        for factor in (1.02, 0.98):
            gate = torch.ones(module.base.in_features)
            gate[columns] = factor
            hook = module.register_forward_pre_hook(lambda _, given, gate=gate: given[0] * gate)
            labels, contexts = torch.from_numpy(batch.labels), torch.from_numpy(batch.contexts)
            losses.append(train_reader.loss_of(unpruned(batch), labels, contexts).item())
            hook.remove()
        return (losses[0] - losses[1]) / 0.04

    def expected(module, columns):
        return sum(slope(batch, module, columns) ** 2 for batch in batches) / len(batches)

    neuron = found[1].neurons.argmax().item()
    head = found[1].heads.argmax().item()
    assert found[1].neurons[neuron].item() == pytest.approx(expected(last.output.dense, [neuron]), rel=0.05)
    columns = slice(8 * head, 8 * head + 8)
    assert found[1].heads[head].item() == pytest.approx(expected(last.attention.attn.o, columns), rel=0.05)
    assert found[1].neuron_work < found[0].neuron_work  # of the last layer only the claim's tokens are asked for


def test_what_is_left_is_worth_most_for_its_work_and_takes_no_more_than_the_share(unpruned, monkeypatch):
    monkeypatch.setattr(reader_pruning, "NEURON_STEP", 4)
    found = worths(unpruned, 1, [reader_data.collated(rows_of((40, 9), (70, 20)))], train_reader.loss_of)
    everything = [worth.kept(0.0) for worth in found]
    assert [(len(of.heads), len(of.neurons)) for of in everything] == [(4, 48), (4, 48)]
    sizes = []
    for share in (0.4, 0.7):
        kept = kept_of(found, share)
        work, whole = (
            sum(worth.work(of) for worth, of in zip(found, left, strict=True)) for left in (kept, everything)
        )
        assert share - 0.2 < work / whole <= share
        for worth, of in zip(found, kept, strict=True):
            for values, left in ((worth.heads, of.heads), (worth.neurons, of.neurons)):
                gone = sorted(set(range(len(values))) - set(left.tolist()))
                assert all(values[gone] <= values[left].min())
        again = from_arrays(as_arrays(kept))
        assert all(torch.equal(*both) for pair in zip(kept, again, strict=True) for both in zip(*pair, strict=True))
        sizes.append(work)
    assert sizes[0] < sizes[1]


@torch.inference_mode()
def test_a_pruned_reader_is_one_whose_other_heads_and_neurons_give_nothing(mpnet, unpruned):
    pruned = train_reader.trainable(deepcopy(mpnet), seed=1, layers=2, read_once=1, kept=LEFT).eval()
    updates = {name: p.detach() for name, p in unpruned.trained.items()}
    pruned.load_state_dict(pruned_updates(updates, LEFT, head_width=8), strict=False)
    batch = reader_data.collated(rows_of((40, 9), (170, 20)))
    whole = unpruned(batch)
    for layer, (heads, neurons) in zip(unpruned.encoder.encoder.layer, LEFT, strict=True):
        for module, left, width in ((layer.attention.attn.o, heads, 8), (layer.output.dense, neurons, 1)):
            gate = torch.zeros(module.base.in_features // width)
            gate[left] = 1
            gate = gate.repeat_interleave(width)
            module.register_forward_pre_hook(lambda _, given, gate=gate: given[0] * gate)
    assert pruned(batch).numpy() == pytest.approx(unpruned(batch).numpy(), abs=1e-4)
    assert not torch.allclose(pruned(batch), whole, atol=1e-3)


def test_a_third_run_begins_with_what_is_left_of_the_second_one_also_when_it_is_resumed(
    mpnet, unpruned, encoder, groups, small, tmp_path, monkeypatch
):
    monkeypatch.setattr(train_reader, "encoder_on", lambda device: deepcopy(mpnet))
    for name, value in (("LAYERS", 2), ("READ_ONCE", 1), ("MEASURED_BATCHES", 2)):
        monkeypatch.setattr(train_reader, name, value)
    monkeypatch.setattr(reader_pruning, "NEURON_STEP", 4)
    folders = {name: tmp_path / name for name in ("start", "teacher", "output")}
    for folder in folders.values():
        folder.mkdir()
    train_reader.Run(unpruned, folders["start"], minutes=1, seed=0).save()
    whole = train_reader.trainable(deepcopy(mpnet), seed=7, layers=2, read_once=0).eval()
    train_reader.Run(whole, folders["teacher"], minutes=1, seed=0).save()
    args = SimpleNamespace(device="cpu", seed=0, share=0.6, **folders)
    first, teacher = train_reader.started(args, reader_data.Pools(groups, encoder, seed=0))
    assert sum(len(heads) + len(neurons) for heads, neurons in first.kept) < 2 * (4 + 48)
    again, _ = train_reader.started(args, reader_data.Pools(groups, encoder, seed=5))
    batch = reader_data.collated(rows_of((40, 9), (70, 20)))
    assert torch.equal(first.eval()(batch), again.eval()(batch))
    assert torch.equal(teacher(batch), whole(batch))


def test_the_report_has_figures_of_each_kind_and_of_thirds_by_overlap(encoder, unpruned):
    def rows(kind, shared, number):
        passage = "Tom owns the mill by the river"
        claims = (Claim(f"{passage} {kind}.", SUPPORTED, kind), Claim(shared, CONTRADICTED, kind))
        return encoder.rows(ContrastGroup((f"{passage}.",), claims, "", ""), number)

    found = train_reader.judged(unpruned, [*rows("j", "Tom owns the ferry.", 0), *rows("k", "Ann sold a boat.", 1)])
    # the claims of k are told apart wrongly
    right = (found.labels == SUPPORTED) == torch.from_numpy(found.kinds == "j")
    logits = torch.zeros(4, 3)
    logits[:, SUPPORTED] = torch.where(right, 2.0, -2.0)
    parts = {p["part"]: p for p in train_reader.report(replace(found, logits=logits))}
    assert {name: part["claims"] for name, part in parts.items() if "third" not in name} == {
        "all": 4, "kind j": 2, "kind k": 2,
    }  # fmt: skip
    assert sum(part["claims"] for name, part in parts.items() if "third" in name) == 4
    assert [parts[name]["ordered"] for name in ("all", "kind j", "kind k")] == [0.5, 1.0, 0.0]
    assert [parts[name]["AUROC"] for name in ("all", "kind j", "overlap, third 1")] == [0.5, 1.0, None]
