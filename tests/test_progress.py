"""What long work tells of itself where nobody draws a bar."""

from types import SimpleNamespace

from latentpde.progress import _plain_lines


def test_work_that_goes_on_counts_what_was_done_before_but_not_in_its_speed(capsys, monkeypatch):
    """Ten of the last hundred in five seconds: the other ninety take forty-five, however many there are in all."""
    clock = iter([0.0, 5.0])
    monkeypatch.setattr("latentpde.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with _plain_lines("reconstruct", 1000, before=900, every=1.0) as meter:
        meter(10)
    assert capsys.readouterr().err == "reconstruct: 910/1000, about 45 s left\n"
