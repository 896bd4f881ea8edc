"""The Python client in docs/serve.md, run against a server; and the picture of the page there."""

import pages
import pytest

PAGE = pages.ROOT / "docs" / "serve.md"
CLIENT, FILE = (block.text for block in pages.blocks(PAGE.read_text()) if block.language == "python")


def run(text, server, namespace):
    exec(compile(text.replace("http://127.0.0.1:8000", server), str(PAGE), "exec"), namespace)


def test_the_client_gets_a_picture(server):
    run(CLIENT, server, namespace := {})
    namespace["client"].close()
    assert namespace["mean"].shape == (128, 128)
    assert len(namespace["picture"]["readings"]) == 9


@pytest.mark.slow
def test_the_client_has_a_file_reconstructed(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{0.1 * i:.1f},{0.07 * i % 1:.2f},{0.3 * i % 2:.1f}" for i in range(9)]
    (tmp_path / "stations.csv").write_text("\n".join(["x,y,value", *rows]) + "\n")
    run(CLIENT, server, namespace := {})
    run(FILE, server, namespace)
    namespace["client"].close()
    assert (tmp_path / "out.nc").read_bytes()[:4] == b"\x89HDF"


def test_the_picture_of_the_page_is_small():
    assert (pages.ROOT / "docs" / "images" / "page.png").stat().st_size < 200_000
