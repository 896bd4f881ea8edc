"""Chunks that unpack to far more than they should are refused before they are unpacked; honest ones are read."""

import bz2
import gzip
import json
import lzma
import struct
import warnings
import zlib

import h5py
import numpy as np
import pytest
import xarray as xr

import latentpde as lp
from latentpde.io.packed import SLACK, check_packed

numcodecs = pytest.importorskip("numcodecs")
MEGABYTE = bytes(2**20)
NUM = SLACK // len(MEGABYTE) + 4


def deflated(wbits):
    stream = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(stream.compress(MEGABYTE) for _ in range(NUM)) + stream.flush()


def zstd_without_size():
    """A frame that does not say how long it is: blocks that repeat one byte."""
    block = (_ZSTD_BLOCK << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (_ZSTD_BLOCK << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd" + b"\x00\x58" + block * (8 * NUM) + last


_ZSTD_BLOCK = 2**17
HARMFUL = {
    "zlib": lambda: deflated(15),
    "gzip": lambda: deflated(31),
    "bz2": lambda: bz2.compress(MEGABYTE * NUM, 1),
    "lzma": lambda: lzma.compress(MEGABYTE * NUM, preset=0),
    "blosc": lambda: b"\x02\x01\x21\x08" + struct.pack("<III", 2**31, 2**20, 40) + bytes(24),
    "lz4": lambda: struct.pack("<I", 2**31 - 1) + b"\x1f\x00\x01\x00",
    "zstd": zstd_without_size,
}
HONEST = {
    "zlib": lambda b: zlib.compress(b),
    "gzip": lambda b: gzip.compress(b[:7]) + gzip.compress(b[7:]),
    "bz2": bz2.compress,
    "lzma": lzma.compress,
    "blosc": lambda b: numcodecs.Blosc().encode(b),
    "lz4": lambda b: numcodecs.LZ4().encode(b),
    "zstd": lambda b: numcodecs.Zstd().encode(b),
}


@pytest.mark.parametrize("codec", HARMFUL)
def test_a_chunk_that_would_fill_the_memory_is_refused(codec):
    with pytest.raises(lp.DataError, match="where 4,800 belong"):
        check_packed(HARMFUL[codec](), codec, 4800, "chunk")


@pytest.mark.parametrize("codec", HONEST)
def test_an_honest_chunk_passes_and_so_does_a_damaged_one(codec):
    content = HONEST[codec](np.random.default_rng(0).standard_normal(600).tobytes())
    check_packed(content, codec, 4800, "chunk")
    for cut in (0, 1, 5, len(content) // 2):
        check_packed(content[:cut], codec, 4800, "chunk")


def test_sizes_that_frames_state():
    encoded = bytes(numcodecs.Zstd().encode(MEGABYTE * NUM))
    with pytest.raises(lp.DataError, match=f"{len(MEGABYTE) * NUM:,} bytes"):
        check_packed(encoded, "zstd", 4800, "chunk")
    check_packed(encoded, "zstd", len(MEGABYTE) * NUM, "chunk")


def dataset():
    values = np.random.default_rng(0).standard_normal((20, 30))
    return xr.Dataset({"v": (("lat", "lon"), values)}, {"lat": np.arange(20.0), "lon": np.arange(30.0)})


def test_a_netcdf_file(tmp_path):
    path = tmp_path / "a.nc"
    packed = {"zlib": True, "shuffle": True, "chunksizes": (20, 30)}
    dataset().to_netcdf(path, engine="h5netcdf", encoding={"v": packed})
    assert lp.read(path).num_readings == 600
    with h5py.File(path, "r+") as file:
        file["v"].id.write_direct_chunk((0, 0), deflated(15))
    with pytest.raises(lp.DataError, match=r"a chunk of '/v', .* where 4,800 belong"):
        lp.read(path)


@pytest.mark.parametrize("kind", ["version 2", "version 3", "shards", "coordinate"])
def test_a_store(kind, tmp_path):
    zarr = pytest.importorskip("zarr")
    path, name = tmp_path / "a.zarr", "lat" if kind == "coordinate" else "v"
    encoding = {name: {"compressors": [zarr.codecs.GzipCodec()]}}
    if kind == "version 2":
        encoding = {name: {"compressors": [numcodecs.GZip()]}}
    if kind == "shards":
        encoding[name] |= {"chunks": (5, 10), "shards": (20, 30)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of consolidated metadata in version 3
        dataset().to_zarr(path, zarr_format=2 if kind == "version 2" else 3, encoding=encoding)
        assert lp.read(path).num_readings == 600
        chunk = next(p for p in (path / name).rglob("*") if p.is_file() and p.name[0] != "." and p.suffix != ".json")
        harm = deflated(31)
        if kind == "shards":  # its index stands at its end: twelve inner chunks, and a checksum
            content = chunk.read_bytes()
            harm = content[: -12 * 16 - 4] + harm + struct.pack("<QQ", len(content) - 196, len(harm)) * 12 + bytes(4)
        chunk.write_bytes(harm)
        with pytest.raises(lp.DataError, match="belong"):
            lp.read(path)
    assert json.loads((path / name / (".zarray" if kind == "version 2" else "zarr.json")).read_text())["shape"]
