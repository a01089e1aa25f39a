"""The tensor cache returns what was written, or nothing."""

import pytest
import torch

from egin_dgl.data.tensor_cache import TensorCache

TENSORS = {"numbers": torch.arange(5), "none": torch.zeros(0, 3), "reals": torch.tensor([[0.5, -1.0]]).T}
RECORD = {"strings": ["a", "é"], "share": 0.1, "nested": {"n": None}}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path))
    return TensorCache.for_key("somewhere", "0123456789abcdef" * 4, "NAME")


def content(cache):
    """(tensors as lists, record), or None."""
    return cache.read(lambda tensors, record: ({k: v.tolist() for k, v in tensors.items()}, record))


WRITTEN = ({name: tensor.tolist() for name, tensor in TENSORS.items()}, RECORD)


def test_round_trip(cache, tmp_path):
    assert content(cache) is None
    cache.write(TENSORS, RECORD)
    assert content(cache) == WRITTEN
    assert cache.path == tmp_path / "somewhere" / "NAME-0123456789abcdef0123.safetensors"
    first = cache.path.read_bytes()
    cache.write(TENSORS, RECORD)
    assert cache.path.read_bytes() == first


def test_flipped_bytes_are_detected(cache, caplog):
    cache.write(TENSORS, RECORD)
    good = cache.path.read_bytes()
    for place in range(0, len(good), 7):
        cache.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert content(cache) in (None, WRITTEN), place  # padding of the header is ignored
    assert "is damaged" in caplog.text


def test_other_key_or_invalid_record_is_ignored(cache, caplog):
    cache.write(TENSORS, RECORD)
    assert content(TensorCache(cache.path, "f" * 64)) is None and "is damaged" in caplog.text
    assert cache.read(lambda tensors, record: record["no such thing"]) is None
