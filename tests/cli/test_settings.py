"""Settings of a server from a file and the environment, beside its flags."""

import pytest

from syncheck.cli import main, parser


@pytest.fixture
def parsed(monkeypatch, tmp_path):
    """Parses the flags of a gateway beside a file and variables."""

    def parse(*flags, file=None, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"SYNCHECK_{name}", value)
        given = ["--config", str(tmp_path / "settings.toml")] if file is not None else []
        (tmp_path / "settings.toml").write_text(file or "", encoding="utf-8")
        return parser("gateway").parse_args(["gateway", *given, *flags])

    return parse


def test_flags_come_before_variables_and_variables_before_the_file(parsed):
    file = 'upstream = "http://file/v1"\nstop-below = 0.2\nmax_running = 7\nstop-after = true\nline-breaks = "lists"\n'
    args = parsed("--max-waiting", "3", "--stop-below", "0.4", file=file, STOP_BELOW="0.3", MAX_WAITING="9", PORT="81")
    assert (args.upstream, args.max_running, args.stop_after) == ("http://file/v1", 7, True)
    assert (args.stop_below, args.max_waiting, args.port, args.timeout) == (0.4, 3, 81, 300)
    assert parsed(STOP_BELOW="0.3", file=file).stop_below == 0.3


def test_a_variable_names_the_file_and_sets_switches(parsed, monkeypatch, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text('failing = "open"\n', encoding="utf-8")
    args = parsed(CONFIG=str(other), UPSTREAM="http://up/v1", STOP_AFTER="false", HOST="")
    assert (args.failing, args.upstream, args.stop_after) == ("open", "http://up/v1", False)
    assert args.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("file", "variables", "told"),
    [
        ("", {"MAX_RUNNING": "many"}, "$SYNCHECK_MAX_RUNNING: max-running: must be a whole number of at least 1"),
        ("", {"STOP_AFTER": "maybe"}, "$SYNCHECK_STOP_AFTER: stop-after must be true or false; found maybe"),
        ("", {"FAILING": "ajar"}, "invalid choice: 'ajar'"),
        ("stop-bellow = 0.3", {}, "has stop-bellow, which is no option of gateway; did you mean stop-below?"),
        ("stop-below = [0.3]", {}, "stop-below must be one value; found [0.3]"),
        ("stop-below = true", {}, "stop-below must be one value; found True"),
        ("stop-below =", {}, "cannot read the settings in"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_its_origin(parsed, capsys, file, variables, told):
    with pytest.raises(SystemExit) as ended:
        parsed("--upstream", "http://up/v1", file=file, **variables)
    assert ended.value.code == 2 and told in capsys.readouterr().err


def test_the_doctor_prints_them_without_keys(monkeypatch, capsys, tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('failing = "open"\n', encoding="utf-8")
    for name, value in (
        ("UPSTREAM", "http://me:word@up/v1"),
        ("API_KEY", "key-of-mine"),
        ("TYPO", "1"),
        ("MAX_NEW_TOKENS", "9"),
    ):
        monkeypatch.setenv(f"SYNCHECK_{name}", value)
    main(["doctor", "--config", str(file)])
    told = capsys.readouterr().out
    assert f"failing = open ({file})" in told and "upstream = http://[key]@up/v1 ($SYNCHECK_UPSTREAM)" in told
    assert "a key is in $SYNCHECK_API_KEY" in told and "key-of-mine" not in told and "word" not in told
    assert "$SYNCHECK_TYPO sets no option" in told and "max-new-tokens = 9 ($SYNCHECK_MAX_NEW_TOKENS)" in told
    file.write_text('max-new-tokens = 7\ndecoder = "abstain"\n', encoding="utf-8")
    main(["doctor", "--config", str(file)])
    told = capsys.readouterr().out
    assert f"decoder = abstain ({file})" in told and "for serve alone" in told
    monkeypatch.setenv("SYNCHECK_STOP_BELOW", "2")
    assert main(["doctor"]) == 2
    assert "$SYNCHECK_STOP_BELOW: stop-below: must be a number from 0 to 1; found 2" in capsys.readouterr().out
