"""Reads the functions of C++ and CUDA sources, with their lines and parameters: for the rule `sources` of lint.py.

No compiler: comments, strings, characters and directives (so also macros) are blanked, then brackets are
followed at the level of namespaces and classes. Lambdas and local classes count as lines of the function
around them. Calls of macros, aliases and variables are no functions.
"""
import collections
import re

import op_headers

# lines: from { to }, 0 without a body.
Function = collections.namedtuple("Function", "name line lines parameters kernel")

BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
NO_FUNCTION = re.compile(r"\s*(?:using|typedef|namespace|enum|static_assert)\b")
# Words before brackets that are no parameter list; the last are macros.
NO_NAME = re.compile(
    r"\b(?:__launch_bounds__|__attribute__|alignas|decltype|noexcept|requires|explicit|[A-Z][A-Z0-9]*_[A-Z0-9_]*)$")
NAME = re.compile(r"(~?\w+|operator\s*(?:\(\)|\[\]|[^\s\w(]+|\w[\w:<>&* ]*))$")
BEFORE_BODY = re.compile(r"(?:[)}]|\b(?:const|noexcept|override|final|try)|->[\w\s:<>,&*\[\]]+)\s*$")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union)\b[^=]*$|\bextern\s*\"\"\s*$")


def blanked(text):
    """The text without comments and directives, a string as one pair of quotes; line numbers stay."""
    def blank(match):
        return ('""' if match[0].startswith(('"', "R")) else " ") + "\n" * match[0].count("\n")
    return op_headers.DIRECTIVE.sub(blank, BLANKED.sub(blank, text))


def without_template(head):
    """What follows template<...>."""
    while match := re.match(r"\s*template\s*<", head):
        depth, at = 1, match.end()
        while depth > 0 and at < len(head):
            depth += (head[at] == "<") - (head[at] == ">")
            at += 1
        head = head[at:]
    return head


def parameters_of(head):
    """The name and the number of parameters of the function whose head this is, or None."""
    at = head.find("(")
    while at >= 0 and not NO_FUNCTION.match(head):
        before = head[:at].rstrip()
        name = None if NO_NAME.search(before) or before.endswith("operator") else NAME.search(before)
        end = op_headers.closing(head, at)
        if name:
            is_variable = "operator" not in before and re.search(r"(?<![=!<>])=(?!=)", before)
            parameters = op_headers.arguments(head[at + 1:end - 1].replace("->", "  "), "([{<")
            return None if is_variable else (name[1], 0 if parameters == ["void"] else len(parameters))
        at = head.find("(", end)
    return None


def functions(text):
    """Every function that the text declares or defines outside of other functions."""
    text = blanked(text)
    start = at = 0  # of the head that is being read; of the rest

    def function(found, lines):
        begin = start + len(text[start:at]) - len(text[start:at].lstrip())
        return Function(found[0], text.count("\n", 0, begin) + 1, lines, found[1],
                        "__global__" in text[start:at])

    while match := re.compile(r"[(\[{};]|\b(?:public|private|protected)\s*:").search(text, at):
        at, letter = match.start(), match[0]
        head = without_template(text[start:at])
        end = match.end()
        if letter in "([":
            at = op_headers.closing(text, at)
            continue
        found = parameters_of(head) if letter in ";{" else None
        if letter == "{" and not (found and BEFORE_BODY.search(head)):
            if not found and SCOPE.search(head):
                start = end
            else:  # an initializer or an enum; the head goes on
                end = op_headers.closing(text, at)
        else:
            if letter == "{":
                end = op_headers.closing(text, at)
                yield function(found, text.count("\n", at, end) + 1)
            elif found:
                yield function(found, 0)
            start = end
        at = end
