"""The same program, model and question with evidence first and with DSPy's ChatAdapter.

    python benchmarks/prefix_cache.py ["question"]

Each adapter gets a model server and a retriever of its own, so that neither finds a prompt cache, or passages that the
reranker has read already, of the other.
DSPy's response cache is off. Prints seconds, LM calls, unusable replies, prompt tokens and the share from the
server's prefix cache, and the ratio of the wall times.
"""

import sys

import dspy

from medhop_dspy import EvidenceFirstAdapter, MedHopper, Settings, connect, model_server, open_retriever

QUESTION = "On which chromosome is the gene mutated in the metabolic disorder discovered by Asbjørn Følling in 1934?"


def main() -> None:
    """Ask one question twice."""
    question = sys.argv[1] if len(sys.argv) > 1 else QUESTION
    # Every step of the program, and all calls about the same evidence: ChatAdapter knows no held replies.
    settings = Settings.load("local", use_model_judges=True, readings=0)
    adapters = {"evidence first": EvidenceFirstAdapter(), "ChatAdapter": dspy.ChatAdapter()}
    seconds = {}
    for name, adapter in adapters.items():
        retriever = open_retriever(settings)
        retriever.search(["warm up"], 1)  # loads the models of retrieval
        with model_server(settings) as served, dspy.context(lm=connect(served)):
            trace = MedHopper(retriever, served, adapter=adapter)(question=question).trace
        usage = trace.usage
        seconds[name] = trace.seconds
        print(
            f"{name:15} {trace.seconds:6.1f} s  {len(trace.calls):2} calls  {len(trace.failures)} unusable replies  "
            f"{usage.prompt_tokens:6,} prompt tokens, {usage.cached_share:.0%} from the prefix cache, "
            f"{usage.computed_tokens:,} computed"
        )
    print(f"evidence first takes {seconds['evidence first'] / seconds['ChatAdapter']:.2f} of the wall time")


if __name__ == "__main__":
    main()
