"""Pictures: a PNG for every kind of graph, the same bytes for the same graph."""

import pytest
from small_graphs import build

from egin_dgl.data import bonds
from egin_dgl.errors import DataError
from egin_dgl.ewl import draw_refinement

PNG = b"\x89PNG\r\n\x1a\n"
ODD = {
    "empty": build(0, [], [], []),
    "one node": build(1, [], [0], []),
    "loops, parallel edges, two parts": build(
        5, [(0, 0), (0, 1), (0, 1), (2, 3)], [0, 1, 0, 1, 2], [0, 1, 2, 0]
    ),
    "directed": build(3, [(0, 1), (1, 2)], [0, 0, 0], [0, 1], both_ways=False),
}


def test_one_panel_for_each_depth(tmp_path):
    data = bonds(graphs=2)
    names = {"node_names": data.info.node_names, "edge_names": data.info.edge_names}
    result = draw_refinement(data[0], tmp_path / "a.png", depth=4, **names)
    assert result.depth == 4 and (tmp_path / "a.png").read_bytes().startswith(PNG)
    draw_refinement(data[0], tmp_path / "b.png", depth=4, **names)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("case", ODD)
def test_odd_graphs(case, tmp_path):
    draw_refinement(ODD[case], tmp_path / "odd.png", depth=1)
    assert (tmp_path / "odd.png").read_bytes().startswith(PNG)


def test_one_graph_only(tmp_path):
    with pytest.raises(DataError, match="one graph"):
        draw_refinement(bonds(graphs=2), tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()
