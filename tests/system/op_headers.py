"""Reads the functions that C++ headers declare and sources define: for the rule `ops` of lint.py.

No compiler: comments and strings are blanked, macros of the repository's own headers are expanded, and
what remains is scanned at namespace scope. A function is its result, its name and the types of its
parameters; those of namespace binade::detail are named detail::f.
"""
import re

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)((?:.*\\\n)*.*)$", re.MULTILINE)
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.MULTILINE)
INCLUDE = re.compile(r"^\s*#\s*include\s*<binade/([^>]+)>", re.MULTILINE)
OPERATOR = r"operator\s*(?:\(\)|\[\]|[^\s\w(]+|\w+)"
FUNCTION = re.compile(rf"(?P<before>.*?)(?P<name>(?:\w+::)*(?:{OPERATOR}|\w+))\s*\((?P<rest>.*)", re.DOTALL)
SPECIFIERS = {"inline", "constexpr", "consteval", "extern"}
NOT_FUNCTIONS = {"if", "for", "while", "switch", "return", "static_assert", "sizeof", "alignas", "decltype"}


def blanked(text):
    """The text without comments; a string is one pair of quotes."""
    return COMMENT_OR_STRING.sub(lambda m: '""' if m[0].startswith(("R", '"')) else " ", text)


def closing(text, start):
    """The position after the bracket that closes the one at `start`."""
    pairs, depth = {"(": ")", "{": "}", "[": "]"}, []
    for i in range(start, len(text)):
        if text[i] in pairs:
            depth.append(pairs[text[i]])
        elif depth and text[i] == depth[-1]:
            depth.pop()
            if not depth:
                return i + 1
    return len(text)


def arguments(text, brackets="([{"):
    """What stands between the commas that are in no bracket."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in brackets) - (c in {"(": ")", "[": "]", "{": "}", "<": ">"}.values()
                                    and {")": "(", "]": "[", "}": "{", ">": "<"}[c] in brackets)
        if c == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    parts.append(text[begin:].strip())
    return parts if parts != [""] else []


def preprocessed(path, root, macros, seen):
    """The text of a file, with the macros expanded that it and the repository's headers before define."""
    if path in seen or not path.is_file():
        return ""
    seen.add(path)
    text, result, at = path.read_text(), [], 0
    for name in INCLUDE.findall(text):
        preprocessed(root / name, root, macros, seen)
    text = blanked(text)
    for directive in DIRECTIVE.finditer(text):
        result.append(expanded(text[at:directive.start()], macros))
        at = directive.end()
        if define := DEFINE.match(directive[0]):
            macros[define[1]] = ([n.strip() for n in define[2].split(",")], define[3].replace("\\\n", " "))
    return "".join(result) + expanded(text[at:], macros)


def substituted(parameters, body, given):
    """The body of a macro with what it was given; what is more than its parameters is __VA_ARGS__."""
    named = dict(zip(parameters, given))
    if parameters and parameters[-1] == "...":
        named["__VA_ARGS__"] = ", ".join(given[len(parameters) - 1:])
    body = re.sub(r"(?<!#)#\s*\w+", '""', body)
    body = re.sub(r"\b\w+\b", lambda m: named.get(m[0], m[0]), body)
    return re.sub(r"\s*##\s*", "", body)


def expanded(text, macros, depth=0):
    if depth > 8:
        return text
    result, at = [], 0
    for match in re.finditer(r"\b(\w+)\s*\(", text):
        if match.start() < at or match[1] not in macros:
            continue
        end = closing(text, match.end() - 1)
        parameters, body = macros[match[1]]
        inner = substituted(parameters, body, arguments(text[match.end():end - 1]))
        result += [text[at:match.start()], expanded(inner, macros, depth + 1)]
        at = end
    return "".join(result) + text[at:]


def items(text):
    """(namespace, declaration, has a body) for all that stands at namespace scope."""
    scopes, i, begin = [], 0, 0
    while i < len(text):
        c = text[i]
        if c in "([":
            i = closing(text, i)
            continue
        if c == ";":
            yield "::".join(scopes), text[begin:i].strip(), False
        elif c == "}":
            if scopes:
                scopes.pop()
        elif c == "{":
            head = text[begin:i].strip()
            namespace = re.fullmatch(r"(?:inline\s+)?namespace\s*([\w:]*)(?:\s*\[\[.*\]\])?", head)
            if namespace:
                scopes.append(namespace[1] or "(anonymous)")
            else:
                i = closing(text, i)
                after = re.match(r"\s*;", text[i:])
                if not after or "(" in head:
                    yield "::".join(scopes), head, True
                if after:
                    i += after.end()
                begin = i
                continue
        else:
            i += 1
            continue
        i += 1
        begin = i


