"""What a reader sees."""

import io

from diapause.runtime.cli.demo.story import Story


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_phase_is_told_with_its_time_and_its_command() -> None:
    out = io.StringIO()
    story = Story(out)
    with story.phase("restore"):
        pass

    story.tell("restore", "goes on", ["ctr", "run", "a b"])

    first, second = out.getvalue().splitlines()
    assert first == "  restore      0.00 s  goes on"
    assert second.strip() == "$ ctr run 'a b'"


def test_a_long_command_is_wrapped_as_a_shell_takes_it_and_flags_keep_their_values() -> None:
    out = io.StringIO()
    argv = [
        "ctr",
        "run",
        "--mount",
        "type=bind,src=/somewhere/long",
        "--annotation",
        "a.long/key=value" * 3,
        "x" * 30,
    ]

    Story(out).tell("run", "runs", argv)

    lines = [line.strip() for line in out.getvalue().splitlines()[1:]]
    assert len(lines) > 1
    assert all(line.endswith("\\") for line in lines[:-1])
    assert not any(line.removesuffix(" \\").endswith(("--mount", "--annotation")) for line in lines)
    assert " ".join(line.removesuffix("\\").removeprefix("$").strip() for line in lines) == " ".join(argv)


def test_colours_are_for_terminals_that_want_them(monkeypatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for out, coloured in ((Terminal(), True), (io.StringIO(), False)):
        Story(out).title("Diapause")
        assert ("\033[" in out.getvalue()) is coloured

    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    Story(plain).title("Diapause")
    assert "\033[" not in plain.getvalue()
