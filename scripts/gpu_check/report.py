"""Results of the calls: JSON and a table, merged over the calls that have run, and one tar of all."""
import datetime
import json
import os
import subprocess
import tarfile

from fast import half_precision

CALLS = ("right", "fast", "why")
LOG_BYTES = 300_000        # kept of a log in the tar: its start and end
TAR_BYTES = 10_000_000
RUN_FILES = (".json", ".jsonl", ".csv", ".md")  # kept of runs/


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def commit_of(build, here):
    try:
        with open(os.path.join(build, "commit")) as file:
            return file.read().strip()
    except OSError:
        pass
    try:
        return subprocess.run(["git", "-C", here, "rev-parse", "HEAD"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.decode().strip() or "unknown"
    except OSError:
        return "unknown"


def write_json(path, value):
    """Writes a temporary file first, so that a killed check leaves no incomplete file."""
    with open(path + ".new", "w") as file:
        json.dump(value, file, indent=1)
    os.replace(path + ".new", path)


def read_calls(out):
    """The results of the calls that have run, by name."""
    calls = {}
    for call in CALLS:
        try:
            with open(os.path.join(out, f"{call}.json")) as file:
                calls[call] = json.load(file)
        except OSError:
            pass
        except ValueError as error:
            calls[call] = {"call": call, "date": "", "commit": "", "device": "", "driver": "", "seconds": 0,
                           "stages": [{"stage": call, "status": "failed", "seconds": 0,
                                       "detail": f"{call}.json is no JSON: {error}", "figures": {}}]}
    return calls


def counts_of(stages):
    return {status: sum(s["status"] == status for s in stages) for status in ("passed", "failed", "skipped")}


def merged(calls):
    """One report of all calls. Calls of several commits or devices are not merged: the report says so."""
    report = {"calls": list(calls), "missing_calls": [call for call in CALLS if call not in calls], "notes": [],
              "stages": [dict(stage, call=call) for call in calls for stage in calls[call]["stages"]]}
    for key in ("date", "commit", "device", "driver"):
        values = []
        for call in calls.values():
            if call.get(key) not in values + ["", "unknown", None]:
                values.append(call[key])
        report[key] = values[-1] if values else "unknown"
        if key != "date" and len(values) > 1:
            report["notes"].append(f"the calls differ in their {key}: {', '.join(values)}")
    figures = {}
    for stage in report["stages"]:
        figures.update({key: value for key, value in stage["figures"].items() if key in ("steps", "losses")})
        for tool, what in stage["figures"].get("missing", {}).items():
            note = f"no {tool} here: {what}"
            if note not in report["notes"]:
                report["notes"].append(note)
    report["half_precision"] = half_precision(figures)
    report["counts"] = counts_of(report["stages"])
    return report


def rows_table(title, rows):
    keys = list(rows[0])
    cell = {None: ""}
    return (["", f"## {title}", "", f"| {' | '.join(keys)} |", "| --- " * len(keys) + "|"]
            + [f"| {' | '.join(str(cell.get(row.get(key), row.get(key))) for key in keys)} |" for row in rows])


def table(report):
    lines = ["# Check on a GPU", "",
             f"{report['date']}, commit {report['commit']}, {report['device']}, driver {report['driver']}", ""]
    lines += [f"- {note}" for note in report["notes"]]
    lines += [f"- call {call} has not run" for call in report["missing_calls"]]
    lines += ["", "| call | stage | status | seconds | |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {s['call']} | {s['stage']} | {s['status']} | {s['seconds']} | {s['detail'].replace('|', '/')} |"
              for s in report["stages"]]
    if report["half_precision"]:
        lines += rows_table("16 bits against 32: time, memory, loss", report["half_precision"])
    for stage in report["stages"]:
        for name, rows in stage["figures"].items():
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                lines += rows_table(f"{stage['stage']}: {name}", rows)
    return "\n".join(lines) + "\n"


def write_report(out):
    report = merged(read_calls(out))
    write_json(os.path.join(out, "gpu-check.json"), report)
    with open(os.path.join(out, "gpu-check.md"), "w") as file:
        file.write(table(report))
    return report


def shortened(path, limit):
    """The bytes of a file, without the middle part if it is longer than `limit`."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) <= limit:
        return data
    return (data[:limit // 3] + f"\n[... {len(data) - limit} bytes left out ...]\n".encode()
            + data[len(data) - limit * 2 // 3:])


def files_of(out):
    """Paths below `out` that belong to the results: no checkpoints of models."""
    for folder, _, names in os.walk(out):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), out)
            if os.sep not in path or name.endswith(RUN_FILES):
                yield path


def write_tar(out, limit=TAR_BYTES):
    """Writes OUT.tar.gz with all results, at most `limit` bytes: logs are shortened until it fits."""
    import io
    target = out.rstrip(os.sep) + ".tar.gz"
    log_bytes = LOG_BYTES
    while True:
        with tarfile.open(target + ".new", "w:gz") as tar:
            for path in files_of(out):
                data = shortened(os.path.join(out, path), log_bytes if path.endswith(".log") else limit)
                entry = tarfile.TarInfo(os.path.join(os.path.basename(out.rstrip(os.sep)), path))
                entry.size, entry.mtime = len(data), int(os.path.getmtime(os.path.join(out, path)))
                tar.addfile(entry, io.BytesIO(data))
        if os.path.getsize(target + ".new") <= limit or log_bytes < 1000:
            break
        log_bytes //= 4
    os.replace(target + ".new", target)
    return target, os.path.getsize(target)
