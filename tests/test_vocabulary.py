"""Names and sentences use the words of the field: those that this project once made up do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "algoscope").rglob("*.py"))
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *SOURCES]
TEXTS += [file for kind in ("*.html", "*.js") for file in sorted((ROOT / "src" / "algoscope").rglob(kind))]

# word of a name: what to say instead
WORDS = {
    "told": "described, summary",
    "says": "prediction, sentence",
    "said": "prediction, sentence",
    "holds": "contains",
    "lonely": "outlier_dominated",
    "carriers": "effective_sample_size",
    "nobody": "no_progress",
    "sober": "undecided_if_untrained",
    "otherwise": "config_changed, alternative",
    "asker": "QueryMLP",
    "askers": "QueryMLP",
    "hear": "graceful_stop",
    "readout": "linear probe",
    "paced": "needs_progress",
    "selective": "answers_subset",
    "along": "measure_checkpoint",
    "usual": "baseline",
    "haste": "loss at every look-up",
    "coldest": "final_temperature",
    "carrier": "effective_sample_size",
}
# whole name: what to say instead
NAMES = {
    "stop_lost": "freeze_diverged",
    "go_on": "train_loop",
    "in_favor": "slot_bias",
    "come_late": "deferred_weight_grads",
    "octaves": "fourier_octaves",
    "lens": "logit_lens",
    "descent": "gradient_descent",
    "DESCENT": "GRADIENT_DESCENT",
    "SERIES": "AR_SERIES",
    "steps_to_hold": "checkpoint_steps",
}
PHRASES = [
    "cannot go on",
    "was begun on",
    "has not learned: its loss",
    "not all of it",
    "cannot be told apart",
    "cannot be told from",
    "in haste",
    "in favor of",
    "coldest",
    "known by tokens",
    "comes along",
    "gone astray",
    "went astray",
    "sober",
    "lonely",
    "patched read-out",
    "read-out",
    "carriers",
    "come late",
    "nobody",
    "chains of thought",
    'optimizer="descent"',
]
# Where such a phrase is a name on file: weights and random streams are found by it.
ON_FILE = {("reading/probe.py", "read-out"), ("training/load.py", "read-out")}


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr


def test_names_use_the_words_of_the_field():
    for file in SOURCES:
        for line, name in names(ast.parse(file.read_text())):
            assert name not in NAMES, f"{file.name}, line {line}: {name} is {NAMES[name]}"
            for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name):
                assert word.lower() not in WORDS, f"{file.name}, line {line}: {name}: {word} is {WORDS[word.lower()]}"


def test_sentences_use_the_words_of_the_field():
    for file in TEXTS:
        text = " ".join(file.read_text().split()).lower()
        for phrase in PHRASES:
            known = file.is_relative_to(ROOT / "src") and any(
                file.match(where) and phrase == own for where, own in ON_FILE
            )
            assert known or phrase.lower() not in text, f"{phrase!r} stands in {file.name}"


def test_words_of_ours_are_seen():
    assert dict(names(ast.parse("def told(x): return x.go_on"))).keys() == {1}
    assert {name for _, name in names(ast.parse("def told(x): return x.go_on"))} == {"told", "x", "go_on"}
