import time

from diapause.runtime.linux.thread import Flag, Thread


def test_a_thread_is_waited_for() -> None:
    flag = Flag()
    done: list[bool] = []

    def work() -> None:
        done.append(flag.wait(10))

    thread = Thread(work)
    assert thread.alive
    flag.set()
    thread.join()
    assert done == [True]
    assert not thread.alive
    thread.join()  # again


def test_a_flag_that_nobody_sets_is_waited_for_in_vain() -> None:
    flag = Flag()
    start = time.monotonic()
    assert not flag.wait(0.01)
    assert time.monotonic() - start >= 0.01
    assert not flag.is_set
    flag.set()
    flag.set()
    assert flag.is_set
    assert flag.wait(0)
