"""Exact match against cost, question by question: how the numbers of the ``local`` preset were chosen.

    python benchmarks/measure.py data/dev.jsonl --set evidence=6 --set hop_evidence=3
    python benchmarks/measure.py data/dev.jsonl --program single_pass --limit 12 --out runs/single.jsonl

Prints a line a question and a summary: exact match (lenient, with synonyms), validated share, seconds, LM calls,
prompt tokens, those of them that the server had to compute, and the share from its prefix cache.
"""

import argparse
import json
import statistics
from pathlib import Path

from medhop_dspy import Settings, answers, session
from medhop_dspy.pipelines.program import as_record


def main() -> None:
    """Measure one configuration on one file of questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="JSONL with QIDX, Question, answer, synonyms, hops")
    parser.add_argument("--program", default="medhopper")
    parser.add_argument("--preset", default="local")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--limit", type=int, help="the first N questions")
    parser.add_argument("--min-hops", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSONL of all predictions")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.data.read_text(encoding="utf-8").split("\n") if line]
    rows = [r for r in rows if r["hops"] >= arguments.min_hops][: arguments.limit]
    settings = Settings.load(arguments.preset, **dict(item.split("=", 1) for item in arguments.set))
    records = []
    with session(arguments.program, settings) as program:
        for row in rows:
            record = as_record(program(question=row["Question"]))
            golds = [row["answer"], *row["synonyms"]]
            kind = answers.AnswerType(row["answer_type"])
            record["em"] = answers.exact_match(record["answer"], golds, kind)
            record["draft_em"] = answers.exact_match(record["draft"], golds, kind)
            record |= {"QIDX": row["QIDX"], "question": row["Question"], "gold": row["answer"]}
            record["found"] = any(g.casefold() in e["text"].casefold() for g in golds for e in record["evidence"])
            records.append(record)
            print(_line(record, row), flush=True)
    print(_summary(records))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")


def _computed(record: dict) -> int:
    return record["usage"]["prompt_tokens"] - record["usage"]["cached_tokens"]


def _line(record: dict, row: dict) -> str:
    hops = " / ".join(h["answer"] or f"({h['reason'][:40]})" for h in record["hops"])
    mark = "+" if record["em"] else "d" if record["draft_em"] else "-"
    cost = f"{record['seconds']:5.1f}s {record['lm_calls']:2} calls {_computed(record):5} computed"
    got = f"got {record['answer']!r} draft {record['draft']!r}"
    kind = f"{record['strategy']}/{record['answer_type']}"
    validated = "v" if record["validated"] else " "
    return f"{mark}{validated} {cost} | {row['Question'][:70]} | gold {row['answer']} | {got} | {kind} | hops {hops}"


def _summary(records: list[dict]) -> str:
    n = len(records)
    prompt = sum(r["usage"]["prompt_tokens"] for r in records)
    cached = sum(r["usage"]["cached_tokens"] for r in records)
    seconds = [r["seconds"] for r in records]
    calls = [r["lm_calls"] for r in records]
    return "\n".join(
        [
            f"n {n}, EM {sum(r['em'] for r in records)}, EM of drafts {sum(r['draft_em'] for r in records)}, "
            f"validated {sum(r['validated'] for r in records)}, gold in evidence {sum(r['found'] for r in records)}",
            f"seconds: mean {statistics.mean(seconds):.1f}, max {max(seconds):.1f}; "
            f"calls: mean {statistics.mean(calls):.1f}, max {max(calls)}",
            f"prompt tokens: mean {prompt / n:,.0f}, computed {(prompt - cached) / n:,.0f} "
            f"(max {max(map(_computed, records)):,}), from the prefix cache {cached / max(prompt, 1):.0%}",
        ]
    )


if __name__ == "__main__":
    main()
