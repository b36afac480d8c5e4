# SPDX-License-Identifier: Apache-2.0
"""The environment: providers, the device, versions, how much is logged, what is warned of."""
from __future__ import annotations

import logging
import sys
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from pyflame_rt._core import library
from pyflame_rt._core.errors import InvalidArgumentError, NotFoundError
from pyflame_rt._core.options import LogLevel
from pyflame_rt._session.environment import Environment
from pyflame_rt._session.providers import get_available_providers, word_of

from ._exceptions import translating

# The API that this module follows has this version, which programs compare with the one that brought what they need.
API_VERSION = "1.22.0"
# The library's words for the severities 0 (verbose) to 4 (fatal).
_LEVELS: Tuple[LogLevel, ...] = ("debug", "info", "warning", "error", "off")
_PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
              "ROCMExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider",
              "TvmExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider",
              "JsExecutionProvider", "CoreMLExecutionProvider", "ArmNNExecutionProvider", "ACLExecutionProvider",
              "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider", "WebGpuExecutionProvider",
              "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider",
              "NvTensorRTRTXExecutionProvider", "VSINPUExecutionProvider", "SNPEExecutionProvider")

_logger = logging.getLogger("pyflame_rt.onnxruntime")
_warned: Set[str] = set()
_severity = 2


def warn(message: str) -> None:
    """Warns the line outside of the package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pyflame_rt."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def no_meaning(name: str, why: str) -> None:
    """Warns, the first time, that an option does nothing here."""
    if name not in _warned:
        _warned.add(name)
        warn(f"'{name}' has no meaning here: {why}")


def log_no_meaning(name: str, why: str) -> None:
    """Logs that an entry does nothing here; real programs set many, for a library that does not say so either."""
    _logger.info("'%s' has no meaning here: %s", name, why)


def level_of(severity: int, what: str) -> LogLevel:
    """The library's word for a severity; -1 is the default logger's."""
    if isinstance(severity, int) and -1 <= severity < len(_LEVELS):
        return _LEVELS[_severity if severity == -1 else severity]
    raise InvalidArgumentError(f"{what} is {severity!r}; it is 0 (verbose), 1 (info), 2 (warning), 3 (error) or "
                               "4 (fatal)")


@translating
def set_default_logger_severity(severity: int) -> None:
    """Sets what sessions made from now on log, where they do not say it themselves: 0 (verbose) to 4 (fatal)."""
    global _severity
    if severity == -1:
        raise InvalidArgumentError("the default severity is -1; give a number from 0 (verbose) to 4 (fatal)")
    level_of(severity, "the default severity")
    _severity = severity


def set_default_logger_verbosity(vlog_level: int) -> None:
    """Has no meaning here: the severity alone chooses lines. Warns once when it is not 0."""
    if vlog_level:
        no_meaning("set_default_logger_verbosity", "the severity alone chooses lines of the log")


def set_seed(seed: int) -> None:
    """Is taken and told to the logger: operators that draw numbers take their seed from the model."""
    log_no_meaning("set_seed", "operators that draw numbers take their seed from the model")


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Optional[str] = None) -> None:
    """Does nothing: plug-ins are opened when they are first needed."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent anywhere."""


def get_all_providers() -> List[str]:
    """Execution providers by name, the API's first: those that a session may be asked for without an error."""
    here = get_available_providers()
    return [*(name for name in _PROVIDERS if name not in here), *here]


def get_device() -> str:
    """"CPU"; devices that are used when they are named are among get_available_providers."""
    return "CPU"


def get_version_string() -> str:
    """The version of the API that this module follows; ``pyflame_rt.__version__`` is the library's."""
    return API_VERSION


def get_build_info() -> str:
    """The library's version, and that of the API that is followed."""
    return f"PyFlameRT {library.version}, following ONNX Runtime's API {API_VERSION}"


Options = Dict[str, str]


def chosen_providers(providers: Optional[Sequence[Union[str, Tuple[str, Mapping[str, Any]]]]],
                     options: Optional[Sequence[Mapping[str, Any]]]) -> List[Tuple[str, Options]]:
    """Providers that are here, of those asked for; the CPU, which takes what others leave, is always the last."""
    if providers is not None and (isinstance(providers, str) or not isinstance(providers, Sequence)):
        raise InvalidArgumentError(f"'providers' is {providers!r}; give a list, as in ['CPUExecutionProvider']")
    asked: List[Tuple[str, Options]] = []
    for one in providers or ():
        name, own = (one, {}) if isinstance(one, str) else _pair(one)
        asked.append((name, {str(key): str(value) for key, value in own.items()}))
    if options is not None:
        if isinstance(options, Mapping) or len(options) != len(asked):
            raise InvalidArgumentError(f"'provider_options' has to be a list with a dict for each of the {len(asked)} "
                                       "providers")
        if any(own for _, own in asked):
            raise InvalidArgumentError("options are given both beside a provider's name and in 'provider_options'; "
                                       "give them once")
        asked = [(name, {str(k): str(v) for k, v in given.items()}) for (name, _), given in zip(asked, options)]
    return _available(asked)


def _pair(one: Any) -> Tuple[str, Mapping[str, Any]]:
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], Mapping):
        return one[0], one[1]
    raise InvalidArgumentError(f"'providers' has {one!r}; its elements are names or (name, options) tuples")


def _available(asked: List[Tuple[str, Options]]) -> List[Tuple[str, Options]]:
    here, chosen = get_available_providers(), {}  # type: List[str], Dict[str, Options]
    names = {word_of(name): name for name in here}
    for given, own in asked:
        name = given if given in here else names.get(word_of(given), given)
        if name in chosen:
            warn(f"Duplicate provider '{name}' encountered, ignoring.")
        elif name in here:
            chosen[name] = own
        elif name in _PROVIDERS:
            warn(f"Specified provider '{name}' is not in available provider names. Available providers: "
                 f"'{', '.join(here)}'")
        else:
            raise NotFoundError(f"there is no execution provider '{name}'; there are " + ", ".join(map(repr, here)))
    own = chosen.setdefault("CPUExecutionProvider", {})
    known = {option.key for option in Environment.instance().provider_options("CPUExecutionProvider")}
    for key in own.keys() - known:  # programs give it the options that they give others
        log_no_meaning(key, "the CPU has no such option")
    chosen["CPUExecutionProvider"] = {key: value for key, value in own.items() if key in known}
    return list(chosen.items())
