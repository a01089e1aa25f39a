import pytest

from egin_dgl.files import atomic_path, write_text


def test_write_is_atomic(tmp_path):
    target = tmp_path / "new" / "file.txt"
    write_text(target, "first")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError("power cut")
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]
    assert target.stat().st_mode & 0o777 != 0o600
