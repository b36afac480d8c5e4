# SPDX-License-Identifier: Apache-2.0
"""Models of very many small things: wide.py KIND COUNT FILE, or wide.py --list.

Written field by field: a million messages of a protobuf library would take longer than what they are for.
"""
import struct
import sys

FLOAT, INT64, BOOL, INT_ATTRIBUTE, GRAPH_ATTRIBUTE = 1, 7, 9, 2, 5


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def field(index, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(index << 3 | 2) + varint(len(value)) + value


def bare_node(op, inputs, outputs, attributes=b"", domain=""):
    names = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
    return names + field(4, op) + attributes + (field(7, domain) if domain else b"")


def node(*args, **more):
    return field(1, bare_node(*args, **more))


def port(index, name, dims, dtype=FLOAT):
    shape = b"".join(field(1, number(1, dim)) for dim in dims)
    return field(index, field(1, name) + field(2, field(1, number(1, dtype) + field(2, shape))))


def scalar(name, value):
    return field(5, number(2, FLOAT) + field(8, name) + field(9, struct.pack("<f", value)))


def int_attribute(name, value):
    return field(5, field(1, name) + number(3, value) + number(20, INT_ATTRIBUTE))


def each(count, make):
    return b"".join(make(i) for i in range(count))


def chained(i, count):
    """Names of what step |i| of a chain from x to y takes and gives."""
    return ("x" if i == 0 else f"d{i - 1}"), ("y" if i == count - 1 else f"d{i}")


def chain(count, op_of):
    return each(count, lambda i: node(op_of(i), [chained(i, count)[0]], [chained(i, count)[1]]))


def adds(count, value_of):
    nodes = each(count, lambda i: node("Add", [chained(i, count)[0], f"c{i}"], [chained(i, count)[1]]))
    return nodes + each(count, lambda i: scalar(f"c{i}", value_of(i)))


def joined(count):
    return node("Concat", [f"d{i}" for i in range(count)], ["y"], int_attribute("axis", 0))


def body(name, op, i):
    graph = node(op, ["x"], [f"{name}{i}"]) + field(2, name) + field(12, field(1, f"{name}{i}"))
    return field(5, field(1, name) + field(6, graph) + number(20, GRAPH_ATTRIBUTE))


def loop_body(i):
    ports = port(11, f"i{i}", [], INT64) + port(11, f"c{i}", [], BOOL) + port(11, f"v{i}", [4])
    outputs = port(12, f"c{i}o", [], BOOL) + port(12, f"v{i}o", [4])
    nodes = node("Identity", [f"c{i}"], [f"c{i}o"]) + node("Sin", [f"v{i}"], [f"v{i}o"])
    return field(5, field(1, "body") + field(6, nodes + field(2, f"body{i}") + ports + outputs) +
                 number(20, GRAPH_ATTRIBUTE))


def function(name):
    opset = field(9, field(1, "") + number(2, 21))
    return field(25, field(1, name) + field(4, "a") + field(5, "b") + field(7, bare_node("Relu", ["a"], ["b"])) +
                 opset + field(10, "my"))


def calls(count, name_of):
    return each(count, lambda i: field(1, bare_node(name_of(i), [chained(i, count)[0]], [chained(i, count)[1]],
                                                    domain="my")))


X, Y = port(11, "x", [4]), port(12, "y", [4])
OWN = field(8, field(1, "my") + number(2, 1))
TURNS = ("Relu", "Neg")


# The graph's fields and further fields of the model, by kind.
KINDS = {
    "dead": lambda n: (each(n, lambda i: node("Relu", ["x"], [f"d{i}"])) + node("Neg", ["x"], ["y"]) + X + Y, b""),
    "equal_nodes": lambda n: (each(n, lambda i: node("Sin", ["x"], [f"d{i}"])) + joined(n) + X + port(12, "y", [4 * n]),
                              b""),
    "users": lambda n: (each(n, lambda i: node("Mul", ["x", f"c{i}"], [f"d{i}"]) + scalar(f"c{i}", i)) + joined(n) + X +
                        port(12, "y", [4 * n]), b""),
    "equal_constants": lambda n: (adds(n, lambda i: 2) + X + Y, b""),
    "constants": lambda n: (adds(n, lambda i: i / 7 + 1) + X + Y, b""),
    "unused_constants": lambda n: (each(n, lambda i: scalar(f"c{i}", i)) + node("Relu", ["x"], ["y"]) + X + Y, b""),
    "folded": lambda n: (each(n, lambda i: node("Neg", [f"c{i}"], [f"e{i}"]) + scalar(f"c{i}", i / 7 + 1) +
                              node("Add", [chained(i, n)[0], f"e{i}"], [chained(i, n)[1]])) + X + Y, b""),
    "chain": lambda n: (chain(n, lambda i: TURNS[i % 2]) + X + Y, b""),
    "identities": lambda n: (chain(n, lambda i: "Identity") + X + Y, b""),
    "declared": lambda n: (chain(n, lambda i: TURNS[i % 2]) + X + Y +
                           each(n - 1, lambda i: port(13, f"d{i}", [5])), b""),
    "attributes": lambda n: (node("Relu", ["x"], ["y"], each(n, lambda i: int_attribute(f"a{i}", i))) + X + Y, b""),
    "metadata": lambda n: (node("Relu", ["x"], ["y"]) + X + Y, each(n, lambda i: field(14, field(1, f"k{i}") +
                                                                                        field(2, "v")))),
    "ports": lambda n: (each(n, lambda i: node("Relu", [f"x{i}"], [f"y{i}"]) + port(11, f"x{i}", [4]) +
                             port(12, f"y{i}", [4])), b""),
    "outputs": lambda n: (node("Relu", ["x"], ["z"]) +
                          each(n, lambda i: node("Identity", ["z"], [f"y{i}"]) + port(12, f"y{i}", [4])) + X, b""),
    "functions": lambda n: (calls(n, lambda i: f"F{i}") + X + Y, OWN + each(n, lambda i: function(f"F{i}"))),
    "calls": lambda n: (calls(n, lambda i: "F") + X + Y, OWN + function("F")),
    "bodies": lambda n: (each(n, lambda i: node("If", ["c"], [f"d{i}"], body("then_branch", "Relu", i) +
                                                 body("else_branch", "Neg", i))) +
                         node("Sum", [f"d{i}" for i in range(n)], ["y"]) + X + port(11, "c", [], BOOL) + Y, b""),
    "loops": lambda n: (each(n, lambda i: node("Loop", ["m", "", chained(i, n)[0]], [chained(i, n)[1]], loop_body(i))) +
                        X + port(11, "m", [], INT64) + Y, b""),
    "concats": lambda n: (each(n, lambda i: node("Concat", [chained(i, n)[0], "x"], [chained(i, n)[1]],
                                                  int_attribute("axis", 0))) + X + port(12, "y", [4 * n + 4]), b""),
    "transposes": lambda n: (each(n, lambda i: node(("Transpose", "Relu")[i % 2], [chained(i, n)[0]],
                                                     [chained(i, n)[1]])) + port(11, "x", [3, 3]) + port(12, "y", [3, 3]),
                             b""),
}


def model(kind, count):
    graph, more = KINDS[kind](count)
    return number(1, 8) + field(7, field(2, kind) + graph) + field(8, field(1, "") + number(2, 21)) + more


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(KINDS))
    elif len(sys.argv) == 4 and sys.argv[1] in KINDS:
        with open(sys.argv[3], "wb") as file:
            file.write(model(sys.argv[1], int(sys.argv[2])))
    else:
        sys.exit(__doc__)
