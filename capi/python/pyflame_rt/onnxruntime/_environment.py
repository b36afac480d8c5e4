# SPDX-License-Identifier: Apache-2.0
"""The environment: providers, the device, versions, how much is logged, what is warned of."""
from __future__ import annotations

import logging
import sys
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

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
_SEVERITIES: Dict[str, int] = {level: severity for severity, level in enumerate(_LEVELS)}
_PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
              "ROCMExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider",
              "TvmExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider",
              "JsExecutionProvider", "CoreMLExecutionProvider", "ArmNNExecutionProvider", "ACLExecutionProvider",
              "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider", "WebGpuExecutionProvider",
              "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider",
              "NvTensorRTRTXExecutionProvider", "VSINPUExecutionProvider", "SNPEExecutionProvider")

LogCallback = Callable[[int, str, str, str, str], Any]

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


@translating
def set_default_logger_callback(callback: Optional[LogCallback], severity: int = 2) -> None:
    """Log lines go to ``callback(severity, category, logid, code_location, message)`` instead of ``sys.stderr``; None
    restores that. |severity| is set as ``set_default_logger_severity`` sets it.

    Called from any thread, several at once; what it raises is lost with the line. The category is "pyflame_rt", and
    logid and code_location are "", which lines do not carry here.
    """
    if callback is None:
        Environment.instance().set_logger(None)
        return
    if not callable(callback):
        raise InvalidArgumentError(f"set_default_logger_callback: {callback!r} cannot be called; give a function of "
                                   "(severity, category, logid, code_location, message), or None")
    set_default_logger_severity(severity)
    Environment.instance().set_logger(_hearing(callback))


def _hearing(callback: LogCallback) -> Callable[[str, str], Any]:
    return lambda level, message: callback(_SEVERITIES[level], "pyflame_rt", "", "", message)


def set_seed(seed: int) -> None:
    """Is taken and told to the logger: operators that draw numbers take their seed from the model."""
    log_no_meaning("set_seed", "operators that draw numbers take their seed from the model")


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Optional[str] = None) -> None:
    """Does nothing: plug-ins are opened when they are first needed."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent anywhere."""


def enable_telemetry_events() -> None:
    """Is taken and told to the logger: nothing is ever sent anywhere."""
    log_no_meaning("enable_telemetry_events", "nothing is ever sent anywhere")


def get_all_providers() -> List[str]:
    """Execution providers by name, the API's first and the CPU's last: those that a session may be asked for without an
    error."""
    here = get_available_providers()
    first = [name for name in _PROVIDERS if name not in here]
    return [*first, *sorted(here, key=lambda name: name == "CPUExecutionProvider")]


def get_device() -> str:
    """"CPU"; devices that are used when they are named are among get_available_providers."""
    return "CPU"


def get_version_string() -> str:
    """The version of the API that this module follows; ``pyflame_rt.__version__`` is the library's."""
    return API_VERSION


def get_build_info() -> str:
    """The library's version, and that of the API that is followed."""
    return f"PyFlameRT Build Info: version {library.version}, following ONNX Runtime's API {API_VERSION}"


Options = Dict[str, str]


def asked_providers(providers: Optional[Sequence[Union[str, Tuple[str, Mapping[str, Any]]]]],
                    options: Optional[Sequence[Mapping[str, Any]]]) -> List[Tuple[str, Options]]:
    """The names and options of a constructor's two arguments, as pairs."""
    if providers is not None and (isinstance(providers, str) or not isinstance(providers, Sequence)):
        raise InvalidArgumentError(f"'providers' is {providers!r}; give a list, as in ['CPUExecutionProvider']")
    asked: List[Tuple[str, Options]] = []
    for one in providers or ():
        name, own = (one, {}) if isinstance(one, str) else _pair(one)
        asked.append((name, _texts(own)))
    if options is not None:
        if not isinstance(options, Sequence) or len(options) != len(asked) or not all(
                isinstance(given, Mapping) for given in options):
            raise InvalidArgumentError(f"'provider_options' is {options!r}; it has to be a list with a dict for each of "
                                       f"the {len(asked)} providers")
        if any(own for _, own in asked):
            raise InvalidArgumentError("options are given both beside a provider's name and in 'provider_options'; "
                                       "give them once")
        asked = [(name, _texts(given)) for (name, _), given in zip(asked, options)]
    return asked


def chosen_providers(providers: Optional[Sequence[Union[str, Tuple[str, Mapping[str, Any]]]]],
                     options: Optional[Sequence[Mapping[str, Any]]]) -> List[Tuple[str, Options]]:
    """Providers that are here, of those asked for; the CPU, which takes what others leave, is always the last."""
    return _available(asked_providers(providers, options))


@translating
def check_and_normalize_provider_args(providers: Optional[Sequence[Union[str, Tuple[str, Mapping[str, Any]]]]],
                                      provider_options: Optional[Sequence[Mapping[str, Any]]],
                                      available_provider_names: Sequence[str]) -> Tuple[List[str], List[Options]]:
    """The names and the options, as text, of what a session's constructor is given; warns of those that are not
    available, and of those given twice, whose first options hold."""
    chosen: Dict[str, Options] = {}
    for name, own in asked_providers(providers, provider_options):
        if name not in available_provider_names:
            _warn_absent(name, available_provider_names)
        if name in chosen:
            _warn_twice(name)
        chosen.setdefault(name, own)
    return list(chosen), list(chosen.values())


def _texts(own: Mapping[Any, Any]) -> Options:
    return {str(key): str(value) for key, value in own.items()}


def _warn_absent(name: str, available: Sequence[str]) -> None:
    warn(f"Specified provider '{name}' is not in available provider names. Available providers: "
         f"'{', '.join(available)}'")


def _warn_twice(name: str) -> None:
    warn(f"Duplicate provider '{name}' encountered, ignoring.")


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
            _warn_twice(name)
        elif name in here:
            chosen[name] = own
        elif name in _PROVIDERS:
            _warn_absent(name, here)
        else:
            raise NotFoundError(f"Unknown Provider Type: {name}; there are " + ", ".join(map(repr, here)))
    own = chosen.setdefault("CPUExecutionProvider", {})
    known = {option.key for option in Environment.instance().provider_options("CPUExecutionProvider")}
    for key in own.keys() - known:  # programs give it the options that they give others
        log_no_meaning(key, "the CPU has no such option")
    chosen["CPUExecutionProvider"] = {key: value for key, value in own.items() if key in known}
    return list(chosen.items())
