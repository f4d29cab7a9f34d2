"""memd's client. Law: standard library only, nothing of memd, and no import that one call does not need.

    with memd_client.connect() as memd:
        memd.call("memory.search", {"query": "forge tests", "cwd": os.getcwd()})

`memd_client.where` alone decides home, socket and start lock, for the daemon too; the async pool is
`memd_client.aio`; the module `memory` is the same for a kernel, one function a verb. SPEC 1, 12, 13.
"""

from memd_client import errors
from memd_client.connection import Connection, connect
from memd_client.errors import (
    BadPlace,
    BadReply,
    Busy,
    Conflict,
    ConnectionLost,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MemdError,
    MethodNotFound,
    NoAnswer,
    NoProtocol,
    NotFound,
    NotRoot,
    OtherHome,
    OtherOwner,
    ParseError,
    ReadOnly,
    Refused,
    SaveCap,
    SocketPathTooLong,
    Storage,
    Suspended,
    TooLarge,
    Unavailable,
    Unreadable,
)
from memd_client.where import (
    SOCKET_PATH_LIMIT,
    config_path,
    home,
    home_id,
    log_path,
    runtime_directory,
    socket_path,
    start_lock_path,
    user_home,
)

__all__ = [
    "SOCKET_PATH_LIMIT",
    "BadPlace",
    "BadReply",
    "Busy",
    "Conflict",
    "Connection",
    "ConnectionLost",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "MemdError",
    "MethodNotFound",
    "NoAnswer",
    "NoProtocol",
    "NotFound",
    "NotRoot",
    "OtherHome",
    "OtherOwner",
    "ParseError",
    "ReadOnly",
    "Refused",
    "SaveCap",
    "SocketPathTooLong",
    "Storage",
    "Suspended",
    "TooLarge",
    "Unavailable",
    "Unreadable",
    "config_path",
    "connect",
    "errors",
    "home",
    "home_id",
    "log_path",
    "runtime_directory",
    "socket_path",
    "start_lock_path",
    "user_home",
]
