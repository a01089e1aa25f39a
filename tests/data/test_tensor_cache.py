"""What the cache gives back is what was kept, or nothing: never something else."""

import pytest
import torch
from safetensors.torch import save_file

from egin_dgl.data.tensor_cache import TensorCache

TENSORS = {"numbers": torch.arange(5), "none": torch.zeros(0, 3), "reals": torch.tensor([[0.5, -1.0]]).T}
RECORD = {"words": ["a", "é"], "share": 0.1, "nested": {"n": None}}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path))
    return TensorCache.of("somewhere", "0123456789abcdef" * 4, "NAME")


def content(cache):
    """(tensors as lists, record), or None."""
    return cache.read(lambda tensors, record: ({k: v.tolist() for k, v in tensors.items()}, record))


WRITTEN = ({name: tensor.tolist() for name, tensor in TENSORS.items()}, RECORD)


def test_what_was_written_is_read(cache, tmp_path):
    assert content(cache) is None
    cache.write(TENSORS, RECORD)
    assert content(cache) == WRITTEN
    assert cache.path == tmp_path / "somewhere" / "NAME-0123456789abcdef0123.safetensors"
    first = cache.path.read_bytes()
    cache.write(TENSORS, RECORD)
    assert cache.path.read_bytes() == first


def test_no_flipped_byte_gives_other_content(cache, caplog):
    cache.write(TENSORS, RECORD)
    good = cache.path.read_bytes()
    for place in range(len(good)):
        cache.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert content(cache) in (None, WRITTEN), place  # spaces that fill up a header say nothing
    assert "is damaged" in caplog.text


def test_another_key_or_a_record_that_cannot_be_restored_is_nothing(cache, caplog):
    cache.write(TENSORS, RECORD)
    assert content(TensorCache(cache.path, "f" * 64)) is None and "is damaged" in caplog.text
    assert cache.read(lambda tensors, record: record["no such thing"]) is None


def test_a_file_from_before_this_cache_is_passed_over_silently(cache, caplog):
    cache.path.parent.mkdir(parents=True)
    save_file(TENSORS | {"reals": torch.ones(2)}, cache.path, metadata={"dataset": "{}"})
    assert content(cache) is None and not caplog.records
