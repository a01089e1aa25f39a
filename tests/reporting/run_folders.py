"""Run folders that are half made, or changed."""

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from running import ROOT, SMALL

# Six epochs with which the folds and the models come to different numbers.
LEARNING = [*SMALL, "trainer.epochs=6", "optimizer.lr=0.03", "trainer.batch_size=8"]


def note_like_hydra(folder, *options):
    """.hydra of a job that was started with these options."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("train", [*LEARNING, *options], return_hydra_config=True)
    choices = OmegaConf.to_container(config.hydra.runtime.choices)
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    notes = folder / ".hydra"
    notes.mkdir(parents=True)
    OmegaConf.save(OmegaConf.create(list(options)), notes / "overrides.yaml")
    OmegaConf.save(OmegaConf.create({"hydra": {"runtime": {"choices": choices}}}), notes / "hydra.yaml")
    OmegaConf.save(config, notes / "config.yaml")


def as_dataset(folder, name):
    """The run in `folder` as one on a dataset of another name: its numbers stay those of a real run."""
    path = folder / "run.json"
    text = path.read_text().replace('"dataset": "bonds"', f'"dataset": "{name}"')
    path.write_text(text.replace('"skeletons": 4', f'"skeletons": 4, "name": "{name}"'))