def type_of(parameter):
    """A parameter without its default, its name and the namespaces of its type."""
    parameter = re.split(r"=", parameter, maxsplit=1)[0].strip()
    parameter = re.sub(r"\(([&*])\s*\w*\)", r"(\1)", parameter)  # int (&name)[2]
    words = re.findall(r"[\w:]+", re.sub(r"<.*>", "", parameter))
    kinds = [word for word in words if word not in {"const", "volatile", "unsigned", "struct"}]
    if len(kinds) > 1 and re.search(r"\w$", parameter):
        parameter = re.sub(r"\w+$", "", parameter)
    parameter = re.sub(r"\b(?:\w+::)+(?=\w)", "", parameter)
    return re.sub(r"\s+", " ", re.sub(r"\s*([&*<>,()\[\]])\s*", r"\1", parameter)).strip()


def functions(text):
    """{signature: whether it has a body} of the functions in binade and binade::detail that others may call."""
    found = {}
    for scope, head, has_body in items(text):
        head = re.sub(r"\[\[.*?\]\]", " ", head)
        match = scope in {"", "binade", "binade::detail"} and FUNCTION.match(head)
        if match and scope == "" and not match["name"].startswith("binade::"):
            continue
        if not match or "=" in re.sub(OPERATOR, "", match["before"] + match["name"]):
            continue
        before = match["before"].split()
        name = re.sub(r"\s+", "", match["name"]).removeprefix("binade::")
        if scope == "binade::detail":
            name = "detail::" + name
        if not before or before[0] in {"using", "typedef", "friend", "struct", "class", "enum"}:
            continue
        if "static" in before or "::" in name.removeprefix("detail::") or name in NOT_FUNCTIONS:
            continue
        result = " ".join(word for word in before if word not in SPECIFIERS)
        result = re.sub(r"\b(?:\w+::)+(?=\w)", "", re.sub(r"\s*([&*<>,])\s*", r"\1", result))
        end = closing("(" + match["rest"], 0) - 2
        types = [type_of(p) for p in arguments(match["rest"][:end], "([{<")]
        found[f"{result} {name}({', '.join(types)})"] = has_body
    return found


def declared(path):
    """Signatures that a header declares and does not define."""
    found = functions(DIRECTIVE.sub("", blanked(path.read_text())))
    return {signature for signature, has_body in found.items() if not has_body}


def defined(path, root):
    """Signatures that a source defines."""
    found = functions(preprocessed(path, root, {}, set()))
    return {signature for signature, has_body in found.items() if has_body}


def faults(root):
    """(file, line, fault) where core/ops/X.h is not what core/ops/X.cpp defines."""
    folder = root / "core/ops"
    headers = {path.stem: path for path in sorted(folder.glob("*.h"))}
    sources = {path.stem: path for path in sorted(folder.glob("*.cpp"))}
    internal = set().union(*(declared(path) for path in folder.rglob("*_internal.h")))
    for stem in sorted(headers.keys() | sources.keys()):
        if stem.endswith("_internal"):
            continue
        header, source = headers.get(stem), sources.get(stem)
        if not source:
            yield header, 1, f"core/ops/{stem}.cpp is missing: a header of ops declares what its source defines"
            continue
        declares = declared(header) if header else set()
        defines = defined(source, root) - internal
        for signature in sorted(declares - defines):
            yield header, 1, f"{signature} is not defined in core/ops/{stem}.cpp; declare it beside its definition"
        for signature in sorted(defines - declares):
            yield source, 1, (f"{signature} is not declared in core/ops/{stem}.h; declare it there, in an _internal.h "
                              "or put it into the anonymous namespace")
    yield from umbrella_faults(root, [stem for stem in headers if not stem.endswith("_internal")])


def umbrella_faults(root, families):
    """core/ops.h includes all headers of ops and holds nothing else."""
    umbrella = root / "core/ops.h"
    if not umbrella.is_file():
        return
    text = umbrella.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        if not re.fullmatch(r"\s*(//.*|#\s*(pragma once|include\b.*))?", line):
            yield umbrella, number, "core/ops.h holds includes and comments only; declare in core/ops/<family>.h"
    for family in families:
        if f"<binade/core/ops/{family}.h>" not in text:
            yield umbrella, 1, f"core/ops/{family}.h is not included; end its name in _internal if it is not public"
