"""Documents: checked against their schema, whole or refused, in bounded time and memory."""

import gzip
import json
import os
import tracemalloc
import zlib

import pytest

import algoscope as ag
from algoscope import documents, files, runs

RECORD = {"step": 1, "member": 0, "points": 3, "loss": 0.5, "error": None, "stopped_at": -1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (RECORD, ""),
        ({**RECORD, "loss": 1}, ""),
        ({**RECORD, "more": []}, ""),
        ({**RECORD, "loss": "1"}, "loss must be a number or null, got a string"),
        ({**RECORD, "step": True}, "step must be an integer, got true or false"),
        ({**RECORD, "step": 1.5}, "step must be an integer, got a number"),
        ({k: v for k, v in RECORD.items() if k != "member"}, "it lacks member"),
        ([], "it must be an object, got a list"),
    ],
)
def test_a_document_is_checked_against_its_schema(value, words):
    assert documents.problem(value, documents.RECORD) == words
    assert documents.problem({"deep": [RECORD, value]}, {"deep": [documents.RECORD]}) == words.replace(
        "it lacks ", "it lacks deep[1]."
    ).replace("it must", "deep[1] must").replace("loss must", "deep[1].loss must").replace(
        "step must", "deep[1].step must"
    )


def test_a_document_comes_back_and_its_checksum_is_of_its_content(tmp_path):
    value = {"a": [1, 2.5, None, "ü", {"b": True}]}
    for file in (tmp_path / "x.json", tmp_path / "x.json.gz"):
        files.write_json(file, value)
        assert files.read_json(file) == value
    laid_out = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(dict(reversed(laid_out.items())), indent=7))
    assert files.read_json(tmp_path / "x.json") == value
    (tmp_path / "x.json").write_text(json.dumps(laid_out | {"a": [1]}))
    with pytest.raises(runs.RunError, match="checksum does not fit"):
        files.read_json(tmp_path / "x.json")


def test_a_bomb_is_refused_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 2**20)
    packer, file = zlib.compressobj(wbits=31), tmp_path / "results.json.gz"
    with file.open("wb") as out:
        for _ in range(256):
            out.write(packer.compress(bytes(2**20)))
        out.write(packer.flush())
    assert file.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(runs.RunError, match="more than 1 MiB"):
        files.read_json(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b", gzip.compress(b"{}", mtime=0)[:-5], gzip.compress(b"{}", mtime=0) + b"more"]
)
def test_a_damaged_gzip_is_refused(tmp_path, content):
    (tmp_path / "x.json.gz").write_bytes(content)
    with pytest.raises(runs.RunError, match="damaged"):
        files.read_json(tmp_path / "x.json.gz")


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(runs.RunError, match="is not a file"):
        ag.load(tmp_path)
    with pytest.raises(runs.RunError, match="is not a file"):
        files.read_json(tmp_path)
