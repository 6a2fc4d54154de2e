"""Outputs are tried before the work and written whole or not at all."""

import errno
import os

import pytest

from vennforest._files import OutputError, check_output, written_whole
from vennforest._validation import InputError


def test_outputs_are_tried_first(tmp_path):
    check_output(tmp_path / "new.html")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(InputError, match="no folder"):
        check_output(tmp_path / "none" / "new.html")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="cannot be written"):
            check_output(tmp_path / "new.html")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_nothing_half_written(tmp_path, stop):
    path = tmp_path / "out"
    for old in (None, "old"):
        if old is not None:
            path.write_text(old)
        with pytest.raises(stop), written_whole(path) as part:
            part.write_text("half")
            raise stop
        assert [p.read_text() for p in tmp_path.iterdir()] == ([] if old is None else [old])
    with written_whole(path) as part:
        part.write_text("whole")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["whole"]


@pytest.mark.parametrize("operation", ["open", "chmod", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, operation):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "out").write_text("old")
    with monkeypatch.context() as disk:
        disk.setattr(os, operation, fail)
        message = "out cannot be written: No space left on device"
        with pytest.raises(OutputError, match=message), written_whole(tmp_path / "out") as part:
            part.write_text("new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_written_files_have_the_usual_mode(tmp_path):
    (tmp_path / "usual").touch()
    with written_whole(tmp_path / "ours") as part:
        part.touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "usual").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "usual")
    with written_whole(tmp_path / "link") as part:
        part.write_text("through the link")
    assert (tmp_path / "usual").read_text() == "through the link"
    assert (tmp_path / "usual").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link").is_symlink()
