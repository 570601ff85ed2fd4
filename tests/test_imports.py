"""Importing the package does nothing."""

import subprocess
import sys

HEAVY = ["torch", "chromadb", "flashrank", "sentence_transformers", "datasets", "bm25s", "litellm", "xllamacpp"]


MODULES = [
    "medhop_dspy.pipelines.medhopper", "medhop_dspy.adapter", "medhop_dspy.runtime", "medhop_dspy.retrieval.retriever",
    "medhop_dspy.retrieval.index", "medhop_dspy.knowledge.orphanet", "medhop_dspy.lm.connect",
    "medhop_dspy.pipelines.hybrid_ir", "medhop_dspy.graph.retriever", "medhop_dspy.graph.build",
]  # fmt: skip


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    heavy = [*HEAVY, "dspy", "httpx", "pydantic"]
    assert run(f"import sys, medhop_dspy; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_importing_a_module_loads_no_model_library():
    """One after the other in one process, so that the first that loads some is named."""
    code = (
        "import importlib, sys\n"
        f"for module in {MODULES}:\n"
        "    importlib.import_module(module)\n"
        f"    if loaded := [name for name in {HEAVY} if name in sys.modules]:\n"
        "        sys.exit(f'{module} loads {loaded}')\n"
        "print('none')\n"
    )
    assert run(code) == "none"


def test_importing_opens_no_socket_and_no_cache_folder(tmp_path):
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise SystemExit('socket opened at import')\n"
        "socket.socket.connect = refuse\n"
        "import medhop_dspy.runtime, medhop_dspy.pipelines.medhopper, medhop_dspy.lm.connect\n"
    )
    env = {"HOME": str(tmp_path), "MEDHOP_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "home").exists()


def test_public_names_are_importable():
    assert (
        run("import medhop_dspy; print(all(getattr(medhop_dspy, n) is not None for n in medhop_dspy.__all__))")
        == "True"
    )
