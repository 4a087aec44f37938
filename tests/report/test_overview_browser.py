"""The page of many scored answers in Chromium: its filters and what follows them, wide, narrow, dark; hostile text."""

import pytest
from browser import needs_chromium, page
from test_overview import HOSTILE, drawn, row, sentence

pytestmark = [pytest.mark.slow, needs_chromium]

LONG = [sentence(0.30 + 0.0001 * i, text="It is so, said at some length. " * 20) for i in range(300)]
BARS = "[...document.querySelectorAll('[data-bars]')].map((f) => f.querySelector('svg').ariaLabel.split(': ').pop())"
RATES = (
    "[...document.querySelectorAll('.rates tr')].map((row) => [...row.cells].slice(0, 3).map((c) => c.textContent)"
    ".join(', ') + ', ' + row.querySelector('span').style.width)"
)
HIGHEST = (
    "[...document.querySelectorAll('[data-bars]')]"
    ".map((f) => Math.max(...[...f.querySelectorAll('rect')].map((r) => +r.getAttribute('height'))))"
)


@pytest.fixture(scope="module")
def browser():
    with page() as opened:
        yield opened


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page of some answers; returns it with what it has."""

    def opened(*rows, **options):
        overview, source, _ = drawn(*rows, **options)
        (tmp_path / "page.html").write_text(source, encoding="utf-8")
        browser.errors.clear()
        browser.open((tmp_path / "page.html").as_uri())
        browser.wait("!document.getElementById('filters').hidden")
        return overview

    return opened


def bins(**counts):
    return ", ".join(str(counts.get(f"b{i}", 0)) for i in range(20))


def test_the_histograms_follow_the_filters(browser, opened):
    overview = opened(
        row("a", sentence(0.9), sentence(0.22)),
        row("b", sentence(0.95), sentence(None, status="not_checkable")),
        row("long", *LONG),
    )
    whole = [
        ", ".join(map(str, counts)) for counts in (overview.sentence_histogram.totals, overview.answer_histogram.totals)
    ]
    assert browser.run(BARS) == whole
    for name, value, expected in (
        ("high", "0.25", [bins(b4=1, b18=1), bins(b4=1)]),
        ("low", "0.26", [bins(), bins()]),
        ("high", "0.5", [bins(b6=300), bins(b6=1)]),  # also the sentences that the page has no room for
        ("low", "0", [bins(b4=1, b6=300, b18=1), bins(b4=1, b6=1)]),
        ("high", "1", whole),
        ("text", "no such", [bins(), bins()]),
    ):
        browser.run(f"document.forms.filters.elements.{name}.value = '{value}'")
        browser.run("document.forms.filters.dispatchEvent(new Event('input'))")
        browser.wait(f"JSON.stringify({BARS}) === JSON.stringify({expected!r})", seconds=10)
    assert browser.run(HIGHEST) == [0, 0]
    browser.run("document.forms.filters.reset()")
    browser.wait(f"JSON.stringify({BARS}) === JSON.stringify({whole!r})", seconds=10)
    assert browser.run(HIGHEST) == [100, 100] and not browser.errors


def test_filters_that_leave_no_score_leave_words_in_place_of_the_histograms(browser, opened):
    opened(row("a", sentence(0.9)), row("none", sentence(None, status="no_context")))
    seen = "[...document.querySelectorAll('.plot')].map((f) => [f.querySelector('svg'), f.querySelector('.empty')]"
    seen += ".map((part) => part.checkVisibility()))"
    assert browser.run(seen) == [[True, False]] * 2
    browser.run("document.forms.filters.elements.text.value = 'none'")
    browser.run("document.forms.filters.dispatchEvent(new Event('input'))")
    browser.wait(f"JSON.stringify({seen}) === '[[false,true],[false,true]]'", seconds=10)
    assert not browser.errors


def test_what_a_decoder_gave_is_shown_and_found(browser, opened):
    quoted = row("q") | {"response": "The passages say: “It burned down.”", "stop": "quoted"}
    opened(row("a", sentence(0.5)), quoted | {"sentences": []})
    browser.run("document.querySelector('[name=text]').value = 'burned'")
    browser.run("document.getElementById('filters').dispatchEvent(new Event('input'))")
    browser.wait("document.querySelectorAll('.answer').length === 1")
    assert browser.run("document.querySelector('.said').textContent") == "(no answer: the passages are quoted)"
    browser.run("document.querySelector('.answer').open = true")
    browser.wait("document.querySelector('.given') !== null")
    given = browser.run("document.querySelector('.given').textContent")
    assert given == "given insteadThe passages say: “It burned down.”"
    assert not browser.errors


def test_a_printed_page_says_how_many_answers_are_not_on_it(browser, opened):
    opened(*(row(str(i), sentence(0.5)) for i in range(120)))
    note = "[document.getElementById('unprinted')].map((n) => n.checkVisibility() && n.textContent)[0]"
    assert browser.run(note) is False
    browser.command("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run(note).startswith("70 more answers are not printed")
        browser.run("document.getElementById('all').click()")
        assert browser.run(note) is False
    finally:
        browser.command("Emulation.setEmulatedMedia", media="")
    assert browser.run("document.querySelectorAll('.answer').length") == 120
    assert browser.run("[...document.querySelectorAll('#more, #all')].every((button) => button.hidden)")
    assert browser.run("document.activeElement.closest('li') === document.getElementById('list').children[50]")
    assert not browser.errors


def test_the_bars_of_verdicts_have_a_line_of_their_own_on_a_narrow_window(browser, opened):
    opened(row("a", sentence(0.9)))
    width = "document.querySelector('.rates .share').getBoundingClientRect().width"
    browser.look(390)
    assert browser.run(width) > 300 and browser.overflow() <= 0
    browser.look()
    assert 200 < browser.run(width) < 400


def test_bars_are_drawn_by_verdict_whatever_the_filters_leave(browser, opened):
    opened(
        row("a", sentence(0.81, verdict="unsupported"), sentence(0.84, verdict="supported")),
        row("b", sentence(0.82, verdict="supported"), sentence(0.83, verdict="supported")),
        row("c", sentence(0.79996, verdict="unsupported")),  # 0.8 with the digits of the page
    )
    bars = (
        "[...document.querySelectorAll('[data-bars=sentences] rect')].map((bar) => `${bar.dataset.verdict} "
        "${Number(bar.getAttribute('y'))} ${Number(bar.getAttribute('height'))}`)"
    )
    assert browser.run(bars) == ["unsupported 70 40", "supported 10 60"]
    browser.run("document.forms.filters.elements.low.value = '0.805'")
    browser.run("document.forms.filters.dispatchEvent(new Event('input'))")
    browser.wait(f"JSON.stringify({bars}) === JSON.stringify({['unsupported 85 25', 'supported 10 75']!r})", seconds=10)
    assert not browser.errors


def test_the_table_of_verdicts_follows_the_filters(browser, opened):
    opened(
        row("a", sentence(0.9), sentence(0.22)),
        row("b", sentence(0.95), sentence(None, status="not_checkable")),
        row("long", *LONG),
    )
    whole = browser.run(RATES)
    kinds = [one.split(", ")[0] for one in whole]
    for name, value, expected in (
        ("high", "0.25", {"supported": ("1", "50.0 %", "50%"), "unsupported": ("1", "50.0 %", "50%")}),
        ("low", "0.26", {}),
        ("high", "0.5", {"unsupported": ("300", "100.0 %", "100%")}),  # also those that the page has no room for
    ):
        browser.run(f"document.forms.filters.elements.{name}.value = '{value}'")
        browser.run("document.forms.filters.dispatchEvent(new Event('input'))")
        lines = [", ".join((kind, *expected.get(kind, ("0", "0.0 %", "0%")))) for kind in kinds]
        browser.wait(f"JSON.stringify({RATES}) === JSON.stringify({lines!r})", seconds=10)
    browser.run("document.forms.filters.reset()")
    browser.wait(
        f"JSON.stringify({RATES}.map((line) => line.split(', ').slice(0, 3))) === JSON.stringify("
        f"{[one.split(', ')[:3] for one in whole]!r})",
        seconds=10,
    )
    assert not browser.errors


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_hostile_text_stays_text_and_nothing_is_wider_than_the_window(browser, opened, width, dark):
    long = "x" * 500
    browser.look(width, dark=dark)
    hostile = row(HOSTILE + long, sentence(0.2, text=HOSTILE + long, evidence=HOSTILE + long))
    opened(hostile, title=HOSTILE + long)
    browser.run("document.querySelector('summary').focus()")
    browser.press("Enter")
    browser.wait("document.querySelector('.scored') !== null")
    assert browser.run("document.querySelector('.scored p').textContent").startswith(HOSTILE)
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert browser.overflow() <= 0 and not browser.errors
    assert browser.is_dark() == dark
