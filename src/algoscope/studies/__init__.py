"""Studies: a paper's runs, figures and claims, carried out again and measured. This file imports nothing heavy."""

from dataclasses import dataclass

from algoscope import registry

SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Entry:
    """What `algoscope studies` tells about a study; the study itself is `STUDY` in a module, which loads only then."""

    name: str
    module: str
    title: str
    source: str
    takes: tuple[str, str, str]  # at each scale


OURS = (
    Entry(
        name="higher-order-icl",
        module="algoscope.studies.higher_order_icl",
        title="Transformers and second-order methods for in-context linear regression",
        source="Fu, Chen, Jia and Sharan, arXiv 2310.17086",
        takes=("15 s", "10 min on 2 cores", "an hour on one H200"),
    ),
    Entry(
        name="constructions",
        module="algoscope.studies.constructions",
        title="Transformers written by hand, against the theorems that they come from",
        source="Fu, Chen, Jia and Sharan, arXiv 2310.17086; Gao, Zheng et al., TMLR 01/2025",
        takes=("20 s", "3 min on 2 cores", "10 min on 2 cores"),
    ),
    Entry(
        name="graph-connectivity",
        module="algoscope.studies.graph_connectivity",
        title="When transformers learn the algorithm for graph connectivity, and when a heuristic",
        source="Ye, Fu, Jia and Sharan, arXiv 2510.19753",
        takes=("15 s", "5 min on 2 cores", "16 min on one H200"),
    ),
    Entry(
        name="data-structures",
        module="algoscope.studies.data_structures",
        title="Networks that discover data structures",
        source="Salemohamed, Charlin, Garg, Sharan and Valiant, arXiv 2411.03253",
        takes=("15 s", "12 min on 2 cores", "an hour on one H200, with --at-once 14"),
    ),
    Entry(
        name="algoformer",
        module="algoscope.studies.algoformer",
        title="AlgoFormer: layers before, in and after a loop, and which algorithm the loop runs",
        source="Gao, Zheng et al., TMLR 01/2025",
        takes=("15 s", "15 min on 2 cores", "an hour and a half on one H200"),
    ),
)
CATALOG = {entry.name: entry for entry in OURS}


def catalog() -> dict[str, Entry]:
    """The studies of ours, of plugins and of installed packages, by name."""
    installed = registry.offered("studies", Entry).found.values()
    return {entry.name: entry for entry in (*installed, *registry.plugged(Entry))} | CATALOG


def broken() -> tuple[str, ...]:
    """What installed packages offer as a study and is none."""
    return registry.offered("studies", Entry).broken
