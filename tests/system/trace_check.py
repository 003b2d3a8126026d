#!/usr/bin/env python3
"""trace_check.py FILE...: a strict check of traces of Binade's profiler: the Trace Event Format as Perfetto
reads it, and what Binade promises beyond it. Prints one line per file; status 1 and a message if one is wrong.
With BINADE_TRACE_PROCESSOR, the path of Perfetto's trace_processor_shell, that reads each file too."""
import json
import math
import os
import subprocess
import sys

CATEGORIES = {"user_annotation", "phase", "cpu_op", "kernel", "data", "gpu_memcpy", "wait", "collective"}
HEAD = {"version", "rank", "dropped", "first_step", "begin_ns", "peak_flops", "peak_bytes", "facts"}
ARGUMENTS = {"module": str, "phase": str, "shapes": str, "note": str, "line": str, "backward": bool, "flops": (int, float),
             "bytes": (int, float)}


class Wrong(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Wrong(message)


def whole_ns(value, what):
    """A time in microseconds as whole nanoseconds."""
    need(isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value), f"{what}: no number")
    need(value >= 0, f"{what} is below 0")
    need(abs(value * 1000 - round(value * 1000)) < 1e-3, f"{what} has parts of a nanosecond")
    return round(value * 1000)


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    need(len(set(keys)) == len(keys), f"an object has a key twice: {keys}")
    return dict(pairs)


def check_span(event, lanes):
    need(set(event) == {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"}, f"fields {sorted(event)}")
    need(event["cat"] in CATEGORIES, f"category {event['cat']}")
    need(isinstance(event["name"], str) and event["name"], "an empty name")
    need((event["pid"], event["tid"]) in lanes, "a lane without a name")
    for key, value in event["args"].items():
        need(key in ARGUMENTS and isinstance(value, ARGUMENTS[key]), f"argument {key}: {value!r}")
    begin = whole_ns(event["ts"], "ts")
    return begin, begin + whole_ns(event["dur"], "dur")


def check_nesting(spans):
    """Spans of a lane lie within each other or apart."""
    open_spans = []
    for begin, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_spans and open_spans[-1][1] <= begin:
            open_spans.pop()
        need(not open_spans or end <= open_spans[-1][1], f"{name} ends after {open_spans and open_spans[-1][2]} around it")
        open_spans.append((begin, end, name))


def covered(spans, step):
    """The share of a step inside spans that are no steps."""
    begin, end = step
    inside, until = 0, begin
    for left, right in sorted(spans):
        left, right = max(left, until, begin), min(right, end)
        if right > left:
            inside += right - left
            until = right
    return inside / max(end - begin, 1)


def memory_track(counters):
    """How often the allocator's own statistics, which follow a step's "saved for backward", are written, and how often
    they differ from the last change of the track before them."""
    checks, wrong, last, own = 0, 0, None, False
    for _, name, value in counters:
        if name == "saved for backward":
            own = True
        elif name == "allocated":
            if own:
                checks += 1
                wrong += last is not None and value != last
            last, own = value, False
    return checks, wrong


def check(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, object_pairs_hook=no_duplicates,
                          parse_constant=lambda word: (_ for _ in ()).throw(Wrong(f"the number {word}")))
    need(set(trace) == {"schemaVersion", "displayTimeUnit", "distributedInfo", "binade", "traceEvents"}, "other keys")
    head = trace["binade"]
    need(set(head) == HEAD and head["version"] == 1, "another head")
    need(all(isinstance(value, str) for value in head["facts"].values()), "facts that are no text")
    lanes, spans, counters, steps, work, ops, lines = {}, {}, [], [], [], 0, set()
    for number, event in enumerate(trace["traceEvents"]):
        try:
            need(event.get("pid") == head["rank"], "another pid than the rank")
            if event["ph"] == "M":
                if event["name"] == "thread_name":
                    lane = (event["pid"], event["tid"])
                    need(lane not in lanes and event["tid"] == len(lanes), "lanes out of order")
                    lanes[lane] = event["args"]["name"]
                else:
                    need(event["name"] in ("process_name", "thread_sort_index"), "unknown metadata")
            elif event["ph"] == "C":
                counters.append((whole_ns(event["ts"], "ts"), event["name"], event["args"].get("value")))
                need(set(event["args"]) == {"value"} and math.isfinite(event["args"]["value"]), "a counter without a value")
            else:
                need(event["ph"] == "X", f"ph {event['ph']}")
                begin, end = check_span(event, lanes)
                spans.setdefault(event["tid"], []).append((begin, end, event["name"]))
                ops += event["cat"] == "cpu_op"
                lines.add(event["args"].get("line"))
                if event["name"].startswith("ProfilerStep#"):
                    need(event["tid"] == 0, "a step beside the main lane")
                    steps.append((begin, end, int(event["name"][13:])))
                elif event["tid"] == 0 and (event["cat"] != "phase" or event["name"] not in ("forward", "backward")):
                    work.append((begin, end))
        except (Wrong, KeyError, TypeError, AttributeError) as error:
            raise Wrong(f"event {number}: {error!r}: {event}") from error
    for lane in spans.values():
        check_nesting(lane)
    need(list(lanes.values()) == list(dict.fromkeys(lanes.values())), "lanes of one name")
    steps.sort()
    for before, after in zip(steps, steps[1:]):
        need(before[2] + 1 == after[2] and before[1] <= after[0], "steps out of order")
    need(not steps or steps[0][2] == head["first_step"], "another first step")
    shares = sorted(covered(work, step[:2]) for step in steps)
    checks, wrong = memory_track(counters)
    return {"events": sum(map(len, spans.values())), "counters": len(counters), "steps": len(steps), "ops": ops,
            "covered": shares[len(shares) // 2] if shares else 0, "lanes": len(lanes), "lines": len(lines - {None}),
            "memory_checks": checks, "memory_wrong": wrong}


def main():
    processor = os.environ.get("BINADE_TRACE_PROCESSOR")
    for path in sys.argv[1:]:
        try:
            found = check(path)
        except (Wrong, ValueError, KeyError, TypeError) as error:
            print(f"{path}: {error}")
            return 1
        if processor:
            query = "select count(*) from slice"
            result = subprocess.run([processor, "query", path, query], capture_output=True, text=True, check=False)
            if result.returncode != 0 or str(found["events"]) not in result.stdout:
                print(f"{path}: Perfetto reads something else: {result.stdout}{result.stderr}")
                return 1
        print(f"{path}: {found['steps']} steps, {found['events']} events, {found['counters']} counters, "
              f"{found['lanes']} lanes, {100 * found['covered']:.1f}% of the median step inside ops, data and update")
    return 0


if __name__ == "__main__":
    sys.exit(main())
