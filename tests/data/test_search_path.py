"""Search path of raw files, zip files, and downloads from a local server."""

import contextlib
import http.server
import io
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
import zipfile

import pytest

from egin_dgl.data import load_tu
from egin_dgl.data.readers.raw_files import read_zip
from egin_dgl.data.readers.search_path import download, find_raw
from egin_dgl.errors import ConfigError, DataError

FILES = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "1\n-1\n"}


def write_directory(directory, name="TINY", mark=""):
    directory.mkdir(parents=True)
    for suffix, text in FILES.items():
        (directory / f"{name}_{suffix}.txt").write_text(text)
    (directory / f"{name}_node_labels.txt").write_text(mark or "0\n0\n0\n")
    return directory


def zipped(name="TINY", directory="TINY/", extra=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for suffix, text in FILES.items():
            archive.writestr(f"{directory}{name}_{suffix}.txt", text)
        for member in extra:
            archive.writestr(member, "x")
    return buffer.getvalue()


def ok(body, claim=None):
    """A handler that sends this body, with a Content-Length that may lie."""

    def respond(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) if claim is None else claim))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def status(code, location=None):
    def respond(handler):
        handler.send_response(code)
        if location:
            handler.send_header("Location", location)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return respond


@pytest.fixture
def serve():
    """Start real servers; each handles its n-th request with its n-th response, and the last one from then on."""
    servers = []

    def start(*responses, tls=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.paths.append(self.path)
                responses[min(len(server.paths), len(responses)) - 1](self)

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.paths = []
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EGIN_DATA_ROOT", raising=False)


def stray(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


# --- search path -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["TINY", "TINY/raw"])
def test_directory_layouts(tmp_path, layout):
    directory = write_directory(tmp_path / "data" / layout)
    raw = find_raw("TINY", tmp_path / "data", url=None)
    assert raw.contents["A"] == FILES["A"].encode()
    assert raw.contents.get("edge_labels") is None
    assert raw.path("A") == str(directory / "TINY_A.txt")
    assert str(directory) in raw.origin


@pytest.mark.parametrize("inside", ["TINY/", "", "TINY/raw/"])
def test_zip_is_read_in_memory(tmp_path, inside):
    (tmp_path / "TINY.zip").write_bytes(zipped(directory=inside))
    raw = find_raw("TINY", tmp_path, url=None)
    assert raw.contents["graph_labels"] == FILES["graph_labels"].encode()
    assert raw.path("A") == f"{tmp_path}/TINY.zip:{inside}TINY_A.txt"
    assert os.listdir(tmp_path) == ["TINY.zip"]


def test_order_is_root_environment_cache_bundle(tmp_path, monkeypatch):
    marks = {"root": "1\n1\n1\n", "environment": "2\n2\n2\n", "cache/raw": "3\n3\n3\n"}
    for place, mark in marks.items():
        write_directory(tmp_path / place / "MUTAG", "MUTAG", mark)
    monkeypatch.setenv("EGIN_DATA_ROOT", str(tmp_path / "environment"))

    def found(root=None):
        return find_raw("MUTAG", root, url=None).contents["node_labels"].decode()

    assert found(tmp_path / "root") == marks["root"]
    assert found() == marks["environment"]
    assert found(tmp_path / "nowhere") == marks["cache/raw"]
    shutil.rmtree(tmp_path / "environment")
    assert found() == marks["cache/raw"]
    shutil.rmtree(tmp_path / "cache")
    assert len(found().split()) == 3371  # the real MUTAG, from grakel


@pytest.mark.parametrize("name", ["MUTAG", "Cuneiform"])
def test_bundled_sets_need_no_network(name):
    imported = "grakel" in sys.modules
    raw = find_raw(name, url=None)
    assert "grakel" in raw.origin and raw.contents["edge_labels"]
    assert ("grakel" in sys.modules) == imported  # its import takes seconds


def test_grakel_is_optional(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "grakel", None)  # makes it unimportable
    with pytest.raises(DataError, match="grakel is not installed; it carries MUTAG"):
        find_raw("MUTAG", url=None)
    monkeypatch.delitem(sys.modules, "grakel")
    (tmp_path / "grakel").mkdir()
    (tmp_path / "grakel" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match="cannot find dataset 'MUTAG'"):
        find_raw("MUTAG", url=None)


def test_error_lists_all_locations(tmp_path, serve):
    server = serve(status(404))
    with pytest.raises(DataError) as caught:
        find_raw("NOSUCH", tmp_path, server.url)
    message = str(caught.value)
    for part in (str(tmp_path), "cache", "grakel", f"{server.url}/NOSUCH.zip", "404", "EGIN_DATA_ROOT"):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["../MUTAG", "a/b", "..", "", "a\\b", "MUTAG\n", "/etc", "a b", ".hidden"])
def test_invalid_names(name):
    with pytest.raises(DataError, match="not a dataset name"):
        find_raw(name, url=None)


def test_digest_depends_on_content_only(tmp_path):
    write_directory(tmp_path / "a" / "TINY")
    write_directory(tmp_path / "b" / "TINY" / "raw")
    write_directory(tmp_path / "c" / "TINY", mark="9\n9\n9\n")
    digests = [find_raw("TINY", tmp_path / place, url=None).digest() for place in "abc"]
    assert digests[0] == digests[1] != digests[2]


# --- zip files -------------------------------------------------------------------------------


@pytest.mark.parametrize("member", ["../evil.txt", "/etc/evil", "TINY/../../evil", "..\\evil", "C:/evil"])
def test_zip_with_a_member_outside_its_folder(tmp_path, member):
    (tmp_path / "TINY.zip").write_bytes(zipped(extra=[member]))
    with pytest.raises(DataError, match="unsafe member"):
        find_raw("TINY", tmp_path, url=None)


def test_zip_that_unpacks_to_too_much(tmp_path):
    path = tmp_path / "TINY.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("TINY/TINY_A.txt", b"1, 2\n" * 1_000_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="more than 1000000 bytes"):
        read_zip(path, "TINY", "", max_bytes=1_000_000)
    assert len(read_zip(path, "TINY", "", max_bytes=5_000_000).contents["A"]) == 5_000_000


@pytest.mark.parametrize("keep", [0, 0.5, -1])
def test_truncated_zip(tmp_path, keep):
    data = zipped()
    data = data[: int(len(data) * keep)] if isinstance(keep, float) else data[:keep]
    (tmp_path / "TINY.zip").write_bytes(data)
    with pytest.raises(DataError, match=r"TINY\.zip is not a complete zip file"):
        find_raw("TINY", tmp_path, url=None)


def test_zip_with_a_flipped_byte(tmp_path):
    data = bytearray(zipped())
    data[data.index(b"TINY_A.txt") + len("TINY_A.txt") + 3] ^= 0xFF
    (tmp_path / "TINY.zip").write_bytes(bytes(data))
    with pytest.raises(DataError, match="not a complete zip file"):
        find_raw("TINY", tmp_path, url=None)


def test_zip_of_something_else(tmp_path):
    (tmp_path / "TINY.zip").write_bytes(zipped(name="OTHER", directory="OTHER/"))
    with pytest.raises(DataError, match="no file TINY_A.txt"):
        find_raw("TINY", tmp_path, url=None)


# --- downloads -----------------------------------------------------------------------------------------------------


def test_second_use_is_from_the_cache(tmp_path, serve, capfd):
    server = serve(ok(zipped()))
    first = find_raw("TINY", url=server.url)
    assert server.paths == ["/TINY.zip"]
    assert first.contents["A"] == FILES["A"].encode()
    assert first.path("A") == f"{tmp_path}/cache/raw/TINY.zip:TINY/TINY_A.txt"
    assert capfd.readouterr().err == f"downloading {server.url}/TINY.zip\n"
    again = find_raw("TINY", url=server.url)
    assert server.paths == ["/TINY.zip"] and again.digest() == first.digest()
    assert stray(tmp_path) == [tmp_path / "cache" / "raw" / "TINY.zip"]


def test_damaged_cached_zip_is_downloaded_again(tmp_path, serve):
    (tmp_path / "cache" / "raw").mkdir(parents=True)
    (tmp_path / "cache" / "raw" / "TINY.zip").write_bytes(zipped()[:-5])
    raw = find_raw("TINY", url=serve(ok(zipped())).url)
    assert "downloaded" in raw.origin
    assert find_raw("TINY", url=None).digest() == raw.digest()


def test_missing_file_is_not_retried(tmp_path, serve):
    server = serve(status(404))
    with pytest.raises(DataError, match="404"):
        download("TINY", tmp_path / "cache" / "TINY.zip", server.url, pause=0)
    assert len(server.paths) == 1 and not stray(tmp_path)


def test_two_failures_then_success(tmp_path, serve):
    server = serve(status(503), status(500), ok(zipped()))
    raw = download("TINY", tmp_path / "cache" / "TINY.zip", server.url, attempts=3, pause=0.01)
    assert len(server.paths) == 3 and raw.contents["A"]


def test_truncated_body_is_retried_and_leaves_nothing(tmp_path, serve):
    body = zipped()
    server = serve(ok(body[:100], claim=len(body)))
    with pytest.raises(DataError, match=f"got 100 of {len(body)} bytes"):
        download("TINY", tmp_path / "cache" / "TINY.zip", server.url, attempts=2, pause=0.01)
    assert len(server.paths) == 2 and not stray(tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (zipped()[:-30], "not a complete zip"),  # the server itself holds half a file: its length is right
        (b"<html>moved</html>", "not a complete zip"),
        (zipped(extra=["../../evil"]), "unsafe member"),
        (zipped(name="OTHER"), "no file TINY_A.txt"),
    ],
)
def test_bad_zip_is_not_cached(tmp_path, serve, body, reason):
    server = serve(ok(body))
    with pytest.raises(DataError, match=reason) as caught:
        find_raw("TINY", url=server.url)
    assert not stray(tmp_path)
    assert ".tmp" not in str(caught.value)


