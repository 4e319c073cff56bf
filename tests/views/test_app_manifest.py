"""What a browser needs to install the site as an app."""

import json
import re
import struct
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

pytestmark = pytest.mark.django_db


def read_static(name):
    return Path(finders.find(f"runs/{name}")).read_bytes()


def test_every_page_names_a_manifest_whose_icons_are_there(client, ann):
    page = client.get("/chat/").content.decode()
    assert re.search(r'rel="manifest" href="[^"]*runs/app\.webmanifest', page)
    manifest = json.loads(read_static("app.webmanifest"))

    assert (manifest["start_url"], manifest["display"]) == ("/chat/", "standalone")
    for icon in manifest["icons"]:
        content = read_static(icon["src"])
        width, height = struct.unpack(">II", content[16:24])
        assert icon["sizes"] == f"{width}x{height}"


def test_the_colors_of_the_app_are_those_of_the_pages(client, ann):
    page = client.get("/chat/").content.decode()
    colors = re.findall(r'name="theme-color" [^>]*content="(#\w+)"', page)
    canvas = re.search(
        r"--canvas: light-dark\((#\w+), (#\w+)\)",
        read_static("css/tokens.css").decode(),
    )

    assert tuple(colors) == canvas.groups()
    assert json.loads(read_static("app.webmanifest"))["theme_color"] == colors[0]
