"""Hours and memory from measured rates: exact where measured, on the line between, marked beyond."""

import json

import pytest
import scale

from syncheck.base.errors import CheckpointError, InputError
from syncheck.cli import main
from syncheck.corpus import Rate, Rates, estimate, load_rates
from syncheck.corpus.scale import BUNDLED_RATES


def rate(context, answer, workers, seconds, memory=1000.0, batch=None):
    return Rate(context, answer, batch, workers, seconds, memory)


RATES = Rates(
    {"chip": "abacus"},
    (
        *(rate(100, 50, 1, 0.1), rate(300, 50, 1, 0.3, 3000.0)),
        *(rate(100, 150, 1, 0.2), rate(300, 150, 1, 0.4, 3000.0)),
        *(rate(300, 150, 2, 0.6), rate(300, 150, 1, 0.2, batch=1000)),
    ),
)


def of(context, answer, *workers, answers=36_000, rates=RATES, **options):
    found = estimate(
        rates, answers=answers, context_tokens=context, answer_tokens=answer, workers=workers or (1,), **options
    )
    return [(e.hours, e.memory_gb, e.hours_extrapolated, e.memory_extrapolated) for e in found]


def test_measured_lengths_take_what_was_measured_and_those_between_lie_on_the_line():
    assert of(100, 50) == [(pytest.approx(1.0), pytest.approx(1.0), False, False)]
    assert of(200, 100) == [(pytest.approx(2.5), pytest.approx(2.0), False, False)]
    assert of(300, 150, batch_tokens=1000) == [(pytest.approx(2.0), pytest.approx(1.0), False, False)]


@pytest.mark.parametrize(("context", "answer", "hours"), [(400, 50, 4.0), (300, 250, 5.0), (50, 50, 0.5)])
def test_beyond_what_was_measured_is_marked(context, answer, hours):
    ((found, _, hours_marked, memory_marked),) = of(context, answer)
    assert (found, hours_marked, memory_marked) == (pytest.approx(hours), True, True)


def test_workers_that_were_measured_together_are_slower_and_more_of_them_are_marked():
    one, two, eight = of(300, 150, 1, 2, 8)
    assert one[0] == pytest.approx(4.0)
    assert two == (pytest.approx(3.0), pytest.approx(6.0), False, False)
    assert eight == (pytest.approx(0.75), pytest.approx(24.0), True, True)


def test_what_was_not_measured_or_says_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="1000"):
        of(100, 50, batch_tokens=7)
    steep = Rates({}, (rate(100, 50, 1, 0.1), rate(300, 50, 1, 9.0)))
    with pytest.raises(InputError, match="short"):
        of(1, 50, rates=steep)
    (tmp_path / "rates.json").write_text('{"format": "other"}')
    with pytest.raises(CheckpointError):
        load_rates(tmp_path / "rates.json")


def test_the_command_prints_and_writes_them(tmp_path, capsys):
    scale.save_rates(RATES, tmp_path / "rates.json")
    assert load_rates(tmp_path / "rates.json") == RATES
    command = [
        "plan",
        "--answers",
        "36e3",
        "--context-tokens",
        "300",
        "--answer-tokens",
        "150",
        "--price-per-hour",
        "2",
    ]
    command += ["--rates", str(tmp_path / "rates.json"), "--output", str(tmp_path / "plan.json")]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "abacus" in lines[0]
    assert [line.split() for line in lines[2:5]] == [
        *(["1", "4.00", "3.0", "8.00"], ["8", "0.75*", "24.0*", "12.00"], ["64", "0.094*", "192.0*", "12.00"])
    ]
    assert lines[5].startswith("*")
    assert [row["workers"] for row in json.loads((tmp_path / "plan.json").read_text())["estimates"]] == [1, 8, 64]


def test_the_bundled_rates_answer_a_plan():
    assert all(0 < row[0] < 1e6 for row in of(1000, 150, 1, 8, 64, rates=load_rates(BUNDLED_RATES)))


def test_the_documentation_shows_the_bundled_rates():
    shown = scale.DOCS.read_text(encoding="utf-8").split(scale.BEGIN)[1].split(scale.END)[0]
    assert shown == scale.documented(BUNDLED_RATES), "run python benchmarks/scale.py --docs"
