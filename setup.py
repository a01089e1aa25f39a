"""What pyproject.toml cannot say: conf/ stands at the top of the repository and travels inside the package."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["egin_dgl*"]), "egin_dgl.conf"],
    package_dir={"egin_dgl.conf": "conf"},
    package_data={"egin_dgl": ["py.typed"], "egin_dgl.conf": ["**/*.yaml"]},
)
