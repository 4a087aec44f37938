from .replay import EndpointReplay as EndpointReplay
from .servers import (
    Connection as Connection,
    ReplayServer as ReplayServer,
    SglangServer as SglangServer,
    VllmServer as VllmServer,
)
