"""The manifests for Kubernetes fit this release."""

import tomllib

import yaml

from tests.faults.installation.deployments import FOLDER, ROOT


def test_the_tag_of_the_image_is_the_version():
    text = (FOLDER / "kubernetes/kustomization.yaml").read_text()
    tags = [image["newTag"] for image in yaml.safe_load(text)["images"]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert tags == [project["version"]]