def test_size_limit(tmp_path, serve):
    sent = []

    def too_much(handler):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):  # the client hangs up, as it should
            for block in range(
                1000
            ):  # 64 MB, not endless: a broken bound should fail this test, not fill the disk
                handler.wfile.write(b"x" * 65536)
                sent.append(block)

    for respond in (ok(b"x", claim=10**12), too_much):
        with pytest.raises(DataError, match="larger than 300000 bytes"):
            download("TINY", tmp_path / "cache" / "TINY.zip", serve(respond).url, max_bytes=300_000, pause=0)
    assert len(sent) < 1000 and not stray(tmp_path)


def test_silent_server_times_out(tmp_path, serve):
    server = serve(lambda handler: time.sleep(2))
    start = time.monotonic()
    with pytest.raises(DataError, match="(?i)timed? ?out"):
        download("TINY", tmp_path / "cache" / "TINY.zip", server.url, attempts=2, pause=0, timeout=0.2)
    assert time.monotonic() - start < 1.5 and not stray(tmp_path)


def test_refused_connection(tmp_path):
    with pytest.raises(DataError, match="refused"):
        download("TINY", tmp_path / "cache" / "TINY.zip", "http://127.0.0.1:9", attempts=2, pause=0)


@pytest.mark.parametrize("url", ["file:///etc", "ftp://x", "MUTAG"])
def test_other_url_schemes_are_errors(tmp_path, url):
    with pytest.raises(ConfigError, match="url must start with"):
        download("TINY", tmp_path / "TINY.zip", url)


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl program to make a certificate")
def test_https_is_not_redirected_to_http(tmp_path, serve, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    plain = serve(ok(zipped()))
    good = serve(ok(zipped()), tls=(certificate, key))
    downgrading = serve(status(302, f"{plain.url}/TINY.zip"), tls=(certificate, key))
    staying = serve(status(302, f"{good.url}/TINY.zip"), tls=(certificate, key))
    with pytest.raises(DataError, match="redirected from https"):
        download("TINY", tmp_path / "cache" / "TINY.zip", downgrading.url, pause=0)
    assert plain.paths == [] and not stray(tmp_path)
    assert download("TINY", tmp_path / "cache" / "TINY.zip", staying.url, pause=0).contents["A"]


def dripping(part, pause=0.02):
    """An respond that never ends, in its head or in its body."""

    def respond(handler):
        if part == "body":
            handler.send_response(200)
            handler.end_headers()
        else:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Long: ")
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b"x")
                time.sleep(pause)

    return respond


