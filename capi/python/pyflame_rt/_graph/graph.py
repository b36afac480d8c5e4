# SPDX-License-Identifier: Apache-2.0
"""Graphs that can be built, read and edited."""
from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError, NotFoundError, PyFlameRTError, ValidationError
from .._values.constant import tensor_at, value_of_constant
from .._values.dtype import DType, dtype_of
from .._values.info import ShapeLike, TensorInfo, info_struct, read_info
from .._values.memory import SparseTensor
from .._values.tensor import Tensor
from .attributes import AttributeValue, encode
from .model import LoadCall, graph_to_bytes, model_of_bytes, model_of_graph, model_of_source, write_model
from .node import Node
from .text import graph_html, graph_line, graph_tree

_INFO_SIZE, _NODE_SIZE = ctypes.sizeof(abi.ValueInfo), ctypes.sizeof(abi.Node)


class Graph:
    """A graph: inputs, outputs, initializers (constants) and nodes, which name the values that they take and make.

    >>> graph = Graph("mlp")
    >>> graph.add_input("x", [None, 784], DType.Float32)
    >>> graph.add_initializer("w", weights)
    >>> graph.add_node("fc", "MatMul", inputs=["x", "w"], outputs=["y"])
    >>> graph.add_output("y")
    >>> session = InferenceSession(graph)

    Every change is in the graph at once, whichever object made it: nodes, bodies and lists that were asked for before
    show it too. A graph stays usable after a session was made from it, which never sees later changes. Calls from
    several threads wait for each other.
    """

    def __init__(self, name: str = "") -> None:
        self._over(lib.make(lib.graph.create, lib.graph.release, lib.text(name)))

    def _over(self, handle: lib.Handle, outer: Optional["Graph"] = None) -> "Graph":
        self._handle = handle
        # The library leaves it to its callers that nobody reads a graph while another edits it or a body of it.
        self._outer = outer
        self._lock: Any = outer._lock if outer is not None else threading.RLock()
        self._nodes: "weakref.WeakValueDictionary[int, Node]" = weakref.WeakValueDictionary()
        self._bodies: "weakref.WeakValueDictionary[int, Graph]" = weakref.WeakValueDictionary()
        # All names that nodes have, and some that they had; None: to be read. To look through the nodes for each that
        # is added would take quadratic time.
        self._names: Optional[Set[str]] = None
        return self

    @classmethod
    def _of(cls, handle: lib.Handle, outer: Optional["Graph"] = None) -> "Graph":
        return cls.__new__(cls)._over(handle, outer)

    # ------------------------------------------------------------------ calls

    def _at(self) -> int:
        if not self._handle.address:
            raise PyFlameRTError("the graph was lent to a pass and can be used only while the pass runs: "
                                 "keep graph.clone() instead")
        return self._handle.address

    def _call(self, function: Any, *args: Any) -> None:
        with self._lock:
            lib.check(function(self._at(), *args))

    def _number(self, function: Any, *args: Any) -> int:
        """A node id that a function gives through its last parameter."""
        out = ctypes.c_uint32()
        self._call(function, *args, ctypes.byref(out))
        return out.value

    def _infos(self, count: Any, at: Any) -> List[TensorInfo]:
        info = abi.ValueInfo(struct_size=_INFO_SIZE)
        with self._lock:
            found = []
            for i in range(count(self._at())):
                lib.check(at(self._at(), i, ctypes.byref(info)))
                found.append(read_info(info).tensor_info())
            return found

    def _body(self, address: int) -> "Graph":
        """The Graph of a body's handle, which this graph lends."""
        body = self._bodies.get(address)
        if body is None:
            lib.graph.retain(address)
            body = self._inner(lib.Handle(address, lib.graph.release))
        return body

    def _inner(self, handle: lib.Handle) -> "Graph":
        assert handle.address
        body = self._bodies[handle.address] = Graph._of(handle, self)
        return body

    def _close(self) -> None:
        """Ends the use of a graph that was lent, and of its bodies."""
        for body in list(self._bodies.values()):
            body._close()
        self._handle.close()

    # ------------------------------------------------------------------ the graph as a whole

    @property
    def name(self) -> str:
        """The graph's name; it may be "" and may be set."""
        with self._lock:
            return lib.read(lib.graph.name(self._at()))

    @name.setter
    def name(self, name: str) -> None:
        self._call(lib.graph.set_name, lib.text(name))

    @property
    def opsets(self) -> Dict[str, int]:
        """The versions of operators by domain, "" being ONNX's own; a domain that is not set has the newest."""
        domain, version, out = abi.String(), ctypes.c_int64(), {}
        with self._lock:
            for i in range(lib.graph.opset_count(self._at())):
                lib.check(lib.graph.opset_at(self._at(), i, ctypes.byref(domain), ctypes.byref(version)))
                out[lib.read(domain)] = version.value
        return out

    def set_opset(self, domain: Union[str, int], version: Optional[int] = None) -> None:
        """``set_opset(17)`` for ONNX's own domain, ``set_opset("com.example", 1)`` for another."""
        if version is None:
            domain, version = "", int(domain)
        if not 0 < version < 1 << 31:
            raise InvalidArgumentError(f"setting the opset of '{domain}' to {version}: give a positive version")
        self._call(lib.graph.set_opset, lib.text(str(domain)), version)

    def remove_opset(self, domain: str) -> None:
        """Removes the version of a domain; NotFoundError when it has none here."""
        self._call(lib.graph.remove_opset, lib.text(domain))

    @property
    def metadata(self) -> Dict[str, str]:
        """The model's own description, by key. It is a copy: set_metadata and remove_metadata change the graph."""
        entry, out = abi.KeyValue(), {}
        with self._lock:
            for i in range(lib.graph.metadata_count(self._at())):
                lib.check(lib.graph.metadata_at(self._at(), i, ctypes.byref(entry)))
                out[lib.read(entry.key)] = lib.read(entry.value)
        return out

    def set_metadata(self, key: str, value: str) -> None:
        """Sets an entry of the model's metadata; one of the same key is replaced."""
        self._call(lib.graph.set_metadata, lib.text(key), lib.text(value))

    def remove_metadata(self, key: str) -> None:
        """Removes an entry of the model's metadata; NotFoundError when there is no such key."""
        self._call(lib.graph.remove_metadata, lib.text(key))

    def clone(self) -> "Graph":
        """A graph of its own with the same node ids; constants are shared. The clone of a body is a body."""
        with self._lock:
            handle = lib.make(lib.graph.clone, lib.graph.release, self._at())
            return Graph._of(handle) if self._outer is None else self._outer._inner(handle)

    def extract(self, inputs: Sequence[str], outputs: Sequence[str]) -> "Graph":
        """The part that computes ``outputs`` from ``inputs``, which may be any values, as a graph that runs alone.

        Constants are shared. Inputs of this graph that the part needs besides are its inputs too, after ``inputs``.
        NotFoundError for names that there are not, InvalidArgumentError for a value named twice or an input that nothing
        in between reads, UnsupportedError for a body.
        """
        if isinstance(inputs, str) or isinstance(outputs, str):
            raise InvalidArgumentError("inputs and outputs of a part are lists of names")
        with self._lock:
            handle = lib.make(lib.graph.extract, lib.graph.release, self._at(), lib.texts(inputs), len(inputs),
                              lib.texts(outputs), len(outputs))
        return Graph._of(handle)

    def create_subgraph(self, name: str = "") -> "Graph":
        """A body for an attribute of a node of this graph; names that it does not define are this graph's."""
        with self._lock:
            handle = lib.make(lib.graph.create_subgraph, lib.graph.release, self._at(), lib.text(name))
            return self._inner(handle)

    # ------------------------------------------------------------------ inputs, outputs, values

    def add_input(self, name: Union[str, TensorInfo], shape: ShapeLike = None, dtype: Any = None) -> None:
        """Adds an input, of float32 unless |dtype| says otherwise.

        |shape| has a number, a name or None (it may vary) for each dimension; None = not even the rank is known. A
        TensorInfo in place of the name says it all, also for sequences, maps and optionals.
        """
        info = _info(name, shape, DType.Float32 if dtype is None and isinstance(name, str) else dtype)
        self._call(lib.graph.add_input, ctypes.byref(info_struct(info)))

    def add_output(self, name: Union[str, TensorInfo], shape: ShapeLike = None, dtype: Any = None) -> None:
        """Makes the value |name| an output. What is not said of it follows from the nodes."""
        self._call(lib.graph.add_output, ctypes.byref(info_struct(_info(name, shape, dtype))))

    @property
    def inputs(self) -> List[TensorInfo]:
        """The graph's inputs in order, those with default values among them; copies."""
        return self._infos(lib.graph.input_count, lib.graph.input_at)

    @property
    def outputs(self) -> List[TensorInfo]:
        """The graph's outputs in order; copies."""
        return self._infos(lib.graph.output_count, lib.graph.output_at)

    def replace_input(self, which: Union[int, str], info: TensorInfo) -> None:
        """Puts another in the place of an input, by position or name. What |info| leaves open is then not known."""
        self._call(lib.graph.replace_input, _index(which, self.inputs, "input"), ctypes.byref(info_struct(info)))

    def remove_input(self, which: Union[int, str]) -> None:
        """Removes an input, by position or name; nodes that still take it fail ``validate``."""
        self._call(lib.graph.remove_input, _index(which, self.inputs, "input"))

    def replace_output(self, which: Union[int, str], info: TensorInfo) -> None:
        """Puts another in the place of an output, by position or name. What |info| leaves open is then not known."""
        self._call(lib.graph.replace_output, _index(which, self.outputs, "output"), ctypes.byref(info_struct(info)))

    def remove_output(self, which: Union[int, str]) -> None:
        """Removes an output, by position or name; what makes it stays."""
        self._call(lib.graph.remove_output, _index(which, self.outputs, "output"))

    def get_tensor_info(self, name: str) -> TensorInfo:
        """Type and shape of any value, as far as they are known; NotFoundError for a name that there is not."""
        info = abi.ValueInfo(struct_size=_INFO_SIZE)
        with self._lock:
            lib.check(lib.graph.value_info(self._at(), lib.text(name), ctypes.byref(info)))
            return read_info(info).tensor_info()

    def set_tensor_info(self, info: TensorInfo) -> None:
        """Declares type and shape of a value."""
        self._call(lib.graph.set_value_info, ctypes.byref(info_struct(info)))

    # ------------------------------------------------------------------ initializers

    def add_initializer(self, name: str, value: Any) -> None:
        """Adds a constant, in place of one of the same name: a Tensor, an array, a SparseTensor, or what NumPy makes
        arrays of.

        The memory of a row-major array or Tensor is used, not copied, and stays for as long as anything needs it: who
        writes into it later gives a copy. DTypeMismatchError for arrays that are no tensors.
        """
        constant = value_of_constant(value, f"adding initializer '{name}'", share=True)
        self._call(lib.graph.add_initializer_value, lib.text(name), constant.address)

    @property
    def initializers(self) -> Dict[str, Union[Tensor, SparseTensor]]:
        """The constants by name, not copied and not to be written; initializer_for_write gives one that may be."""
        name, value = abi.String(), ctypes.c_void_p()
        out: Dict[str, Union[Tensor, SparseTensor]] = {}
        with self._lock:
            for i in range(lib.graph.initializer_count(self._at())):
                lib.check(lib.graph.initializer_at(self._at(), i, ctypes.byref(name), ctypes.byref(value)))
                out[lib.read(name)] = tensor_at(value.value or 0)
        return out

    def initializer(self, name: str) -> Union[Tensor, SparseTensor]:
        """A constant by name, as in ``initializers``; NotFoundError when there is none of the name."""
        return self._initializer(lib.graph.initializer, name, False)

    def has_initializer(self, name: str) -> bool:
        """Tells whether there is a constant of this name."""
        return self.get_initializer(name) is not None

    def get_initializer(self, name: str) -> Union[Tensor, SparseTensor, None]:
        """Does what ``initializer`` does, but gives None when there is none of the name."""
        try:
            return self.initializer(name)
        except NotFoundError:
            return None

    def initializer_for_write(self, name: str) -> Tensor:
        """A constant whose ``numpy()`` may be written into.

        What models, sessions, other graphs or earlier Tensors share is copied first, so that they never see it change.
        To be asked for again after the graph was cloned or a session made of it. UnsupportedError for sparse ones.
        """
        found = self._initializer(lib.graph.initializer_for_write, name, True)
        assert isinstance(found, Tensor)
        return found

    def _initializer(self, function: Any, name: str, writeable: bool) -> Union[Tensor, SparseTensor]:
        value = ctypes.c_void_p()
        with self._lock:
            lib.check(function(self._at(), lib.text(name), ctypes.byref(value)))
            return tensor_at(value.value or 0, writeable)

    def remove_initializer(self, name: str) -> None:
        """Removes a constant by name. NotFoundError when there is none."""
        self._call(lib.graph.remove_initializer, lib.text(name))

    # ------------------------------------------------------------------ nodes

    def add_node(self, name: str, op: str, inputs: Sequence[str] = (), outputs: Sequence[str] = (),
                 attributes: Optional[Mapping[str, AttributeValue]] = None, domain: str = "", doc: str = "",
                 *, attrs: Optional[Mapping[str, AttributeValue]] = None) -> Node:
        """Adds a node; names may refer to values that are added later, ``validate`` says what is missing.

        Parameters
        ----------
        name: of the node; may be "".
        op: the operator, "Gemm".
        inputs, outputs: names of values; "" for an optional one that is absent.
        attributes, attrs: by name (two names for one parameter): ints, floats, strings, tensors, graphs made by
            create_subgraph, and lists of one of these.
        domain: of the operator; "" is ONNX's own.

        InvalidArgumentError for a name that another node has, which nodes read from files may; ValidationError for an
        output that something else makes.
        """
        if attributes is not None and attrs is not None:
            raise InvalidArgumentError("attributes and attrs are one parameter under two names; give one of them")
        for names in (inputs, outputs):
            if isinstance(names, str):
                raise TypeError(f"adding node '{name}': give lists of names, not the string {names!r}")
        with self._lock:
            self._need_name(name, f"adding node '{name}' ({op})")
            return self._append_node(name, op, inputs, outputs, attributes or attrs or {}, domain, doc)

    def _append_node(self, name: str, op: str, inputs: Sequence[str], outputs: Sequence[str],
                     attributes: Mapping[str, AttributeValue], domain: str = "", doc: str = "") -> Node:
        """Does what add_node does, whatever the node's name."""
        self._note_name(name)
        made = [encode(key, value) for key, value in attributes.items()]
        attr_array, ins, outs = (abi.Attr * len(made))(*made), lib.texts(inputs), lib.texts(outputs)
        texts = {"name": lib.text(name), "op": lib.text(op), "domain": lib.text(domain), "doc": lib.text(doc)}
        node = abi.Node(struct_size=_NODE_SIZE, inputs=ctypes.addressof(ins), input_count=len(ins),
                        outputs=ctypes.addressof(outs), output_count=len(outs), attr_count=len(made),
                        attrs=ctypes.addressof(attr_array), **texts)
        with self._lock:
            return self._node(self._number(lib.graph.add_node, ctypes.byref(node)))

    def _need_name(self, name: str, doing: str) -> None:
        """No node but those of files has another's name; any number may have none."""
        if not name:
            return
        if self._names is None:
            self._names = {node.name for node in self.nodes}
        taken = self.find_node(name) if name in self._names else None
        if taken is not None:
            raise InvalidArgumentError(f"{doing}: the graph has a node of that name, {taken.op} -> "
                                       f"{', '.join(taken.outputs)}; give this one another name, or ''")

    def _node(self, number: int) -> Node:
        with self._lock:
            node = self._nodes.get(number)
            if node is None:
                node = self._nodes[number] = Node(self, number)
            return node

    def _some(self, number: int) -> Optional[Node]:
        return None if number == abi.NO_NODE else self._node(number)

    def _id_of(self, node: Union[Node, str], doing: str) -> int:
        if isinstance(node, str):
            return self._number(lib.graph.find_node, lib.text(node))
        if node._graph is not self or node.id is None:
            raise NotFoundError(f"{doing}: {node!r} is not in this graph")
        return node.id

    @property
    def nodes(self) -> List[Node]:
        """The nodes in the order they were added; a copy of the list, so that the graph may be edited in a loop."""
        with self._lock:
            out, number = [], lib.graph.next_node(self._at(), abi.NO_NODE)
            while number != abi.NO_NODE:
                out.append(self._node(number))
                number = lib.graph.next_node(self._at(), number)
            return out

    def node(self, number: int) -> Optional[Node]:
        """The node of that id, or None."""
        if not 0 <= number < abi.NO_NODE:
            return None
        try:
            self._call(lib.graph.node_by_id, number, ctypes.byref(abi.Node(struct_size=_NODE_SIZE)))
        except NotFoundError:
            return None
        return self._node(number)

    def find_node(self, name: str) -> Optional[Node]:
        """The first node of that name, or None."""
        try:
            return self._node(self._number(lib.graph.find_node, lib.text(name)))
        except NotFoundError:
            return None

    def _note_name(self, name: str) -> None:
        if self._names is not None:
            self._names.add(name)

    def num_nodes(self) -> int:
        """The number of nodes that the graph has, those of bodies aside."""
        with self._lock:
            return int(lib.graph.node_count(self._at()))

    def get_node(self, name: str) -> Optional[Node]:
        """``find_node`` by its other name."""
        return self.find_node(name)

    def get_producer(self, value: str) -> Optional[str]:
        """The name of the node that makes a value; None also for a value that the graph does not have."""
        try:
            made_by = self.producer(value)
        except NotFoundError:
            return None
        return None if made_by is None else made_by.name

    def get_consumers(self, value: str) -> List[str]:
        """The names of the nodes that take a value; none for a value that the graph does not have."""
        try:
            return [node.name for node in self.consumers(value)]
        except NotFoundError:
            return []

    def producer(self, value: str) -> Optional[Node]:
        """The node that makes a value; None for inputs, initializers and what a body captures."""
        return self._some(self._number(lib.graph.producer, lib.text(value)))

    def consumers(self, value: str) -> List[Node]:
        """The nodes that take a value, or whose bodies capture it."""
        return self._listed(lib.graph.consumers, lib.text(value))

    def topological_sort(self) -> List[Node]:
        """The nodes, producers first; ValidationError when the graph has a cycle."""
        return self._listed(lib.graph.topological_order)

    def _listed(self, function: Any, *args: Any) -> List[Node]:
        ids, count = ctypes.c_void_p(), ctypes.c_size_t()
        with self._lock:
            lib.check(function(self._at(), *args, ctypes.byref(ids), ctypes.byref(count)))
            if not count.value:
                return []
            return [self._node(number) for number in (ctypes.c_uint32 * count.value).from_address(ids.value or 0)]

    def remove_node(self, node: Union[Node, str]) -> None:
        """Removes a node, given as such or by name. What it made is then made by nobody, until it is again."""
        with self._lock:
            number = self._id_of(node, "removing a node")
            known = self._node(number)
            was = known._freeze()
            self._call(lib.graph.remove_node, number)
            known._was = was

    def replace_uses(self, old: str, new: str, except_node: Union[Node, str, None] = None) -> None:
        """Whatever uses the value |old|, but for |except_node|, uses |new|; a graph output keeps its name where nodes
        make both."""
        with self._lock:
            number = abi.NO_NODE if except_node is None else self._id_of(except_node, "replacing uses")
            self._call(lib.graph.replace_uses, lib.text(old), lib.text(new), number)

    def insert_after(self, value: str, name: str, op: str, inputs: Optional[Sequence[str]] = None,
                     outputs: Sequence[str] = (), attributes: Optional[Mapping[str, AttributeValue]] = None,
                     domain: str = "", doc: str = "",
                     *, attrs: Optional[Mapping[str, AttributeValue]] = None) -> Node:
        """Adds a node that takes |value| (its only input unless |inputs| say otherwise), and lets all others that took
        |value| take the node's first output."""
        if not outputs:
            raise InvalidArgumentError(f"inserting node '{name}' after '{value}': it has no output")
        with self._lock:
            self.producer(value)  # not found before anything is added
            node = self.add_node(name, op, [value] if inputs is None else inputs, outputs, attributes, domain, doc,
                                 attrs=attrs)
            try:
                self.replace_uses(value, outputs[0], node)
            except PyFlameRTError:
                self.remove_node(node)
                raise
            return node

    def rename_value(self, old: str, new: str) -> None:
        """The value has another name wherever it is used, bodies included."""
        self._call(lib.graph.rename_value, lib.text(old), lib.text(new))

    # ------------------------------------------------------------------ what is right with it

    def validate(self) -> List[str]:
        """The faults of the graph's form, a sentence each; the list is empty when there are none."""
        return self._faults(lib.graph.validate)

    def validate_all(self) -> List[str]:
        """Finds what ``validate`` does, and operators that nobody knows, wrong arity and types of attributes, and types
        and shapes that contradict."""
        return self._faults(lib.graph.validate_all, lib.default_env().address)

    def _faults(self, function: Any, *args: Any) -> List[str]:
        try:
            self._call(function, *args)
        except ValidationError as fault:
            return [str(one) for one in fault.faults or [fault]]
        return []

    def infer_shapes(self) -> None:
        """Fills in types and shapes of inner values as far as they follow from the inputs."""
        self._call(lib.graph.infer_shapes)

    # ------------------------------------------------------------------ files and looks

    def save(self, path: Any) -> None:
        """Writes a .pfm or .onnx file, by the extension.

        ValidationError when the graph is not well formed; the old file stays until the new one is whole.
        """
        write_model(model_of_graph(self), path, LoadCall())

    @staticmethod
    def load(path: Any) -> "Graph":
        """The graph of a model file, as ``load_model`` with its defaults."""
        model = model_of_source(path)
        assert model.address
        return graph_of_model(model.address)

    def __copy__(self) -> "Graph":
        return self.clone()

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Graph":
        return self.clone()

    def __reduce__(self) -> Tuple[Any, ...]:
        return graph_of_bytes, (graph_to_bytes(self),)

    def __repr__(self) -> str:
        return graph_line(self) if self._handle.address else "Graph(lent to a pass that is over)"

    def __str__(self) -> str:
        return graph_tree(self)

    def _repr_html_(self) -> str:
        return graph_html(self)


