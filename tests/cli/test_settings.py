"""Settings of a server from the environment, beside its flags."""

import pytest

from syncheck.cli import main, parser


@pytest.fixture
def parsed(monkeypatch):
    """Parses the flags of a gateway beside variables."""

    def parse(*flags, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"SYNCHECK_{name}", value)
        return parser("gateway").parse_args(["gateway", *flags])

    return parse


def test_flags_come_before_variables(parsed):
    variables = {"UPSTREAM": "http://up/v1", "STOP_BELOW": "0.3", "MAX_WAITING": "9", "PORT": "81"}
    args = parsed("--max-waiting", "3", "--stop-below", "0.4", LINE_BREAKS="lists", MAX_RUNNING="7", **variables)
    assert (args.upstream, args.max_running, args.line_breaks) == ("http://up/v1", 7, "lists")
    assert (args.stop_below, args.max_waiting, args.port, args.timeout) == (0.4, 3, 81, 300)
    assert parsed().stop_below == 0.3


@pytest.mark.parametrize(("value", "switch"), [("true", True), ("false", False)])
def test_a_variable_sets_a_switch(parsed, value, switch):
    args = parsed(FAILING="open", UPSTREAM="http://up/v1", STOP_AFTER=value, HOST="")
    assert (args.failing, args.upstream, args.stop_after) == ("open", "http://up/v1", switch)
    assert args.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"MAX_RUNNING": "many"}, "$SYNCHECK_MAX_RUNNING: max-running: must be a whole number of at least 1"),
        ({"STOP_AFTER": "maybe"}, "$SYNCHECK_STOP_AFTER: stop-after must be true or false; found maybe"),
        ({"FAILING": "ajar"}, "invalid choice: 'ajar'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_its_origin(parsed, capsys, variables, told):
    with pytest.raises(SystemExit) as ended:
        parsed("--upstream", "http://up/v1", **variables)
    assert ended.value.code == 2 and told in capsys.readouterr().err


def test_the_doctor_tells_of_variables_that_set_nothing(monkeypatch, capsys):
    main(["doctor"])
    assert "sets no option" not in capsys.readouterr().out
    for name, value in (("UPSTREAM", "http://up/v1"), ("API_KEY", "key-of-mine"), ("TYPO", "1"), ("DECODER", "fod")):
        monkeypatch.setenv(f"SYNCHECK_{name}", value)
    main(["doctor"])
    told = capsys.readouterr().out
    assert "$SYNCHECK_TYPO sets no option" in told and told.count("sets no option") == 1 and "key-of-mine" not in told
