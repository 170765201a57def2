"""What the demo accepts as a restored counter."""

import os
from pathlib import Path

import pytest

from diapause.runtime.cli.demo.counter import Counter, Step, compare
from diapause.runtime.errors import Internal


def steps(first: int, last: int, offset: int = 0) -> list[Step]:
    return [Step(number, f"{number + offset:04x}") for number in range(first, last + 1)]


def test_steps_made_twice_have_to_agree() -> None:
    assert compare(steps(1, 20), steps(12, 30)) == 9


def test_a_counter_that_began_anew_was_not_restored() -> None:
    with pytest.raises(Internal, match="it began at step 1,"):
        compare(steps(1, 20), steps(1, 30))


def test_a_counter_that_left_steps_out_was_not_restored() -> None:
    with pytest.raises(Internal, match="it began at step 22,"):
        compare(steps(1, 20), steps(22, 30))


def test_a_missing_step_is_found() -> None:
    with pytest.raises(Internal, match="out of order"):
        compare(steps(1, 20), [*steps(12, 14), *steps(16, 30)])


def test_another_checksum_is_found() -> None:
    with pytest.raises(Internal, match="step 12, checksum 000d, which was 000c in the original"):
        compare(steps(1, 20), steps(12, 30, offset=1))


def test_lines_of_the_original_are_not_counted_again(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ready\nstep 1 sum aa\nstep 2 sum bb\n")
    size = (tmp_path / "log").stat().st_size
    with (tmp_path / "log").open("a") as log:
        log.write("step 2 sum bb\nstep 3 sum c")  # the last line is not complete yet

    assert Counter(os.getpid(), tmp_path / "log", size).steps() == [Step(2, "bb")]


def test_memory_that_the_counter_found_wrong_ends_the_demo(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step 1 sum aa\nBAD step 2 sum bb expected cc\n")

    with pytest.raises(Internal, match="wrong content of device memory: BAD step 2"):
        Counter(os.getpid(), tmp_path / "log").wait(2)


def test_a_counter_that_ended_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(Internal, match="it ended by itself"):
        Counter(1 << 22, tmp_path / "log").wait(1)
