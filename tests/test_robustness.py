"""scripts/robustness.py: what it counts as a fall, and a few attempts of each attack."""

import sys
import time

import pytest
import robustness
from attacks.attempts import Fall, attempt
from attacks.foreign import ForeignDirectories

from egin_dgl.errors import ConfigError


def test_an_attempt_returns_the_sentence_or_none(tmp_path):
    def refuse():
        raise ConfigError("no such option")

    assert attempt(refuse, tmp_path) == "no such option"
    assert attempt((tmp_path / "new").mkdir, tmp_path) is None


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda place: (place / "elsewhere").mkdir(), "os.mkdir.*elsewhere"),
        (lambda place: (place / "elsewhere").write_text(""), "open.*elsewhere"),
        (lambda place: sys.exit("error: two\nlines"), "it printed"),
        (lambda place: print("Traceback (most recent call last)"), "it printed"),
        (lambda place: print("\x1b[2J"), "control characters"),
        (lambda place: time.sleep(5), "it had not ended after 1 s"),
    ],
)
def test_a_fall(action, message, tmp_path):
    (tmp_path / "own").mkdir()
    with pytest.raises(Fall, match=message):
        attempt(lambda: action(tmp_path), tmp_path / "own", seconds=1)


def test_a_few_attempts_of_each_attack_hold(small_run, tmp_path):
    counts = {"inputs": 5, "directories": 2, "bits": 6, "foreign": 5, "options": 4}
    outcomes = robustness.run_attacks(counts, small_run, tmp_path)
    assert {name: (one.tried, one.falls) for name, one in outcomes.items()} == {
        name: (count, {}) for name, count in counts.items()
    }


def test_every_foreign_directory_is_tried_by_default(small_run, tmp_path):
    assert len(ForeignDirectories(small_run, tmp_path)) == robustness.ATTACKS["foreign"].count


def test_falls_are_listed_with_how_to_repeat_them(monkeypatch, tmp_path, capsys):
    def prepare(run, place):
        def fall(number, random):
            assert number != 1, f"it fell on {random.randrange(10**6)}"

        return fall

    monkeypatch.setitem(robustness.ATTACKS, "inputs", robustness.Attack("broken", 3, prepare))
    monkeypatch.setattr(robustness, "train_run", lambda path: path)
    printed = []
    for arguments in (["inputs"], ["inputs", "--only", "1"], ["inputs", "--only", "2"]):
        monkeypatch.setattr(sys, "argv", ["robustness.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            robustness.main()
        printed.append((bool(ended.value.code), capsys.readouterr().out))
    (fell, first), (fell_again, again), (held, _) = printed
    assert fell and fell_again and not held
    assert first.split("broken")[1].split()[1:6:2] == ["3", "2", "1"]
    assert "python scripts/robustness.py inputs --seed 0 --only 1\n    it fell on" in first
    assert first.splitlines()[-2] == again.splitlines()[-2]  # the same attempt
