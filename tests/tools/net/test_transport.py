"""Packed bodies, however their bytes arrive."""

import gzip
import zlib

import pytest

from tools.net.netpolicy import ResponseRefused
from tools.net.transport import iter_limited_body

TEXT = b"hello " * 50


def raw_deflate(text):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(text) + packer.flush()


def unpack(body, *, piece):
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)]
    headers = [("content-encoding", "gzip")]
    return b"".join(iter_limited_body(pieces, headers, "example.com", 10_000))


@pytest.mark.parametrize("piece", [1, 2, 7, 10_000])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(gzip.compress(TEXT), id="gzip"),
        pytest.param(gzip.compress(TEXT[:150]) + gzip.compress(TEXT[150:]), id="two"),
        pytest.param(zlib.compress(TEXT), id="zlib"),
        pytest.param(raw_deflate(TEXT), id="raw deflate"),
        pytest.param(gzip.compress(TEXT) + b"\0" * 20, id="padded"),
    ],
)
def test_packed_bodies_are_unpacked_from_pieces_of_any_size(body, piece):
    assert unpack(body, piece=piece) == TEXT


@pytest.mark.parametrize("piece", [1, 10_000])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, raw_deflate])
@pytest.mark.parametrize("missing", [1, 20])
def test_a_truncated_body_is_refused(pack, missing, piece):
    with pytest.raises(ResponseRefused, match="cannot be unpacked"):
        unpack(pack(bytes(range(256)) * 20)[:-missing], piece=piece)


def test_one_byte_is_no_packed_body():
    with pytest.raises(ResponseRefused, match="cannot be unpacked"):
        unpack(b"\x1f", piece=1)


def test_an_empty_body_is_empty():
    assert unpack(b"", piece=1) == b""