@pytest.mark.parametrize("part", ["head", "body"])
def test_slow_server_is_given_up(tmp_path, serve, part):
    start = time.monotonic()
    with pytest.raises(DataError, match=r"TINY.zip: the server is too slow: \d+ bytes in \d+ s"):
        download("TINY", tmp_path / "cache" / "TINY.zip", serve(dripping(part)).url, patience=0.3)
    assert time.monotonic() - start < 20
    assert not list((tmp_path / "cache").iterdir())


def test_zip_bomb_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "TINY.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for suffix in FILES:
            archive.writestr(f"TINY_{suffix}.txt", bytes(6 << 20))
    with pytest.raises(DataError, match=r"would unpack to more than \d+ bytes; do not use"):
        find_raw("TINY", tmp_path)


def test_error_in_a_cached_zip_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path))
    monkeypatch.delenv("EGIN_DATA_ROOT", raising=False)
    (tmp_path / "raw").mkdir()
    kept = tmp_path / "raw" / "TINY.zip"
    with zipfile.ZipFile(kept, "w") as archive:
        for suffix in FILES:
            archive.writestr(f"TINY/TINY_{suffix}.txt", "<html>\n")
    with pytest.raises(DataError) as told:
        load_tu("TINY")
    assert str(told.value).endswith(f"'<html>' is not a number; remove {kept} to download it again")
    kept.write_bytes(zipped())
    with pytest.raises(DataError) as told:
        load_tu("TINY", expect={"graphs": 7})
    assert str(told.value).endswith(f"; remove {kept} to download it again")


def test_unwritable_cache_is_a_warning(tmp_path, serve, monkeypatch, caplog):
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "file"))
    monkeypatch.delenv("EGIN_DATA_ROOT", raising=False)
    assert len(load_tu("TINY", url=serve(ok(zipped())).url)) == 2
    assert "TINY is downloaded without caching it" in caplog.text
    assert "it will be rebuilt next time" in caplog.text
