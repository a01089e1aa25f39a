"""Rows of different lengths in one flat array: the entries of any rows, in any order, as often as they are named."""

from multiprocessing.reduction import ForkingPickler

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from egin_dgl.data.ragged import Offsets, gather_rows, offsets_of, row_positions


@given(st.data())
def test_gathered_entries_are_those_of_the_rows_one_after_the_other(data):
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=8))
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=8))
    offsets = offsets_of(np.array(lengths))
    flat = np.arange(sum(lengths)) * 10
    parts = np.split(flat, offsets[1:-1])
    places, taken = gather_rows(offsets, np.array(rows, dtype=np.int64))
    assert flat[places].tolist() == [x for row in rows for x in parts[row].tolist()]
    assert taken.tolist() == [0, *np.cumsum([lengths[row] for row in rows]).tolist()]
    total = len(places)
    known, _ = row_positions(torch.from_numpy(offsets), torch.tensor(rows, dtype=torch.int64), total)
    assert known.tolist() == places.tolist()


def test_rows_may_be_named_backwards_and_offsets_be_read_only(recwarn):
    offsets = offsets_of(np.array([2, 0, 1]))
    offsets.flags.writeable = False
    assert gather_rows(offsets, np.arange(3)[::-1])[0].tolist() == [2, 0, 1]
    assert not recwarn.list


def test_offsets_on_the_host_stay_when_the_dataset_is_sent_to_another_process():
    offsets = Offsets(torch.arange(41))
    ForkingPickler.dumps(offsets.on_device)  # moves the tensor to shared memory
    reused = [torch.full((41,), -7) for _ in range(50)]
    assert offsets.on_host.tolist() == offsets.on_device.tolist() == list(range(41)), len(reused)