def _info(name: Union[str, TensorInfo], shape: ShapeLike, dtype: Any) -> TensorInfo:
    if isinstance(name, TensorInfo):
        if shape is not None or dtype is not None:
            raise InvalidArgumentError(f"value '{name.name}': a TensorInfo says shape and dtype; set them there")
        return name
    kept: Any = None if shape is None else list(shape) if not isinstance(shape, str) else shape
    return TensorInfo(name, None if dtype is None else dtype_of(dtype), kept)


def _index(which: Union[int, str], there: List[TensorInfo], what: str) -> int:
    if not isinstance(which, str):
        if 0 <= which < len(there):
            return which
        raise InvalidArgumentError(f"the graph has no {what} at position {which}; it has {len(there)}")
    for i, info in enumerate(there):
        if info.name == which:
            return i
    raise NotFoundError(f"the graph has no {what} '{which}'; it has " + ", ".join(f"'{i.name}'" for i in there))


def graph_of_model(model: int) -> Graph:
    """An editable copy of a model's graph; constants are shared."""
    return Graph._of(lib.make(lib.model.graph, lib.graph.release, model))


def graph_of_bytes(data: bytes) -> Graph:
    model = model_of_bytes(data, LoadCall(False, False))
    assert model.address
    return graph_of_model(model.address)
