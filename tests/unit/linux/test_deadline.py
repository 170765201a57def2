"""Deadlines are absolute and never grow."""

from diapause.runtime.linux.deadline import Deadline


def test_what_remains_never_becomes_negative() -> None:
    passed = Deadline.after(-1)

    assert passed.expired
    assert passed.remaining == 0
    assert passed.poll_ms() == 0


def test_never_polls_without_a_timeout() -> None:
    assert Deadline.never().poll_ms() == -1
    assert not Deadline.never().expired


def test_a_wait_rounds_up_so_that_it_does_not_spin() -> None:
    assert Deadline.after(0.0001).poll_ms() == 1


def test_sooner_takes_the_nearer_one() -> None:
    near = Deadline.after(1)

    assert near.sooner(60).at == near.at
    assert near.sooner(0.5).at < near.at
